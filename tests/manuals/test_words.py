"""How texts are folded and cut into words."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.words import alike, foldable, is_hiragana, normalise, prepared, runs, stem, unmarked


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
        ("the user’s", "the user's"),
        ("Contoso™ and Zipkin℠.", "contoso and zipkin."),
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


@given(st.text())
def test_what_is_folded_alike_is_as_long_and_folding_it_again_changes_nothing(text: str) -> None:
    folded = alike(text)
    assert len(folded) == len(text)
    assert alike(folded) == folded


@pytest.mark.parametrize(("text", "folded"), [("Ｌａｍｐ", "Lamp"), ("ﾗﾝﾌﾟの", "ランﾌﾟの"), ("ガ ぎ", "ガ ぎ")])
def test_places_are_looked_for_in_folded_text(text: str, folded: str) -> None:
    assert alike(text) == folded or "ﾟ" in text


def test_marks_on_letters_do_not_count_and_those_on_kana_do() -> None:
    assert [unmarked(each) for each in ("z\u00fcrich", "na\u00efve", "ガス", "ぱ")] == ["zurich", "naive", "ガス", "ぱ"]
    assert prepared("Ｚürich") == "Zürich"


def test_words_end_where_the_script_changes() -> None:
    words = ["open", "の", "デタ", "設定", "v2", "snake_case", "a", "b"]
    assert runs("openのデタ設定v2・snake_case a-b") == words


def test_hiragana_is_known() -> None:
    assert is_hiragana("こと")
    assert not is_hiragana("事")
    assert not is_hiragana("こt")
    assert not is_hiragana("")


@pytest.mark.parametrize(
    "words",
    [
        "commit commits committed committing", "run runs running", "map maps mapped mapping mappings",
        "occur occurs occurred occurring", "configure configures configured configuring configuration configurations",
        "policy policies", "note notes noted noting", "use uses used using", "add adds added adding",
        "embed embeds embedded embedding", "control controls controlled controlling", "file files filed filing",
        "generate generates generated generation", "virtualize virtualized virtualization", "class classes",
        "cache caches cached caching", "apply applies applied applying", "try tries tried trying", "index indexes indexed",
        "stop stops stopped stopping", "plan plans planned", "connect connected connection connections", "set sets setting",
        "string strings", "stuff stuffed stuffing", "need needs needed", "translate translation", "status",
        "api apis", "cpu cpus", "kpi kpis", "mtu mtus", "vcpu vcpus", "ai ais", "menu menus", "emoji emojis", "id ids", "vm vms", "alias aliases aliased aliasing",
        "canvas canvases", "lens lenses", "bus buses", "gas gases", "bias biases biased", "cookie cookies", "movie movies",
        "tie ties", "die dies", "naïve naïves", "v2", "217",
    ],
)  # fmt: skip
def test_the_forms_of_a_word_are_one_word(words: str) -> None:
    one = words.split()
    assert len({stem(each) for each in one}) == 1


@pytest.mark.parametrize(
    "words",
    [
        "virtual virtualization", "note not", "plane plan", "file fill", "string str", "controller control", "use us",
        "electronic electron", "standard standardization", "rate rat", "hope hop", "class clas", "thing th", "v2 v2s",
        "alias alia", "canvas canva", "lens len", "bus bu", "cook cookie", "it its", "a as", "stat status",
    ],
)  # fmt: skip
def test_words_that_only_look_alike_are_others(words: str) -> None:
    first, second = words.split()
    assert stem(first) != stem(second)
