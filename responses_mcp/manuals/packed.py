"""What finds leave behind, kept small: rows as bytes, which become rows again when somebody asks for them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from responses_mcp.manuals.checks import Check

_SMALL: Final = ("query", "manual_id", "applied", "summary", "unscanned")
_QUICK: Final = 1  # level of compression
_BLOCK: Final = 1000  # paths


def packed(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload with its rows as bytes; to be done in a thread."""
    small = {key: payload[key] for key in _SMALL}
    large = {key: value for key, value in payload.items() if key not in small}
    text = json.dumps(large, ensure_ascii=False, separators=(",", ":"))
    return {**small, "packed": zlib.compress(text.encode("utf-8", "surrogatepass"), _QUICK)}


def unpacked(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload as it was before `packed`."""
    small = {key: value for key, value in payload.items() if key != "packed"}
    return {**small, **json.loads(zlib.decompress(payload["packed"]).decode("utf-8", "surrogatepass"))}


class Unscanned:
    """The rows of `manual_hits` kind unscanned, which may be 100,000, in slices; `reasons` maps paths to reasons."""

    def __init__(self, manual_id: str, reasons: Iterable[tuple[str, str]], check: Check) -> None:
        self.manual_id = manual_id
        self._length = 0
        self._blocks: list[bytes] = []
        rest = iter(reasons)
        while block := list(islice(rest, _BLOCK)):
            check()
            text = "\0".join(chain.from_iterable(block))  # which no path holds
            self._blocks.append(zlib.compress(text.encode("utf-8", "surrogatepass"), _QUICK))
            self._length += len(block)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> list[dict[str, Any]]:
        return list(self._rows(range(*part.indices(self._length))))

    def paths(self) -> Iterator[str]:
        """Yield the paths alone."""
        for block in self._blocks:
            yield from _texts(block)[::2]

    def _rows(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        loaded, texts = -1, list[str]()
        for place in places:
            number, within = divmod(place, _BLOCK)
            if number != loaded:
                loaded, texts = number, _texts(self._blocks[number])
            path, reason = texts[2 * within : 2 * within + 2]
            yield {
                "manual_id": self.manual_id,
                "path": path,
                "start_line": None,
                "score": None,
                "reason": reason,
                "signals": [],
                "conflict_with": [],
                "gap_hint": None,
            }


def _texts(block: bytes) -> list[str]:
    return zlib.decompress(block).decode("utf-8", "surrogatepass").split("\0")
