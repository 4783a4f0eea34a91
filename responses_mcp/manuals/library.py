"""A folder of manuals with its index: all that is done to files and SQLite, for worker threads.

Methods block. They may run in several threads at once, and stop when their `check` raises.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.manuals.candidates import Counts, Reader
from responses_mcp.manuals.checks import Check, Turns, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.find import find
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.gates import TIME_BUDGET
from responses_mcp.manuals.index import Manual, Refresh, Vanished, begin, check_whole, compare, manual_of, work_off
from responses_mcp.manuals.query import terms
from responses_mcp.manuals.requests import FindRequest
from responses_mcp.manuals.store import Store, Unusable, index_path, is_broken
from responses_mcp.manuals.traces import Unscanned, packed
from responses_mcp.settings.model import ManualsSettings

log = logging.getLogger(__name__)

_MOST_COUNTS: Final = 8  # states of manuals whose counts of words are remembered


class Found(NamedTuple):
    """What a search found, in packed form, the generation it searched, and whether it missed nothing."""

    payload: dict[str, Any]
    generation: int
    complete: bool


class Library:
    """The manuals below `settings.root`. The index is opened by the first search."""

    def __init__(self, settings: ManualsSettings) -> None:
        if settings.root is None:
            raise ManualsError("conflict", "There is no folder of manuals; set manuals.root or MANUALS_ROOT.")
        self._settings = settings
        self.folder = Folder(Path(settings.root))
        self._counts: dict[Manual, Counts] = {}
        self._turns = Turns()  # to open the index, or to throw it away
        self._store: Store | None = None
        self._closed = False
        self.age = 0  # how often the index was thrown away or given up
        self.unused: str | None = None  # why the index is kept in memory although a file was wanted

    def compare(self, manual_id: str, check: Check) -> Refresh:
        """Find out what differs between the files of a manual and its index."""
        return compare(self._opened(check), self.folder, manual_id, check, largest=self._settings.max_file_bytes)

    def bring_up(self, refresh: Refresh, check: Check, *, query: str, first: Unscanned | None) -> Iterator[None]:
        """Work off what `compare` found, a little at each step.

        Files in `first` come first, then those whose path has a word of `query`.
        """
        favoured = frozenset(first.paths()) if first is not None else frozenset[str]()
        words = [term.text for term in terms(query)] if self._settings.find.file_prescan_enabled else []

        def order(path: str) -> int:
            if path in favoured:
                return 0
            return 1 if words and any(map(path.casefold().__contains__, words)) else 2

        largest = self._settings.max_file_bytes
        return work_off(self._opened(check), self.folder, refresh, check, largest=largest, order=order)

    def generation(self, manual_id: str, check: Check) -> int:
        """Return the number of the state that a search would see."""
        with self._opened(check).reading(check) as connection:
            manual = manual_of(connection, manual_id)
            return -1 if manual is None else manual.generation

    def search(self, request: FindRequest, refresh: Refresh | None, check: Check) -> Found:
        """Search what is indexed now; what `refresh` has not done yet is told as unscanned.

        None means that not even that is known. Raises Vanished when the index is not the one that `refresh` is about.
        """
        store = self._opened(check)
        finished = refresh is not None and refresh.finished
        unscanned = Unscanned(request.manual_id, _reasons(refresh), check)
        with store.reading(check) as connection:
            manual = manual_of(connection, request.manual_id)
            if manual is not None and (refresh is None or refresh.number == manual.number):
                check_whole(connection, manual)
                reader = Reader(connection, manual, self._counts_of(manual))
                payload = find(request, reader, self._settings, check, unfinished=not finished)
                payload["unscanned"] = unscanned
                finished = finished and payload["gate_runs"][0]["cutoff_reason"] != TIME_BUDGET
                return Found(packed(payload), manual.generation, finished)
        if refresh is not None:
            raise Vanished
        begin(store, request.manual_id, check)
        return self.search(request, refresh, check)

    def mend(self, error: Exception, age: int, check: Check) -> bool:
        """Return whether a request that began at `age` and failed so should be tried again.

        If `error` says that the index is broken, it is thrown away; if its file cannot be used any more, the next one
        is kept in memory; unless somebody else did that since. Raises ManualsError when neither helps, as with a full
        disk.
        """
        if isinstance(error, Vanished):
            return True
        if self._store is None or not isinstance(error, sqlite3.Error | Unusable):
            return False
        with self._turns.turn(check):
            if age != self.age:
                return True
            try:
                if is_broken(error):
                    self._store.discard()
                    log.warning("manuals: the index was broken and is made anew")
                    return self._is_new(self._store)
                if self._store.is_replaced():
                    return True
            except Unusable as still:
                error = still
            code = getattr(error, "sqlite_errorcode", 0)
            if code == sqlite3.SQLITE_ERROR:
                return False  # a query that makes no sense
            unusable = isinstance(error, sqlite3.OperationalError | Unusable) and code != sqlite3.SQLITE_FULL
            if unusable and self._store.path is not None and not self._closed and not exhausted(error):
                self._store.close()
                return self._is_new(self._in_memory(error))
        raise ManualsError(
            "conflict",
            exhausted(error)
            or f"The index of the manuals cannot be used ({error}); make room or set manuals.index_dir to a folder "
            "that can be written to.",
        ) from error

    def close(self) -> None:
        """Close the index, which ends whatever still uses it."""
        with self._turns.turn(unchecked):
            self._closed = True
            if self._store is not None:
                self._store.close()

    def _is_new(self, store: Store) -> bool:
        self._store = store
        self._counts.clear()
        self.age += 1
        return True

    def _counts_of(self, manual: Manual) -> Counts:
        counts = self._counts.pop(manual, None) or Counts()
        self._counts[manual] = counts  # the last one used comes last
        while len(self._counts) > _MOST_COUNTS:
            self._counts.pop(next(iter(self._counts)), None)
        return counts

    def _opened(self, check: Check) -> Store:
        if self._store is not None:
            return self._store
        with self._turns.turn(check):
            if self._closed:
                raise Unusable("it is closed")
            if self._store is None:
                self._store = self._made(check)
            return self._store

    def _made(self, check: Check) -> Store:
        """Return the index in its file, or in memory where that is wanted or no file can be used."""
        settings = self._settings
        if settings.index_dir is None or settings.in_memory:
            return Store(None)
        store = Store(index_path(Path(settings.index_dir), Path(settings.root or "").resolve()))
        try:
            try:
                store.probe(check)
            except sqlite3.DatabaseError as error:
                if not is_broken(error):
                    raise
                store.discard()
                store.probe(check)
            return store
        except (Unusable, sqlite3.DatabaseError) as error:
            store.close()
            if shortage := exhausted(error):  # which will pass, while an index in memory would stay
                raise ManualsError("conflict", shortage) from error
            return self._in_memory(error)
        except BaseException:
            store.close()
            raise

    def _in_memory(self, why: Exception) -> Store:
        self.unused = str(why)
        log.warning(
            "manuals: the index is kept in memory, because its folder cannot be used (%s); "
            "set manuals.index_dir to a folder that can be written to.",
            why,
        )
        return Store(None)


def _reasons(refresh: Refresh | None) -> Iterator[tuple[str, str]]:
    if refresh is None:
        return
    # Copied at once: another thread may be working them off.
    stale, unindexed = list(refresh.stale), list(refresh.unindexed.items())
    yield from ((path, TIME_BUDGET) for path in stale)
    yield from unindexed
