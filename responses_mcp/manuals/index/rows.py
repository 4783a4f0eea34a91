"""From a file to the rows of the index: what a search finds, and what the full-text table is given for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.files.texts import with_characters, without_short_escapes
from responses_mcp.manuals.formats.document import Document, lines_of, sections
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.manuals.words import foldable, normalise, parts_of_names, spaced

_LONGEST_BODY: Final = 16_000  # characters of a row; a longer section has several
_LONGEST_CRUMBS: Final = 400  # characters; every section below has them
_CUT_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_FIRST_HALF: Final = re.compile("[\ud800-\udbff]")
_HALF: Final = re.compile("[\ud800-\udfff]")


class Entry(NamedTuple):
    """A row: its line, its title and breadcrumbs as written, its text normalised, and the parts of names in both.

    The line is that of the heading; in a JSON file, the one that the row begins on.
    """

    line: int
    title: str
    crumbs: str
    body: str
    names: str


def entries(path: str, document: Document, check: CancellationCheck) -> Iterator[Entry]:
    """Yield the rows of a file."""
    if document.outline.is_excluded:
        return
    is_json = file_type(path) == "json"
    name = path.rpartition("/")[2] if is_json else ""
    for section in sections(lines_of(document.text), document.outline):
        crumbs = " > ".join(section.crumbs)[-_LONGEST_CRUMBS:]
        for line, part in _parts(_unescaped([section.text]) if is_json else [section.text], check):
            yield _entry(section.line + (line - 1 if is_json else 0), section.title or name, crumbs, part)


def _entry(line: int, title: str, crumbs: str, text: str) -> Entry:
    return Entry(line, title, crumbs, normalise(text), " ".join(parts_of_names(f"{title} {text}")))


def indexed(path: str, title: str, crumbs: str, body: str, names: str) -> tuple[str, str, str, str]:
    """Return what the full-text table is given for a row; the same for the same row, or rows cannot be deleted."""
    return _words(title), _words(f"{crumbs} {path.rpartition('.')[0]}"), spaced(foldable(body)), names


@lru_cache(64)  # sections beside each other have the same breadcrumbs
def _words(text: str) -> str:
    return spaced(foldable(normalise(text)))


def _parts(pieces: Iterable[str], check: CancellationCheck) -> Iterator[tuple[int, str]]:
    """Yield a text in parts that are quick to fold and to rank, with the line that each begins on; at least one part.

    It is cut where there is white space, if there is any.
    """
    line, rest, first = 1, "", True
    for piece in pieces:
        text, start = rest + piece, 0
        while len(text) - start > _LONGEST_BODY:
            check()
            end = start + _LONGEST_BODY
            end = max(text.rfind("\n", start, end), text.rfind(" ", start, end)) + 1 or end
            if _FIRST_HALF.match(text, end - 1):
                end -= 1
            yield line, _whole(text[start:end])
            line += text.count("\n", start, end)
            start, first = end, False
        rest = text[start:]
    check()
    if rest or first:
        yield line, _whole(rest)


def _whole(text: str) -> str:
    if _HALF.search(text):  # two halves make one character
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unescaped(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the text of a JSON file with the characters that it writes as numbers, some halves of them, and blanks."""
    kept = ""
    for piece in pieces:
        text = kept + piece
        end = _end_of_whole(text)
        kept = text[end:]
        yield with_characters(without_short_escapes(text[:end]))
    yield kept


def _end_of_whole(text: str) -> int:
    """Return where the escape begins that the end of a text cuts off; else its end. Two backslashes are none."""
    cut = _CUT_ESCAPE.search(text, max(len(text) - 5, 0))
    if cut is None:
        return len(text)
    before = text[: cut.start()]
    return len(text) if (len(before) - len(before.rstrip("\\"))) % 2 else cut.start()
