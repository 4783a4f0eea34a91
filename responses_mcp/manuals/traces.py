"""What finds found, kept for a while under the ids that their answers name."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from responses_mcp.manuals.errors import ManualsError


class Traces:
    """The newest payloads, each for a fixed time after it was put.

    At most `max_keep` are kept, for `ttl_sec` seconds of the clock `now`; reading one does not prolong its life.
    For use from one thread.
    """

    def __init__(self, max_keep: int, ttl_sec: float, now: Callable[[], float]) -> None:
        self._max_keep = max_keep
        self._ttl = ttl_sec
        self._now = now
        self._kept: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()  # the oldest first

    def put(self, payload: dict[str, Any]) -> str:
        """Keep `payload` and return its trace id of 32 hexadecimal digits."""
        self._forget()
        trace_id = uuid.uuid4().hex
        self._kept[trace_id] = (self._now(), payload)
        while len(self._kept) > self._max_keep:
            self._kept.popitem(last=False)
        return trace_id

    def get(self, trace_id: str) -> dict[str, Any]:
        """Return the payload, which is shared and not to be changed; raise `ManualsError` if it is not kept."""
        self._forget()
        try:
            return self._kept[trace_id][1]
        except KeyError:
            message = "trace_id is unknown or has expired; run manual_find again and use the trace_id that it returns."
            raise ManualsError("not_found", message) from None

    def _forget(self) -> None:
        oldest_living = self._now() - self._ttl
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_living:
            self._kept.popitem(last=False)
