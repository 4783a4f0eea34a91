"""Words of one root, as a stemmer that others wrote has them."""

import re
from pathlib import Path

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.search.families import relatives
from responses_mcp.manuals.words import forms

_STEMMER = snowballstemmer.stemmer("porter")


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("manage", "manager managers management"),
        ("management", "manage managed managing manager"),
        ("compatibility", "compatible"),
        ("compatible", "compatibility"),
        ("standard", "standardize standardized standardization"),
        ("virtualization", "virtual"),
        ("initialized", "initial initialization"),
        ("differences", "different differently difference"),
        ("install", "installer"),
        ("recommend", "recommendation recommendations"),
        ("useful", "usefulness"),
        ("previously", "previous"),
    ],
)
def test_a_word_has_the_others_of_its_family_beside_its_own_forms(word: str, others: str) -> None:
    assert relatives(word) | forms(word) >= set(others.split())


@pytest.mark.parametrize(
    ("word", "other"),
    [("note", "notice"), ("string", "strange"), ("class", "classic"), ("use", "us"), ("real", "realm")],
)
def test_words_that_only_begin_alike_are_no_family(word: str, other: str) -> None:
    assert other not in relatives(word)


@pytest.mark.parametrize("word", ["run", "v2", "217", "設定", "naïve", "a" * 48, "", "the-thing"])
def test_what_has_no_derivations_has_no_relatives(word: str) -> None:
    assert relatives(word) == frozenset()


def test_families_are_those_of_porters_stemmer_but_for_one_word_in_fifty() -> None:
    text = "\n".join(path.read_text("utf-8") for path in Path("docs").glob("*.md")).lower()
    every = sorted(set(re.findall(r"\b[a-z]{4,30}\b", text)))
    family = {word: relatives(word) | forms(word) for word in every}
    stems = _STEMMER.stemWords(every)
    pairs = {(one, other) for one in every for other in family[one] & set(every) if one != other}
    by_stem = dict(zip(every, stems, strict=True))
    porters = {(one, other) for one in every for other in every if one != other and by_stem[one] == by_stem[other]}
    assert len(porters) > 500
    assert len(porters - pairs) < len(porters) / 20
    assert len(pairs - porters) < len(pairs) / 20


@given(st.from_regex(r"[a-z]{1,9}(al|ation|ement|er|ful|ible|ic|ing|ity|ive|ize|ment|ness|y)?", fullmatch=True))
def test_relatives_are_few_and_no_forms(word: str) -> None:
    assert len(relatives(word)) < 100
    assert relatives(word).isdisjoint(forms(word))
