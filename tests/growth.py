"""Whether work on a text grows faster than the text, told from processor time on longer and longer texts.

Only growth is compared, so no figure depends on the machine, and work in proportion to a power of the length is found
out while it still takes milliseconds.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import AnyStr, Generic

from tests.profiles import PROFILE

SIZES = (16, 24, 32, 48, 64, 256, 1024, 4096, 2**14, 2**16, 2**18, 2**20)  # what doubles with a letter is seen too
FLOOR = 0.03 if sys.platform == "win32" else 0.00125  # seconds; less says nothing: clocks tick
ROUND = 0.015  # seconds for the texts of one length; the slowest goes on, and as many more as there is time for


@dataclass(frozen=True)
class Hostile(Generic[AnyStr]):
    """A text of any length: what is repeated, and what stands around it."""

    head: AnyStr
    repeated: AnyStr
    tail: AnyStr

    def of(self, size: int) -> AnyStr:
        return self.head + self.repeated * (size // len(self.repeated) or 1) + self.tail


def superlinear(
    work: Callable[[AnyStr], object],
    texts: Iterable[Hostile[AnyStr]],
    *,
    shortest: int = SIZES[0],
    longest: int = SIZES[-1],
    power: float = 1.5,  # between what is linear and what is quadratic
) -> str | None:
    """Return in words on which of `texts` the work grows faster than the text; None if on none of them.

    No text is longer than the profile of the tests allows.
    """
    left = dict.fromkeys(texts, 0.0)
    earlier = 0
    for size in (size for size in SIZES if shortest <= size <= min(longest, PROFILE.longest)):
        limit = (size / earlier) ** power if earlier else float("inf")
        for text, before in left.items():
            left[text] = seconds(work, text.of(size))
            if left[text] > limit * max(before, FLOOR):  # or the machine was busy just then
                sooner, later = (min(seconds(work, text.of(each)) for _ in range(4)) for each in (earlier, size))
                if later > limit * max(sooner, FLOOR):
                    return f"{text}: {sooner:.4f} s for {earlier} characters, {later:.4f} s for {size}"
        slowest = sorted(left, key=lambda text: -left[text])[: 2**22 // size]
        times = accumulate(4 * left[text] for text in slowest)
        left = {
            text: left[text] for text, time in zip(slowest, times, strict=False) if time < ROUND or text == slowest[0]
        }
        earlier = size
    return None


def seconds(work: Callable[[AnyStr], object], text: AnyStr) -> float:
    gc.disable()  # it goes through all objects of all tests
    try:
        began = time.process_time()
        work(text)
        return time.process_time() - began
    finally:
        gc.enable()
