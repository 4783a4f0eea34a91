"""The vectors on disk belong to texts: they outlive the index, and nothing of another length gets among them."""

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.vectors import Vectors, packed, question, unpacked
from responses_mcp.manuals.index.pieces import MOST_PIECES, PIECE, Outstanding, Section, outstanding, pieces

NUMBERS = st.floats(-1e30, 1e30).filter(lambda number: number == 0 or abs(number) > 1e-30)


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[Vectors]:
    with closing(Vectors(tmp_path / "a.vectors")) as vectors:
        yield vectors


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2)))
def test_packed_vectors_are_as_alike_as_those_they_are_of(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    lengths = math.hypot(*one) * math.hypot(*other)
    assert question(one).cosine(unpacked(packed(other))) == pytest.approx(
        product / lengths if lengths else 0.0, abs=0.02
    )


def test_texts_have_the_vectors_that_were_kept_for_them_in_whichever_process(vectors: Vectors, tmp_path: Path) -> None:
    vectors.keep({"a": [1.0, 2.0], "鍵\ud800": [0.0, 0.0]}, unchecked)
    with closing(Vectors(tmp_path / "a.vectors")) as other:
        assert other.of(["a", "b", "鍵\ud800"], unchecked) == {"a": packed([1.0, 2.0]), "鍵\ud800": packed([0.0, 0.0])}
    assert (tmp_path / "a.vectors").stat().st_mode & 0o77 == 0 or Path("/").drive


def test_vectors_of_another_length_are_neither_kept_nor_compared(vectors: Vectors) -> None:
    vectors.keep({"a": [1.0, 2.0]}, unchecked)
    with pytest.raises(EmbeddingFailed, match=r"vectors of 1 numbers, but the index has some of 2; run .* --forget"):
        vectors.keep({"b": [1.0]}, unchecked)
    with pytest.raises(EmbeddingFailed, match="vectors of 3 numbers, but the index has some of 2"):
        vectors.of(["a"], unchecked, 3)
    assert list(vectors.of(["a", "b"], unchecked)) == ["a"]


def test_a_broken_file_is_made_anew_and_a_place_that_cannot_be_used_is_told(vectors: Vectors, tmp_path: Path) -> None:
    (tmp_path / "a.vectors").write_bytes(b"broken" * 1000)
    vectors.keep({"a": [1.0]}, unchecked)
    assert list(vectors.of(["a"], unchecked)) == ["a"]
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddingFailed, match=r"cannot be kept \(.*\); make room, or set manuals.index_dir"):
        Vectors(tmp_path / "file" / "a.vectors").of(["a"], unchecked)


# Texts, and what they cost


def test_a_row_has_a_text_at_least_and_a_long_one_the_first_few_pieces() -> None:
    assert pieces("Rotation", "Guide > Keys", "rotate.") == ["Guide > Keys > Rotation\nrotate."]
    assert pieces("", "", "") == ["\n"]
    long = pieces("T" * 1000, "", "x" * (PIECE * MOST_PIECES + 1))
    assert [len(text) for text in long] == [200 + 1 + PIECE] * MOST_PIECES


def test_tokens_are_a_quarter_of_an_alphabet_and_all_of_japanese() -> None:
    assert outstanding([Section(1, ["abcd" * 10, "鍵の更新"])]) == Outstanding(1, 14)
