"""The payloads of finds under the ids that their answers name (M5)."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.errors import ManualsError

_MOST_KEPT: Final = 100  # payloads
_KEPT_FOR: Final = 1800.0  # seconds


class Traces:
    """The newest payloads, each for a fixed time after it was put.

    The clock `now` is in seconds. Reading a payload does not prolong its life. For use from one thread.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: OrderedDict[str, tuple[float, JsonObject]] = OrderedDict()  # the oldest first

    def put(self, payload: JsonObject) -> str:
        """Keep `payload` and return its trace id of 32 hexadecimal digits."""
        self._forget()
        trace_id = uuid.uuid4().hex
        self._kept[trace_id] = (self._now(), payload)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return trace_id

    def get(self, trace_id: str) -> JsonObject:
        """Return the payload, which is shared and not to be changed; raise `ManualsError` if it is not kept."""
        self._forget()
        try:
            return self._kept[trace_id][1]
        except KeyError:
            message = "trace_id is unknown or has expired; run manual_find again and use the trace_id that it returns."
            raise ManualsError("not_found", message) from None

    def _forget(self) -> None:
        oldest_living = self._now() - _KEPT_FOR
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_living:
            self._kept.popitem(last=False)
