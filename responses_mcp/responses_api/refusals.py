"""From what the API says instead of an answer to the error that tells what to do about it.

Two ways lead here: an HTTP status that is not a success, and a Response with the status `failed` under HTTP 200.
Whatever the API said is redacted before it is cut: half a key is still half a key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from responses_mcp.protocol.jsonrpc import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api import json_slices
from responses_mcp.responses_api.retry import asked_wait, is_quota, retryable_status

Redact = Callable[[str], str]

_LONGEST_TEXT = 300  # characters of a message, with what the API said in it; clients get 400 (contract 8.2)
_LONGEST_WORD = 64  # characters of a type or a code
_LONGEST_ID = 100
_LONGEST_BODY = 300  # characters of a body in the debug log (contract 8.1)
_LONGEST_READ = 64 * 1024  # bytes of an error body, characters of a text; the rest of an HTML page says nothing
_LONGEST_SECRET = 4 * 1024  # bytes at the end of what is cut there that may be the beginning of a secret
_LONGEST_TOLD = 86_400  # seconds of a wait; a header may name a number of 300 digits
_MOST_WRITTEN = 1_000  # values and brackets of details that are no text


async def read_body(status: int, headers: Mapping[str, str], pieces: list[bytes], redact: Redact) -> JsonObject:
    """Return the JSON object of a success, or raise the `UpstreamError` that anything else stands for.

    `headers` has lower-case names, `pieces` put together are the body. The error quotes little of what the API said,
    and after `redact`. Lets other tasks run while it reads a long body, and empties `pieces` then.
    """
    request_id = redact(headers.get("x-request-id", ""))[:_LONGEST_ID] or None
    beginning = _beginning(pieces)
    if 200 <= status < 300:
        value = await _parse(pieces)
        if isinstance(value, dict):
            return cast(JsonObject, value)
        await json_slices.let_go(value)
        raise UnusableReply(
            f"The API answered {status} with something that is not a JSON object; "
            "check that openai.base_url is a Responses API and that no proxy rewrites it.",
            status=status,
            request_id=request_id,
            body=_excerpt(beginning, redact),
        )
    said, kind, code, param = _words(await _parse([beginning[:_LONGEST_READ]]), redact)
    wait = asked_wait(headers)
    error_class, before, cure = _meaning(status, kind, code)
    retryable = (
        error_class is not QuotaExhausted
        and retryable_status(status)
        and headers.get("x-should-retry", "").strip().lower() != "false"
    )
    if retryable and wait is not None:
        cure += f" It asks to wait {_duration(wait)}."
    raise error_class(
        _message(f"{before} ({status}{f' {code}' if code else ''})", said, cure),
        status=status,
        type=kind,
        code=code,
        param=param,
        request_id=request_id,
        retryable=retryable,
        retry_after=wait,
        body=_excerpt(beginning, redact),
    )


def _meaning(status: int, kind: str | None, code: str | None) -> tuple[type[UpstreamError], str, str]:
    """Return the error for a status, what happened, and what to do."""
    if is_quota(kind, code):
        return QuotaExhausted, "The account's quota is used up", "Check plan and billing with the provider."
    if status == 401:
        cure = "Set a valid key in the variable that openai.api_key_env names."
        return AuthenticationFailed, "The API refused the key", cure
    if status == 403:
        cure = "Check the key's project, its model access and your region."
        return RequestRefused, "The API key may not do this", cure
    if status == 404:
        return RequestRefused, "The API does not know what was asked for", "Check the model and openai.base_url."
    if status == 407:
        return RequestRefused, "The proxy wants to know who asks", "Check HTTPS_PROXY and HTTP_PROXY."
    if status == 429:
        return RateLimited, "The API limits the rate of requests", "Wait a while and ask again."
    if status >= 500 or status in (408, 409):
        cure = "Try again later, or check openai.base_url if it is not OpenAI's."
        return ServiceFailed, "The API failed", cure
    if 300 <= status < 400:
        cure = "That is not followed with a key; set openai.base_url to the final address."
        return RequestRefused, "The API redirects", cure
    return RequestRefused, "The API refused the request", "Check the profile's model and its parameters."


def failed_response(error: JsonObject, redact: Redact) -> UpstreamError:
    """Return the error for the member `error` of a Response that failed after the request had been accepted."""
    said, kind, code, param = _words(error, redact)
    why = f" ({code})" if code else ""
    if is_quota(kind, code) or "quota" in said.lower():
        text = _message(f"The account's quota is used up{why}", said, "Check plan and billing with the provider.")
        return QuotaExhausted(text, type=kind, code=code, param=param)
    if code in ("server_error", "rate_limit_exceeded"):
        error_class = RateLimited if code == "rate_limit_exceeded" else ServiceFailed
        text = _message(f"The API could not finish the answer{why}", said, "Try again later.")
        return error_class(text, type=kind, code=code, param=param, retryable=True)
    said = said or "no reason given."
    return RequestRefused(
        _message(f"The API did not answer{why}", said, "Change the question or the model."),
        type=kind,
        code=code,
        param=param,
    )


async def _parse(pieces: list[bytes]) -> object:
    try:
        return await json_slices.parse(pieces)
    except (ValueError, RecursionError):
        return None


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
        return _Words(_sentence(_redacted(error, redact)))
    if not isinstance(error, dict):
        return _Words("")
    given = cast(dict[str, Any], error)
    said: object = given.get("message") or given.get("detail") or ""
    text = _redacted(said if isinstance(said, str) else _dump(said), redact)
    return _Words(_sentence(text), *(_word(given.get(name), redact) for name in ("type", "code", "param")))


def _word(value: object, redact: Redact) -> str | None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    return replace_lone_surrogates(_redacted(str(value), redact))[:_LONGEST_WORD]


def _dump(value: object) -> str:
    text = ""
    with suppress(RecursionError):
        for piece in islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _MOST_WRITTEN):
            text += piece
    return text


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?。" else text + "."


def _message(before: str, said: str, cure: str) -> str:
    """Put a message together in which the cure has its place, however much the API said."""
    if not said:
        return f"{before}. {cure}"
    room = _LONGEST_TEXT - len(before) - len(cure)
    if len(said) > room:
        said = said[: max(0, room - 1)] + "…"
    return f"{before}: {said} {cure}"


def _duration(seconds: float) -> str:
    return "a day or longer" if seconds >= _LONGEST_TOLD else f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def _beginning(pieces: list[bytes]) -> bytes:
    """Return as much of a body as is read where it is no success, and a byte more if there is more."""
    read = b""
    for piece in pieces:
        read += piece[: _LONGEST_READ + 1 - len(read)]
        if len(read) > _LONGEST_READ:
            break
    return read


def _excerpt(beginning: bytes, redact: Redact) -> str:
    text = beginning[:_LONGEST_READ].decode("utf-8", "replace")
    text = _redacted(text, redact, cut=len(beginning) > _LONGEST_READ)
    return " ".join(text.split())[:_LONGEST_BODY]


def _redacted(text: str, redact: Redact, *, cut: bool = False) -> str:
    """Return the beginning of a text without secrets, nor the half of one at its end if it is `cut` there."""
    cut = cut or len(text) > _LONGEST_READ
    text = redact(text[:_LONGEST_READ])
    return text[:-_LONGEST_SECRET] if cut else text
