"""A manual and its index, and all that can be seen of an index."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import UNREADABLE, Folder, Stamp
from responses_mcp.manuals.index.store import Store
from responses_mcp.manuals.index.update import Changes, compare, manual_of, update

NAME = "shop"
CAP = 2000  # bytes


class Shelf(Folder):
    """A folder with one manual, in which files can be made unreadable, and whose stamps can be made up.

    With `versions`, the stamp of a file tells how often it was noted as changed, a long time ago; otherwise it is real,
    and so fresh that the index does not rely on it.
    """

    def __init__(self, root: Path, *, versions: bool = False) -> None:
        super().__init__(root)
        self.place = root / NAME
        self.place.mkdir(parents=True, exist_ok=True)
        self.unreadable: set[str] = set()
        self.lost_folders: set[str] = set()
        self.stamps: dict[str, Stamp] = {}
        self.opened: list[str] = []
        self.on_open: Callable[[str, BinaryIO], BinaryIO] = lambda _, handle: handle
        self._states: dict[str, tuple[Any, int]] | None = {} if versions else None
        self._changes = 0

    def walk(
        self,
        manual_id: str,
        check: CancellationCheck,
        left_out: dict[str, str],
        *,
        under: str = "",
        others: Counter[str] | None = None,
    ) -> Iterator[tuple[str, Stamp]]:
        for path, stamp in super().walk(manual_id, check, left_out, under=under, others=others):
            if any(path.startswith(f"{folder}/") for folder in self.lost_folders):
                continue
            yield path, self.stamps.get(path) or self._stamp(path, stamp)
        left_out.update(dict.fromkeys(self.lost_folders, UNREADABLE))

    def _stamp(self, path: str, real: Stamp) -> Stamp:
        if self._states is None:
            return real
        state = ((self.place / path).read_bytes(), real.mtime_ns, path in self.unreadable)
        if self._states.get(path, (None, 0))[0] != state:
            self._changes += 1
            self._states[path] = (state, self._changes)
        return Stamp(real.size, 1, self._states[path][1], 1)

    def open(self, manual_id: str, path: str, *, walked: bool = False) -> BinaryIO:
        self.opened.append(path)
        if path in self.unreadable:
            raise ManualsError("conflict", "It cannot be read.")
        return self.on_open(path, super().open(manual_id, path, walked=walked))

    def write(self, path: str, text: str) -> Path:
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


def compared(store: Store, folder: Folder, check: CancellationCheck = unchecked, *, largest: int = CAP) -> Changes:
    return compare(store, folder, NAME, check, largest=largest)


def apply(
    store: Store, folder: Folder, changes: Changes, check: CancellationCheck = unchecked, *, largest: int = CAP
) -> None:
    for _ in update(store, folder, changes, check, largest=largest):
        pass


def updated(store: Store, folder: Folder, check: CancellationCheck = unchecked, *, largest: int = CAP) -> Changes:
    """Bring an index up to date."""
    changes = compared(store, folder, check, largest=largest)
    apply(store, folder, changes, check, largest=largest)
    return changes


def after(calls: int, *, reason: type[BaseException] = OutOfTime) -> CancellationCheck:
    """Return a check that raises from some call on."""
    left = calls

    def check() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise reason

    return check


def generation(store: Store) -> int:
    with store.reading(unchecked) as connection:
        manual = manual_of(connection, NAME)
        assert manual is not None
        return manual.generation


def seen(store: Store) -> dict[str, Any]:
    """Return what can be seen of a manual in an index, without numbers; check that the index fits together."""
    with store.writing(unchecked) as connection:
        manual = manual_of(connection, NAME)
        assert manual is not None
        words = f"words_{manual.number}"
        connection.execute(f"INSERT INTO {words} ({words}) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute(
            f"SELECT rows.rowid, path, line, title, crumbs, text FROM {words} AS rows JOIN file ON file.id = rows.file "
            "ORDER BY path, rows.rowid"
        ).fetchall()
        ranges = connection.execute("SELECT first, sections FROM file ORDER BY path").fetchall()
        assert [number for first, many in ranges for number in range(first, first + many)] == [row[0] for row in rows]
        places = {row[0]: number for number, row in enumerate(rows)}
        connection.execute("DROP TABLE IF EXISTS temp.found")
        connection.execute(f"CREATE VIRTUAL TABLE temp.found USING fts5vocab(main, {words}, 'instance')")
        instances = connection.execute("SELECT term, doc, col, offset FROM temp.found").fetchall()
        connection.execute("DROP TABLE temp.found")
        assert len(rows) == manual.sections
        return {
            "counts": (manual.files, manual.sections, manual.characters),
            "files": connection.execute("SELECT path, digest, note FROM file ORDER BY path").fetchall(),
            "rows": [row[1:] for row in rows],
            "words": sorted((term, places[doc], col, offset) for term, doc, col, offset in instances),
        }
