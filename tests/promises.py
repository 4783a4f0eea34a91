"""What protects what: `python -m tests.promises [WORD…]` lists promises and the tests and sessions that hold them.

Two pages say it: docs/verification.md in its table of promises, and docs/spec.md under each of its sections. With words,
only the promises in which all of them occur are listed. `tests/test_promises.py` checks both pages.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
_HELD_BY = re.compile(r"^Held by: (.+?\.)$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^(#{2,3}) (?=\d|Appendix)(.+)$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
_SESSION = re.compile(r"`nox -s (\w+)`")


class Promise(NamedTuple):
    """A promise in words, the page that makes it, and what holds it: `tests/….py`, with or without `::test_…`."""

    page: str
    words: str
    tests: list[str]
    sessions: list[str]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def cells(row: str) -> list[str]:
    """Return the cells of a row of a table."""
    return re.split(r"(?<!\\) \| ", row.strip("|").strip())


def of_the_table() -> list[Promise]:
    """Return the rows of the table in docs/verification.md."""
    table = page("docs/verification.md").partition("| promise |")[2].partition("\n\n")[0]
    return [Promise("docs/verification.md", words, *held(by)) for words, by in map(cells, table.splitlines()[2:])]


def of_the_specification() -> list[Promise]:
    """Return the sections of docs/spec.md, without those that only have sections in them."""
    text = page("docs/spec.md")
    found = list(_SECTION.finditer(text))
    promises = []
    for number, heading in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else text.find("\n## ", heading.end())
        said = text[heading.end() : end].strip()
        by = " ".join(_HELD_BY.findall(said))
        if said:
            promises.append(Promise("docs/spec.md", heading[2], *held(by)))
    return promises


def held(by: str) -> tuple[list[str], list[str]]:
    tests = [f"{file}::{name}" if name else file for file, name in _TEST.findall(by)]
    return tests, _SESSION.findall(by)


@cache
def defined_in(file: str) -> frozenset[str]:
    """Return the names of the test functions of a file, none if it does not exist."""
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def missing(promise: Promise) -> list[str]:
    """Return what is named as holding a promise and is not there."""
    sessions = set(re.findall(r"^def (\w+)\(session", page("noxfile.py"), re.MULTILINE))
    lost = []
    for test in promise.tests:
        file, _, name = test.partition("::")
        if not defined_in(file) or (name and name not in defined_in(file)):
            lost.append(test)
    return lost + [session for session in promise.sessions if session not in sessions]


def main(words: list[str]) -> int:
    wrong = 0
    for promise in of_the_table() + of_the_specification():
        if all(word.lower() in promise.words.lower() for word in words):
            print(f"{promise.page}: {promise.words}")
            lost = missing(promise)
            wrong += len(lost) + (not promise.tests)
            print(
                *[f"    {test}{'   MISSING' if test in lost else ''}" for test in promise.tests or ["NOTHING"]],
                sep="\n",
            )
            print(*[f"    nox -s {session}\n" for session in promise.sessions], sep="", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
