"""What protects what: every rule of the pages has tests, and the pages name them."""

from tests.promises import PAGES, ROOT, marks, rules, written


def test_each_rule_has_tests_and_its_page_names_them() -> None:
    held = marks()
    assert held.keys() == {rule for page in PAGES for rule in rules(page)}
    stale = [page for page in PAGES if written(page, held) != (ROOT / page).read_text(encoding="utf-8")]
    assert stale == [], "`python -m tests.promises` writes the pages"
