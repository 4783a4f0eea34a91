"""The three answer tools: how they are listed, what they answer, and how they fail (spec 2.4, 3, 8.2, B)."""

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.asking import Asker
from responses_mcp.errors import ConfigError, UpstreamError
from responses_mcp.protocol.jsonrpc import RpcError, encode
from responses_mcp.settings.model import OpenAISettings, SearchDefaults, SearchSettings, Settings
from responses_mcp.testing import bodies
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolFailure, ToolSuccess
from tests.debug_lines import configured
from tests.responses_api.stub import KEY, Play, Reply, ok, refused, stub_api
from tests.testing import samples

TODAY = "2026-11-22"


class Harness:
    """The toolset over a stub, called as the server calls it."""

    def __init__(self, *script: Play, settings: Settings | None = None, debug: bool = False) -> None:
        settings = settings or Settings(openai=OpenAISettings(api_key=KEY))
        api, self.stub = stub_api(*script, openai=settings.openai, max_retries=0)
        answers = Asker(settings, api=api, today=lambda: TODAY)
        self.toolset = AnswerToolset(lambda: answers, debug=debug)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in self.toolset.tools}

    async def call(self, arguments: dict[str, Any], tool: str = "answer") -> ToolSuccess:
        found = await self.tools[tool].handler(CallContext(1), arguments)
        assert isinstance(found, ToolSuccess)
        return found

    async def fail(self, arguments: dict[str, Any] | None = None, tool: str = "answer") -> dict[str, Any]:
        """Return the `data` of the error, after a look at what is the same in all of them."""
        with pytest.raises(ToolError) as caught:
            await self.call({"query": "q"} if arguments is None else arguments, tool)
        failure = caught.value.failure
        assert isinstance(failure.error, RpcError)
        assert (failure.error.code, failure.error.message) == (-32001, "answer failed")
        assert failure.error.data is not None
        assert failure.text.startswith(failure.error.data["message"])
        assert 0 < len(failure.error.data["message"]) <= 400
        return failure.error.data

    async def hints(self, arguments: dict[str, Any], tool: str = "answer") -> str:
        """Return the hints that are sent upstream."""
        await self.call({"query": "q", **arguments}, tool)
        text = str(json.loads(self.stub.sent[-1].body)["input"])
        return text.removeprefix(f"q\n\n[Hints] today={TODAY} (Asia/Tokyo), ")


async def test_how_long_an_answer_may_be_is_a_setting_and_more_than_usual_is_told_in_the_list() -> None:
    toolset = AnswerToolset(lambda: Asker(Settings()), most_characters=200_000)
    assert {tool.definition["_meta"]["anthropic/maxResultSizeChars"] for tool in toolset.tools} == {200_000}
    assert all("_meta" not in tool.definition for tool in Harness().tools.values())


# The tool list of the contract, section 2.4, as it stands there.
CONTRACT_LIST = json.loads(
    """[{"name":"answer","description":"Search the web when needed and provide balanced, well-sourced answers. This is the standard general-purpose tool.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"recency_days":{"type":"number"},"max_results":{"type":"number"},"domains":{"type":"array","items":{"type":"string"}}},"required":["query"]}},{"name":"answer_detailed","description":"Perform comprehensive analysis with thorough research and detailed explanations. Best for complex questions requiring deep investigation.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"recency_days":{"type":"number"},"max_results":{"type":"number"},"domains":{"type":"array","items":{"type":"string"}}},"required":["query"]}},{"name":"answer_quick","description":"Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.","inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}]"""
)


# How they are listed


@pytest.mark.rule("spec 1", "spec 3.1")
def test_names_descriptions_and_input_schemas_are_those_of_the_contract() -> None:
    shown = [tool.definition for tool in Harness().toolset.tools]
    assert [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in shown] == CONTRACT_LIST


