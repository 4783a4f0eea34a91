"""From an HTTP response that is not a success to the error that tells what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from responses_mcp.errors import (
    AuthenticationFailed,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.responses_api.retry import asked_wait, is_quota, retryable_status

_LONGEST_QUOTE = 300
_LONGEST_READ = 64 * 1024  # bytes of an error body; the rest of an HTML page says nothing


def read_body(status: int, headers: Mapping[str, str], body: bytes, redact: Callable[[str], str]) -> JsonObject:
    """Return the JSON object of a success, or raise the `UpstreamError` that anything else stands for.

    `headers` has lower-case names. The error quotes at most 300 characters of what the API said, after `redact`.
    """
    if 200 <= status < 300:
        value = _parse(body)
        if isinstance(value, dict):
            return cast(JsonObject, value)
        raise UnusableReply(
            f"The API answered {status} with something that is not a JSON object; "
            "check that openai.base_url is a Responses API and that no proxy rewrites it.",
            status=status,
            request_id=headers.get("x-request-id"),
            body=_quote(redact(body[:_LONGEST_READ].decode("utf-8", "replace"))),
        )
    # Redacted before anything is cut: half a key is still half a key.
    text = redact(body[:_LONGEST_READ].decode("utf-8", "replace"))
    raise _refusal(status, headers, text)


def _refusal(status: int, headers: Mapping[str, str], body: str) -> UpstreamError:
    said, kind, code = _error_words(_parse(body))
    cause = f"{status}{f' {code}' if code else ''}"
    told = f": {said}" if said else ""
    wait = asked_wait(headers)
    error_class: type[UpstreamError] = RequestRefused
    retryable = retryable_status(status) and headers.get("x-should-retry") != "false"
    if status == 401:
        error_class = AuthenticationFailed
        text = f"The API refused the key ({cause}){told} Set a valid key in the variable that openai.api_key_env names."
    elif status == 403:
        text = f"The API key may not do this ({cause}){told} Check the key's project, its model access and your region."
    elif status == 404:
        text = f"The API does not know what was asked for ({cause}){told} Check the model and openai.base_url."
    elif is_quota(kind, code):
        error_class, retryable = QuotaExhausted, False
        text = f"The account's quota is used up ({cause}){told} Check plan and billing with the provider."
    elif status == 429:
        error_class = RateLimited
        text = f"The API limits the rate of requests ({cause}){told} Wait a while and ask again."
    elif status >= 500:
        error_class = ServiceFailed
        text = f"The API failed ({cause}){told} Try again later, or check openai.base_url if it is not OpenAI's."
    elif 300 <= status < 400:
        text = (
            f"The API redirects ({status}), which is not followed with a key; set openai.base_url to the final address."
        )
    else:
        text = f"The API refused the request ({cause}){told} Check the profile's model and its parameters."
    if retryable and wait is not None:
        text += f" It asks to wait {wait:.6g} s."
    return error_class(
        text,
        status=status,
        type=kind,
        code=code,
        request_id=headers.get("x-request-id"),
        retryable=retryable,
        retry_after=wait,
        body=_quote(body),
    )


def _parse(body: bytes | str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _error_words(value: object) -> tuple[str, str | None, str | None]:
    """Return what an error body says, its type and its code; gateways have many forms, HTML says nothing here."""
    if not isinstance(value, dict):
        return "", None, None
    body = cast(dict[str, Any], value)
    error: object = body.get("error", body)
    if isinstance(error, str):
        return _sentence(error), None, None
    if not isinstance(error, dict):
        return "", None, None
    words = cast(dict[str, Any], error)
    said = words.get("message") or words.get("detail") or ""
    kind, code = words.get("type"), words.get("code")
    return (
        _sentence(said if isinstance(said, str) else json.dumps(said)),
        kind if isinstance(kind, str) else None,
        str(code) if isinstance(code, str | int) and not isinstance(code, bool) else None,
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())[:_LONGEST_QUOTE]
    return text if not text or text[-1] in ".!?。" else text + "."


def _quote(body: str) -> str:
    return " ".join(body.split())[:_LONGEST_QUOTE]
