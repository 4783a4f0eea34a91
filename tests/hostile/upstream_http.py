"""Upstreams that break HTTP, TLS or the body of a reply."""

from __future__ import annotations

import gzip
import zlib

from responses_mcp.testing import bodies
from tests.hostile.upstream_modes import (
    ANSWER,
    ANSWERED,
    CLOSE,
    COMPLETED,
    CREATED,
    FAILED,
    FINE,
    HANG,
    LATE,
    LONG,
    NO_JSON,
    OK,
    PAID,
    RESET,
    Group,
    Play,
    Times,
    chunk,
    chunks,
    dumped,
    error,
    head,
    lasting,
    reply,
    stream,
)

JSON = dumped(ANSWER)
CHUNKED = "Transfer-Encoding: chunked"
WRONG = reply(bodies.answer("The answer to another question."))

# Heads

heads = Group("heads")
heads("in order", FINE, OK)
for count in (1, 15, 16):
    heads(f"{count} times 100 Continue", FINE, b"HTTP/1.1 100 Continue\r\n\r\n" * count + OK)
heads("17 times 100 Continue", FINE, b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK)
heads("17 times 102, one at a time", FINE, *(b"HTTP/1.1 102 Wait\r\n\r\n", 0.01) * 17, OK)
heads("1xx for ever", LATE, Times(b"HTTP/1.1 100 Continue\r\n\r\n" * 500), seconds=1)
heads("headers for ever", FAILED, b"HTTP/1.1 200 OK\r\n", Times(b"X-Pad: 0123456789abcdef\r\n" * 100))
heads("a header a second", LATE, b"HTTP/1.1 200 OK\r\n", Times(b"X-Pad: 1\r\n", pause=1), seconds=1)
heads("no head at all", LATE, HANG, seconds=1)
heads("100 KB of headers", rf"{FINE}|{FAILED}", reply(ANSWER, *[f"X-{n}: {'x' * 90}" for n in range(1000)]))
heads("1 MB of headers", FAILED, reply(ANSWER, *[f"X-{n}: {'x' * 90}" for n in range(10_000)]))
heads("a NUL in a header", FAILED, reply(ANSWER, "X-Bad: a\0b"))
heads("a header without colon", FAILED, reply(ANSWER, "X-Bad"))
heads("bytes above 127 in a header", rf"{FINE}|{FAILED}", reply(ANSWER, "X-Bad: \u6771\u4eac"))
heads("folded headers", rf"{FINE}|{FAILED}", reply(ANSWER, "X-Folded: a\r\n b\r\n\tc"))
heads("bare LF", rf"{FINE}|{FAILED}", head(f"Content-Length: {len(JSON)}").replace(b"\r\n", b"\n") + JSON)
heads("HTTP/1.0 until the end", FINE, b"HTTP/1.0 200 OK\r\n\r\n" + JSON, CLOSE)
heads("HTTP/2", FAILED, b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04\0\0\xff\xff\0\x05\0\0\x40\0", CLOSE)
for status in ("20", "2000", "-1", "099", "OK"):
    heads(f"status {status}", FAILED, reply(ANSWER, status=status), CLOSE)
heads("101, and another protocol", FAILED, head("Upgrade: h2c", "Connection: Upgrade", status=101) + b"\0" * 100, HANG)
heads("204", NO_JSON, b"HTTP/1.1 204 No Content\r\n\r\n")
heads("204 with a body", FAILED, reply(ANSWER, status=204))

# Where a body ends

ends = Group("where a body ends")
LENGTH = f"Content-Length: {len(JSON)}"
ends("the length twice", FINE, reply(JSON, LENGTH, LENGTH))
ends("two lengths", FAILED, reply(JSON, LENGTH, "Content-Length: 5"))
ends("too short a length", NO_JSON, reply(JSON, "Content-Length: 30"))
ends("too long a length, closed", PAID, reply(JSON, "Content-Length: 9999"), CLOSE)
ends("too long a length, silent", LATE, reply(JSON, "Content-Length: 9999"), HANG, seconds=1)
ends("a length of zero", NO_JSON, reply(JSON, "Content-Length: 0"))
for length in ("-5", "+5", "0x5", "5.0", "five", "", "9" * 400, "\uff15"):
    ends(f"a length of {length[:9]!r}", FAILED, reply(JSON, f"Content-Length: {length}"), CLOSE)
ends("a length and chunks", rf"{FINE}|{FAILED}", head("Content-Length: 5", CHUNKED) + chunk(JSON) + b"0\r\n\r\n")
for coding in ("gzip, chunked", "identity", "chunked, identity", "x"):
    ends(f"transfer coding {coding}", FAILED, head(f"Transfer-Encoding: {coding}") + chunk(JSON) + b"0\r\n\r\n", CLOSE)
ends("neither length nor chunks", FINE, head() + JSON, CLOSE)
ends("20,000 chunks of a byte", FINE, head(CHUNKED) + chunks(b" " * 20_000 + JSON, 1) + b"0\r\n\r\n")
EXTENDED = b"".join(b"1;name=value\r\n%c\r\n" % byte for byte in JSON)
ends("an extension with each chunk", FINE, head(CHUNKED) + EXTENDED + b"0;last\r\n\r\n")
ends("an extension for ever", FAILED, head(CHUNKED) + b"5;a=", Times(b"x" * 4096))
ends("trailers for ever", FAILED, head(CHUNKED) + chunk(JSON) + b"0\r\n", Times(b"X-Pad: 0123456789\r\n" * 100))
ends("a chunk longer than it says", FAILED, head(CHUNKED) + b"5\r\n" + JSON + b"\r\n0\r\n\r\n", CLOSE)
ends("a chunk shorter than it says", FAILED, head(CHUNKED) + b"ffff\r\n" + JSON + b"\r\n0\r\n\r\n", CLOSE)
ends("no last chunk", PAID, head(CHUNKED) + chunk(JSON), CLOSE)
for size in (b"-5", b"xyz", b"", b"0x5", b"f" * 16, b"f" * 20, b"f" * 21):
    ends(f"a chunk of {size.decode()!r}", FAILED, head(CHUNKED) + size + b"\r\n" + JSON + b"\r\n0\r\n\r\n", CLOSE)

# Bodies

cut = Group("bodies that do not come")
cut("half of it", PAID, OK[:-100], CLOSE)
cut("half of it, and silence", LATE, OK[:-100], HANG, seconds=1)
cut("closed without a word", PAID, CLOSE)
cut("reset without a word", PAID, RESET)
cut("late", FINE, OK[:100], 0.2, OK[100:])
cut("a byte a second", LATE, OK[:200], *(b" ", 1.0) * 30, seconds=1)
cut("a stream closed within an event", PAID, *stream(CREATED, COMPLETED[:-50], last=(CLOSE,)))
cut("a stream reset behind its end", rf"{FINE}|{PAID}", *stream(CREATED, COMPLETED, 0.05, last=(RESET,)))
cut("a stream silent within an event", LATE, *stream(CREATED, COMPLETED[:-50], last=(HANG,)), seconds=1)

kinds = Group("bodies of another kind")
for name, body in {
    "nothing": b"",
    "HTML": b"<!doctype html><html><body><h1>Welcome</h1></body></html>",
    "a list": b"[" + JSON + b"]",
    "two objects": JSON + JSON,
    "100,000 arrays in each other": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects in each other": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}.items():
    kinds(name, NO_JSON, reply(body))
kinds("a chat completion", FAILED, reply({"choices": [{"message": {"content": "Fine."}}]}))
for output in ("null", '"Fine."', "{}", "[[[]]]", '[{"type": "message", "content": [1]}]'):
    kinds(f"an output that is {output}", FAILED, reply(b'{"status": "completed", "output": %b}' % output.encode()))
kinds("the output twice", FINE, reply(b'{"output": [{"type": "refusal"}],' + JSON[1:]))
kinds("NaN and Infinity", rf"{FINE}|{NO_JSON}", reply(b'{"a": [NaN, Infinity, -Infinity],' + JSON[1:]))
kinds("a number of a million digits", rf"{FINE}|{NO_JSON}", reply(b'{"a":' + b"7" * 1_000_000 + b"," + JSON[1:]))
kinds("invalid UTF-8", rf"{ANSWERED}|{NO_JSON}", reply(JSON.replace(b"Fine.", b"F\xff\xc0\xaf.")))
kinds("a byte order mark", FINE, reply(b"\xef\xbb\xbf" + JSON))
kinds("lone surrogates", ANSWERED, reply(bodies.answer("Fine\ud800. \udc00\ud800")))
kinds("control characters", ANSWERED, reply(bodies.answer("Fine.\0\x1b[2J\x7f\u202e\ufeff")))

# Compression

packed = Group("compressed bodies")
GZIP = "Content-Encoding: gzip"
_packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
BEGUN = _packer.compress(b'{"pad":"') + _packer.flush(zlib.Z_FULL_FLUSH)
MEGABYTE = _packer.compress(b" " * 1_048_576) + _packer.flush(zlib.Z_FULL_FLUSH)  # in a kilobyte, to be repeated
packed("gzip", FINE, reply(gzip.compress(JSON), GZIP))
packed("gzip a byte at a time", FINE, head(GZIP, CHUNKED) + chunks(gzip.compress(JSON), 1) + b"0\r\n\r\n")
packed("gzip with more behind it", FINE, reply(gzip.compress(JSON) + b"more" * 1000, GZIP))
packed("gzip cut", FAILED, reply(gzip.compress(JSON)[:-20], GZIP))
packed("gzip that is none", FINE, reply(JSON, GZIP))
packed("gzip in gzip", FAILED, reply(gzip.compress(gzip.compress(JSON)), "Content-Encoding: gzip, gzip"))
packed("deflate", FAILED, reply(zlib.compress(JSON), "Content-Encoding: deflate"))
packed("a bomb of 1 GB", LONG, *lasting(BEGUN, MEGABYTE, 1000, b"", GZIP))
packed("a bomb of 2 GB in a chunk", LONG, head(GZIP, CHUNKED) + chunk(BEGUN) + chunk(MEGABYTE * 2000), CLOSE)
packed("a bomb of an error", FAILED, *lasting(BEGUN, MEGABYTE, 1000, b"", GZIP, status=400))
packed("a stream", FINE, reply(gzip.compress(CREATED + COMPLETED), GZIP, kind="text/event-stream"))
packed("a stream cut", FAILED, reply(gzip.compress(CREATED + COMPLETED)[:-60], GZIP, kind="text/event-stream"))

# Many megabytes

many = Group("many megabytes")


def padded(piece: bytes, megabytes: int) -> Play:
    """Return a good answer beside a list of many small things."""
    return lasting(b'{"pad":[', piece * 1000, megabytes * 1000 // len(piece), b"0]," + JSON[1:])


for name, piece in {"[],": b"[],", '{"":[]},': b'{"":[]},', "0,": b"0,", '"",': b'"",', "[[[]]],": b"[[[]]],"}.items():
    many(f"60 MB of {name}", LONG, *padded(piece, 60))
    many(f"7 MB of {name}", rf"{FINE}|{FAILED}", *padded(piece, 7))
NAMES = b"".join(b'"%x":0,' % n for n in range(600_000))
many("7 MB of different names", rf"{FINE}|{FAILED}", reply(b"{" + NAMES + JSON[1:]))
many("60 MB of blanks", LONG, *lasting(b"", b" " * 60_000, 1000, JSON))
many("7 MB in one string", rf"{ANSWERED}Fine.*Cut here|{FAILED}", reply(bodies.answer("Fine." + "x" * 7_000_000)))
many("60 MB of an error", FAILED, *lasting(b"", b"<p>No</p>" * 1000, 6600, b"", status=400))
many("a page for ever", LONG, head(CHUNKED, kind="text/html"), Times(chunk(b"<p>Hello</p>" * 5000)))
URLS = [f"https://example.com/{'x' * 60}/{n}" for n in range(20_000)]
MANY_CITED = [bodies.url_citation(url, "title", 0, 1) for url in URLS]
many("20,000 citations", FINE, reply(bodies.answer("Fine.", annotations=MANY_CITED)))

# Replies behind replies

behind = Group("replies behind replies")
behind("a second one at once", FINE, OK + WRONG)
behind("a second one later", FINE, OK, 0.05, WRONG)
behind("a second one behind chunks", FINE, head(CHUNKED) + chunk(JSON) + b"0\r\n\r\n" + WRONG)
behind("a second one behind a stream, later", FINE, *stream(CREATED, COMPLETED, last=(b"0\r\n\r\n", 0.05, WRONG)))
behind("one behind a 204", FAILED, b"HTTP/1.1 204 No Content\r\n\r\n" + WRONG)
behind("one behind a 503", FINE, reply(error(), "Retry-After-Ms: 9", status=503) + WRONG, then=OK)
behind("a 408, and the end", FINE, OK, 0.05, reply(error(), "Connection: close", status=408), CLOSE)
behind("the end", FINE, OK, CLOSE)
behind("a reset", rf"{FINE}|{PAID}", OK, 0.05, RESET)
behind("more than the length says", FINE, OK + b"}" * 100)
behind("more for ever", FINE, OK, Times(b"x" * 4096))

# TLS

tls = Group("TLS")
tls("a handshake that stalls", LATE, HANG, tls="raw", seconds=1)
tls("an alert", FAILED, b"\x15\x03\x03\x00\x02\x02\x28", CLOSE, tls="raw", requests=2)
tls("plain HTTP", FAILED, reply(error(), status=400), CLOSE, tls="raw", requests=2)
tls("a record of nonsense", FAILED, b"\x16\x03\x03\xff\xff" + b"\xff" * 70_000, CLOSE, tls="raw", requests=2)
tls("closed in the handshake", FAILED, CLOSE, tls="raw", requests=2)
tls("another name", FAILED, OK, tls="wrong name")
tls("expired", FAILED, OK, tls="expired")
tls("in order", FINE, OK, tls="good")
tls("silence behind the handshake", LATE, HANG, tls="good", seconds=1)
tls("half a reply", PAID, OK[:-100], CLOSE, tls="good")

GROUPS = (heads, ends, cut, kinds, packed, many, behind, tls)
