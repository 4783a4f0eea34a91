"""The parameter fallback: which parameter is left out after an error and which never, when that is kept, for whom."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.asking import open_answers
from responses_mcp.errors import RequestRefused, ServiceFailed, UpstreamError
from responses_mcp.settings.model import OpenAISettings, SearchSettings, Settings
from responses_mcp.testing import Error, FakeApi, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.stub import Reply, StubConnections, ok, refused, stub_api

pytestmark = pytest.mark.rule("spec 7")

BODY: dict[str, Any] = {
    "model": "gpt-5.2",
    "instructions": "…",
    "input": "…",
    "tools": [{"type": "web_search"}],
    "tool_choice": "required",
    "include": ["web_search_call.action.sources"],
    "text": {"verbosity": "low"},
    "reasoning": {"effort": "medium"},
    "stream": True,
    "stream_options": {"include_obfuscation": False},
}
FLAGGED = (
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a "
    "different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting"
)
SERDE = (
    "Failed to deserialize the JSON body into the target type: unknown field `{}`, expected one of `model`, `input`, "
    "`include`, `reasoning`, `stream` at line 1 column 212"
)
LOCATED = "[{{'type': 'literal_error', 'loc': ({}), 'msg': 'Input should be code', 'input': 'x', 'ctx': {{}}}}]"


@dataclass(frozen=True)
class Said:
    """An error as a server words it."""

    message: Any = ""
    param: str | None = None
    code: str | None = None
    status: int = 400

    def reply(self) -> Reply:
        error = {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": self.code}
        whole = {"detail": self.message} if self.status == 422 else {"error": error}
        return Reply(self.status, {}, [json.dumps(whole).encode()])


def bodies_of(stub: StubConnections) -> list[dict[str, Any]]:
    return [json.loads(sent.body) for sent in stub.sent]


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in BODY.items() if name not in names}


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        # The refusal says which parameter it means.
        (Said("Unknown parameter: 'include'.", "include", "unknown_parameter"), "include"),
        (Said("Invalid value: 'web_search_call.action.sources'.", "include[0]", "invalid_value"), "include"),
        (Said("Invalid option", "include.0", "invalid_union"), "include"),
        (Said("Unsupported value: 'low' is not supported.", "text.verbosity", "unsupported_value"), "text"),
        (Said("no", "reasoning.effort", "unsupported_parameter"), "reasoning"),
        (Said("no", "body.reasoning"), "reasoning"),
        (Said("Unknown parameter: include"), "include"),
        (Said("Unrecognized key(s) in object: 'include', 'text'"), "include text"),
        (Said("no", "tool_choice"), "tool_choice"),
        (Said("no", "stream_options.include_obfuscation"), "stream_options"),
        (Said("Your organization must be verified to stream this model.", "stream"), "stream stream_options"),
        (Said("Unsupported value: 'stream' does not support true.", "stream"), "stream stream_options"),
        # It names a single parameter of ours, in quotes of any kind or as no word of plain English.
        (Said("The proxy answers: " + "x" * 300 + " unknown parameter 'include'"), "include"),
        (Said('Upstream: {\\"error\\": {\\"message\\": \\"No such field: \\\\"include\\\\".\\"}}'), "include"),
        (Said('It said: {\\"error\\": {\\"message\\": \\"No \\\\"include\\\\"\\"}}'), "include"),
        (Said('{"code":"unrecognized_keys","path":["include",0],"message":"Invalid option"}'), "include"),
        (Said("“text” kennt dieser Server nicht"), "text"),
        (Said("「include」は使えません"), "include"),
        (Said("Der Parameter „include“ ist unbekannt"), "include"),
        (Said("不支持参数 include"), "include"),
        (Said("json: cannot unmarshal array into Go struct field ResponsesRequest.include of type string"), "include"),
        (Said("1 validation error for ResponsesRequest\ninclude\n  Extra inputs are not permitted", "400"), "include"),
        (Said("`tool_choice`: nope"), "tool_choice"),
        (Said("The parameters 'include' and 'reasoning' are not supported"), "include reasoning"),
        (Said("Additional properties are not allowed ('include', 'text' were unexpected)"), "include text"),
        (Said("Unsupported parameter: 'include'. Supported parameters: tool_choice, text"), "include"),
        (Said("The field « include » is unknown"), "include"),
        (Said("parameter 'reasoning' and parameter 'include' are unknown"), "include reasoning"),
        (Said("Invalid value at path include"), "include"),
        (Said("toolChoice is not supported", "toolChoice"), "tool_choice"),
        (Said("/reasoning/effort: unexpected"), "reasoning"),
        (Said('Upstream: {\\"keys\\":[\\"include\\",\\"text\\"],\\"message\\":\\"No.\\"}'), "include text"),
        (Said("Unsupported value: 'reasoning.effort' does not support 'medium' with this model."), "reasoning"),
        (Said("Unknown parameter: 'stream_options'. (request id: 20240806214436917505976hvsFC5y2)"), "stream_options"),
        (Said("Unrecognized request argument supplied: reasoning_effort"), "reasoning"),
        (
            Said('litellm.BadRequestError: AzureException - {"message": "Unknown parameter: \'include\'."}', "None"),
            "include",
        ),
        (Said("stream_options: Extra inputs are not permitted"), "stream_options"),
        (Said("include: Extra inputs are not permitted"), "include"),
        (Said("body/include must NOT have additional properties"), "include"),
        (Said("verbosity is not supported by this model"), "text"),
        (Said("Validation error at #/stream_options: Extra inputs are not permitted"), "stream_options"),
        (Said("Extra inputs are not permitted, field: 'stream_options', value: {'a': 1}"), "stream_options"),
        (Said([{"type": "extra_forbidden", "loc": ["body", "text"], "msg": "Extra inputs"}], status=422), "text"),
        (Said(LOCATED.format("'body', 'include', 0")), "include"),
        (Said(SERDE.format("stream_options")), "stream_options"),
        (Said('json: unknown field "include"'), "include"),
        (Said("[11:5] [UnifiedCompletionRequest] unknown field [reasoning]"), "reasoning"),
        (Said("Additional properties are not allowed ('include' was unexpected)"), "include"),
        (Said("Model grok-4 does not support parameter reasoningEffort."), "reasoning"),
        (Said("Argument not supported on this model: reasoningEffort"), "reasoning"),
        (Said("The 'include' parameter is not allowed here. See https://a.example/docs/text"), "include"),
        (Said("tool_choice 'required' is not supported"), "tool_choice"),
        (Said("tool_choice=required is not supported"), "tool_choice"),
        (Said("The model 'x' does not support 'text.verbosity'"), "text"),
        (Said("`stream`: true is currently not supported"), "stream stream_options"),
        (
            Said("1 validation error for ResponsesRequest\nreasoning.effort\n  Extra inputs are not permitted"),
            "reasoning",
        ),
    ],
)
async def test_a_parameter_that_is_named_as_refused_is_left_out_from_then_on(said: Said, gone: str) -> None:
    api, stub = stub_api(said.reply(), ok())
    await api.create(BODY, dict)
    await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY, without(*gone.split()), without(*gone.split())]


@pytest.mark.parametrize(
    "said",
    [
        # Content is refused.
        Said(FLAGGED, code="invalid_prompt"),
        Said(FLAGGED.replace("#", "/")),
        Said(f"litellm.BadRequestError: {{'message': '{FLAGGED}', 'code': 'invalid_prompt'}}", "None", "400"),
        Said("No.", "reasoning.effort", "invalid_prompt"),
        Said("The text was flagged.", "text"),
        Said("The 'text' is not allowed.", code="content_policy_violation"),
        Said("The prompt triggered the content management policy: 'text' is not permitted", "prompt", "content_filter"),
        Said("Your request was rejected by our safety system: 'include' is not allowed", code="moderation_blocked"),
        Said("Unsupported parameter 'include'? It was flagged under our usage policies."),
        # Several are named.
        Said("The 'stream_options' parameter is only allowed when 'stream' is enabled."),
        # Something else is named, or nothing, and a parameter in passing.
        Said("Streaming is not supported in this version."),
        Said("Questions about streaming are not answered here: field stream of study."),
        Said("Unsupported. See https://a.example/docs/unknown-parameter:'reasoning' and a.example/unknown/'include'"),
        Said("Your reasoning is not allowed"),
        Said("Reasoning about weapons is not supported."),
        Said("Unsupported content. Text and reasoning must be in English"),
        Said("The text's verbosity is unsupported for children"),
        Said("The input must include a question"),
        Said("The upstream of this stream broke"),
        Said("Unexpected text in the stream"),
        Said("Invalid value: 'input'. Supported values are: 'include', 'output_text'"),
        Said("Missing required parameter: 'text.format.name'."),
        Said("Unknown parameter: 'max_tokens'. Did you mean 'include'?"),
        Said(SERDE.format("tools")),
        Said(LOCATED.format("'body', 'input', 'str', 'reasoning'")),
        Said("Extra inputs are not permitted, field: 'messages[2].reasoning'"),
        Said("property 'messages.0.reasoning' is unsupported"),
        Said("Unknown tool type web_search", "tools"),
        Said("Unknown model: 'text'"),
        Said("Unsupported parameter: 'reasoning.effort'", "tools[0].type"),
        Said("The model does not support parameter 'reasoning'", "model"),
        Said("The following tools cannot be used with reasoning.effort 'minimal': web_search.", "tools"),
        Said("Input is too long", "input", "context_length_exceeded"),
        Said("no", "input[0].content[0].text"),
        Said("no", "reasoning_content"),
        Said("no", "stream-id"),
        Said("no", "text of the prompt"),
        Said("“text.format” kennt dieser Server nicht"),
        Said("something else"),
        Said("Unknown parameter: 'include'.", "include", status=401),
        Said("Unknown parameter: 'include'.", "include", status=404),
    ],
)
async def test_an_error_about_anything_else_is_not_repeated_and_nothing_is_remembered(said: Said) -> None:
    api, stub = stub_api(said.reply(), ok())
    with pytest.raises(UpstreamError):
        await api.create(BODY, dict)
    await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY, BODY]


# When it is kept


async def test_parameters_are_left_out_one_after_the_other_and_all_are_remembered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, stub = stub_api(Said("", "include").reply(), refused(429), Said("", "stream_options").reply(), ok())
    await api.create(BODY, dict)
    await api.create(BODY, dict)
    less = without("include", "stream_options")
    assert bodies_of(stub) == [BODY, without("include"), without("include"), less, less]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "the model gpt-5.2 is asked without include, which is not taken",
        "the model gpt-5.2 is asked without stream_options, which is not taken",
    ]


@pytest.mark.parametrize(
    ("then", "error"), [(refused(401), UpstreamError), (Said("", "include").reply(), RequestRefused)]
)
async def test_nothing_is_kept_where_the_repeated_request_fails(
    then: Reply, error: type[UpstreamError], caplog: pytest.LogCaptureFixture
) -> None:
    api, stub = stub_api(Said("", "include").reply(), then, ok())
    with pytest.raises(error):
        await api.create(BODY, dict)
    await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY, without("include"), BODY]
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_nothing_is_kept_where_the_repeated_request_ends_as_failed() -> None:
    failed = ok(bodies.failed())
    api, stub = stub_api(Said("", "include").reply(), failed, ok(), max_retries=1)
    with pytest.raises(ServiceFailed):
        await api.create(BODY, dict)
    await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY, without("include"), BODY]


async def test_a_fallback_counts_as_a_retry() -> None:
    api, stub = stub_api(Said("", "include").reply(), ok(), max_retries=0)
    with pytest.raises(RequestRefused):
        await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY]


async def test_what_is_remembered_belongs_to_one_model() -> None:
    api, stub = stub_api(Said("", "include").reply(), ok())
    await api.create(BODY, dict)
    await api.create({**BODY, "model": "gpt-5.4"}, dict)
    assert bodies_of(stub)[-1] == {**BODY, "model": "gpt-5.4"}


async def test_calls_under_way_are_not_taught_and_learn_the_same_without_confusion(
    caplog: pytest.LogCaptureFixture,
) -> None:
    go = [trio.Event() for _ in range(4)]

    async def refuses(number: int, param: str) -> Reply:
        await go[number].wait()
        return Said("", param).reply()

    async def answers(number: int) -> Reply:
        await go[number].wait()
        return ok()

    api, stub = stub_api(
        lambda: refuses(0, "include"), lambda: refuses(1, "include"), lambda: answers(2), lambda: answers(3), ok()
    )
    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(api.create, BODY, dict)
                await trio.testing.wait_all_tasks_blocked()
                assert len(stub.sent) == number + 1
            for event in go[:2]:
                event.set()
                await trio.testing.wait_all_tasks_blocked()
            go[2].set()
            await trio.testing.wait_all_tasks_blocked()
            assert caplog.text.count("is asked without include") == 1
            go[3].set()
    await api.create(BODY, dict)
    assert bodies_of(stub) == [BODY, BODY, *[without("include")] * 3]
    assert caplog.text.count("is asked without") == 1


async def test_a_call_that_begins_before_the_repeated_request_is_answered_asks_with_everything() -> None:
    proved = trio.Event()

    async def answers() -> Reply:
        await proved.wait()
        return ok()

    api, stub = stub_api(Said("", "include").reply(), answers, ok())
    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(api.create, BODY, dict)
            await trio.testing.wait_all_tasks_blocked()
            await api.create(BODY, dict)
            proved.set()
    assert bodies_of(stub) == [BODY, without("include"), BODY]


# Effort


@pytest.mark.parametrize(("asked", "listed", "moved"), [
    ("minimal", "'none', 'low', 'medium', and 'high'", "low"), ("xhigh", "'low', 'medium', and 'high'", "high"),
    ("none", "'low', 'medium'", "low"), ("medium", "'high'", "high"), ("low", '"medium"', "medium"),
])  # fmt: skip
async def test_an_effort_moves_to_the_nearest_that_the_refusal_lists(
    asked: str, listed: str, moved: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = f"Unsupported value: '{asked}' is not supported with the 'x' model. Supported values are: {listed}."
    api, stub = stub_api(Said(message, "reasoning.effort", "unsupported_value").reply(), ok())
    await api.create({**BODY, "reasoning": {"effort": asked}}, dict)
    await api.create({**BODY, "reasoning": {"effort": asked}}, dict)
    await api.create({**BODY, "reasoning": {"effort": "max"}}, dict)
    assert [body["reasoning"]["effort"] for body in bodies_of(stub)] == [asked, moved, moved, "max"]
    assert caplog.text.count(f"uses reasoning effort {moved}, as {asked} is not taken") == 1


@pytest.mark.parametrize("message", [
    "This model only supports reasoning effort 'high'.", "Use low or high.", "reasoning effort medium is not supported; allowed: low; high",
    "支持的值: low, high", "unknown variant `medium`, expected one of `low`, `high`",
])  # fmt: skip
async def test_an_effort_moves_to_one_that_the_refusal_names_in_any_words(message: str) -> None:
    api, stub = stub_api(Said(message, "reasoning.effort").reply(), ok())
    await api.create(BODY, dict)
    assert bodies_of(stub)[1] == {**BODY, "reasoning": {"effort": "high"}}


async def test_an_effort_moves_where_a_validator_lists_what_it_takes() -> None:
    message = (
        "[{'loc': ('body', 'reasoning', 'effort'), 'msg': \"Input should be 'low' or 'high'\", 'input': 'medium'}]"
    )
    api, stub = stub_api(Said(message).reply(), ok())
    await api.create(BODY, dict)
    assert bodies_of(stub)[1] == {**BODY, "reasoning": {"effort": "high"}}


async def test_an_effort_that_is_refused_again_is_left_out() -> None:
    said = Said("Unsupported value. Supported values are: 'low', 'high'.", "reasoning.effort").reply()
    api, stub = stub_api(said, said, ok())
    await api.create(BODY, dict)
    await api.create(BODY, dict)
    assert [body.get("reasoning") for body in bodies_of(stub)] == [{"effort": "medium"}, {"effort": "high"}, None, None]


# Through the front


def strict(fake: FakeApi) -> Settings:
    return Settings(openai=OpenAISettings(base_url=fake.base_url), search=SearchSettings(strict_domains=True))


async def test_a_flagged_question_is_asked_once_and_later_ones_keep_their_reasoning() -> None:
    async with open_fake_api(Error(400, FLAGGED, code="invalid_prompt")) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(strict(fake)) as answers:
                with pytest.raises(RequestRefused, match="usage policy"):
                    await answers.answer("How?")
                await answers.answer("Why?")
        assert [request.json["reasoning"] for request in fake.requests] == [{"effort": "medium"}] * 2


@pytest.mark.parametrize(("message", "param"), [
    ("Invalid domain: 'no_host.jp'.", "tools[0].filters.allowed_domains[1]"), ("Unsupported parameter: 'filters'.", None),
    ("Unknown parameter: 'tools[0].filters'.", "tools[0].filters"), ("'no_host.jp' is not a valid domain.", None),
    ([{"loc": ["body", "tools", 0, "web_search", "filters"], "msg": "Extra inputs"}], None),
])  # fmt: skip
async def test_a_strict_filter_is_never_left_out_and_the_error_has_its_cure(message: Any, param: str | None) -> None:
    async with open_fake_api(Error(400, json.dumps(message), param=param)) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(strict(fake)) as answers:
                with pytest.raises(RequestRefused, match=r"Correct the domains.* names a\.jp, no_host\.jp\."):
                    await answers.answer("q", domains=["a.jp", "no_host.jp"])
                await answers.answer("q", domains=["b.jp"])
        assert [request.json["tools"][0]["filters"]["allowed_domains"] for request in fake.requests] == [
            ["a.jp", "no_host.jp"],
            ["b.jp"],
        ]


@pytest.mark.parametrize("refusal", [
    Error(400, "The model is unknown to a.jp.", param="model"),
    Error(400, FLAGGED + " or see domain a.jp", code="invalid_prompt"),
    Error(400, "Unknown model. See https://a.jp/domains."), Error(404, "Invalid domain: 'a.jp'."),
])  # fmt: skip
async def test_a_refusal_of_something_else_says_nothing_of_domains(refusal: Error) -> None:
    async with open_fake_api(refusal) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(strict(fake)) as answers:
                with pytest.raises(RequestRefused) as caught:
                    await answers.answer("q", domains=["a.jp"])
    assert "Correct the domains" not in str(caught.value)
