"""JSON-RPC 2.0 messages: what one decoded payload is, and the bytes of what we answer.

`decode` never raises. A payload is a `Request`, a `Notification`, an `Invalid`, which carries the error it deserves, or
None for a response, which a server that asks nothing ignores. Request ids are compared by type and value, because a
Python dict takes `True`, `1` and `1.0` for one key and JSON does not; see `request_key`.
"""

from __future__ import annotations

import json
import math
from typing import Final, NamedTuple, Never, TypeAlias, cast

from responses_mcp.json_types import JsonObject

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

RequestId: TypeAlias = str | int | float
RequestKey: TypeAlias = tuple[type, RequestId]


class Request(NamedTuple):
    """A message that wants an answer. `params` is an object; absent and null are the empty one."""

    id: RequestId
    key: RequestKey
    method: str
    params: JsonObject


class Notification(NamedTuple):
    """A message that is never answered. `params` is None when it is not an object."""

    method: str
    params: JsonObject | None


class RpcError(NamedTuple):
    """An error as JSON-RPC words it: `code`, a short `message`, and optional `data`."""

    code: int
    message: str
    data: JsonObject | None = None


class Invalid(NamedTuple):
    """A payload that is no message. `id` is None, sent as null, where none can be trusted."""

    id: RequestId | None
    error: RpcError


Message: TypeAlias = Request | Notification | Invalid


def request_key(value: object) -> RequestKey | None:
    """Return the key under which an id is in flight, or None when `value` is neither a string nor a number."""
    if type(value) is str or type(value) is int or (type(value) is float and math.isfinite(value)):
        return (type(value), value)
    return None


def decode(payload: bytes) -> Message | None:
    """Read one payload, strictly: UTF-8, JSON without NaN, one object. None is a response."""
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return _parse_error("the message is not valid UTF-8")
    except RecursionError:
        return _parse_error("the message is nested too deeply")
    except ValueError:
        return _parse_error("the message is not valid JSON")
    if not isinstance(value, dict):
        return _invalid(None, "batches and non-object messages are not accepted")
    return _classify(cast(JsonObject, value))


def _classify(message: JsonObject) -> Message | None:
    method = message.get("method")
    params = message.get("params")
    if "id" not in message and isinstance(method, str):
        fit = isinstance(params, dict) and message.get("jsonrpc") == "2.0"
        return Notification(method, cast(JsonObject, params) if fit else None)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    request_id = message.get("id")
    key = request_key(request_id)
    if key is None:
        return _invalid(None, "id must be a string or a number" if "id" in message else "method must be a string")
    request_id = key[1]
    if message.get("jsonrpc") != "2.0":
        return _invalid(request_id, 'jsonrpc must be "2.0"')
    if not isinstance(method, str):
        return _invalid(request_id, "method must be a string")
    if params is not None and not isinstance(params, dict):
        return _invalid(request_id, "params must be an object")
    return Request(request_id, key, method, cast(JsonObject, params) if params is not None else {})


def _refuse_constant(name: str) -> Never:
    raise ValueError(name)


def _parse_error(reason: str) -> Invalid:
    return Invalid(None, RpcError(PARSE_ERROR, f"Parse error: {reason}"))


def _invalid(request_id: RequestId | None, reason: str) -> Invalid:
    return Invalid(request_id, RpcError(INVALID_REQUEST, f"Invalid Request: {reason}"))


def encode(value: object) -> bytes:
    """Serialise a message of ours, or a value in it, as one line of UTF-8, compact, with Japanese left readable.

    U+2028 and its kin are escaped, since some readers split lines there. Lone surrogates have no UTF-8 form: a result
    or an error gets U+FFFD for them, while an id that the peer sent so makes the whole message ASCII escapes.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if text.isascii():
        return text.encode("ascii")
    for separator, escape in _LINE_SEPARATORS:
        text = text.replace(separator, escape)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(_mended(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def _mended(value: object) -> object:
    """Return a response without lone surrogates, which a tool of a host's own may return, but for its id."""
    if not isinstance(value, dict):
        return value
    message = dict(cast("JsonObject", value))
    for part in message.keys() & {"result", "error"}:
        text = json.dumps(message[part], ensure_ascii=False)
        message[part] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return message


_LINE_SEPARATORS = (("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\u0085", "\\u0085"))


def result_message(request_id: RequestId, result: JsonObject) -> JsonObject:
    """Build the response that carries `result`."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def result_message_bytes(request_id: RequestId, result: bytes) -> bytes:
    """Return what `encode` makes of the response that carries a result which has been serialised before."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), result)


def error_message(request_id: RequestId | None, error: RpcError) -> JsonObject:
    """Build the response that carries `error`; an id of None is sent as null."""
    body: JsonObject = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def notification_message(method: str, params: JsonObject) -> JsonObject:
    """Build a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
