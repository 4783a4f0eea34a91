"""Whose turn it is to fill an index with vectors, which may cost money: one process at a time.

It is told by SQLite's lock on an empty file beside the index, because that works on every system and ends with the
process that holds it, however it ends.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path


class Turn:
    """The turn to fill the index at `path`, taken once at most. For use from one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}-filling")
        self._held: sqlite3.Connection | None = None

    def take(self) -> bool:
        """Take the turn, and tell whether it is ours; it is not while another process has it.

        Where files cannot be locked, nobody is kept out.
        """
        if self._held is not None:
            return True
        connection: sqlite3.Connection | None = None
        with suppress(OSError):  # SQLite would let others read it
            self._path.touch(mode=0o600)
        try:
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            return getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY
        self._held = connection
        return True

    def give_back(self) -> None:
        """Give the turn back, if it is ours."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(sqlite3.Error):
                held.close()
