"""A query as the search sees it."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.search.query import phrase, required_term, term, terms, words
from responses_mcp.manuals.words import normalise
from tests.manuals.searched import in_memory


def texts(query: str) -> list[str]:
    return [each.text for each in words(query)]


def index(*rows: str) -> sqlite3.Connection:
    connection = in_memory()
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(body, tokenize='unicode61 remove_diacritics 0')")
    connection.executemany("INSERT INTO words VALUES (?)", [(row,) for row in rows])
    return connection


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("How do I configure the Proxy?", ["configure", "proxy"]),
        ("ファイルの設定方法とは", ["ファイル", "設定方法"]),
        ("how to do it", ["how", "to", "do", "it"]),
        ("これはどう", ["これはどう"]),
        ("proxy PROXY ｐｒｏｘｙ", ["proxy"]),
        ("C++ と snake_case, __init__ 3.12", ["c", "snake_case", "__init__", "3", "12"]),
        ('"a* OR b" NEAR(x ^y:z) AND NOT -q', ["b", "near", "x", "y", "z", "q"]),
        ("Why can't I connect, and what\u2019s it won't do?", ["connect"]),
        ("they don't re-connect", ["re", "connect"]),
        ("the 's' option", ["s", "option"]),
        ("How long is a token valid, and how many are there?", ["token", "valid"]),
        ("how long", ["long"]),
        ("how long polling works", ["long", "polling", "works"]),
        ("how long a token is valid", ["token", "valid"]),
        ("a long token", ["long", "token"]),
        ("", []),
        ("?! ・ _ __ 🚀 \x00 \ud800", []),
        ("税", ["税"]),
    ],
)
def test_words_are_those_of_a_query_without_grammar(query: str, expected: list[str]) -> None:
    assert texts(query) == expected


@pytest.mark.parametrize(
    ("query", "weights"),
    [
        ("How do I configure it?", {"configure": 1.0}),
        ("設定の方法とは", {"設定": 1.0, "定の": 0.3, "の方": 0.3, "方法": 1.0, "法と": 0.3}),
        ("snake_case", {"snake_case": 1.0, "snake": 0.5, "case": 0.5}),
        ("use AsyncClient", {"use": 1.0, "asyncclient": 1.0, "async": 0.5, "client": 0.5}),
        ("0x80070005", {"0x80070005": 1.0, "80070005": 0.5}),
        ("client of AsyncClient", {"client": 1.0, "asyncclient": 1.0, "async": 0.5}),
        ("リモート", {"リモ": 0.81, "モト": 0.81}),
        ("税", {"税": 1.0}),
        ("これはどう", {"これはどう": 1.0}),
    ],
)
def test_terms_are_what_counts_and_how_much(query: str, weights: dict[str, float]) -> None:
    assert {each.text: round(each.weight, 2) for each in terms(query)} == weights


def test_a_pasted_page_is_cut_to_what_a_find_has_time_for() -> None:
    page, run = " ".join(f"word{number}" for number in range(5000)), "".join(map(chr, range(0x4E00, 0x7510)))
    assert (len(words(page)), len(terms(page)), len(terms(run))) == (40, 80, 80)
    assert sum(len(each.tokens) for each in words(run)) <= 120
    assert max(len(each.text) for each in words(run)) <= 32
    assert len(terms("a" * 10_000)) == 1


@pytest.mark.parametrize(
    ("word", "text", "hits"),
    [
        ("configure", "configuration configuring configures configured", 4),
        ("log", "catalog logs logging blog log", 3),
        ("nation", "nations", 1),
        ("uses", "use user muse", 1),
        ("committed", "commit commits committee committing recommit", 3),
        ("running", "run runs runner", 2),
        ("virtualization", "virtual virtualize virtualization", 2),
        ("v2", "v2 v21 av2 v2a", 1),
        ("217", "form 217, 2170, 1217", 1),
        ("設定", "再設定と設定", 2),
        ("naïve", "naïves", 1),
        ("cat", "concat cat-like cat", 2),
    ],
)
def test_a_word_is_counted_in_its_forms_and_not_in_other_words(word: str, text: str, hits: int) -> None:
    assert term(word).hits(text) == hits


def test_another_word_of_the_family_counts_half_where_words_are_counted_and_is_no_form() -> None:
    (counted,), (read,) = terms("manager"), words("manager")
    text = "managers manage the management of menageries"
    assert (counted.hits(text), read.hits(text)) == (2.0, 1)
    assert required_term("manager").hits("the management") == 0


@pytest.mark.parametrize(("word", "is_number"), [("217", True), ("v2", True), ("two", False), ("二", False)])
def test_a_number_has_a_digit(word: str, is_number: bool) -> None:
    assert term(word).is_number is is_number


NASTY = st.text(st.sampled_from('"*()^:-+{}\x00 aORNEAR税_'), max_size=12)


@given(NASTY)
def test_any_term_is_a_question_that_the_index_understands(text: str) -> None:
    connection = index("a", "税")
    required = required_term(normalise(text))
    for match in [*(each.match for each in terms(text)), required.match]:
        if match:
            connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()
            connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (f"({match}) AND ({match})",)).fetchall()


def test_a_character_alone_is_asked_for_as_the_beginning_of_a_word() -> None:
    assert phrase(["税"]) == '"税" *'
    assert phrase(["a", "税"]) == '"a 税" *'
    assert phrase(["税金"]) == '"税金"'
    assert phrase([]) == '""'


@pytest.mark.parametrize(
    ("required", "text"),
    [
        ("取り扱い", "取り扱い"),
        ("取り扱い", "取り扱う"),
        ("取り扱い", "取扱説明"),
        ("申し込み", "申込書"),
        ("見積り書", "見積書"),
        ("log", "catalog"),
        ("c++", "modern c++17"),
        ("コレクター", "コレクタ"),
        ("new policies", "new policies apply"),
        ("policies", "policy"),
    ],
)
def test_a_required_term_is_found_in_its_spellings_and_in_words(required: str, text: str) -> None:
    assert required_term(required).hits(text)


@pytest.mark.parametrize(("required", "text"), [("高い", "高度"), ("取り扱い", "扱い"), ("c#", "c"), ("ー", "あ")])
def test_a_required_term_is_not_found_in_what_only_looks_like_it(required: str, text: str) -> None:
    assert not required_term(required).hits(text)


@pytest.mark.parametrize(
    ("text", "match", "literal"),
    [
        ("proxy1", '"proxy1"', ""),
        ("c++", '"c++"', "c++"),
        (".net", '".net"', ".net"),
        ("a/b", '"a/b"', "a/b"),
        ("function_a", '"function_a"', "function_a"),
        ("_", "", "_"),
        ("🚀", "", "🚀"),
        ("ー", "", ""),
        ("税", '"税" *', ""),
    ],
)
def test_a_required_term_knows_what_the_index_cannot_tell(text: str, match: str, literal: str) -> None:
    required = required_term(text)
    assert (required.match, required.exact, required.literal) == (match, match, literal)


def test_a_required_word_is_asked_for_in_its_forms_and_as_it_is_written() -> None:
    required = required_term("mapping")
    assert {'"map"', '"mapping"', '"mapped"'} <= set(required.match.strip("()").split(" OR "))
    assert required.exact == '"mapping"'


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("E-104の対処", ["e-104", "対処"]),
        ("gpt-5 and UTF-8", ["gpt-5", "utf-8"]),
        ("x86-64-v2", ["x86-64-v2"]),
        ("2024-05-01", ["2024", "05", "01"]),
        ("well-known", ["well", "known"]),
        ("my_name-2", ["my_name", "2"]),
        ("a-1-" * 9, ["1"]),
    ],
)
def test_a_code_with_a_letter_and_a_digit_is_one_word(query: str, shown: list[str]) -> None:
    assert [each.text for each in words(query)] == shown
