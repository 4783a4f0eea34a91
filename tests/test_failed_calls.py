"""What a failure of the API means, from the wire of a client to the requests at the API.

A failure means the same whether it came as an HTTP status, as a body with status 200, as an event of a stream or within
a Response: it is told with its reason and a cure, and repeated only where that may help and costs nothing.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio
import trustme

from responses_mcp.settings.model import (
    OpenAISettings,
    Profile,
    RequestSettings,
    SearchSettings,
    ServerSettings,
    Settings,
)
from responses_mcp.testing import Error, FakeApi, Hang, Json, Raw, Reply, Sse, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.processes import WAIT
from tests.responses_api.http.network import bare_environment, tls_front, trust

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no request wait for its turn: when it is repeated is tested elsewhere."""
    monkeypatch.setattr("responses_mcp.responses_api.api.backoff", lambda *_: 0.001)


CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
DELTA = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Python 3.15"}
CALL = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "queries": ["q"]}}
CALLED = {"type": "response.output_item.done", "output_index": 0, "item": CALL}
CALL_COMPLETED = {"type": "response.web_search_call.completed", "output_index": 0, "item_id": "ws_1"}
SERVER_ERROR = {"code": "server_error", "message": "It broke."}
ZEROS = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
NOWHERE = "Change the question or the model"


def failed(error: Any = SERVER_ERROR, **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "object": "response", "status": "failed", "output": [], "error": error, **more}
    return {"type": "response.failed", "response": response}


def settings(fake: FakeApi, *, retries: int = 3, debug: bool = False, **more: Any) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=fake.base_url),
        request=RequestSettings(max_retries=retries),
        server=ServerSettings(debug=debug, toolsets=("answer", "search")),
        search=SearchSettings(max_attempts=1 + retries),
        **more,
    )


async def tell(*script: Reply, tool: str = "answer", **options: Any) -> tuple[dict[str, Any], FakeApi]:
    """Ask a question of a server over `script`, whose last reply is played again and again, and return its answer."""
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(*script, *[script[-1]] * 4) as fake,
            connected_client(settings(fake, **options)) as client,
        ):
            return await client.call(tool, {"query": "q"}), fake


async def reason(*script: Reply, **options: Any) -> tuple[str, int]:
    """Return what a client is told of a failure, and how many requests were made."""
    answer, fake = await tell(*script, **options)
    data = answer["error"]["data"]
    return data.get("message") or data["details"], len(fake.requests)


# Money


