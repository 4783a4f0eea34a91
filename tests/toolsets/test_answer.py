"""The three answer tools: how they are listed, what they answer, and how they fail (contract 2.4, 3, 8.2, B)."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.errors import ConfigError, ConnectionFailed, UpstreamError
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.settings.model import OpenAISettings, Profile, Settings
from responses_mcp.testing import bodies
from responses_mcp.toolsets.answer import answer_failed
from responses_mcp.toolsets.base import CallContext, ToolError, ToolFailure
from tests.debug_lines import configured
from tests.responses_api.stub import KEY, Reply, ok, refused
from tests.toolsets.answer_harness import Harness

# The tool list of the contract, section 2.4, as it stands there.
CONTRACT_LIST = json.loads(
    """[{"name":"answer","description":"Search the web when needed and provide balanced, well-sourced answers. This is the standard general-purpose tool.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"recency_days":{"type":"number"},"max_results":{"type":"number"},"domains":{"type":"array","items":{"type":"string"}}},"required":["query"]}},{"name":"answer_detailed","description":"Perform comprehensive analysis with thorough research and detailed explanations. Best for complex questions requiring deep investigation.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"recency_days":{"type":"number"},"max_results":{"type":"number"},"domains":{"type":"array","items":{"type":"string"}}},"required":["query"]}},{"name":"answer_quick","description":"Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.","inputSchema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}]"""
)


# How they are listed


def test_names_descriptions_and_input_schemas_are_those_of_the_contract() -> None:
    shown = [tool.definition for tool in Harness().toolset.tools]
    assert [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in shown] == CONTRACT_LIST


