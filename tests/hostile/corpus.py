"""Hostile input, each piece with the only answers it may get.

A case is bytes for a server that has shaken hands and has a call in flight, and the responses it owes: pairs of an id
and an error code, or `OK` for a result. Notifications, responses and malformed cancels are owed nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

OK = "result"
PARSE, INVALID, METHOD, PARAMS, FAILED, VERSION = -32700, -32600, -32601, -32602, -32001, -32022
IN_FLIGHT = "the call in flight"  # its id

PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}


@dataclass(frozen=True)
class Case:
    group: str
    name: str
    data: bytes
    owed: tuple[tuple[object, object], ...]


CASES: list[Case] = []


def add(group: str, name: str, data: bytes | str | dict | list, *owed: tuple[object, object]) -> None:
    if isinstance(data, dict | list):
        data = json.dumps(data)
    raw = data.encode() if isinstance(data, str) else data
    CASES.append(Case(group, name, raw if raw.endswith(b"\n") else raw + b"\n", owed))


def rpc(id_: Any = 1, method: Any = "ping", params: Any = ..., **more: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params, **more}
    return {key: value for key, value in message.items() if value is not ...}


def note(method: Any, params: Any = ..., **more: Any) -> dict[str, Any]:
    return rpc(..., method, params, **more)


def frame(body: bytes | str, length: Any = None) -> bytes:
    raw = body.encode() if isinstance(body, str) else body
    return f"Content-Length: {len(raw) if length is None else length}\r\n\r\n".encode() + raw


PING = json.dumps(rpc())
PING2 = json.dumps(rpc(2))

# Malformed JSON

for name, text in {
    "a cut message": '{"jsonrpc":"2.0","id":1,"method":"pi',
    "two messages on a line": PING + PING2,
    "single quotes": "{'jsonrpc':'2.0','id':1,'method':'ping'}",
    "a comment": '{"jsonrpc":"2.0","id":1,"method":"ping"} // ping',
    "NaN as an id": '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    "Infinity in params": '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":Infinity}}',
    "a number of 5,000 digits": '{"jsonrpc":"2.0","id":' + "1" * 5000 + ',"method":"ping"}',
    "a number of a million digits": '{"jsonrpc":"2.0","id":1,"x":' + "7" * 1_000_000 + "}",
    "a number with leading zeros": '{"jsonrpc":"2.0","id":007,"method":"ping"}',
    "a bad escape": '{"jsonrpc":"2.0","id":1,"method":"\\x70ing"}',
    "a raw control character": '{"jsonrpc":"2.0","id":1,"method":"pi\tng"}',
    "an HTTP request": "GET / HTTP/1.1",
    "100,000 opened brackets": "[" * 100_000,
    "100,000 nested objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "100,000 nested arrays": PING[:-1] + ',"params":' + "[" * 100_000 + "]" * 100_000 + "}",
}.items():
    add("malformed JSON", name, text, (None, PARSE))

# Bytes

for name, raw in {
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "an encoded surrogate": b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-be"),
    "NUL bytes": b"\0\0\0\0",
    "every byte there is": bytes(byte for byte in range(256) if byte not in b"\r\n"),
}.items():
    add("bytes", name, raw, (None, PARSE))
add("bytes", "U+2028 raw in a string", '{"jsonrpc":"2.0","id":"a\u2028b","method":"ping"}', ("a\u2028b", OK))
add("bytes", "a byte order mark", b"\xef\xbb\xbf" + PING.encode(), (1, OK))
add("bytes", "CRLF line ends", PING.encode() + b"\r\n" + PING2.encode() + b"\r\n", (1, OK), (2, OK))
add("bytes", "blank lines", b"\n\r\n  \n\t\r\n" + PING.encode(), (1, OK))
add("bytes", "blanks around a message", "  \t" + PING + "  ", (1, OK))
add("bytes", "a lone high surrogate in an id", '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', ("\ud800", OK))
add("bytes", "a lone low surrogate in a method", '{"jsonrpc":"2.0","id":1,"method":"\\udc00"}', (1, METHOD))

# Framing

add("framing", "a frame among lines", frame(PING) + PING2.encode(), (1, OK), (2, OK))
add("framing", "frames glued together", frame(PING) + frame(PING2), (1, OK), (2, OK))
add("framing", "a length of zero", frame("", 0) + PING.encode(), (None, PARSE), (1, OK))
for name, length in {
    "a negative length": -5,
    "a length of 40 digits": "9" * 40,
}.items():
    add("framing", name, frame(PING + "\n", length), (None, PARSE), (1, OK))
ONCE = ((None, PARSE), (1, OK))  # a fault, and the stream goes on
LONG = b"Content-Length: 5\r\n"
for name, raw, owed in [
    ("no length at all", b"Content-Type: application/json\r\n\r\n" + PING.encode(), ONCE),
    ("a missing blank line", f"Content-Length: {len(PING)}\r\n{PING}".encode(), ONCE),
    ("half a header name", b"Content-Len\n" + PING.encode(), ONCE),
    ("a header block of 64 kB", LONG + b"X: y\r\n" * 11_000 + b"\r\n" + PING.encode(), ONCE),
    ("a header name of 1 MB", b"Content-Length" * 70_000 + b"\n" + PING.encode(), ONCE),
    ("a length too short", frame(PING, 10) + b"\n" + PING2.encode(), ((None, PARSE), (None, PARSE), (2, OK))),
    ("a length too long", frame(PING + "\n", len(PING + PING2) + 1) + (PING2 * 2).encode(), ((None, PARSE), (2, OK))),
    ("lying lengths in a row", frame(PING, 10) + frame(PING2), ((None, PARSE), (None, PARSE), (2, OK))),
    ("a frame holding two messages", frame(PING + "\n" + PING2), ((None, PARSE),)),
    ("a frame holding garbage", frame("garbage"), ((None, PARSE),)),
    ("a line of 17 MiB", b'{"x":"' + b"y" * (17 << 20) + b'"}\n' + PING.encode(), ((None, INVALID), (1, OK))),
    ("a frame of 17 MiB", frame(b"y" * (17 << 20)) + PING.encode(), ((None, INVALID), (1, OK))),
    ("a line of 15 MB that is legal", json.dumps(rpc(params={"x": "y" * 15_000_000})).encode(), ((1, OK),)),
]:
    add("framing", name, raw, *owed)

# Ids

for name, id_ in {
    "null": None,
    "true": True,
    "an array": [1],
}.items():
    add("ids", f"{name} as an id", rpc(id_), (None, INVALID))
for name, good_id in {
    "zero": 0,
    "a big number": 2**64,
    "a number with a fraction": 1.5,
    "the empty string": "",
    "a digit in a string": "1",
    "a string of 100 kB": "i" * 100_000,
}.items():
    add("ids", f"{name} as an id", rpc(good_id), (good_id, OK))
add("ids", "an infinite exponent as an id", '{"jsonrpc":"2.0","id":1e999,"method":"ping"}', (None, INVALID))
add("ids", "the id twice in one message", '{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}', (6, OK))
add("ids", "the id of the call in flight", rpc(IN_FLIGHT), (IN_FLIGHT, INVALID))

# Messages of wrong shapes

for name, value in {
    "an empty batch": [],
    "a batch": [rpc(1), rpc(2)],
    "a number": 42,
    "null": None,
}.items():
    add("shapes", name, json.dumps(value), (None, INVALID))
add("shapes", "an empty object", {}, (None, INVALID))
add("shapes", "no method", {"jsonrpc": "2.0", "id": 1}, (1, INVALID))
add("shapes", "a null method", rpc(1, None), (1, INVALID))
add("shapes", "a number as the method", rpc(1, 5), (1, INVALID))
add("shapes", "no version", {"id": 1, "method": "ping"}, (1, INVALID))
add("shapes", "version 1.0", rpc(jsonrpc="1.0"), (1, INVALID))
add("shapes", "a method and a result", rpc(result={}), (1, OK))
add("shapes", "unknown members", rpc(extra={"deep": [1, {"er": None}]}), (1, OK))
for name, params in {"an array": [1], "a string": "x", "a number": 0, "false": False}.items():
    add("shapes", f"{name} as params", rpc(params=params), (1, INVALID))
add("shapes", "null as params", rpc(params=None), (1, OK))
add("shapes", "10,000 members", rpc(params={f"key{number}": number for number in range(10_000)}), (1, OK))

# What is owed nothing

for name, value in {
    "an unknown notification": note("notifications/unheard_of", {"x": 1}),
    "a call without an id": note("tools/call", {"name": "answer", "arguments": {"query": "x"}}),
    "a notification with params of a wrong type": note("notifications/initialized", [1, 2]),
    "a notification of version 1.0": note("notifications/initialized", jsonrpc="1.0"),
    "a notification with an empty method": note(""),
    "a result": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "a result for the call in flight": {"jsonrpc": "2.0", "id": IN_FLIGHT, "result": {}},
    "an error": {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "x"}},
    "a result without an id": {"jsonrpc": "2.0", "result": 5},
    "a cancel without params": note("notifications/cancelled"),
    "a cancel with an array": note("notifications/cancelled", [IN_FLIGHT]),
    "a cancel without an id": note("notifications/cancelled", {"reason": "x"}),
    "a cancel of null": note("notifications/cancelled", {"requestId": None}),
    "a cancel of true": note("notifications/cancelled", {"requestId": True}),
    "a cancel of a float": note("notifications/cancelled", {"requestId": 1.0}),
    "a cancel of an object": note("notifications/cancelled", {"requestId": {"id": IN_FLIGHT}}),
    "a cancel of an unknown id": note("notifications/cancelled", {"requestId": 987_654}),
    "a cancel of a finished id": note("notifications/cancelled", {"requestId": 1}),
    "a cancel of version 1.0": note("notifications/cancelled", {"requestId": IN_FLIGHT}, jsonrpc="1.0"),
    "the old cancel of editors": note("$/cancelRequest", {"id": IN_FLIGHT}),
}.items():
    add("owed nothing", name, value)
asked = rpc(1, "notifications/cancelled", {"requestId": IN_FLIGHT})
add("owed nothing", "a cancel sent as a request", asked, (1, METHOD))

# Methods, tools and arguments

for name, method in {
    "an unknown method": "tools/burn",
    "the empty method": "",
    "a method in capitals": "PING",
    "resources": "resources/list",
}.items():
    add("methods", name, rpc(1, method, {}), (1, METHOD))
for name, params in {
    "no params": ...,
    "no name": {},
    "a null name": {"name": None},
    "an array as arguments": {"name": "answer", "arguments": ["x"]},
    "a string as arguments": {"name": "answer", "arguments": '{"query":"x"}'},
}.items():
    add("tools", f"a call with {name}", rpc(1, "tools/call", params), (1, PARAMS))
for name, tool in {
    "an unknown tool": "nope",
    "the empty tool": "",
    "a tool of 100 kB": "t" * 100_000,
}.items():
    add("tools", name, rpc(1, "tools/call", {"name": tool}), (1, METHOD))
for name, arguments in {
    "no query": {},
    "an empty query": {"query": ""},
    "a number as domains": {"query": "x", "domains": 5},
}.items():
    called = rpc(1, "tools/call", {"name": "answer", "arguments": arguments})
    add("tools", f"bad arguments: {name}", called, (1, FAILED))

# Metadata

for name, value in {
    "true": True,
    "a float": 1.5,
    "an array": [1],
    "an object": {},
    "null": None,
    "a string of 10 kB": "p" * 10_000,
    "zero": 0,
    "the empty string": "",
}.items():
    params = {"name": "answer", "arguments": {}, "_meta": {"progressToken": value}}
    add("metadata", f"{name} as a progress token", rpc(1, "tools/call", params), (1, FAILED))
for name, value in {"null": None, "an array": [], "a string": "x", "a number": 1, "an empty object": {}}.items():
    add("metadata", f"{name} as _meta", rpc(params={"_meta": value}), (1, OK))
ILL_SHAPED_ENVELOPES: dict[str, dict[str, Any]] = {
    "a number as the version": {PREFIX + "protocolVersion": 5},
    "no capabilities": {PREFIX + "clientCapabilities": ...},
    "an array of capabilities": {PREFIX + "clientCapabilities": []},
    "a string as clientInfo": {PREFIX + "clientInfo": "me"},
    "a clientInfo without a version": {PREFIX + "clientInfo": {"name": "x"}},
    "an unknown log level": {PREFIX + "logLevel": "shouting"},
    "an unsupported version and no capabilities": {
        PREFIX + "protocolVersion": "2099",
        PREFIX + "clientCapabilities": ...,
    },
}
for name, change in ILL_SHAPED_ENVELOPES.items():
    meta = {key: value for key, value in {**ENVELOPE, **change}.items() if value is not ...}
    add("metadata", f"an envelope with {name}", rpc(1, "tools/list", {"_meta": meta}), (1, PARAMS))
for version in ("2025-06-18", "2099-01-01", "", "latest", "v" * 10_000):
    meta = {**ENVELOPE, PREFIX + "protocolVersion": version}
    discover = rpc(1, "server/discover", {"_meta": meta})
    add("metadata", f"the unsupported version {version[:12]!r}", discover, (1, VERSION))
for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get"):
    add("metadata", f"{method} in the modern revision", rpc(1, method, {"_meta": ENVELOPE}), (1, METHOD))
nameless: list[dict[str, Any]] = [{}, {"notifications": None}, {"notifications": []}]
for wanted in nameless:
    listen = rpc(1, "subscriptions/listen", {**wanted, "_meta": ENVELOPE})
    add("metadata", f"a subscription to {wanted}", listen, (1, PARAMS))
add("metadata", "discover without an envelope", rpc(1, "server/discover"), (1, PARAMS))
unknown = rpc(1, "tools/call", {"name": "nope", "_meta": ENVELOPE})
add("metadata", "an unknown tool in the modern revision", unknown, (1, PARAMS))
add("metadata", "a cursor that nobody gave", rpc(1, "tools/list", {"cursor": "\0"}), (1, OK))