@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
@pytest.mark.parametrize("output", [DELTA, CALLED, CALL_COMPLETED], ids=["text", "call", "completed call"])
@pytest.mark.parametrize("end", [
    failed(), failed(usage=ZEROS), failed({"code": "rate_limit_exceeded", "message": "Too fast."}),
    {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Too fast."}},
    {"type": "error", "error": {"code": 504, "message": "Too slow."}},
], ids=["failed", "zeros", "limited", "error", "timeout"])  # fmt: skip
async def test_what_had_begun_to_answer_is_not_repeated_and_may_have_been_paid_for(
    output: dict[str, Any], end: dict[str, Any], tool: str
) -> None:
    told, requests = await reason(Sse([CREATED, output, end]), tool=tool)
    assert requests == 1
    assert "may have been paid for" in told


async def test_a_search_whose_stream_breaks_behind_its_first_words_is_not_repeated() -> None:
    told, requests = await reason(Sse([CREATED, DELTA], ending="cut"), tool="chatgpt_o3_search")
    assert (requests, "may have been paid for" in told) == (1, True)


@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_a_failed_body_with_a_finished_call_is_not_repeated(status: str) -> None:
    told, requests = await reason(Json({**failed()["response"], "output": [{**CALL, "status": status}]}))
    assert (requests, "may have been paid for" in told) == (1, True)


@pytest.mark.parametrize("more", [{"usage": {"input_tokens": 9}}, {"output": [CALL]}], ids=["usage", "output"])
async def test_a_status_whose_body_tells_of_work_is_not_repeated(more: dict[str, Any]) -> None:
    told, requests = await reason(Json({**failed()["response"], **more}, 500))
    assert (requests, "may have been paid for" in told, "It broke." in told) == (1, True, True)


# The same failure, wherever it comes

PASSING = [
    {"type": "service_unavailable_error", "code": "server_is_overloaded"},
    {"code": 429, "message": "Provider returned error"},
    {"code": "502", "message": "Bad gateway"},
    {"code": 503.0},
    {"type": "overloaded_error"},
    {"type": "rate_limit_error", "message": "Later."},
    {"code": "slow_down", "message": "Slow down."},
    {"status": "RESOURCE_EXHAUSTED", "code": 429},
    {"code": "ThrottlingException", "message": "Rate exceeded"},
    {"code": "RequestTimeOut", "message": "Too slow."},
]


def forms(error: dict[str, Any]) -> dict[str, Reply]:
    return {
        "event": Sse([{"type": "error", "error": error}]),
        "flat event": Sse([{**error, "type": error.get("type", "error")}]),
        "bare event": Sse([f"data: {json.dumps({'error': error})}\n\n"]),
        "named event": Sse([f"event: error\ndata: {json.dumps(error)}\n\n"]),
        "unknown event": Sse([f"event: upstream\ndata: {json.dumps({'error': error})}\n\n"]),
        "message": Sse([f"event: message\ndata: {json.dumps({'error': error})}\n\n"]),
        "marked": Sse([f"data: {json.dumps({'object': 'error', **error})}\n\n"]),
        "response.error": Sse([{"type": "response.error", "error": error}]),
        "failed": Sse([CREATED, failed(error)]),
        "event before": Sse([CREATED, {"type": "error", "error": error}, failed(None)]),
        "event behind": Sse([CREATED, failed(None), {"type": "error", "error": error}]),
        "event long behind": Sse([CREATED, failed(None), {"type": "error", "error": error}], interval=0.01),
        "beside": Sse([CREATED, {**failed(None), "error": error}]),
        "body": Json({"error": error}),
        "listed": Json({"success": False, "errors": [error]}),
        "detail": Json({"detail": error}),
        "quoted": Json({"detail": f"Upstream said: {json.dumps({'error': error})} (try 3)"}),
        "Response": Json(failed(error)["response"]),
        "Response without state": Json({**bodies.failed(), "status": None, "error": error}),
    }


@pytest.mark.parametrize("form", forms({}))
@pytest.mark.parametrize("error", PASSING, ids=json.dumps)
async def test_a_failure_that_may_pass_is_repeated_in_whichever_form_it_comes(error: dict[str, Any], form: str) -> None:
    reply = forms(error)[form]
    told, requests = await reason(reply, retries=1)
    assert (requests, NOWHERE in told, "no text" in told) == (2, False, False)
    assert error.get("message", "") in told


@pytest.mark.parametrize("form", forms({}))
async def test_the_reason_and_the_cure_are_told_in_whichever_form_they_come(form: str) -> None:
    error = {"code": "insufficient_quota", "message": "You have no money left."}
    told, requests = await reason(forms(error)[form])
    assert requests == 1
    assert "You have no money left." in told
    assert "billing" in told


@pytest.mark.parametrize(("body", "words", "requests"), [
    ({"detail": "Rate limit exceeded"}, ["Rate limit exceeded.", "Wait a while"], 2),
    ({"detail": "Service unavailable"}, ["Service unavailable."], 2),
    ({"message": "Too many requests", "code": 429}, ["Too many requests.", "Wait a while"], 2),
    ({"success": False, "errors": [{"code": 10000, "message": "Authentication error"}]}, ["OPENAI_API_KEY"], 1),
    ({"object": "error", "message": "No such thing", "code": 400}, ["No such thing."], 1),
    ({"error": "The engine is overloaded."}, ["The engine is overloaded."], 2),
    ({"error": {"message": "Not your day", "code": "odd"}}, ["(odd)", "Not your day."], 1),
    ({"statusCode": 503, "message": "Nobody is here"}, ["Nobody is here."], 2),
    ({"status": "error", "message": "no healthy upstream"}, ["no healthy upstream."], 2),
    ({"error_code": 502, "error_msg": "Upstream gone"}, ["Upstream gone."], 2),
], ids=json.dumps)  # fmt: skip
@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
async def test_an_error_in_place_of_a_response_is_told_and_repeated_where_that_may_help(
    body: dict[str, Any], words: list[str], requests: int, tool: str
) -> None:
    told, made = await reason(Json(body), retries=1, tool=tool)
    assert all(word in told for word in words)
    assert "paid" not in told
    if tool == "answer":
        assert made == requests


@pytest.mark.parametrize("before", [[], [CREATED]], ids=["alone", "begun"])
@pytest.mark.parametrize("data", [
    {"detail": "Too many requests"}, {"message": "Too many requests", "code": 429}, {"type": "exception", "message": "Too many"},
    {"success": False, "errors": [{"code": 3040, "message": "Too many requests at once"}]}, "Too many requests",
], ids=json.dumps)  # fmt: skip
async def test_an_error_body_that_comes_as_the_last_event_is_told_and_repeated(data: Any, before: list[Any]) -> None:
    said = data if isinstance(data, str) else json.dumps(data)
    told, requests = await reason(Sse([*before, f"data: {said}\n\n"]), retries=1)
    assert (requests, "Too many" in told, "Wait a while" in told) == (2, True, True)


async def test_a_text_in_an_error_event_is_its_reason() -> None:
    told, requests = await reason(Sse(["event: error\ndata: Service Unavailable\n\n"]), retries=1)
    assert (requests, "Service Unavailable." in told) == (2, True)


@pytest.mark.parametrize(
    "data", [{"status": "processing", "message": "Still working"}, {"type": "ping"}, "[DONE]"], ids=str
)
async def test_an_event_that_tells_of_no_failure_is_no_reason_for_a_stream_that_breaks(data: Any) -> None:
    said = data if isinstance(data, str) else json.dumps(data)
    told, requests = await reason(Sse([CREATED, f"data: {said}\n\n"]))
    assert (requests, "stream ended before" in told) == (1, True)


async def test_a_response_with_an_error_and_a_text_is_a_failure_that_may_have_been_paid_for() -> None:
    told, requests = await reason(Json({**bodies.answer("Half of"), "error": {"code": 502, "message": "Cut off"}}))
    assert "Cut off." in told
    assert (requests, "may have been paid for" in told) == (1, True)


@pytest.mark.parametrize(
    "nothing", [None, {}, "", [], False, {"code": None, "message": None}, {"code": 0, "message": ""}]
)
async def test_an_error_that_says_nothing_is_none(nothing: Any) -> None:
    answer, _ = await tell(Json({**bodies.answer("All is well."), "error": nothing}))
    assert answer["result"]["structuredContent"]["answer"] == "All is well."


@pytest.mark.parametrize("status", ["incomplete", "failed"])
async def test_a_filter_that_stopped_the_answer_is_told_whatever_the_state_is_called(status: str) -> None:
    details = {"incomplete_details": {"reason": "content_filter"}}
    told, requests = await reason(Json({**bodies.answer(""), "status": status, "output": [], "usage": None, **details}))
    assert (requests, "Ask in other words" in told) == (1, True)


async def test_of_a_failure_without_a_reason_the_stream_is_not_awaited_to_its_end() -> None:
    told, requests = await reason(Sse([CREATED, failed(None)], ending="hang"))
    assert (requests, "no reason given" in told) == (1, True)


@pytest.mark.parametrize("code", ["engine_overloaded_error", "service_tier_capacity_exceeded", "upstream_error"])
async def test_whatever_comes_with_429_is_a_rate_limit_also_for_a_search(code: str) -> None:
    told, requests = await reason(refused(429, "Busy.", code), retries=1, tool="chatgpt_o3_search")
    assert (requests, "Wait a while" in told) == (2, True)


# Cures


def refused(status: int, message: str, code: Any = None, **more: Any) -> Json:
    return Json({"error": {"message": message, "type": None, "param": None, "code": code, **more}}, status)


@pytest.mark.parametrize(("reply", "cure", "other"), [
    (refused(400, "The response was filtered.", "content_filter"), "Ask in other words", "model and its"),
    (refused(400, "Invalid prompt: it was flagged.", "invalid_prompt"), "Ask in other words", "model and its"),
    (refused(400, "Not this.", "cyber_policy_violation"), "Ask in other words", "model and its"),
    (refused(400, "Filtered.", "ResponsibleAIPolicyViolation"), "Ask in other words", "model and its"),
    (refused(403, "It requires moderation and was flagged."), "Ask in other words", "region"),
    (refused(400, "User location is not supported for the API use.", 400), "region", "parameter"),
    (refused(403, "This model is not available in your country."), "region", "its parameters"),
    (refused(404, "models/x is not found for API version v1.", "NOT_FOUND"), "Check the model, the key", "Responses API"),
    (refused(400, "Content Exists Risk"), "in other words", "its parameters"),
    (refused(422, "`inputs` must have less than 4096 tokens. Given: 5000"), "fewer words", "its parameters"),
    (
        refused(422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000."),
        *("fewer words", "its parameters"),
    ),
    (
        refused(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 400),
        *("fewer words", "its parameters"),
    ),
    (refused(500, "This model's maximum context length is 8 tokens."), "fewer words", "Try again"),
    (
        refused(400, "No.", "INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}]),
        *("valid key", "its parameters"),
    ),
    (refused(400, "Too much.", "context_length_exceeded"), "fewer words", "its parameters"),
    (refused(400, "Too long.", "string_above_max_length", param="input"), "fewer words", "its parameters"),
    (refused(400, "This model's maximum context length is 8 tokens."), "fewer words", "its parameters"),
    (refused(429, "Request too large for gpt-5.2 on tokens per min (TPM)."), "fewer words", "Wait"),
    (refused(401, "Insufficient permissions. Missing scopes: api.responses.write"), "permission", "valid key"),
    (refused(401, "Your IP address is not on the list.", "ip_not_authorized"), "address of this machine", "valid key"),
    (refused(401, "Wrong.", "invalid_api_key"), "valid key", "permission"),
    (Json({"message": "The security token included in the request is expired"}, 403), "valid key", "region"),
    (refused(403, "The free tier of the model has been exhausted."), "billing", "region"),
    (Json({"message": "This model version has reached the end of its life."}, 404), "Check the model, the key", "Responses"),
    (refused(400, "Unknown parameter.", param="tools[0].search_context_size"), "its parameters", "fewer words"),
    (refused(401, "Access denied due to missing subscription key.", "401"), "valid key", "region"),
    (refused(200, "Missing scopes: api.responses.write", type="invalid_request_error"), "permission", "its parameters"),
    (
        Sse([{"type": "error", "error": {"type": "invalid_request_error", "message": "Wrong organization."}}]),
        *("the key's organization", "its parameters"),
    ),
    (refused(401, "Access denied due to invalid subscription key or wrong API endpoint."), "valid key", "region"),
    (Json({"detail": [{"type": "extra_forbidden", "loc": ["input"], "msg": "Bad"}]}, 422), "its parameters", "region"),
    (refused(500, "Token limit (500,000 per day) exceeded. Used: 508,311 tokens."), "when it is reset", "fewer words"),
    (refused(403, "用户额度不足", "insufficient_user_quota"), "billing", "region"),
    (refused(403, "No.", "unsupported_country_region_territory"), "region", "other words"),
    (refused(404, "The model `x` does not exist.", "model_not_found"), "Check the model", "/v1: did"),
    (refused(503, "No channel for it.", "model_not_found"), "Check the model", "/v1: did"),
    (
        refused(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
        *("valid key", "its parameters"),
    ),
    (Json({"code": "An invalid argument", "error": "Incorrect API key provided: xa***cd."}, 400), "valid key", "model"),
    (refused(400, "Your credit balance is too low to access the API."), "billing", "its parameters"),
    (refused(400, "Budget has been exceeded! Current cost: 0.5", "400", type="budget_exceeded"), "billing", "model"),
    (refused(429, "ExceededBudget: User=u over budget.", "429", type="budget_exceeded"), "billing", "Wait a while"),
    (Json({"code": 30001, "message": "Sorry, your account balance is insufficient"}, 403), "billing", "region"),
    (Json({"code": "No permission", "error": "Your team doesn't have any credits yet."}, 403), "billing", "region"),
    (Json({"statusCode": 403, "message": "Out of call volume quota."}, 403), "billing", "region"),
    (
        Json({"code": "The caller does not have permission", "error": "Content violates usage guidelines."}, 403),
        *("Ask in other words", "region"),
    ),
    (
        Json({"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}, 400),
        *("Ask in other words", "its parameters"),
    ),
    (Json({"success": False, "error": [{"code": 2016, "message": "Prompt blocked"}]}, 424), "in other words", "model"),
    (refused(400, "It exceeds the available context size.", 400), "fewer words", "its parameters"),
    (refused(400, "foo/bar is not a valid model ID", 400), "Check the model", "its parameters"),
    (Json({"message": "The provided model identifier is invalid."}, 400), "Check the model", "its parameters"),
    (refused(404, "No models loaded.", None, param="model"), "Check the model, the key", "Responses API"),
    (
        Json({"errors": [{"message": "You have used up your daily free allocation.", "code": 4006}]}, 429),
        *("when it is reset", "Wait a while"),
    ),
])  # fmt: skip
async def test_the_cure_is_one_for_what_happened(reply: Json, cure: str, other: str) -> None:
    told, requests = await reason(reply)
    assert cure in told
    assert other not in told
    assert requests == 1


@pytest.mark.parametrize("code", ["404", 404, None])
async def test_a_wrong_path_is_told_whatever_the_code_repeats(code: Any) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(refused(404, "Nothing.", code), path="/api") as fake,
            connected_client(settings(fake)) as client,
        ):
            told = (await client.call("answer", {"query": "q"}))["error"]["data"]["message"]
    assert "does not end in /v1: is that missing" in told
    assert "404 404" not in told


@pytest.mark.parametrize(("reply", "when"), [
    (
        refused(
            429, "Rate limit reached on requests per day (RPD). Please try again in 7m12s.", "rate_limit_exceeded"
        ),
        "It asks to wait 432 s",
    ),
    (refused(429, "Rate limit exceeded: free-models-per-day.", 429), "when it is reset"),
    (
        refused(429, "The usage limit has been reached.", None, type="usage_limit_reached", resets_in_seconds=8123),
        "8123 s",
    ),
    (
        refused(429, "Used up.", None, type="usage_limit_reached", resets_at=4_000_000_000),
        "It asks to wait a day or longer",
    ),
    (
        refused(429, "free-models-per-day", 429, metadata={"headers": {"X-RateLimit-Reset": "4000000000000"}}),
        "It asks to wait a day or longer",
    ),
    (Error(429, "Limit on tokens per day (TPD) reached.", retry_after="7"), "It asks to wait 7 s"),
])  # fmt: skip
async def test_a_limit_of_a_day_or_a_plan_is_not_repeated_and_says_when_it_ends(reply: Reply, when: str) -> None:
    told, requests = await reason(reply)
    assert (requests, when in told) == (1, True)


QUOTA = "You exceeded your current quota, please check your plan and billing details. Please retry in 0.04s."


def quota_of_google(period: str) -> dict[str, Any]:
    violation = {"quotaMetric": "a.example/requests", "quotaId": f"GenerateRequestsPer{period}PerProject-FreeTier"}
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Learn more about quotas"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.04s"},
    ]
    return {"code": 429, "message": QUOTA, "status": "RESOURCE_EXHAUSTED", "details": details}


@pytest.mark.parametrize(("reply", "requests", "cure"), [
    (Json({"error": quota_of_google("Day")}, 429), 1, "when it is reset"),
    (Json({"error": quota_of_google("Minute")}, 429), 2, "Wait a while"),
    (Sse([{"type": "error", "error": quota_of_google("Day")}]), 1, "when it is reset"),
    (Sse([{"type": "error", "error": quota_of_google("Minute")}]), 2, "Wait a while"),
    (
        refused(429, "Exhausted.", details=[{"metadata": {"quota_limit": "RequestsPerDayPerProject"}}]),
        *(1, "when it is reset"),
    ),
    (refused(429, "Daily quota exceeded. Try again in 0.04s."), 1, "when it is reset"),
    (refused(429, "Quota exceeded: 50 requests/day. Retry after 0.04s."), 1, "when it is reset"),
    (refused(429, "Quota exceeded: 5 requests per minute. Retry after 0.04s."), 2, "Wait a while"),
    (refused(400, "You have reached your specified API usage limits, until 2030-01-01."), 1, "when it is reset"),
    (refused(429, "余额不足或无可用资源包,请充值。", "1113"), 1, "billing"),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
async def test_a_quota_of_a_minute_is_awaited_but_that_of_a_day_or_an_account_is_not(
    reply: Reply, requests: int, cure: str, tool: str
) -> None:
    told, made = await reason(reply, retries=1, tool=tool)
    assert (made, cure in told) == (requests, True)


@pytest.mark.parametrize("name", ["x-ratelimit-reset", "ratelimit-reset", "x-ratelimit-reset-tokens"])
@pytest.mark.parametrize(("value", "when"), [
    ("120", "120 s"), ("2m", "120 s"), ("4000000000", "a day or longer"), ("4000000000000", "a day or longer"),
])  # fmt: skip
async def test_a_reset_that_a_header_alone_names_is_not_asked_before(name: str, value: str, when: str) -> None:
    headers = {name: value, "x-ratelimit-remaining-tokens": "0"}
    told, requests = await reason(Json({"error": {"message": "Slow down."}}, 429, headers), retries=1)
    assert (requests, f"It asks to wait {when}." in told) == (1, True)


@pytest.mark.parametrize("headers", [
    {"x-ratelimit-reset": "1000000000"}, {"x-ratelimit-reset": "120", "x-ratelimit-remaining": "7"},
    {"ratelimit-reset": "soon"},
])  # fmt: skip
async def test_a_reset_that_is_over_or_of_a_limit_that_is_not_used_up_is_not_awaited(headers: dict[str, str]) -> None:
    told, requests = await reason(Json({"error": {"message": "Slow down."}}, 429, headers), retries=1)
    assert (requests, "asks to wait" in told) == (2, False)


@pytest.mark.parametrize(("status", "text", "words"), [
    (503, "no healthy upstream", "no healthy upstream. Try again later"),
    (429, "Daily quota of requests exceeded.\n", "exceeded. Ask again when it is reset"),
    (403, "error code: 1020", "error code: 1020."),
    (502, "<html>Bad gateway</html>", "The API failed (502). Try again"),
    (400, '{"error": {"message": "Cut', "(400). Check"),
])  # fmt: skip
async def test_a_body_of_plain_text_is_told_and_no_page_and_no_broken_json(status: int, text: str, words: str) -> None:
    told, _ = await reason(Raw(text.encode(), status, content_type="text/plain"), retries=0)
    assert words in told


RAW = '[{"code":"invalid_union","path":["include",0],"message":"Invalid input"}]'


@pytest.mark.parametrize("more", [{}, {"metadata": {"raw": RAW}}, {"metadata": {"raw": '{"detail": "No."}'}}], ids=repr)
async def test_a_gateway_that_cannot_read_a_request_does_not_refuse_its_content(more: dict[str, Any]) -> None:
    told, _ = await reason(refused(400, "Invalid Responses API request", "invalid_prompt", **more))
    assert "other words" not in told
    assert "parameters" in told


@pytest.mark.parametrize(("raw", "words"), [
    ('{"error":{"message":"The provider is out of tea.","code":null}}', "The provider is out of tea."),
    ({"message": "The provider is out of tea."}, "The provider is out of tea."), ("out of tea", "out of tea."),
    (RAW, "include"),
])  # fmt: skip
async def test_what_the_provider_behind_a_gateway_said_is_told(raw: Any, words: str) -> None:
    told, _ = await reason(refused(400, "Provider returned error", 400, metadata={"raw": raw, "provider_name": "P"}))
    assert words in told


async def test_a_key_that_a_provider_repeats_is_masked() -> None:
    key = "sk-canary-0123456789abcdef"
    told, _ = await reason(
        refused(400, "No", 400, metadata={"raw": json.dumps({"error": {"message": f"It was {key}"}})})
    )
    assert "canary" not in told
    assert "redacted" in told


@pytest.mark.parametrize("form", forms({}))
async def test_a_parameter_is_left_out_in_whichever_form_the_refusal_comes(form: str) -> None:
    error = {"code": "unsupported_parameter", "param": "include", "message": "Unsupported parameter: 'include'."}
    _, fake = await tell(forms(error)[form], retries=1)
    assert ["include" in json.loads(request.body) for request in fake.requests] == [True, False]


async def test_a_parameter_that_is_refused_behind_a_text_is_not_left_out() -> None:
    error = {"type": "error", "code": "unsupported_parameter", "param": "include", "message": "No 'include'."}
    told, requests = await reason(Sse([CREATED, DELTA, error]))
    assert (requests, "may have been paid for" in told) == (1, True)
    told, requests = await reason(Json(failed(error, usage={"input_tokens": 9})["response"]))
    assert (requests, "may have been paid for" in told) == (1, True)


def located(*paths: list[Any], name: str = "loc") -> list[dict[str, Any]]:
    return [{"type": "extra_forbidden", name: path, "msg": "Extra inputs", "input": {"a": "b"}} for path in paths]


@pytest.mark.parametrize("reply", [
    Json({"detail": located(["body", "include"], ["body", "reasoning"])}, 422),
    Json({"detail": located(["body", "include", 0], ["body", "reasoning", "str"])}, 400),
    Json({"error": {"message": located(["include"], ["reasoning"], name="path"), "code": 400}}, 400),
    Json({"message": "Bad", "errors": [{"field": "include", "message": "No"}, {"field": "reasoning"}]}, 400),
    refused(400, "Bad", details=[{"fieldViolations": [{"field": "include"}, {"field": "reasoning"}]}]),
    Json({"error": {"issues": [{"keys": ["include", "reasoning"], "path": [], "message": "Unknown"}]}}, 400),
    refused(400, "Provider returned error", 400, metadata={"raw": json.dumps(located(["include"], ["reasoning"]))}),
], ids=repr)  # fmt: skip
async def test_all_parameters_that_one_refusal_names_are_left_out_at_once(reply: Json) -> None:
    _, fake = await tell(reply, retries=1)
    sent = [json.loads(request.body) for request in fake.requests]
    assert [(name in sent[0], name in sent[1]) for name in ("include", "reasoning")] == [(True, False)] * 2


async def test_of_a_list_that_refuses_something_else_too_nothing_is_left_out() -> None:
    _, requests = await reason(Json({"detail": located(["body", "include"], ["body", "input"])}, 422))
    assert requests == 1


@pytest.mark.parametrize("message", [
    "The request must include a question.", "Note: include a question", "Missing required parameter: metadata",
    "The supported fields include text and more.", "Your reasoning: flawed.",
])  # fmt: skip
async def test_a_name_in_prose_is_no_parameter(message: str) -> None:
    _, requests = await reason(refused(400, message))
    assert requests == 1


SECRET = "ghp_" + "Zq7Kx0Wb3Nd9Rt5Ys1Uv8Hj4Lm2Pc6Fg0TaE"  # which belongs to nobody


@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
@pytest.mark.parametrize("reply", [Error(400), Error(401), Sse([CREATED, DELTA, failed()]), bodies.answer("Here.")])
async def test_what_was_masked_is_counted_in_each_outcome(reply: Any, tool: str) -> None:
    reply = Json(reply) if isinstance(reply, dict) else reply
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(*[reply] * 4) as fake,
            connected_client(settings(fake, retries=0), initialize=False) as client,
        ):
            handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code"}}
            await client.ask("initialize", handshake)
            answer = await client.call(tool, {"query": f"Why is {SECRET} refused?"})
    told = answer["result"]["_meta"] if "result" in answer else answer["error"]["data"]["_meta"]
    assert list(told["io.github.uchimanajet7/masked"].values()) == [1]


# What debugging adds


@pytest.mark.parametrize("client_name", ["claude-code", "somebody"])
@pytest.mark.parametrize(("reply", "expected"), [
    (refused(429, "Slow.", None, type="tokens"), {"status": 429, "type": "tokens", "name": "rate_limit"}),
    (refused(500, "Oh."), {"status": 500, "type": None, "name": "server"}),
    (Json({"error": {"code": 502}}), {"status": 502, "type": None, "name": "server"}),
    (Hang(), {"status": "timeout", "type": None, "name": "timeout"}),
])  # fmt: skip
async def test_with_debug_every_client_learns_status_type_and_name(
    reply: Reply, expected: dict[str, Any], client_name: str
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(reply) as fake:
            made = settings(fake, retries=0, debug=True)
            made = replace(made, request=RequestSettings(max_retries=0, timeout_ms=300))
            async with connected_client(made, initialize=False) as client:
                handshake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client_name}}
                await client.ask("initialize", handshake)
                answer = await client.call("answer", {"query": "q"})
    if client_name == "claude-code":
        text: str = answer["result"]["content"][0]["text"]
        assert json.loads(text.splitlines()[-1]) == expected
    else:
        data = answer["error"]["data"]
        assert {key: data[key] for key in expected} == expected


@pytest.mark.parametrize("model", ["gpt-5.2", "my-model"])
async def test_a_model_that_is_not_offered_is_named_with_its_setting(model: str) -> None:
    profiles = MappingProxyType({"answer": Profile(model=model)})
    error = {"code": "model_not_found", "message": "No such model."}
    told, _ = await reason(Json({"error": error}), model_profiles=profiles)
    assert f"The model is {model}, from model_profiles.answer.model (MODEL_ANSWER)." in told


# TLS


async def test_a_key_log_that_cannot_be_written_is_told_once_and_connections_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = str(tmp_path / "missing" / "keys")
    monkeypatch.setenv("SSLKEYLOGFILE", keys)
    ca = trustme.CA()
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca) as url:
            for _ in range(2):
                openai = OpenAISettings(base_url=url, api_key="k" * 20)
                async with connected_client(Settings(openai=openai)) as client:
                    answer = await client.call("answer", {"query": "q"})
                    assert not answer["result"]["isError"]
                trust(monkeypatch, trustme.CA(), tmp_path / "other.pem")
                trust(monkeypatch, ca, tmp_path / "ca.pem")
    assert caplog.text.count("SSLKEYLOGFILE") == 1
    assert os.environ["SSLKEYLOGFILE"] == keys
