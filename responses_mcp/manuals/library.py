"""The index of a folder of manuals: opened, searched, and rebuilt when it is broken. For worker threads.

Here and below is all that needs SQLite. Methods block. They may run in several threads at once, and stop when their
`check` raises.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime, holding, unchecked
from responses_mcp.manuals.embeddings.vectors import Vectors, vectors_path
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.index.pieces import Section, sections
from responses_mcp.manuals.index.store import Store, Unusable, index_path, is_broken, older_paths, remove
from responses_mcp.manuals.index.update import Changes, Vanished, begin, compare, manual_of, update
from responses_mcp.manuals.requests import FindRequest, SearchRequest
from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.results.search_results import TIME_BUDGET, SearchResults, SearchRow, Unsearched
from responses_mcp.manuals.search.contract import find, packed, unseen_of
from responses_mcp.manuals.search.everywhere import Everything, search_all
from responses_mcp.manuals.search.meaning import Meaning
from responses_mcp.manuals.search.query import Query, query
from responses_mcp.manuals.search.query import query as taken_apart
from responses_mcp.manuals.search.reader import Counts, Reader, Row, Text
from responses_mcp.manuals.search.shown import Showing
from responses_mcp.manuals.words import LONG_VOWEL, normalise
from responses_mcp.settings.model import ManualsSettings

log = logging.getLogger(__name__)


class Found(NamedTuple):
    """What a search found, in packed form, the generation it searched, and whether it missed nothing."""

    payload: dict[str, Any]
    generation: int
    complete: bool


class Library:
    """The manuals below `settings.root`. The index is opened by the first search."""

    def __init__(self, settings: ManualsSettings) -> None:
        if not settings.root:  # "" would be the working directory
            raise ManualsError("conflict", "There is no folder of manuals; set manuals.root or MANUALS_ROOT.")
        self._settings = settings
        self._root = Path(settings.root)
        self.folder = Folder.of(settings)
        self._counts = Counts()
        self._lock = threading.Lock()  # to open the index, or to throw it away
        self._store: Store | None = None
        self._usable = False  # whether the index was opened and could be written to
        self._closed = False
        self._vectors: dict[str, Vectors] = {}  # by the names of models
        self.age = 0  # how often the index was thrown away or given up
        self.unused: str | None = None  # why the index is kept in memory although a file was wanted

    def compare(self, manual_id: str, check: CancellationCheck) -> Changes:
        """Find out what differs between the files of a manual and its index."""
        return compare(self._opened(check), self.folder, manual_id, check, largest=self.folder.largest)

    def update(
        self, changes: Changes, check: CancellationCheck, *, query: str = "", first: Collection[str] = ()
    ) -> Iterator[None]:
        """Do what `compare` found, a transaction at each step.

        Files in `first` come first, then those whose path has a word of `query`.
        """
        favoured = frozenset(first)
        favoured_words = list(taken_apart(query).words)

        def order(path: str) -> int:
            if path in favoured:
                return 0
            return 1 if any(map(path.casefold().__contains__, favoured_words)) else 2

        largest = self.folder.largest
        return update(self._opened(check), self.folder, changes, check, largest=largest, order=order)

    def generation(self, manual_id: str, check: CancellationCheck) -> int:
        """Return the number of the state that a search would see."""
        with self._opened(check).reading(check) as connection:
            manual = manual_of(connection, manual_id)
            return -1 if manual is None else manual.generation

    def search(
        self,
        request: FindRequest,
        changes: Changes | None,
        check: CancellationCheck,
        meaning: Meaning | None = None,
    ) -> Found:
        """Search what is indexed now, by the words of the question and, if it is given, with its meaning.

        What is left of `changes` is told as unscanned; None means that not even that is known. Raises Vanished when the
        index is not the one that was compared.
        """
        store = self._opened(check)
        finished = changes is not None and changes.finished
        unscanned = list(_reasons(changes))
        with store.reading(check) as connection:
            reader = self._reader(connection, request.manual_id, changes)
            if reader is not None:
                unseen = unseen_of(len(unscanned), unlisted=changes is None or not changes.whole)
                payload = find(
                    request, reader, self._settings, check, unseen=unseen, unfinished=not finished, meaning=meaning
                )
                finished = finished and payload["gate_runs"][0]["cutoff_reason"] != TIME_BUDGET
                return Found(packed(payload, unscanned), reader.manual.generation, finished)
        begin(store, request.manual_id, check)
        return self.search(request, changes, check, meaning)

    def sections(self, manual_id: str, check: CancellationCheck, after: int = 0) -> Iterator[list[Section]]:
        """Yield the sections of a manual whose ids are above `after`, some at a time, with all their texts."""
        while True:
            with self._opened(check).reading(check) as connection:
                manual = manual_of(connection, manual_id)
                some = [] if manual is None else sections(connection, manual.number, after)
            if not some:
                return
            yield some
            after = some[-1].id

    def vectors(self, model: str) -> Vectors:
        """Return the vectors of a model: in a file beside the index, or in memory where the index was to be there."""
        with self._lock:
            if self._closed:
                raise Unusable("it is closed")
            if model not in self._vectors:
                self._vectors[model] = Vectors(self._place(vectors_path, model))
            return self._vectors[model]

    def search_everywhere(
        self,
        request: SearchRequest,
        manuals: Mapping[str, Changes | None],
        check: CancellationCheck,
        meaning: Meaning | None = None,
    ) -> SearchResults:
        """Search what is indexed of `manuals` now, for as long as `check` allows; what is left is told.

        None stands for a manual of which not even that is known. Raises Vanished when an index is not the one that was
        compared.
        """
        unsearched = [each for name in manuals for each in _unsearched(name, manuals[name], request.path_prefix)]
        found = Everything(late=list(manuals))
        there = not request.path_prefix
        asked = query(request.query)
        with suppress(OutOfTime), self._opened(check).reading(check) as connection:
            every = [
                self._reader(connection, name, changes, request.path_prefix, name) for name, changes in manuals.items()
            ]
            readers = [each for each in every if each is not None]
            there = there or len(readers) < len(every) or any(each.first(1) for each in readers)
            # What it returns stays although the transaction ends with what stopped it.
            found = search_all(asked, readers, self._settings.lexical, request.limit, check, meaning=meaning)
        told = {each.manual_id for each in unsearched if each.reason == TIME_BUDGET}
        unsearched += [Unsearched(name, TIME_BUDGET, None) for name in found.late if name not in told]
        return SearchResults(
            tuple(self._rows(asked, found.rows)),
            tuple(unsearched),
            no_such_path=None if there or unsearched else request.path_prefix,
            unknown=tuple(filter(partial(_stands_in, normalise(request.query)), found.unknown)),
            covered=found.covered,
        )

    def _rows(self, asked: Query, best: Sequence[tuple[Row, float]]) -> Iterator[SearchRow]:
        """Yield the best rows with what they show, but those that another process has taken out meanwhile."""
        texts: dict[int, Text] = {}
        with self._opened(unchecked).reading(unchecked) as connection:
            for name in {row.manual for row, _ in best}:
                if (reader := self._reader(connection, name, None)) is not None:
                    texts |= reader.texts(row.id for row, _ in best if row.manual == name)
        showing = Showing(asked)
        for row, score in ((row, score) for row, score in best if row.id in texts):
            _, above, snippet, match_line, char_offset = showing.show(row, texts[row.id])
            title = shown_title(row.title or row.path.rpartition("/")[2])
            yield SearchRow(row.manual, row.path, title, above, row.line, score, match_line, char_offset, snippet)

    def _reader(
        self,
        connection: sqlite3.Connection,
        manual_id: str,
        changes: Changes | None,
        path_prefix: str = "",
        name: str = "",
    ) -> Reader | None:
        """Return what a search reads of a manual, None where it is not known and nobody has looked for changes."""
        manual = manual_of(connection, manual_id)
        if changes is not None and (manual is None or manual.number != changes.number):
            raise Vanished
        return None if manual is None else Reader(connection, manual, self._counts, path_prefix, name)

    def rebuild(self, error: Exception, age: int, check: CancellationCheck) -> bool:
        """Return whether a request that began at `age` and failed with `error` should be tried again.

        A broken index is thrown away; if its file cannot be used, the next one is kept in memory; unless another
        request did that since. Raises ManualsError when neither is possible, as with a full disk.
        """
        if isinstance(error, Vanished):
            return True
        store = self._store
        if store is None or not isinstance(error, sqlite3.Error | Unusable):
            return False
        with holding(self._lock, check):
            if age != self.age:
                return True
            try:
                if is_broken(error):
                    store.discard()
                    log.warning("manuals: the index was broken and is rebuilt")
                    return self._renewed(store)
                if store.is_replaced():
                    return True
            except Unusable as still:
                error = still
            code = getattr(error, "sqlite_errorcode", 0)
            if code == sqlite3.SQLITE_ERROR and self._usable:
                return False  # a query that makes no sense
            shortage = exhausted(error)  # which will pass, while an index in memory would stay
            unusable = isinstance(error, sqlite3.OperationalError | Unusable) and not shortage
            if unusable and store.path is not None and not self._closed:
                if code & 0xFF == sqlite3.SQLITE_FULL:
                    with suppress(Unusable):
                        store.discard()  # its journal would go on filling the disk
                store.close()
                self.unused = str(error)
                log.warning(
                    "manuals: the index is kept in memory, because its folder cannot be used (%s); set "
                    "manuals.index_dir (MANUALS_INDEX_DIR) to a folder that can be written to.",
                    error,
                )
                return self._renewed(Store(None))
        raise ManualsError(
            "conflict",
            shortage
            or f"The index of the manuals cannot be used ({error}); make room or set manuals.index_dir to a folder "
            "that can be written to.",
        ) from error

    def close(self) -> None:
        """Close the index, which ends whatever still uses it."""
        with self._lock:
            self._closed = True
            if self._store is not None:
                self._store.close()
            for each in self._vectors.values():
                each.close()

    def _renewed(self, store: Store) -> bool:
        self._store = store
        self._counts.clear()
        self.age += 1
        return True

    def _opened(self, check: CancellationCheck) -> Store:
        """Return the index: in its file, or in memory where that is wanted or no file can be used."""
        with holding(self._lock, check):
            if self._closed:
                raise Unusable("it is closed")
            if self._store is None:
                self._store = Store(self._place(index_path))
            if not self._usable:
                self._store.probe(check)
                self._usable = True
                if self._store.path is not None:
                    _remove_older(self._store.path)
            return self._store

    def _place(self, path: Callable[..., Path], *more: str) -> Path | None:
        """Return where a file is that `path` names, None for memory."""
        if self._settings.index_dir is None:
            return None
        return path(Path(self._settings.index_dir), self._root.resolve(), *more)


def _remove_older(path: Path) -> None:
    """Remove indexes of earlier versions, unless a process has them open."""
    for each in older_paths(path):
        with suppress(sqlite3.Error, OSError, Unusable):
            there = f"{each.absolute().as_uri()}?mode=rw"  # or one that is removed meanwhile would be made anew
            with closing(sqlite3.connect(there, timeout=0, isolation_level=None, uri=True)) as older:
                # SQLite leaves this mode for one that needs the file alone.
                is_alone = older.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
            if is_alone:
                remove(each)


def _stands_in(question: str, word: str) -> bool:
    """Tell whether a word stands in a question as it is, and not only without the long vowel marks."""
    return word in question and f"{word}{LONG_VOWEL}" not in question


def _reasons(changes: Changes | None) -> Iterator[tuple[str, str]]:
    if changes is None:
        return
    # Copied at once: another thread may be updating the index.
    changed, unindexed = list(changes.changed), list(changes.unindexed.items())
    yield from ((path, changes.hindered or TIME_BUDGET) for path in changed)
    yield from unindexed


def _unsearched(name: str, changes: Changes | None, prefix: str) -> list[Unsearched]:
    if changes is None:
        return [Unsearched(name, TIME_BUDGET, None)]
    reasons = Counter(reason for path, reason in _reasons(changes) if not prefix or lies_below(path, prefix))
    told = [Unsearched(name, reason, files) for reason, files in reasons.items()]
    return told if changes.whole else [*told, Unsearched(name, TIME_BUDGET, None)]