@pytest.mark.rule("spec 3.1")
def test_beyond_the_contract_they_have_a_title_an_output_schema_and_annotations() -> None:
    for tool in Harness().toolset.tools:
        assert tool.definition.keys() == {
            "name", "title", "description", "inputSchema", "outputSchema", "annotations",
        }  # fmt: skip
        assert tool.definition["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
        Draft202012Validator.check_schema(tool.definition["inputSchema"])
        Draft202012Validator.check_schema(tool.definition["outputSchema"])


# What they answer


@pytest.mark.rule("P1", "spec 0", "spec 3.2", "spec A")
@pytest.mark.parametrize("name", ["searched", "unsearched", "refusal", "astral"])
async def test_an_answer_is_the_same_object_as_text_and_as_structure_and_fits_its_schema(name: str) -> None:
    harness = Harness(ok(samples.WELL_FORMED[name]()))
    success = await harness.call({"query": "When?"})
    assert success.structured == json.loads(success.text)
    assert success.structured is not None
    assert list(success.structured) == ["answer", "used_search", "citations", "model"]
    Draft202012Validator(harness.tools["answer"].definition["outputSchema"]).validate(success.structured)


@pytest.mark.rule("spec 10")
async def test_the_404_example_of_the_contract_is_unsearched() -> None:
    harness = Harness(ok(bodies.answer("見つからないという意味です。")))
    success = await harness.call({"query": "HTTP 404 の意味は？"})
    assert '"answer":"見つからないという意味です。"' in success.text
    assert success.structured == {
        "answer": "見つからないという意味です。",
        "used_search": False,
        "citations": [],
        "model": "gpt-5.2",
    }


# Profiles and configuration


@pytest.mark.rule("P10", "spec 5.3")
@pytest.mark.parametrize("tool", ["answer", "answer_detailed", "answer_quick"])
async def test_problems_of_the_configuration_fail_every_call(tool: str) -> None:
    harness = Harness(settings=Settings(problems=("openai.base_url: wrong; mend it.",)))
    for _ in range(2):
        assert "openai.base_url: wrong; mend it." in (await harness.fail(tool=tool))["message"]
    assert harness.stub.sent == []


@pytest.mark.rule("P10")
async def test_many_problems_are_all_in_the_text_and_the_first_400_characters_in_the_error() -> None:
    problems = tuple(f"setting.{number}: wrong; mend it." for number in range(50))
    with pytest.raises(ToolError) as caught:
        await Harness(settings=Settings(problems=problems)).call({"query": "q"})
    assert all(problem in caught.value.failure.text for problem in problems)
    assert caught.value.failure.error is not None
    assert caught.value.failure.error.data == {"message": caught.value.failure.text[:400]}


# How they fail


@pytest.mark.rule("spec 8.2")
async def test_a_long_failure_keeps_its_cure_within_400_characters() -> None:
    body = json.dumps({"error": {"message": "word " * 500, "type": "t" * 200, "code": "c" * 200}}).encode()
    reply = refused(429, x_request_id="req_" + "0" * 32, retry_after="1")
    message = (await Harness(Reply(429, reply.headers, [body]), debug=True).fail())["message"]
    assert "Wait a while and ask again." in message
    assert "It asks to wait 1 s." in message
    assert message.endswith(f"(request id req_{'0' * 32})")


@pytest.mark.rule("spec 8.2", "spec B")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UpstreamError("x", status=418, type="teapot", code="c"), {"status": 418, "type": "teapot", "name": None}),
        (ConfigError(["x"]), {"status": None, "type": None, "name": "configuration"}),
    ],
)
async def test_debug_adds_null_for_what_is_not_known(error: Exception, told: dict[str, Any]) -> None:
    data = await Harness(error, debug=True).fail()
    assert {name: data[name] for name in told} == told
    assert (await Harness(error).fail()).keys() == {"message"}


def test_a_failure_that_is_not_the_tools_own_is_worded_the_same_way() -> None:
    tool = Harness().tools["answer"]
    expected = ToolFailure("The server is full.", RpcError(-32001, "answer failed", {"message": "The server is full."}))
    assert tool.failure("The server is full.") == expected


async def test_closing_the_toolset_closes_the_connections() -> None:
    harness = Harness()
    await harness.call({"query": "q"})
    await harness.toolset.aclose()
    assert harness.stub.closed == 1


# The log


async def test_the_log_tells_the_keys_and_the_length_of_the_query_and_not_the_query(
    capfd: pytest.CaptureFixture[str],
) -> None:
    harness = Harness(ok(bodies.answer("canary-answer")))
    with configured():
        await harness.call({"query": "canary-query", "domains": ["canary.jp"], "recency_days": 5})
        await harness.fail({"query": 5.5, "domains": 5}, "answer_detailed")
    err = capfd.readouterr().err
    lines = [line.partition(" DEBUG ")[2] for line in err.splitlines()]
    assert [line for line in lines if line.startswith("server:")] == [
        "server: tools/call name=answer argsKeys=['domains', 'query', 'recency_days'] queryLen=12",
        "server: tools/call name=answer_detailed argsKeys=['domains', 'query'] queryLen=0",
    ]
    assert "canary" not in err


# What they forgive in their arguments, and what they refuse (design 3.2)


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (5, 5), (5.0, 5), (5.4, 5), (5.6, 6), ("5", 5), (" 5 ", 5), ("5.6", 6), ("1e1", 10), (None, 60), ("", 60), ("  ", 60),
        (0, 0), (-3, 0), (10**9, 36_500), (1e300, 36_500), ("-1", 0),
    ],
)  # fmt: skip
async def test_days_are_read_as_a_whole_number_within_bounds(value: Any, sent: int) -> None:
    assert await Harness().hints({"recency_days": value}) == f"recency_days={sent}, max_results=5"


