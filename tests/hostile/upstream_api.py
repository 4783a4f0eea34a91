"""Upstreams that break the Responses API: its streams, its refusals, its waits, and the trust in what it says."""

from __future__ import annotations

import json

from responses_mcp.testing import bodies, stream_events
from tests.hostile.upstream_modes import (
    ANSWER,
    ANSWERED,
    CLOSE,
    COMPLETED,
    CREATED,
    FAILED,
    FINE,
    KEY,
    LATE,
    LONG,
    OK,
    PAID,
    Group,
    Times,
    dumped,
    error,
    event,
    head,
    reply,
    stream,
)

REFUSED, REDIRECTED = "error: The API refused the request", "error: The API redirects"
EMPTY = {**ANSWER, "output": []}
EMPTY_END = event("response.completed", response=EMPTY)


def delta(text: str, place: int = 0) -> bytes:
    return event("response.output_text.delta", output_index=place, content_index=0, delta=text)


def told(body: bodies.Body, *, end: str = "\n", named: str | None = "") -> bytes:
    """Return the whole stream of a response."""
    return b"".join(event(each.pop("type"), end=end, named=named, **each) for each in stream_events(body))


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def ended(kind: str, **members: object) -> bytes:
    return event(f"response.{kind}", response={**EMPTY, "status": kind, **members})


# Streams

streams = Group("streams")
streams.stream("in order", FINE, told(ANSWER))
streams.stream("a byte at a time", FINE, *bytewise(COMPLETED))
for name, end in {"CR alone": "\r", "CRLF": "\r\n"}.items():
    streams.stream(name, FINE, told(ANSWER, end=end))
    streams.stream(f"{name}, a byte at a time", FINE, *bytewise((CREATED + COMPLETED).replace(b"\n", end.encode())))
MIXED = b"\r" + CREATED.replace(b"\n", b"\r") + b"\n\n\r\n:\r" + told(ANSWER, end="\r\n")
streams.stream("line ends mixed", FINE, MIXED)
streams.stream("a byte order mark", FINE, b"\xef\xbb\xbf" + COMPLETED)
JAPANESE = event("response.completed", response=bodies.answer("Fine. #")).replace(b"#", "\u6771\u4eac".encode())
streams.stream("characters in pieces", r"answer: Fine\. \u6771\u4eac", *bytewise(JAPANESE))
streams.stream("invalid UTF-8", rf"{ANSWERED}|{PAID}", COMPLETED.replace(b"Fine.", b"F\xff\xc0\xaf"))
streams.stream("events without names", FINE, told(ANSWER, named=None))
streams.stream("events with wrong names", FINE, told(ANSWER, named="response.failed"))
streams.stream("data that is no object", FINE, b"data: 1\n\ndata: []\n\ndata: null\n\ndata\n\ndata: {\n\n", COMPLETED)
LINES = json.dumps({"type": "response.completed", "response": ANSWER}, indent=1)
streams.stream("data in many lines", FINE, "".join(f"data: {line}\n" for line in LINES.split("\n")).encode() + b"\n")
streams.stream("unknown events", FINE, event("response.new", x=1), b"retry: 1\nid: 7\nfoo: bar\n\n", COMPLETED)
streams.stream("retry, and the end", PAID, b"retry: 1\nid: 7\n\n", CREATED)
streams("JSON named a stream", FINE, reply(ANSWER, kind="text/event-stream"))
for kind in ("application/json", "text/plain", "text/html", ""):
    streams(f"a stream named {kind or 'nothing'}", FINE, *stream(told(ANSWER), kind=kind))
