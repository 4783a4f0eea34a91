"""A fake Responses API for tests, on real sockets: scripted replies and misbehaviour, with a record of all requests.

It needs Trio, h11 and the standard library only. See `open_fake_api` for the way in, `replies` for what it can
answer, and `bodies` for response objects. ``python -m responses_mcp.testing`` serves it as a process.
"""

from . import bodies as bodies
from .embeddings import Embed as Embed
from .embeddings import answer_with_embeddings as answer_with_embeddings
from .embeddings import count_words as count_words
from .event_stream import as_stream as as_stream
from .event_stream import stream_events as stream_events
from .fake_api import FakeApi as FakeApi
from .fake_api import Handler as Handler
from .fake_api import Observer as Observer
from .fake_api import RecordedRequest as RecordedRequest
from .fake_api import answer_by_echo as answer_by_echo
from .fake_api import open_fake_api as open_fake_api
from .replies import Closed as Closed
from .replies import Drip as Drip
from .replies import Ending as Ending
from .replies import Error as Error
from .replies import Garbage as Garbage
from .replies import Hang as Hang
from .replies import Html as Html
from .replies import Json as Json
from .replies import Pause as Pause
from .replies import Raw as Raw
from .replies import Reply as Reply
from .replies import Reset as Reset
from .replies import Sse as Sse
from .replies import Step as Step
from .replies import Truncated as Truncated
from .stored_responses import Faults as Faults
from .stored_responses import StoredResponse as StoredResponse
from .stored_responses import StoredResponses as StoredResponses
