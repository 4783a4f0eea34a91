"""What an HTTP response that is not a success becomes: an error that tells what happened and what to change."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.errors import (
    AuthenticationFailed,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.responses_api.failures import Head, reply_error, response_error
from responses_mcp.secrets import Redactor
from tests.responses_api.response.replies import fed

KEY = "canary-8f2c-not-an-openai-looking-key"
LONGEST = 400  # characters that a client is told (spec 8.2)


def refuse(
    status: int, body: bytes | dict[str, Any], headers: dict[str, str] | None = None, redact: Any = str
) -> UpstreamError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(UpstreamError) as caught:
        fed(data, status=status, headers=headers, redact=redact).json_object()
    return caught.value


def failed_response(given: dict[str, Any], redact: Any) -> UpstreamError:
    error = response_error({"status": "failed", "error": given}, redact)
    assert error is not None
    return error


def api_error(message: Any = "Said so.", kind: Any = "some_type", code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("body", [
    b"", b"[]", b'"text"', b"null", b"5", b"{no", b"<html>hi</html>", b"\xff\xfe\xfd", b"[" * 100_000, b"1" * 5000,
], ids=lambda body: repr(body[:12]))  # fmt: skip
def test_a_success_that_is_no_json_object_is_unusable(body: bytes) -> None:
    error = refuse(200, body, {"x-request-id": "req_1"})
    assert type(error) is UnusableReply
    assert (error.status, error.retryable, error.request_id) == (200, False, "req_1")
    assert "not a JSON object" in str(error)
    assert "openai.base_url" in str(error)


@pytest.mark.rule("P4")
@pytest.mark.parametrize(("status", "kind", "code", "error", "retryable", "words"), [
    (400, "invalid_request_error", "unsupported_value", RequestRefused, False, "profile's model"),
    (
        401,
        "invalid_request_error",
        "invalid_api_key",
        AuthenticationFailed,
        False,
        "Put a valid key into OPENAI_API_KEY.",
    ),
    (402, None, None, QuotaExhausted, False, "billing"),
    (403, "invalid_request_error", None, RequestRefused, False, "model access"),
    (404, "invalid_request_error", "model_not_found", RequestRefused, False, "openai.base_url"),
    (404, None, None, RequestRefused, False, "whether openai.base_url has a Responses API"),
    (405, None, None, RequestRefused, False, "whether openai.base_url has a Responses API"),
    (407, None, None, RequestRefused, False, "HTTP_PROXY, or, if unset, correct openai.base_url"),
    (413, None, None, RequestRefused, False, "Ask in fewer words"),
    (408, None, None, ServiceFailed, True, "Try again later"),
    (409, None, None, ServiceFailed, True, "Try again later"),
    (422, None, None, RequestRefused, False, "profile's model"),
    (429, "requests", "rate_limit_exceeded", RateLimited, True, "Wait a while"),
    (429, "tokens", None, RateLimited, True, "Wait a while"),
    (429, "insufficient_quota", "insufficient_quota", QuotaExhausted, False, "billing"),
    (429, None, "insufficient_quota", QuotaExhausted, False, "billing"),
    (429, "insufficient_quota", None, QuotaExhausted, False, "billing"),
    (429, None, "billing_hard_limit_reached", QuotaExhausted, False, "billing"),
    (400, None, "billing_not_active", QuotaExhausted, False, "billing"),
    (403, None, "insufficient_quota", QuotaExhausted, False, "billing"),
    (500, "server_error", None, ServiceFailed, True, "Try again later"),
    (503, "server_error", None, ServiceFailed, True, "Try again later"),
    (529, None, None, ServiceFailed, True, "Try again later"),
    (301, None, None, RequestRefused, False, "final address"),
    (307, None, None, RequestRefused, False, "final address"),
])  # fmt: skip
def test_a_status_tells_the_kind_of_error_whether_to_retry_and_the_cure(  # noqa: PLR0917  # a table's columns
    status: int, kind: str | None, code: str | None, error: type[UpstreamError], retryable: bool, words: str
) -> None:
    got = refuse(status, api_error("Said so", kind, code), {"x-request-id": "req_1"})
    assert (type(got), got.retryable) == (error, retryable)
    assert (got.status, got.type, got.code, got.request_id) == (status, kind, code, "req_1")
    assert "Said so." in got.message
    assert words in got.message
    assert str(status) in got.message
    assert str(got) == f"{got.message} (request id req_1)"


def test_a_quota_that_a_gateway_only_mentions_does_not_stop_retries() -> None:
    said = "Requests have exceeded the token rate limit. Ask for a quota increase to raise it."
    assert refuse(429, api_error(said, None, "429")).retryable


@pytest.mark.rule("spec 7")
@pytest.mark.parametrize("value", ["true", "", "perhaps"])
def test_an_api_that_says_to_retry_changes_nothing(value: str) -> None:
    assert refuse(503, api_error(), {"x-should-retry": value}).retryable
    assert not refuse(400, api_error(), {"x-should-retry": value}).retryable


@pytest.mark.rule("spec 7")
@pytest.mark.parametrize(("headers", "wait", "words"), [
    ({"retry-after": "3600"}, 3600, "It asks to wait 3600 s."),
    ({"retry-after": "0.25"}, 0.25, "It asks to wait 0.25 s."),
    ({"retry-after-ms": "86399999"}, 86399.999, "It asks to wait 86399.999 s."),
    ({"retry-after": "86400"}, 86400, "It asks to wait a day or longer."),
    ({"retry-after": "9" * 400}, 86400, "It asks to wait a day or longer."),
])  # fmt: skip
def test_the_wait_that_the_api_asks_for_is_told(headers: dict[str, str], wait: float, words: str) -> None:
    error = refuse(429, api_error(), headers)
    assert error.retry_after == wait
    assert error.message.endswith(words)


def test_no_wait_is_told_where_waiting_does_not_help() -> None:
    assert "wait" not in refuse(429, api_error(code="insufficient_quota"), {"retry-after": "5"}).message


@pytest.mark.parametrize(("body", "said"), [
    (b'{"error": "Just a text"}', ": Just a text. "),
    (b'{"error": {"message": "With a stop."}}', ": With a stop. "),
    ('{"error": {"message": "日本語です。"}}'.encode(), ": 日本語です。 "), (b'{"message": "Without error"}', ": Without error. "),
    (b'{"detail": "FastAPI"}', ": FastAPI. "),
    (b'{"detail": [{"loc": ["body", "model"], "msg": "required"}]}', ": body.model: required. "),
    (b'{"error": {"message": "two\\n  lines"}}', ": two lines. "), (b'{"error": null}', ". Check"),
    (b'{"error": []}', ". Check"),
    (b'{"error": {"message": null, "code": true, "type": 5}}', ". Check"), (b"[]", ". Check"), (b"", ". Check"),
    (b"<html><body>502 Bad Gateway</body></html>", ". Check"), (b"\xff\xfe", ". Check"),
    (b'{"error":' * 5000, ". Check"),
    (b'{"error": {"message": ' + b"[" * 900 + b"]" * 900 + b"}}", ". Check"),
], ids=lambda value: repr(value[:30]))  # fmt: skip
def test_what_the_api_said_is_found_in_every_form_that_gateways_use(body: bytes, said: str) -> None:
    error = refuse(400, body)
    assert said in error.message
    assert error.message.startswith("The API refused the request (400)")


@given(
    st.integers(300, 599),
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(["retry-after", "x-request-id"]), st.text()),
)
def test_no_body_and_no_header_raises_anything_else(status: int, body: bytes, headers: dict[str, str]) -> None:
    assert len(str(refuse(status, body, headers))) <= LONGEST


@pytest.mark.rule("P4")
@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 408, 422, 429, 500, 503])
@pytest.mark.parametrize("code", [None, "x" * 500])
def test_the_cure_and_the_request_id_have_their_place_however_much_the_api_says(status: int, code: str | None) -> None:
    body = api_error("word " * 500, "y" * 500, code)
    short = refuse(status, api_error(""), {})
    error = refuse(status, body, {"retry-after": "86399.123", "x-request-id": "req_" + "0" * 32})
    cure = short.message.partition(". ")[2]
    assert cure in error.message
    assert "word word" in error.message
    assert len(f"{error.message} (11 attempts were made.) (request id {error.request_id})") <= LONGEST
    assert len(error.code or "") <= 64
    assert len(error.type or "") <= 64


def test_an_overlong_request_id_is_cut() -> None:
    assert len(refuse(500, b"", {"x-request-id": "r" * 5000}).request_id or "") <= 100


def test_the_body_is_kept_short_for_the_log() -> None:
    assert refuse(500, b"<p>a\n\n b</p>").body == "<p>a b</p>"
    assert len(refuse(500, b"x" * 100_000).body or "") <= 300


# A Response that failed may be as long as any other; so many characters of its error are looked at.
LOOKED_AT = 64 * 1024


@pytest.mark.parametrize("member", ["message", "detail", "type", "code", "param"])
@pytest.mark.parametrize(
    "value", ["x " * 1_000_000, ["x "] * 1_000_000, {"x " * 1_000_000: [[]] * 1_000_000}], ids=type
)
def test_of_a_failed_response_the_error_s_beginning_is_looked_at(member: str, value: Any) -> None:
    seen: list[int] = []

    def redact(text: str) -> str:
        seen.append(len(text))
        return text

    error = failed_response({member: value}, redact)
    assert len(error.message) <= LONGEST
    assert max(seen, default=0) <= LOOKED_AT


# Secrets


@pytest.mark.parametrize("offset", [*range(0, 330, 7), 65_500, 65_536 - 20])
@pytest.mark.parametrize("filler", ["x", " "])
def test_a_key_is_gone_wherever_in_the_body_it_stands(offset: int, filler: str) -> None:
    said = filler * offset + KEY + filler * 300
    for body in (
        api_error(said),
        said.encode(),
        api_error("no", "x" * (offset % 64) + KEY, f"c {KEY}"),
        {"detail": [said]},
    ):
        error = refuse(401, body, {"x-request-id": f"r {KEY}"}, Redactor([KEY]))
        everything = f"{error!r} {error} {error.body} {error.type} {error.code} {error.request_id} {error.args}"
        assert "canary" not in everything


def test_a_key_behind_json_escapes_is_gone() -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY)
    error = refuse(401, f'{{"error": {{"message": "Bad key {escaped}."}}}}'.encode(), {}, Redactor([KEY]))
    assert "canary" not in str(error)
    assert "Bad key [redacted]." in str(error)


@pytest.mark.parametrize("start", range(LOOKED_AT - 60, LOOKED_AT + 10, 3))
def test_a_key_where_a_long_error_is_cut_is_gone(start: int) -> None:
    said = (" " * start + KEY).ljust(200_000)
    for error in ({"message": said}, {"message": "no", "code": said, "type": said}, {"message": {said: 1}}):
        caught = failed_response(error, Redactor([KEY]))
        assert "canary" not in f"{caught.message} {caught.code} {caught.type}"


MEMBERS = st.sampled_from(
    ["error", "errors", "detail", "message", "code", "type", "status", "param", "metadata", "raw", "headers", "output"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["429", "{}", "[{}]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from(["", "failed", "completed", "incomplete", "queued"]))
def test_no_value_in_any_member_raises_anything_else(value: Any, status: str) -> None:
    errors = [response_error({"status": status, "error": value}, str), reply_error(Head(200, {}, str), value, b"")]
    assert all(len(str(error)) <= LONGEST for error in errors if error is not None)