streams("comments first, named JSON", FINE, *stream(b": hi\n\n" * 9, COMPLETED, kind="application/json"))
streams.stream("nothing", PAID)
streams.stream("no last event", PAID, CREATED, delta("Fine."))
streams.stream("only [DONE]", PAID, b"data: [DONE]\n\n")
streams.stream("the last event without its blank line", rf"{FINE}|{PAID}", COMPLETED[:-1])
OTHER = event("response.completed", response=bodies.answer("Another answer."))
streams.stream("two last events", FINE, COMPLETED, OTHER)
streams.stream("events behind the end, for ever", FINE, COMPLETED, Times(delta("x") * 50))
streams("silence behind the end", FINE, *stream(COMPLETED, last=("hang",)))
streams.stream("an empty end and an item", FINE, told(ANSWER)[: -len(COMPLETED)], EMPTY_END)
streams.stream("an empty end and deltas", FINE, CREATED, delta("Fi"), delta("ne."), EMPTY_END)
TEXT_DONE = event("response.output_text.done", output_index=0, content_index=0, text="Fine.")
streams.stream("an empty end and the text done", FINE, TEXT_DONE, EMPTY_END)
streams.stream("an empty end and nothing", FAILED, CREATED, EMPTY_END)
streams.stream("indices without end", FINE, delta("x", 10**300), delta("x", -1), COMPLETED)
streams.stream("lone surrogates", ANSWERED, delta("Fine\ud800. \udc00"), EMPTY_END)
BROKEN = {"code": "server_error", "message": "Broke."}
streams.stream("failed, then fine", FINE, ended("failed", error=BROKEN, usage=None), then=OK)
streams.stream("incomplete", r"answer: Fine\..*cut off", delta("Fine."), ended("incomplete"))
FILTERED = {"reason": "content_filter"}
streams.stream("filtered", "error: .*content filter", delta("F"), ended("incomplete", incomplete_details=FILTERED))
streams("status 400", REFUSED, head(status=400, kind="text/event-stream"), told(ANSWER), CLOSE)

# Floods: what comes for ever is as dense as can be, and the rest more than one reply may have, but not slow to make

floods = Group("floods")
DELTAS = delta("x") * 100
floods.stream("20,000 deltas", FINE, CREATED, Times(DELTAS, 200), COMPLETED)
floods.stream("10 MB of comments", FINE, Times((b": still here" * 80 + b"\n") * 20, 500), COMPLETED)
floods.stream("1 MB of empty lines", FINE, b"\n" * 1_000_000, COMPLETED)
floods.stream("deltas for ever", LATE, CREATED, Times(DELTAS), seconds=0.2)
floods.stream("comments for ever", LATE, Times(b":\n" * 4096), seconds=0.2)
floods.stream("empty lines and never an event", LONG, Times(b"\n" * 8192))
floods.stream("a comment now and then for ever", LATE, Times(b": still here\n\n", pause=0.1), seconds=1)
floods.stream("one event of 50 MB", LONG, b"data: ", Times(b"[" * 50_000, 1000), b"\n\n", COMPLETED)
floods.stream(
    "one event of 50 MB in lines", LONG, Times(b"data: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" * 4000, 400), b"\n", COMPLETED
)
floods.stream("an event without end", LONG, b'data: {"a": "', Times(b"x" * 60_000))
PADDED = event("response.completed", pad=[[]] * 1_700_000, response=ANSWER)
floods.stream("one event of 7 MB of []", rf"{FINE}|{FAILED}", PADDED)

# Texts that are made to be slow to read

texts = Group("texts")
SEARCHES = [bodies.web_search_call(["q"], ["https://example.com/"])]
for name, text in {
    "blanks behind the sources": "Fine.\n\nSources: x" + " " * 48_000 + "y",
    "blank lines behind the sources": "Fine.\n\nSources: x" + "\n \n" * 20_000 + "y",
    "sources without end": "Fine.\n" + "Sources:\n" * 60_000,
    "dashes without end": "Fine.\n\nSources:\n" + "- " * 300_000 + "y",
    "markers that do not end": "Fine." + "\ue200" * 500_000,
    "links that do not end": "Fine. " + "([a](" * 150_000,
    "URLs without end": "Fine. " + "http://a/?utm_source=openai" * 25_000,
    "line ends without end": "Fine." + "\n" * 900_000 + "y",
    "brackets without end": "Fine." + "(" * 900_000,
}.items():
    texts(name, FINE, reply(bodies.answer(text, searches=SEARCHES)))

# Redirects

redirects = Group("redirects")
for status in (301, 302, 303, 307, 308):
    redirects(f"{status} to itself", REDIRECTED, reply(b"", "Location: /v1/responses", status=status))
redirects("to nowhere", REDIRECTED, reply(b"", status=301))

# Waits

waits = Group("waits")
AGO, AGES = "Sat, 21 Nov 2020 14:46:13 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"
NO_TIME = "Mon, 99 Foo 99999 99:99 GMT"
for value in ("0.02", "-5", "nan", "1e308", "soon", AGO, NO_TIME):
    waits(f"{value!r}", FINE, reply(error(), f"Retry-After: {value}", status=429), then=OK)
