"""Vectors as bytes, and how alike two of them are.

A vector is kept as one byte a number and one factor for all of them, which costs less than .001 of a cosine. Plain
Python compares 400 vectors of 1,536 numbers in 30 to 40 ms, so nothing more is needed.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence
from operator import mul
from typing import Final, NamedTuple

_FACTOR: Final = struct.Struct("<f")
_MOST: Final = 127


class Question(NamedTuple):
    """A question as a vector of the model `name`: whole numbers from -127 to 127, and what each counts."""

    name: str
    numbers: Sequence[int]
    factor: float

    @property
    def dimensions(self) -> int:
        """Return how many numbers it has."""
        return len(self.numbers)

    @property
    def is_like_nothing(self) -> bool:
        """Tell whether it is a vector of zeros."""
        return not self.factor


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector of finite numbers as bytes, made one of length 1; one of zeros stays so."""
    peak = max(map(abs, vector))
    if not peak:
        return bytes(_FACTOR.size + len(vector))
    # Divided first: the squares of large numbers may be too large, those of small ones nothing.
    length = math.hypot(*(each / peak for each in vector))
    numbers = array("b", [round(each / peak * _MOST) for each in vector])
    return _FACTOR.pack(1 / length / _MOST) + numbers.tobytes()


def question(name: str, vector: Sequence[float]) -> Question:
    """Return a question's vector as it is compared."""
    data = packed(vector)
    (factor,) = _FACTOR.unpack_from(data)
    return Question(name, memoryview(data)[_FACTOR.size :].cast("b").tolist(), factor)


class Likeness(NamedTuple):
    """How alike a question and the nearest of some vectors are: their cosine, and that vector."""

    cosine: float
    numbers: Sequence[int]
    factor: float


def likeness(question: Question, data: bytes) -> Likeness | None:
    """Compare the question with the vectors packed in `data`; None without any."""
    step = _FACTOR.size + question.dimensions
    best: Likeness | None = None
    for start in range(0, len(data) - step + 1, step):
        (factor,) = _FACTOR.unpack_from(data, start)
        numbers = memoryview(data)[start + _FACTOR.size : start + step].cast("b")
        cosine = _cosine(question, numbers, factor)
        if best is None or cosine > best.cosine:
            best = Likeness(cosine, numbers, factor)
    return best


def _cosine(question: Question, numbers: Sequence[int], factor: float) -> float:
    product: int = sum(map(mul, question.numbers, numbers))
    return product * factor * question.factor


def between(one: Likeness, other: Likeness) -> float:
    """Return the cosine of two vectors that a question was compared with."""
    product: int = sum(map(mul, one.numbers, other.numbers))
    return product * one.factor * other.factor