def test_beyond_the_contract_they_have_a_title_an_output_schema_and_annotations() -> None:
    for tool in Harness().toolset.tools:
        assert tool.definition.keys() == {
            "name", "title", "description", "inputSchema", "outputSchema", "annotations",
        }  # fmt: skip
        assert tool.definition["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
        Draft202012Validator.check_schema(tool.definition["inputSchema"])
        Draft202012Validator.check_schema(tool.definition["outputSchema"])


def test_listing_them_does_not_let_a_reader_change_them() -> None:
    harness = Harness()
    harness.toolset.tools[0].definition["annotations"]["readOnlyHint"] = False
    assert harness.toolset.tools[0].definition["annotations"]["readOnlyHint"] is True


# What they answer


async def test_an_answer_is_the_same_object_as_text_and_as_structure() -> None:
    success = await Harness(ok(bodies.searched())).call({"query": "When?"})
    assert success.structured == json.loads(success.text)
    assert success.structured is not None
    assert list(success.structured) == ["answer", "used_search", "citations", "model"]
    assert success.structured["used_search"] is True


@pytest.mark.parametrize("name", ["searched", "unsearched", "markers", "refusal", "utm_urls", "astral"])
async def test_an_answer_fits_its_schema(name: str) -> None:
    harness = Harness(ok(bodies.WELL_FORMED[name]()))
    success = await harness.call({"query": "q"})
    Draft202012Validator(harness.tools["answer"].definition["outputSchema"]).validate(success.structured)


async def test_japanese_stays_readable_in_the_text() -> None:
    assert '"answer": "日本語🐍"' in (await Harness(ok(bodies.answer("日本語🐍"))).call({"query": "q"})).text


async def test_the_404_example_of_the_contract_is_unsearched() -> None:
    harness = Harness(ok(bodies.answer("見つからないという意味です。")))
    success = await harness.call({"query": "HTTP 404 の意味は？"})
    assert success.structured == {
        "answer": "見つからないという意味です。",
        "used_search": False,
        "citations": [],
        "model": "gpt-5.2",
    }


@pytest.mark.parametrize("watched", [True, False])
async def test_a_call_is_streamed_whether_or_not_the_client_wants_to_know_how_it_goes(watched: bool) -> None:
    harness = Harness()
    phases: list[str] = []
    context = CallContext(1, phases.append if watched else None)
    await harness.tools["answer"].handler(context, {"query": "q"})
    assert json.loads(harness.stub.sent[0].body)["stream"] is True
    assert phases == (["asking gpt-5.2"] if watched else [])


# Profiles and configuration


async def test_each_tool_uses_its_profile_or_that_of_answer() -> None:
    profiles = MappingProxyType({"answer": Profile(model="gpt-5.4"), "answer_quick": Profile(model="gpt-5.4-mini")})
    harness = Harness(settings=Settings(openai=OpenAISettings(api_key=KEY), model_profiles=profiles))
    for tool in ("answer", "answer_detailed", "answer_quick"):
        await harness.call({"query": "q"}, tool)
    models = [json.loads(sent.body)["model"] for sent in harness.stub.sent]
    assert models == ["gpt-5.4", "gpt-5.4", "gpt-5.4-mini"]


@pytest.mark.parametrize("tool", ["answer", "answer_detailed", "answer_quick"])
async def test_without_the_answer_profile_every_tool_names_it(tool: str) -> None:
    profiles = MappingProxyType({"answer_detailed": Profile()})
    harness = Harness(settings=Settings(model_profiles=profiles))
    assert "model_profiles.answer" in (await harness.fail(tool=tool))["message"]


@pytest.mark.parametrize("tool", ["answer", "answer_detailed", "answer_quick"])
async def test_problems_of_the_configuration_fail_every_call(tool: str) -> None:
    harness = Harness(settings=Settings(problems=("openai.base_url: wrong; mend it.",)))
    for _ in range(2):
        assert "openai.base_url: wrong; mend it." in (await harness.fail(tool=tool))["message"]
    assert harness.stub.sent == []


async def test_many_problems_are_all_in_the_text_and_the_first_400_characters_in_the_error() -> None:
    problems = tuple(f"setting.{number}: wrong; mend it." for number in range(50))
    with pytest.raises(ToolError) as caught:
        await Harness(settings=Settings(problems=problems)).call({"query": "q"})
    assert all(problem in caught.value.failure.text for problem in problems)
    assert caught.value.failure.error is not None
    assert caught.value.failure.error.data == {"message": caught.value.failure.text[:400]}


async def test_a_missing_key_names_the_variable_and_the_cure() -> None:
    harness = Harness(settings=Settings(openai=OpenAISettings(api_key_env="MY_KEY")))
    message = (await harness.fail())["message"]
    assert "MY_KEY is not set" in message
    assert "restart the server" in message


# How they fail


@pytest.mark.parametrize(
    ("play", "details"),
    [
        (refused(400, "unsupported_value"), {"status": 400, "name": "RequestRefused"}),
        (refused(401, "invalid_api_key"), {"status": 401, "name": "AuthenticationFailed"}),
        (refused(429, "insufficient_quota"), {"status": 429, "name": "QuotaExhausted"}),
        (refused(503), {"status": 503, "name": "ServiceFailed"}),
        (ok(bodies.failed()), {"status": "server_error", "name": "ServiceFailed"}),
        (ok(bodies.no_message()), {"name": "UnusableReply"}),
        (ConnectionFailed("No route to the API."), {"name": "ConnectionFailed"}),
        (
            UpstreamError("x", status=418, type="teapot", code="c"),
            {"status": 418, "type": "teapot", "name": "UpstreamError"},
        ),
        (ConfigError(["x"]), {"name": "ConfigError"}),
    ],
)
async def test_debug_adds_status_type_and_name(play: Any, details: dict[str, Any]) -> None:
    data = await Harness(play, debug=True).fail()
    assert {key: value for key, value in data.items() if key != "message"} == details
    assert (await Harness(play).fail()).keys() == {"message"}


async def test_a_bad_argument_has_only_a_name_to_add() -> None:
    assert (await Harness(debug=True).fail({})).keys() == {"message", "name"}


async def test_the_request_id_is_part_of_the_message() -> None:
    message = (await Harness(refused(500, x_request_id="req_123")).fail())["message"]
    assert message.endswith("(request id req_123)")


async def test_a_long_failure_keeps_its_cure_within_400_characters() -> None:
    body = json.dumps({"error": {"message": "word " * 500, "type": "t" * 200, "code": "c" * 200}}).encode()
    reply = refused(429, x_request_id="req_" + "0" * 32, retry_after="1")
    message = (await Harness(Reply(429, reply.headers, [body]), debug=True).fail())["message"]
    assert "Wait a while and ask again." in message
    assert "It asks to wait 1 s." in message
    assert message.endswith(f"(request id req_{'0' * 32})")


@pytest.mark.parametrize("debug", [True, False])
async def test_the_key_is_in_no_failure(debug: bool) -> None:
    error = UpstreamError(f"You sent {KEY}", type="x", code="y")
    data = await Harness(error, debug=debug).fail()
    assert KEY not in str(data)
    assert "You sent [redacted]" in data["message"]


async def test_a_failure_can_be_written_whatever_characters_are_in_it() -> None:
    data = await Harness(UpstreamError("broken \ud800")).fail()
    assert data["message"] == "broken \ufffd"


def test_a_failure_that_is_not_the_tools_own_is_worded_the_same_way() -> None:
    tool = Harness().tools["answer"]
    expected = ToolFailure("The server is full.", RpcError(-32001, "answer failed", {"message": "The server is full."}))
    assert tool.failure("The server is full.") == answer_failed("The server is full.") == expected


async def test_a_bug_is_not_taken_for_a_failure_of_the_tool() -> None:
    with pytest.raises(ZeroDivisionError):
        await Harness(ZeroDivisionError()).call({"query": "q"})


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


async def test_without_debug_nothing_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    harness = Harness(refused(400), ok())
    with configured(debug=False):
        await harness.fail()
        await harness.call({"query": "q"})
    assert capfd.readouterr().err == ""