MILLISECONDS = "Retry-After-Ms: 20"
waits("milliseconds", FINE, reply(error(), MILLISECONDS, status=503), then=OK)
for value, asked in {"61": "61 s", "3600": "3600 s", AGES: "a day", "9" * 300: "a day", "9" * 400: "a day"}.items():
    waits(f"{value[:20]} ({len(value)})", f"error: .*{asked}", reply(error(), f"Retry-After: {value}", status=503))
waits("longer than there is time", "error: .*5 s", reply(error(), "Retry-After: 5", status=429), seconds=1)
waits("not to be asked again", FAILED, reply(error(), "X-Should-Retry: false", status=503))

# Statuses

statuses = Group("statuses")
SOON = "Retry-After-Ms: 5"
CONTENTS = {"JSON": dumped(error()), "HTML": b"<html>" + b"No. " * 5000, "nothing": b""}
for status, requests in ((400, 1), (404, 1), (429, 2), (500, 2), (999, 2)):
    for kind, content in CONTENTS.items():
        refusal = reply(content, SOON, status=status, kind="text/html" if kind == "HTML" else "application/json")
        statuses(f"{status} with {kind}", FAILED, refusal, requests=requests)
statuses("503, then fine", FINE, reply(b"", SOON, status=503), then=OK)
for name, wrong in {
    "a list": [{"error": {"message": "No such thing"}}],
    "messages in messages": {"error": {"message": {"message": {"message": "No such thing"}}}},
    "a message of 1 MB": error("No such thing " * 80_000),
    "a code of 1 MB": error("No such thing", code="c" * 1_000_000, param=["x"], type={"a": 1}),
    "100,000 arrays in each other": error("No such thing", pad=0),
}.items():
    raw = dumped(wrong).replace(b'"pad": 0', b'"pad": ' + b"[" * 100_000 + b"]" * 100_000)
    statuses(f"400 with {name}", REFUSED, reply(raw, status=400))

# Parameters that are refused

parameters = Group("parameters")
NOT_INCLUDE = reply(error("Unsupported parameter: 'include' is not supported.", param="include"), status=400)
parameters("include", FINE, NOT_INCLUDE, then=OK, loses=("include",))
parameters("include, again and again", REFUSED, NOT_INCLUDE, requests=2)
NO_FILTER = error("Unsupported parameter: 'tools[0].filters' is not supported.", param="tools[0].filters")
parameters("a strict filter", r"error: .*example\.com", reply(NO_FILTER, status=400), strict=True)

# Echoes

echoes = Group("echoes of the key")
MASKED = r"(answer|error): .*\[redacted\]"
LINK = f"https://example.com/{KEY}"
QUOTED = LINK.replace("/7", "%2F7").replace("+", "%2B")
SEARCHED = bodies.web_search_call([f"about {KEY}"], [LINK, QUOTED])
for name, answer in {
    "in the answer": bodies.answer(f"Your key is {KEY}."),
    "in a cited URL": bodies.answer("Fine.", annotations=[bodies.url_citation(LINK, "title", 0, 1)]),
    "in a quoted URL": bodies.answer("Fine.", annotations=[bodies.url_citation(QUOTED, "title", 0, 1)]),
    "in a search": bodies.answer("Fine.", searches=[SEARCHED]),
    "in a refusal": bodies.response([bodies.message([bodies.refusal_part(f"Not with {KEY}.")])]),
}.items():
    becomes = ANSWERED if name.endswith(("URL", "search")) else MASKED
    echoes(name, becomes, reply(answer))
    echoes.stream(f"{name}, streamed", becomes, told(answer))
echoes.stream("in two deltas", MASKED, delta(f"Your key is {KEY[:9]}"), delta(KEY[9:]), EMPTY_END)
echoes.stream("in a failure", MASKED, ended("failed", error={"code": KEY, "message": f"Bad key {KEY}"}))
for status in (400, 401):
    echoes(f"in a {status}", MASKED, reply(error(f"Bad key {KEY}", code=KEY, param=KEY, type=KEY), status=status))
echoes("in an id", MASKED, reply(error(), f"X-Request-Id: {KEY}", status=400))
echoes("in a page", "error: .*may not do this", reply(f"<p>Bearer {KEY}".encode(), status=403))
echoes("in a redirect", REDIRECTED, reply(b"", f"Location: {LINK}", status=307))

GROUPS = (streams, floods, texts, redirects, waits, statuses, parameters, echoes)
