"""How texts are folded and cut into words."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.words import asked, foldable, is_character, is_hiragana, normalise, runs, spaced


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("  A\t\n B ", "a b"),
        ("ＡＢＣ　１２３", "abc 123"),
        ("ﾊﾞｯｸｱｯﾌﾟ", "バックアップ"),
        ("ハ\u3099ックアッフ\u309aの設定", "バックアップの設定"),
        ("ガ･ギ", "ガ・ギ"),
        ("①㎏㈱", "1kg(株)"),
        ("STRASSE Straße", "strasse strasse"),
        ("a‐b‑c‒d–e—f―g−h﹣i－j⁃k⁻l", "a-b-c-d-e-f-g-h-i-j-k-l"),
        ("業\u200b界\ufeff標\u00ad準", "業界標準"),
        ("葛\U000e0100城", "葛城"),
        ("か\u200d\u3099", "が"),
        ("half\ud800", "half"),
        ("\u2028", ""),
    ],
)
def test_folding_takes_away_what_writers_spell_in_several_ways(text: str, folded: str) -> None:
    assert normalise(text) == folded


@given(st.text())
def test_spellings_in_composed_and_decomposed_characters_are_one(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z", "S"])))
def test_folding_again_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_the_long_vowel_mark_does_not_count() -> None:
    assert foldable("コレクター") == foldable("コレクタ") == "コレクタ"
    assert foldable("ー") == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("保険税", "保険 険税 税"),
        ("税", "税"),
        ("a税b", "a 税 b"),
        ("logを見る", "log を見 見る る"),
        ("plain words", "plain words"),
        ("é・税", "é・ 税"),
    ],
)
def test_the_index_has_japanese_in_pairs_and_the_last_character_of_a_run(text: str, words: str) -> None:
    assert " ".join(spaced(text).split()) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("保険税", ["保険", "険税"]),
        ("税税", ["税税"]),
        ("税", ["税"]),
        ("保険a", ["保険", "険", "a"]),
        ("保険 税", ["保険", "険", "税"]),
        ("a税", ["a", "税"]),
        ("税・", ["税", "・"]),
        ("", []),
    ],
)
def test_a_question_asks_for_words_that_may_go_on(text: str, words: list[str]) -> None:
    assert asked(text) == words


JAPANESE = st.text("保険税金aの ー", max_size=8).map(foldable)


@given(JAPANESE, JAPANESE, JAPANESE)
def test_what_is_a_part_of_a_text_is_asked_for_by_words_that_the_index_has_of_it(
    before: str, part: str, after: str
) -> None:
    text = spaced(before + part + after).split()
    for word in asked(part.strip()):
        assert any(each.startswith(word) if is_character(word) else word in each for each in text)


def test_words_end_where_the_script_changes() -> None:
    words = ["open", "の", "デタ", "設定", "v2", "snake_case", "a", "b"]
    assert runs("openのデタ設定v2・snake_case a-b") == words


def test_hiragana_is_known() -> None:
    assert is_hiragana("こと")
    assert not is_hiragana("事")
    assert not is_hiragana("こt")
    assert not is_hiragana("")
