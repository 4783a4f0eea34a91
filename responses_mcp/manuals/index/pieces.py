"""What of a row is turned into vectors: pieces of its text, each with its title and the headings above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import sqlite3

FORM: Final = 1
"""Names this way of cutting: vectors of texts that were cut in another way are not compared."""

PIECE: Final = 1_400  # characters: what small models take, and few enough for one subject
MOST_PIECES: Final = 4  # of a row, so that a search compares 1,600 vectors at most
_LONGEST_HEAD: Final = 200  # characters
_AT_ONCE: Final = 256  # rows
_CHARACTERS_A_TOKEN: Final = 4  # of alphabets; of kana and kanji it is about one


def pieces(title: str, crumbs: str, body: str) -> list[str]:
    """Return what is embedded of a row, a text at least: pieces of it, each behind its title and the headings above."""
    head = " > ".join(filter(None, (crumbs, title)))[-_LONGEST_HEAD:]
    parts = [body[at : at + PIECE] for at in range(0, min(len(body), PIECE * MOST_PIECES), PIECE)]
    return [f"{head}\n{part}" for part in parts or [""]]


class Section(NamedTuple):
    """A row of the index, and texts of it that are to be embedded."""

    id: int
    texts: Sequence[str]


def sections(connection: sqlite3.Connection, manual: int, after: int) -> list[Section]:
    """Return the first rows of a manual whose ids are above `after`, with the texts that are embedded of them."""
    return _sections(connection, manual, f"rowid > {int(after)} ORDER BY rowid LIMIT {_AT_ONCE}")


def pieces_of(connection: sqlite3.Connection, manual: int, ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the texts that are embedded of rows of a manual, by the ids of the rows."""
    numbers = ",".join(str(int(each)) for each in ids)
    return {each.id: list(each.texts) for each in _sections(connection, manual, f"rowid IN ({numbers})")}


def _sections(connection: sqlite3.Connection, manual: int, which: str) -> list[Section]:
    found = connection.execute(
        f"SELECT rowid, title, crumbs, substr(text, 1, ?) FROM words_{manual} WHERE {which}",  # noqa: S608  # numbers
        (PIECE * MOST_PIECES,),
    )
    return [Section(number, pieces(*row)) for number, *row in found]


class Outstanding(NamedTuple):
    """What has no vectors yet: so many sections, of so many tokens, which are an estimate."""

    sections: int
    tokens: int


def outstanding(sections: Iterable[Section]) -> Outstanding:
    """Return how much some sections are."""
    count = characters = size = 0
    for section in sections:
        count += 1
        characters += sum(map(len, section.texts))
        size += sum(len(text.encode()) for text in section.texts)
    wide = (size - characters) // 2  # characters of three bytes each
    return Outstanding(count, (characters - wide) // _CHARACTERS_A_TOKEN + wide)
