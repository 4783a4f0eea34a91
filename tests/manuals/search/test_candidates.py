"""Which rows are worth scoring."""

import pytest

from responses_mcp.manuals.search import candidates as module
from responses_mcp.manuals.search.candidates import Counts, Reader, candidates, frequency
from responses_mcp.manuals.search.query import required_term, terms
from tests.manuals.searched import in_memory, manual

READER = manual(
    {
        "tax.md": "# 納税\n納税の話。\n# 税率\n率の話。\n# 別\n消費税がある。\n# 孤\nこの 税 だけ。\n# 無\n何もない。",
        "code.md": "# C\nplain c here\n# Plus\nmodern c++ here\n# Sharp C#\nnothing\n# Marks\na::b and 🚀",
    }
)


def found(query: str, *required: str) -> list[str]:
    every = candidates(READER, terms(query), [required_term(each) for each in required])
    ids = [*every.required, *every.of_words]
    titles = {row.id: row.title for row in READER.rows(ids)}
    return [titles[each] for each in dict.fromkeys(ids)]


@pytest.mark.parametrize(
    ("term", "count"),
    [
        ("税", 4),
        ("納税", 1),
        ("孤", 1),
        ("c++", 1),
        ("c#", 1),
        ("c", 3),
        ("::", 1),
        ("🚀", 1),
        ("_", 0),
        ("ー", 0),
        ("+", 1),
    ],
)
def test_a_required_term_is_counted_by_what_texts_and_titles_hold(term: str, count: int) -> None:
    assert frequency(READER, required_term(term)) == count


def test_one_character_is_found_at_both_ends_of_words_and_alone() -> None:
    assert set(found("?", "税")) == {"納税", "税率", "別", "孤"}
    assert set(found("税")) == {"納税", "税率", "別", "孤"}


def test_marks_of_a_required_term_are_looked_for_in_the_text() -> None:
    assert found("?", "c++") == ["Plus"]
    assert found("?", "c#") == ["Sharp C#"]
    assert found("?", "::") == ["Marks"]


def test_a_required_term_that_is_nowhere_beside_the_words_is_found_without_them() -> None:
    assert "Plus" in found("納税", "c++")
    assert "納税" in found("modern", "納税")


def test_each_way_of_asking_has_its_say_among_the_first() -> None:
    files = {f"{number:03}.md": "# Both\nred lamp" for number in range(100)}
    reader = manual({**files, "rare.md": "# Rare\nred zebra", "other.md": "# Other\nlamp yak"})
    asked = [required_term("zebra"), required_term("yak")]
    of_words, required, *_ = candidates(reader, terms("red lamp"), asked)
    assert {row.title for row in reader.rows(required[:2])} == {"Rare", "Other"}
    assert of_words == candidates(reader, terms("red lamp"), []).of_words


def test_words_that_the_manual_does_not_have_do_not_keep_the_others_from_being_found() -> None:
    assert "Plus" in found("modern unheardof")
    assert found("unheardof") == []
    assert found("?!") == []


def test_a_section_with_all_words_is_a_candidate_however_common_each_of_them_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_ALL_POSTINGS", 500)
    monkeypatch.setattr(module, "_POSTINGS", 100)
    pairs = ["red lamp", "lamp yak", "red yak"]
    files = {f"{number:03}.md": f"# Two\n{pairs[number % 3]}" for number in range(450)}
    reader = manual({**files, "all.md": f"# All\nred {'filler ' * 90} lamp {'filler ' * 90} yak"})
    rows = candidates(reader, terms("red lamp yak"), []).of_words
    assert "All" in {row.title for row in reader.rows(rows)}


def test_counts_are_remembered() -> None:
    connection = in_memory()
    reader, counts = manual({"a.md": "# A\nred lamp"}, connection), Counts()
    first = Reader(connection, reader.manual, counts)
    assert (first.having('"red"'), first.having('"red"', 0), first.having("")) == (1, 0, 0)
    connection.execute("DROP TABLE words_1")
    assert Reader(connection, reader.manual, counts).having('"red"') == 1


def test_a_rare_word_whose_form_is_everywhere_is_found_in_each_of_its_files() -> None:
    files = {f"{n:03}.md": "# Fix\nfix fixes fixed fix\n" * 3 for n in range(60)}
    rare = {f"rare{n}.md": f"# Other\n{'long words here ' * 40} fixing" for n in range(9)}
    one = {"one.md": "# Fixing\nfixing\n" * 100}
    reader = manual({**files, **rare, **one})
    asked = [required_term("fixing")]
    for question in ("fixing", "how are long words fixed"):
        found = candidates(reader, terms(question), asked)
        assert {row.path for row in reader.rows(found.exact)} == {*rare, *one}
        assert set(found.exact) <= set(found.required)
        assert found.whole


def test_a_word_in_more_files_than_are_looked_at_says_that_some_are_left_out() -> None:
    reader = manual({f"{n:03}.md": "# A\nlamp" for n in range(90)})
    found = candidates(reader, terms("lamp"), [required_term("lamp")])
    assert (len(found.exact), found.whole) == (80, False)
