"""A fake Responses API for tests, on real sockets: scripted replies and misbehaviour, all of it recorded.

It needs Trio, h11 and the standard library only. See `open_fake_api` for the way in, `replies` for what it can
answer, and `bodies` for response objects. ``python -m responses_mcp.testing`` serves it as a process.
"""

from . import bodies
from .event_stream import as_stream, stream_events
from .fake_api import FakeApi, Handler, Observer, RecordedRequest, answer_by_echo, open_fake_api
from .replies import (
    Closed,
    Drip,
    Ending,
    Error,
    Garbage,
    Hang,
    Html,
    Json,
    Pause,
    Raw,
    Reply,
    Reset,
    Sse,
    Step,
    Truncated,
)

__all__ = [
    "Closed",
    "Drip",
    "Ending",
    "Error",
    "FakeApi",
    "Garbage",
    "Handler",
    "Hang",
    "Html",
    "Json",
    "Observer",
    "Pause",
    "Raw",
    "RecordedRequest",
    "Reply",
    "Reset",
    "Sse",
    "Step",
    "Truncated",
    "answer_by_echo",
    "as_stream",
    "bodies",
    "open_fake_api",
    "stream_events",
]