@pytest.mark.parametrize(("value", "sent"), [(3, 3), ("3", 3), (0, 1), (-1, 1), (1000, 100), (None, 5)])
async def test_results_are_read_as_a_whole_number_within_bounds(value: Any, sent: int) -> None:
    assert await Harness().hints({"max_results": value}) == f"recency_days=60, max_results={sent}"


@pytest.mark.parametrize("name", ["recency_days", "max_results"])
@pytest.mark.parametrize("value", ["soon", "nan", True, [5], float("nan"), float("inf"), 10**400])
async def test_what_is_no_number_is_refused_by_name_and_not_sent(name: str, value: Any) -> None:
    harness = Harness()
    message = (await harness.fail({"query": "q", name: value}))["message"]
    assert message.startswith(f"{name} is ")
    assert "; it must be a whole number from " in message
    assert harness.stub.sent == []


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (["a.jp", "b.jp"], ", domains=a.jp b.jp"),
        ([" a.jp ", "", None, "b.jp c.jp"], ", domains=a.jp b.jp c.jp"),
        ('["a.jp", "b.jp"]', ", domains=a.jp b.jp"),
        ('"a.jp"', ", domains=a.jp"),
        ("a.jp, b.jp c.jp", ", domains=a.jp b.jp c.jp"),
        ("null", ""),
        (" [] ", ""),
        (["日本語.jp"], ", domains=日本語.jp"),
        ("", ""), ("  ", ""), ("[]", ""), ([], ""), ([None], ""), ([""], ""), (None, ""),
    ],
)  # fmt: skip
async def test_domains_are_read_from_lists_and_from_text(value: Any, sent: str) -> None:
    assert await Harness().hints({"domains": value}) == f"recency_days=60, max_results=5{sent}"


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("value", "usual"), [([], False), ("[]", False), ([""], False), (None, True), ("", True)])
async def test_an_empty_list_of_domains_is_none_also_where_the_settings_have_some(
    value: Any, usual: bool, strict: bool
) -> None:
    search = SearchSettings(defaults=SearchDefaults(domains=("a.jp",)), strict_domains=strict)
    harness = Harness(settings=Settings(openai=OpenAISettings(api_key=KEY), search=search))
    assert (await harness.hints({"domains": value})).endswith(", domains=a.jp") is usual
    assert ("filters" in json.loads(harness.stub.sent[0].body)["tools"][0]) is (usual and strict)


@pytest.mark.parametrize("value", [
    *(5, {"a": "b"}, ["a.jp", {}], "[5]", "[a.jp", '["a.jp", "b.j', '"a.jp', '{"a": "b"}', ["a.jp", '"b.jp']),
])  # fmt: skip
async def test_domains_that_are_no_texts_are_refused_and_not_sent(value: Any) -> None:
    harness = Harness()
    assert "; it must be a list of strings like [" in (await harness.fail({"query": "q", "domains": value}))["message"]
    assert harness.stub.sent == []


@pytest.mark.parametrize(
    ("value", "sent"), [(404, "404"), (1.5, "1.5"), ("  spaced  ", "  spaced  "), ("a\ud800", "a\ufffd")]
)
async def test_a_query_is_sent_as_the_text_that_it_is(value: Any, sent: str) -> None:
    harness = Harness()
    await harness.call({"query": value})
    assert json.loads(harness.stub.sent[0].body)["input"].startswith(f"{sent}\n\n")


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("arguments", [{}, *({"query": value} for value in (None, "  \n", True, ["q"], {"text": "q"}))])
@pytest.mark.parametrize("tool", ["answer", "answer_detailed", "answer_quick"])
async def test_a_missing_or_empty_query_is_refused_and_not_sent(tool: str, arguments: dict[str, Any]) -> None:
    harness = Harness()
    assert "query is" in (await harness.fail(arguments, tool))["message"]
    assert harness.stub.sent == []


async def test_arguments_that_a_tool_does_not_have_are_ignored() -> None:
    assert await Harness().hints({"verbosity": "high", "Query": "x", "": None}) == "recency_days=60, max_results=5"
    odd = {"recency_days": "soon", "max_results": [], "domains": 5}
    assert await Harness().hints(odd, "answer_quick") == "recency_days=60, max_results=5"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"query": st.text() | json_values},
        optional=dict.fromkeys(("recency_days", "max_results", "domains", "x"), json_values),
    )
)
def test_any_arguments_are_answered_or_refused(arguments: dict[str, Any]) -> None:
    async def call() -> None:
        harness = Harness()
        try:
            success = await harness.call(arguments)
        except ToolError as caught:
            failure = caught.failure
        else:
            assert encode(success.structured or {}).decode()
            return
        assert failure.error is not None
        assert encode({"text": failure.text, "data": failure.error.data}).decode()
        assert harness.stub.sent == []

    trio.run(call)
