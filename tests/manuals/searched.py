"""A manual in memory, made of texts: what a search reads, without files."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.files.documents import document_of
from responses_mcp.manuals.index import store, update
from responses_mcp.manuals.index.rows import entries
from responses_mcp.manuals.index.update import Manual
from responses_mcp.manuals.requests import FindRequest, HitsRequest
from responses_mcp.manuals.search.contract import find, packed, page
from responses_mcp.manuals.search.reader import Counts, Reader
from responses_mcp.manuals.words import normalise
from responses_mcp.settings.model import ManualsSettings


class Passing(sqlite3.Connection):
    """A connection that is closed when the test has let go of it; Python 3.13 minds those that nobody closes."""

    def __del__(self) -> None:
        self.close()


def in_memory() -> sqlite3.Connection:
    # It may be in any thread that the garbage is collected.
    return sqlite3.connect(":memory:", factory=Passing, check_same_thread=False)


def manual(
    files: Mapping[str, str], connection: sqlite3.Connection | None = None, *, kind: type[Reader] = Reader
) -> Reader:
    """Return a reader of Markdown files, given by their paths; an index of theirs is made in an empty database."""
    connection = connection or in_memory()
    for statement in store.INDEX.tables.values():
        connection.execute(statement)
    for statement in update._WORDS:
        connection.execute(statement.format(1))
    row = characters = 0
    for file, (path, text) in enumerate(files.items(), 1):
        first = row + 1
        for entry in entries(path, document_of(path, text.encode(), unchecked), unchecked):
            row += 1
            characters += entry.length
            connection.execute(update._INSERT.format(1), (row, file, *entry))
        given = (file, path, first, row + 1 - first)
        connection.execute("INSERT INTO file VALUES (?, 1, ?, '', '', NULL, ?, ?)", given)
    return kind(connection, Manual(1, 1, len(files), row, characters), Counts())


MANY = manual(
    {f"{n:03}.md": f"# Part {n}\nlamp {'red ' * (n % 7)}{'glass ' * (n % 11) * (n % 3 == 0)}\n" for n in range(90)}
)


def find_in(reader: Reader, query: str, *required: str, settings: ManualsSettings | None = None, **request: Any) -> Any:
    """Search; `required` are the required terms as a client writes them."""
    wish = FindRequest(query=query, manual_id="m", required_terms=tuple(map(normalise, required)), **request)
    return find(wish, reader, settings or ManualsSettings(), unchecked)


def found(reader: Reader, query: str, *required: str, **given: Any) -> Any:
    """Search, and return the payload with its rows in full."""
    payload = find_in(reader, query, *required, **given)
    rows = page(packed(payload, ()), HitsRequest("", "integrated_top", 0, 1000), compact=False)["items"]
    return {**payload, "candidates": [{**row["ref"], **row} for row in rows]}


def paths(payload: Mapping[str, Any]) -> list[str]:
    return [row["path"] for row in payload["candidates"]]
