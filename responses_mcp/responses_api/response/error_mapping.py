"""Error mapping: from an HTTP error, or a Response that failed under HTTP 200, to an `UpstreamError` with a cure.

What the API said is redacted before it is cut: half a key is still half a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from typing import Any, NamedTuple, cast

from responses_mcp.errors import (
    AuthenticationFailed,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.redaction import Redact, redacted_beginning
from responses_mcp.responses_api.retry import asked_wait, is_quota, retryable_status
from responses_mcp.sanitization import sanitized

_LONGEST_TEXT = 300  # characters of a message, with what the API said in it
_LONGEST_TOLD = 400  # characters that clients get of one (spec 8.2)
_LONGEST_WORD = 64  # characters of a type or a code
_LONGEST_ID = 100
_LONGEST_BODY = 300  # characters of a body in the debug log (spec 8.1)
LONGEST_READ = 64 * 1024  # bytes of an error body, characters of a text; the rest of an HTML page says nothing
_LONGEST_WAIT = 86_400  # seconds that are named; a header may have a number of 300 digits
_VERSION = re.compile(r"/v[0-9][a-z0-9]*+/?$|/openai/?$")
_VARIABLES = {
    "answer": "MODEL_ANSWER",
    "answer_detailed": "MODEL_DETAILED",
    "answer_quick": "MODEL_QUICK",
    "search": "MODEL_SEARCH",
}
_MOST_WRITTEN = 1_000  # values and brackets of details that are no text
_NAME = re.compile(r"[\w.:-]+", re.ASCII)
# Statuses that a message may name; anything else could be a secret.
_KNOWN_STATUSES = ("queued", "in_progress", "cancelled")


def http_error(
    status: int, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str = "OPENAI_API_KEY"
) -> UpstreamError:
    """Return the error for an HTTP status that is no success.

    `headers` has lower-case names, `beginning` is the body as far as it is read. What is quoted passes `redact`.
    `key_from` says where the key comes from.
    """
    said, kind, code, param = _words(_parsed(beginning[:LONGEST_READ]), redact)
    wait = asked_wait(headers, said)
    error_class, before, cure = _meaning(status, kind, code, param, key_from)
    retryable = (
        error_class is not QuotaExhausted
        and retryable_status(status)
        and not said.lower().startswith("request too large")  # for the limit, whenever it is sent
        and headers.get("x-should-retry", "").strip().lower() != "false"
    )
    if retryable and wait is not None:
        cure += f" It asks to wait {_duration(wait)}."
    return _quoting(
        error_class,
        f"{before} ({status}{f' {code}' if code else ''})",
        said,
        cure,
        status=status,
        type=kind,
        code=code,
        param=param,
        request_id=_request_id(headers, redact),
        retryable=retryable,
        retry_after=wait,
        body=_excerpt(beginning, redact),
    )


def name_model(error: UpstreamError, model: str, models: Mapping[str, str], base_url: str) -> None:
    """Have an error about the model, or about a path, name the settings to change and what the address may lack.

    `models` are those of the profiles, or of an option (`--model`). One that has ended is answered with 404, or, by
    other servers, 400, 403 or 410. Where a path is wrong, whatever else is there may answer.
    """
    named = _named(model, models) if _is_about(error, model) else ""
    elsewhere = (isinstance(error, UnusableReply) and error.status is not None) or (
        isinstance(error, RequestRefused) and (error.status in (404, 405) or 300 <= (error.status or 0) < 400)
    )
    if elsewhere and error.code in (None, "unknown_url") and not _VERSION.search(base_url):
        named += " openai.base_url (OPENAI_BASE_URL) does not end in /v1: did you forget that, or add more behind it?"
    room = max(0, _LONGEST_TOLD - len(named))
    error.message = error.message[:room] + named
    if error.unquoted is not None:
        error.unquoted = error.unquoted[:room] + named


def _is_about(error: UpstreamError, model: str) -> bool:
    refused = isinstance(error, RequestRefused) and error.status in (400, 403, 404, 410)
    about = error.status == HTTPStatus.NOT_FOUND or error.param == "model" or (error.code or "").startswith("model_")
    return refused and (about or model in error.message)


def _named(model: str, models: Mapping[str, str]) -> str:
    """Return a sentence that names the settings which a model comes from, nothing for one that is in none."""
    settings = " and ".join(
        name
        if name.startswith("--")
        else f"model_profiles.{name}.model" + (f" ({_VARIABLES[name]})" if name in _VARIABLES else "")
        for name, other in models.items()
        if other == model
    )
    return f" The model is {model[:_LONGEST_WORD]}, from {settings}." if settings else ""


def not_an_object(status: int, headers: Mapping[str, str], body: bytes, redact: Redact, why: str) -> UnusableReply:
    """Return the error for a success whose body is no JSON object; `why` is for the debug log."""
    return UnusableReply(
        f"The API answered {status} with something that is not a JSON object; "
        "check that openai.base_url is a Responses API and that no proxy rewrites it.",
        status=status,
        request_id=_request_id(headers, redact),
        body=f"{why}: {_excerpt(body[: LONGEST_READ + 1], redact)}",
    )


def check_status(response: JsonObject, redact: Redact) -> None:
    """Raise the `UpstreamError` for a Response that did not end well; no status at all passes."""
    status = response.get("status")
    if status == "failed":
        error = failed_response(as_object(response.get("error")), redact)
        used = any(isinstance(count, int | float) and count > 0 for count in as_object(response.get("usage")).values())
        if used or ("id" not in response and response.get("output")):  # an error amid the stream tells no usage
            error.retryable, error.maybe_paid = False, True
        raise error
    if status == "incomplete":
        reason = as_object(response.get("incomplete_details")).get("reason")
        if reason == "content_filter":
            raise RequestRefused(
                "The API's content filter stopped the answer; ask in other words.", code="content_filter"
            )
    elif status not in (None, "completed"):
        known = f"status {status}" if status in _KNOWN_STATUSES else "an unknown status"
        raise UnusableReply(
            f"The API returned a response that is not finished ({known}); ask again, "
            "and if it happens again check that openai.base_url is a Responses API."
        )


def _meaning(
    status: int, kind: str | None, code: str | None, param: str | None, key_from: str
) -> tuple[type[UpstreamError], str, str]:
    """Return the error for a status, what happened, and what to do."""
    if status in (400, 404, 422) and (cure := _cure_for(code, param)) is not None:
        return RequestRefused, "The API refused the request", cure
    if is_quota(kind, code) or status == 402:
        return QuotaExhausted, "The account's quota is used up", "Check plan and billing with the provider."
    if status == 401:
        return AuthenticationFailed, "The API refused the key", f"Put a valid key into {key_from}."
    if status == 403:
        cure = "Check the key's project, its model access and your region."
        return RequestRefused, "The API key may not do this", cure
    if status == 404:
        cure = "Check the model, and whether openai.base_url has a Responses API."
        if code == "model_not_found":
            cure = "Check the model and openai.base_url."
        return RequestRefused, "The API does not know what was asked for", cure
    if status == 405:
        return RequestRefused, "Nothing takes questions there", "Correct openai.base_url (OPENAI_BASE_URL)."
    if status == 407:
        return (
            RequestRefused,
            "The proxy wants to know who asks",
            "Put user:password@ before its host in HTTPS_PROXY or HTTP_PROXY, or, if unset, correct openai.base_url.",
        )
    if status == 413:
        cure = "Ask in fewer words, or have a larger request let through to openai.base_url."
        return RequestRefused, "The request is too large there", cure
    if status == 429:
        return RateLimited, "The API limits the rate of requests", "Wait a while and ask again."
    if status >= 500 or status in (408, 409):
        cure = "Try again later, or check openai.base_url if it is not OpenAI's."
        return ServiceFailed, "The API failed", cure
    if 300 <= status < 400:
        cure = "That is not followed with a key; set openai.base_url to the final address."
        return RequestRefused, "The API redirects", cure
    return RequestRefused, "The API refused the request", "Check the profile's model and its parameters."


def _cure_for(code: str | None, param: str | None) -> str | None:
    """Return what to do about a part of the request that only some questions have; None for all other parts."""
    if code == "previous_response_not_found" or param == "previous_response_id":
        return "It no longer has what continue_from goes on from; ask again, and say in the question what it needs."
    if param is not None and re.search(r"\btext\.format\b", param):
        return "Correct output_schema, or leave it out."
    if param is not None and re.search(r"\buser_location\b", param):
        return "Correct location, or user_location in the profile."
    return None


def failed_response(error: JsonObject, redact: Redact) -> UpstreamError:
    """Return the error for the member `error` of a Response that failed after the request had been accepted."""
    said, kind, code, param = _words(error, redact)
    why = f" ({code})" if code else ""
    if is_quota(kind, code) or "quota" in said.lower():
        before, cure = f"The account's quota is used up{why}", "Check plan and billing with the provider."
        return _quoting(QuotaExhausted, before, said, cure, type=kind, code=code, param=param)
    if code in ("server_error", "rate_limit_exceeded"):
        error_class = RateLimited if code == "rate_limit_exceeded" else ServiceFailed
        before, cure = f"The API could not finish the answer{why}", "Try again later."
        known: dict[str, Any] = {"type": kind, "code": code, "param": param, "retry_after": asked_wait({}, said)}
        return _quoting(error_class, before, said, cure, retryable=True, **known)
    before, cure = f"The API did not answer{why}", "Change the question or the model."
    return _quoting(RequestRefused, before, said or "no reason given.", cure, type=kind, code=code, param=param)


def _parsed(beginning: bytes) -> object:
    try:
        return json.loads(beginning.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _request_id(headers: Mapping[str, str], redact: Redact) -> str | None:
    return redact(sanitized(headers.get("x-request-id", "")))[:_LONGEST_ID] or None


class _Words(NamedTuple):
    """What an error says, redacted."""

    said: str
    type: str | None = None
    code: str | None = None
    param: str | None = None


def _words(value: object, redact: Redact) -> _Words:
    """Find the words of an error; gateways have many forms, and HTML says nothing here."""
    error: object = value
    if isinstance(error, dict):
        error = cast(dict[str, Any], error).get("error", error)
    if isinstance(error, str):
        return _Words(_sentence(_beginning(error, redact)))
    if not isinstance(error, dict):
        return _Words("")
    given = cast(dict[str, Any], error)
    said: object = given.get("message") or given.get("detail") or ""
    text = _beginning(said if isinstance(said, str) else _dump(_without_input(said)), redact)
    return _Words(_sentence(text), *(_word(given.get(name), redact) for name in ("type", "code", "param")))


def _without_input(details: object) -> object:
    """Return the details of a validator without what it was given, which is the question."""
    listed = cast(list[object], details) if isinstance(details, list) else [details]
    told = [
        {name: value for name, value in as_object(each).items() if name not in ("input", "ctx", "url")}
        if isinstance(each, dict)
        else each
        for each in listed[:_MOST_WRITTEN]
    ]
    return told if isinstance(details, list) else told[0]


def _word(value: object, redact: Redact) -> str | None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    return _beginning(str(value), redact)[:_LONGEST_WORD]


def _beginning(text: str, redact: Redact) -> str:
    """Return the beginning of a text as it may be shown."""
    return redacted_beginning(sanitized(text[:LONGEST_READ]), LONGEST_READ, redact, cut=len(text) > LONGEST_READ)


def _dump(value: object) -> str:
    text = ""
    with suppress(RecursionError):
        for piece in islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _MOST_WRITTEN):
            text += piece
    return text


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?。" else text + "."


def _quoting(kind: type[UpstreamError], before: str, said: str, cure: str, **known: Any) -> UpstreamError:
    said = _cut(said, _LONGEST_TEXT - len(before) - len(cure))
    error = kind(_message(before, said, cure), **known)
    error.said = said or None
    code = known.get("code") or ""
    if code and not _NAME.fullmatch(code):  # free text, which may repeat the question
        before = before.replace(code, "…")
    error.unquoted = _message(before, "", cure)
    return error


def _message(before: str, said: str, cure: str) -> str:
    return f"{before}: {said} {cure}" if said else f"{before}. {cure}"


def _cut(said: str, room: int) -> str:
    """Return what the API said, cut such that the message has a bounded length; the cure is never cut."""
    return said if len(said) <= room else said[: max(0, room - 1)] + "…"


def _duration(seconds: float) -> str:
    return "a day or longer" if seconds >= _LONGEST_WAIT else f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def _excerpt(beginning: bytes, redact: Redact) -> str:
    text = beginning[:LONGEST_READ].decode("utf-8", "replace")
    text = redacted_beginning(text, LONGEST_READ, redact, cut=len(beginning) > LONGEST_READ)
    return " ".join(text.split())[:_LONGEST_BODY]
