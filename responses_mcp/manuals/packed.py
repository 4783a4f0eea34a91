"""What finds leave behind, kept small: rows as bytes, which become rows again when somebody asks for them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, overload

from responses_mcp.manuals.checks import Check
from responses_mcp.manuals.diagnosis import unscanned_rows

_SMALL: Final = ("query", "manual_id", "applied", "summary", "next_actions", "unscanned")
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


class Unscanned(Sequence[dict[str, Any]]):
    """The rows of `manual_hits` kind unscanned, which may be 100,000: `reasons` maps paths to reasons."""

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

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, key: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(key, slice):
            return list(self._rows(range(*key.indices(self._length))))
        return next(self._rows([range(self._length)[key]]))

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
            yield from unscanned_rows(self.manual_id, [path], reason)


def _texts(block: bytes) -> list[str]:
    return zlib.decompress(block).decode("utf-8", "surrogatepass").split("\0")
