"""Vectors as bytes: they keep what a cosine needs, whatever numbers a model gives."""

import math
import random

import pytest

from responses_mcp.manuals.embeddings.likeness import Question, between, likeness, packed, question


def cosine(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


def compared(asked: Question, data: bytes) -> float | None:
    found = likeness(asked, data)
    return None if found is None else found.cosine


@pytest.mark.parametrize("dimensions", [1, 2, 256, 1536])
def test_a_cosine_survives_being_kept_in_a_byte_a_number(dimensions: int) -> None:
    rng = random.Random(dimensions)
    one, other = ([rng.gauss(0, 1) for _ in range(dimensions)] for _ in range(2))
    asked = question("m", one)
    assert compared(asked, packed(other)) == pytest.approx(cosine(one, other), abs=0.01)
    assert compared(asked, packed(one)) == pytest.approx(1, abs=0.01)
    assert len(packed(one)) == dimensions + 4


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1, 1e30, 1e300])
def test_only_the_direction_counts_however_large_the_numbers_are(size: float) -> None:
    asked = question("m", [3 * size, 4 * size])
    assert compared(asked, packed([0.3, 0.4])) == pytest.approx(1, abs=0.01)
    assert compared(asked, packed([-3 * size, -4 * size])) == pytest.approx(-1, abs=0.01)


def test_a_vector_of_zeros_is_like_nothing() -> None:
    assert question("m", [0.0, 0.0]).is_like_nothing
    asked = question("m", [1.0, 0.0])
    assert not asked.is_like_nothing
    assert compared(asked, packed([0.0, 0.0])) == 0


def test_of_several_vectors_the_most_alike_counts_and_none_is_no_likeness() -> None:
    asked = question("m", [1.0, 0.0])
    assert compared(asked, packed([0.0, 1.0]) + packed([1.0, 0.1]) + packed([-1.0, 0.0])) == pytest.approx(1, abs=0.01)
    assert compared(asked, b"") is None
    assert compared(asked, b"torn") is None


def test_two_vectors_that_a_question_was_compared_with_are_compared_with_each_other() -> None:
    asked = question("m", [1.0, 0.0])
    one, other, nothing = (likeness(asked, packed(each)) for each in ([1.0, 1.0], [0.0, 7.0], [0.0, 0.0]))
    assert one is not None
    assert other is not None
    assert nothing is not None
    assert between(one, other) == between(other, one) == pytest.approx(math.cos(math.pi / 4), abs=0.01)
    assert between(one, nothing) == 0
