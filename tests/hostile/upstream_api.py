"""Upstreams that break the Responses API: its streams, its refusals, its waits, and the trust in what it says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

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

EMPTY = {**ANSWER, "output": []}
EMPTY_END = event("response.completed", response=EMPTY)
PLACE = {"output_index": 0, "content_index": 0}


def delta(text: str) -> bytes:
    return event("response.output_text.delta", **PLACE, delta=text)


def part(index: int) -> bytes:
    return event("response.output_text.delta", output_index=index, content_index=0, delta="x")


def told(body: bodies.Body, *, end: str = "\n", named: str | None = "") -> bytes:
    """Return the whole stream of a response."""
    return b"".join(event(each.pop("type"), end=end, named=named, **each) for each in stream_events(body))


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def ended(kind: str, **members: object) -> bytes:
    return event(f"response.{kind}", response={**EMPTY, "status": kind, **members})


# Streams

streams = Group("streams")
streams("in order", FINE, *stream(told(ANSWER)))
streams("without a length", FINE, head(kind="text/event-stream"), told(ANSWER), CLOSE)
streams("a byte at a time", FINE, *stream(*bytewise(COMPLETED)))
for name, end in {"CR alone": "\r", "CRLF": "\r\n"}.items():
    streams(name, FINE, *stream(told(ANSWER, end=end)))
    streams(f"{name}, a byte at a time", FINE, *stream(*bytewise(CREATED + told(ANSWER, end=end))))
MIXED = b"\r" + CREATED.replace(b"\n", b"\r") + b"\n\n\r\n:\r" + told(ANSWER, end="\r\n")
streams("line ends mixed", FINE, *stream(MIXED))
streams("a byte order mark", FINE, *stream(b"\xef\xbb\xbf" + COMPLETED))
JAPANESE = json.dumps(
    {"type": "response.completed", "response": bodies.answer("Fine. \u6771\u4eac")}, ensure_ascii=False
)
streams(
    "characters in pieces", r"answer: Fine\. \u6771\u4eac", *stream(*bytewise(b"data: " + JAPANESE.encode() + b"\n\n"))
)
streams("invalid UTF-8", rf"{ANSWERED}|{PAID}", *stream(COMPLETED.replace(b"Fine.", b"F\xff\xc0\xaf")))
streams("events without names", FINE, *stream(told(ANSWER, named=None)))
streams("events with wrong names", FINE, *stream(told(ANSWER, named="response.failed")))
streams("types that are no strings", FINE, *stream(event(None), event([]), event({"a": 1}), event(7), COMPLETED))
streams("data that is no object", FINE, *stream(b"data: 1\n\ndata: []\n\ndata: null\n\ndata\n\ndata: {\n\n", COMPLETED))
LINES = json.dumps({"type": "response.completed", "response": ANSWER}, indent=1)
streams("data in many lines", FINE, *stream("".join(f"data: {line}\n" for line in LINES.split("\n")).encode() + b"\n"))
streams(
    "unknown events and fields", FINE, *stream(event("response.new", x=1), b"retry: 1\nid: 7\nfoo: bar\n\n", COMPLETED)
)
streams("retry, and the end", PAID, *stream(b"retry: 1\nid: 7\n\n", CREATED))
streams("JSON named a stream", FINE, reply(ANSWER, kind="text/event-stream"))
streams("indented JSON named a stream", FINE, reply(LINES.encode(), kind="text/event-stream; charset=utf-8"))
for kind in ("application/json", "text/plain", "text/html", ""):
    streams(f"a stream named {kind or 'nothing'}", FINE, *stream(told(ANSWER), kind=kind))
streams(
    "a stream that begins with comments, named JSON", FINE, *stream(b": hi\n\n" * 9, COMPLETED, kind="application/json")
)
streams("nothing", PAID, *stream())
streams("no last event", PAID, *stream(CREATED, delta("Fine.")))
streams("only [DONE]", PAID, *stream(b"data: [DONE]\n\n"))
streams("the last event without its blank line", rf"{FINE}|{PAID}", *stream(COMPLETED[:-1]))
OTHER = event("response.completed", response=bodies.answer("Another answer."))
streams("two last events", FINE, *stream(COMPLETED, OTHER))
streams("two last events, one later", FINE, *stream(COMPLETED, 0.05, OTHER))
streams("a failure behind the end", FINE, *stream(COMPLETED, event("error", message="No."), b"data: [DONE]\n\n"))
streams("events behind the end, for ever", FINE, *stream(COMPLETED, Times(delta("x") * 50)))
streams("silence behind the end", FINE, *stream(COMPLETED, last=("hang",)))
streams("an empty end and an item", FINE, *stream(told(ANSWER)[: -len(COMPLETED)], EMPTY_END))
streams("an empty end and deltas", FINE, *stream(CREATED, delta("Fi"), delta("ne."), EMPTY_END))
streams(
    "an empty end and the text done",
    FINE,
    *stream(event("response.output_text.done", **PLACE, text="Fine."), EMPTY_END),
)
streams("an empty end and nothing", FAILED, *stream(CREATED, EMPTY_END))
for name, response in {"null": None, "a string": "Fine.", "a list": [ANSWER]}.items():
    streams(
        f"an end whose response is {name}", FAILED, *stream(CREATED, event("response.completed", response=response))
    )
streams("deltas of numbers", FINE, *stream(event("response.output_text.delta", delta=5), COMPLETED))
streams(
    "indices without end",
    FINE,
    *stream(event("response.output_text.delta", output_index=10**300, delta="x"), COMPLETED),
)
streams("lone surrogates", ANSWERED, *stream(delta("Fine\ud800. \udc00"), EMPTY_END))
BROKEN = {"code": "server_error", "message": "Broke."}
streams("error", r"error: .*Broke\.", *stream(CREATED, event("error", **BROKEN)), requests=2)
streams("error with an object", r"error: .*Broke\.", *stream(CREATED, event("error", error=BROKEN)), requests=2)
streams(
    "an error without a type", r"error: .*Broke\.", *stream(b"data: %b\n\n" % dumped({"error": BROKEN})), requests=2
)
streams("failed", r"error: .*Broke\.", *stream(CREATED, ended("failed", error=BROKEN)), requests=2)
streams("failed, then fine", FINE, *stream(ended("failed", error=BROKEN)), then=(OK,), requests=2)
streams("failed without a reason", FAILED, *stream(ended("failed", error=None)))
QUOTA = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
streams("failed for the quota", "error: .*quota", *stream(CREATED, ended("failed", error=QUOTA)))
streams(
    "failed for the prompt", FAILED, *stream(ended("failed", error={"code": "invalid_prompt", "message": "Flagged."}))
)
streams("incomplete", r"answer: Fine\..*cut off", *stream(delta("Fine."), ended("incomplete")))
FILTERED = {"reason": "content_filter"}
streams("filtered", "error: .*content filter", *stream(delta("F"), ended("incomplete", incomplete_details=FILTERED)))
streams("cancelled", FAILED, *stream(ended("cancelled")))
streams("queued", PAID, *stream(event("response.queued", response={**EMPTY, "status": "queued"})))
streams("completed, but queued", FAILED, *stream(event("response.completed", response={**ANSWER, "status": "queued"})))
streams(
    "a stream with status 400",
    "error: The API refused",
    head(status=400, kind="text/event-stream"),
    told(ANSWER),
    CLOSE,
)

# Floods: what comes for ever is as dense as can be, and the rest more than one reply may have, but not slow to make

floods = Group("floods")
DELTAS = delta("x") * 100
floods("80,000 deltas", FINE, *stream(CREATED, Times(DELTAS, 800), COMPLETED))
floods("10 MB of comments", FINE, *stream(Times(b": still here" * 80 + b"\n", 10_000), COMPLETED))
floods("1 MB of empty lines", FINE, *stream(b"\n" * 1_000_000, COMPLETED))
floods("10 MB of unknown events", FINE, *stream(Times(event("response.new", x="y" * 4000), 2500), COMPLETED))
floods(
    "10 MB of items", FINE, *stream(Times(event("response.output_item.done", item={"x": "y" * 4000}), 2500), COMPLETED)
)
floods("10,000 broken events", FINE, *stream(b'data: {"type": [[[\n\n' * 10_000, COMPLETED))
floods("9,000 parts", FINE, *stream(b"".join(map(part, range(9000))), COMPLETED))
floods("deltas for ever", LATE, *stream(CREATED, Times(DELTAS)), seconds=0.5)
floods("comments for ever", LATE, *stream(Times(b":\n" * 4096)), seconds=0.5)
floods("empty lines for ever", LATE, *stream(Times(b"\n" * 8192)), seconds=0.5)
floods("a comment now and then for ever", LATE, *stream(Times(b": still here\n\n", pause=0.1)), seconds=1)
floods("one event of 50 MB", LONG, *stream(b"data: ", Times(b"[" * 50_000, 1000), b"\n\n", COMPLETED))
floods("one event of 50 MB in lines", LONG, *stream(Times(b"data: [1, 2, 3]\n" * 4000, 800), b"\n", COMPLETED))
floods("an event without end", LONG, *stream(b'data: {"a": "', Times(b"x" * 60_000)))
floods("a comment of 50 MB", rf"{LONG}|{FINE}", *stream(b": ", Times(b"x" * 50_000, 1000), b"\n", COMPLETED))
PADDED = event("response.completed", pad=[[]] * 1_700_000, response=ANSWER)
floods("one event of 7 MB of []", rf"{FINE}|{FAILED}", *stream(PADDED))

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
    redirects(f"{status} to itself", "error: The API redirects", reply(b"", "Location: /v1/responses", status=status))
redirects("to another place", "error: The API redirects", reply(b"", "Location: http://127.0.0.1:9/", status=307))
redirects("to a file", "error: The API redirects", reply(b"", "Location: file:///etc/passwd", status=302))
redirects("to nowhere", "error: The API redirects", reply(b"", status=301))
redirects("304", "error: The API redirects", b"HTTP/1.1 304 Not Modified\r\n\r\n")

# Waits

waits = Group("waits")
NOW = datetime.now(UTC)
for told_wait in (
    ["Retry-After: 0.02"],
    ["Retry-After-Ms: 20"],
    ["Retry-After-Ms: 20", "Retry-After: 3600"],
    ["Retry-After: 0"],
    ["Retry-After: -5"],
    ["Retry-After: nan"],
    ["Retry-After: inf"],
    ["Retry-After: 1e308"],
    ["Retry-After: 1_000"],
    ["Retry-After: \u0661"],
    ["Retry-After: soon"],
    ["Retry-After: "],
    ["Retry-After: 0.01", "Retry-After: 0.02"],
    [f"Retry-After: {format_datetime(NOW - timedelta(days=1), usegmt=True)}"],
    ["Retry-After: Mon, 99 Foo 99999 99:99:99 GMT"],
    ["Retry-After-Ms: -1", "Retry-After: 0.02"],
):
    waits(f"429, {', '.join(told_wait)[:60]}", FINE, reply(error(), *told_wait, status=429), then=(OK,), requests=2)
for told_wait, asked in {
    "Retry-After: 61": "61 s",
    "Retry-After: 3600": "3600 s",
    "Retry-After-Ms: 90000": "90 s",
    f"Retry-After: {format_datetime(NOW + timedelta(days=400), usegmt=True)}": "a day or longer",
    f"Retry-After: {'9' * 300}": "a day or longer",
    f"Retry-After: 9{'0' * 400}": "a day or longer",
}.items():
    waits(f"503, {told_wait[:50]}", f"error: .*{asked}", reply(error(), told_wait, status=503))
waits("longer than there is time", "error: .*5 s", reply(error(), "Retry-After: 5", status=429), seconds=1)
waits("with a refusal", "error: The API refused", reply(error(), "Retry-After-Ms: 1", status=400))
waits("with an answer", FINE, reply(ANSWER, "Retry-After-Ms: 1"))
waits("not to be asked again", FAILED, reply(error(), "X-Should-Retry: false", status=503))
waits("to be asked again, a 400", "error: The API refused", reply(error(), "X-Should-Retry: true", status=400))

# Statuses

statuses = Group("statuses")
for status, (words, requests) in {
    400: ("refused the request", 1),
    401: ("refused the key", 1),
    402: ("refused the request", 1),
    403: ("may not do this", 1),
    404: ("does not know", 1),
    407: ("proxy", 1),
    408: ("failed", 2),
    409: ("failed", 2),
    413: ("refused the request", 1),
    422: ("refused the request", 1),
    429: ("limits the rate", 2),
    500: ("failed", 2),
    502: ("failed", 2),
    504: ("failed", 2),
    529: ("failed", 2),
    999: ("failed", 2),
}.items():
    for kind, body in {"JSON": dumped(error()), "HTML": b"<html>" + b"No. " * 5000, "nothing": b""}.items():
        refused = reply(
            body, "Retry-After-Ms: 5", status=status, kind="text/html" if kind == "HTML" else "application/json"
        )
        statuses(f"{status} with {kind}", f"error: .*{words}", refused, requests=requests)
statuses("503, then fine", FINE, reply(b"", "Retry-After-Ms: 5", status=503), then=(OK,), requests=2)
statuses(
    "503, then 400",
    "error: The API refused",
    reply(b"", "Retry-After-Ms: 5", status=503),
    then=(reply(error(), status=400),),
    requests=2,
)
for code in ("insufficient_quota", "billing_hard_limit_reached"):
    statuses(
        code, "error: The account's quota", reply(error("Pay.", type=code, code=code), "Retry-After-Ms: 5", status=429)
    )
for name, body in {
    "a string": {"error": "No such thing"},
    "a detail": {"detail": "No such thing"},
    "a list": [{"error": {"message": "No such thing"}}],
    "messages in messages": {"error": {"message": {"message": {"message": "No such thing"}}}},
    "a message of 1 MB": error("No such thing " * 80_000),
    "a code of 1 MB": error("No such thing", code="c" * 1_000_000, param=["x"], type={"a": 1}),
    "100,000 arrays in each other": error("No such thing", pad=0),
}.items():
    raw = dumped(body).replace(b'"pad": 0', b'"pad": ' + b"[" * 100_000 + b"]" * 100_000)
    statuses(f"400 with {name}", "error: The API refused", reply(raw, status=400))

# Refusals

refusals = Group("refusals")
ADVICE = (
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different "
    "prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting"
)
IN_PASSING = {
    "advice on reasoning": error(ADVICE, code="invalid_prompt"),
    "advice on reasoning, without a code": error(ADVICE),
    "flagged words about a parameter": error(
        "Unsupported parameter: 'reasoning' was flagged.", code="content_policy_violation"
    ),
    "verbosity in passing": error("Your question about text verbosity is too long."),
    "filters in passing": error("All filters were applied, and this question was blocked."),
    "streaming in passing": error("Questions about streaming are not answered here: field stream of study."),
    "include in passing": error("The answer would include personal data."),
    "the tools": error("Unsupported parameter: 'tools' is not supported.", param="tools", code="unsupported_parameter"),
    "the model": error("The model 'gpt-5.2' does not exist; its reasoning is not supported.", param="model"),
}
for name, body in IN_PASSING.items():
    refusals(name, "error: The API refused", reply(body, status=400))

parameters = Group("parameters")
UNSUPPORTED = "Unsupported parameter: '{}' is not supported with this model."
for name, loses in {
    "include": ["include"],
    "text.verbosity": ["text"],
    "reasoning": ["reasoning"],
    "stream": ["stream", "stream_options"],
    "stream_options": ["stream_options"],
}.items():
    words = UNSUPPORTED.format(name)
    for how, body in {
        "as param": error("Not taken.", param=name),
        "in words": error(words),
        "in a detail": {"detail": words},
    }.items():
        parameters(f"{name}, {how}", FINE, reply(body, status=400), then=(OK,), requests=2, loses=tuple(loses))
FORBIDDEN = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "include"], "msg": "Extra inputs are not permitted"}]
}
parameters("include, by a 422", FINE, reply(FORBIDDEN, status=422), then=(OK,), requests=2, loses=("include",))
EFFORT = "Unsupported value: 'medium' is not supported with this model. Supported values are: 'low', and 'high'."
parameters("an effort", FINE, reply(error(EFFORT, param="reasoning.effort"), status=400), then=(OK,), requests=2)
NOT_INCLUDE = reply(error(UNSUPPORTED.format("include"), param="include"), status=400)
parameters("include, again and again", "error: The API refused", NOT_INCLUDE, requests=2)
parameters(
    "include, then the content",
    "error: The API refused",
    NOT_INCLUDE,
    then=(reply(error(ADVICE), status=400),),
    requests=2,
)
NO_FILTER = error(UNSUPPORTED.format("tools[0].filters"), param="tools[0].filters")
parameters("a strict filter", r"error: .*example\.com", reply(NO_FILTER, status=400), strict=True)

# Echoes

echoes = Group("echoes of the key")
MASKED = r"(answer|error): .*\[redacted\]"
LINK = f"https://example.com/{KEY}"
QUOTED = LINK.replace("/7", "%2F7").replace("+", "%2B")
SEARCHED = bodies.web_search_call([f"about {KEY}"], [LINK, QUOTED])
for name, answer in {
    "in the answer": bodies.answer(f"Your key is {KEY}."),
    "in a header in the answer": bodies.answer(f'{{"Authorization": "Bearer {KEY}"}}'),
    "in a cited URL": bodies.answer("Fine.", annotations=[bodies.url_citation(LINK, "title", 0, 1)]),
    "in a quoted URL": bodies.answer("Fine.", annotations=[bodies.url_citation(QUOTED, "title", 0, 1)]),
    "in a title": bodies.answer("Fine.", annotations=[bodies.url_citation("https://example.com/", KEY, 0, 1)]),
    "in a search": bodies.answer("Fine.", searches=[SEARCHED]),
    "in a refusal": bodies.response([bodies.message([bodies.refusal_part(f"Not with {KEY}.")])]),
}.items():
    becomes = ANSWERED if name.endswith(("URL", "title", "search")) else MASKED
    echoes(name, becomes, reply(answer))
    echoes(f"{name}, streamed", becomes, *stream(told(answer)))
echoes("in two deltas", MASKED, *stream(delta(f"Your key is {KEY[:9]}"), delta(KEY[9:]), EMPTY_END))
echoes("as the model", FINE, reply({**ANSWER, "model": KEY, "id": KEY}))
echoes("in a failure", MASKED, *stream(ended("failed", error={"code": KEY, "message": f"Bad key {KEY}"})))
for status in (400, 401):
    echoes(f"in a {status}", MASKED, reply(error(f"Bad key {KEY}", code=KEY, param=KEY, type=KEY), status=status))
echoes("in an id", MASKED, reply(error(), f"X-Request-Id: {KEY}", status=400))
echoes("in a page", "error: .*may not do this", reply(f"<p>Bearer {KEY}".encode(), status=403))
echoes("in a redirect", "error: The API redirects", reply(b"", f"Location: {LINK}", status=307))
echoes("in a wait", "error: ", reply(error(), f"Retry-After: {KEY}", status=400))
echoes("in a header line that is none", FAILED, reply(ANSWER, KEY), CLOSE)

API = [
    each
    for group in (streams, floods, texts, redirects, waits, statuses, refusals, parameters, echoes)
    for each in group.modes
]
