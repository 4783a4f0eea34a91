"""The index of a folder of manuals: opened, searched, and rebuilt when it is broken. For worker threads.

Here and below is all that needs SQLite. Methods block. They may run in several threads at once, and stop when their
`check` raises.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from responses_mcp.errors import exhausted, program
from responses_mcp.manuals.cancellation import CancellationCheck, FairLock, OutOfTime, unchecked
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed, Place
from responses_mcp.manuals.embeddings.filling import Vectors
from responses_mcp.manuals.embeddings.likeness import Question
from responses_mcp.manuals.embeddings.likeness import packed as packed_vector
from responses_mcp.manuals.embeddings.pieces import MOST_PIECES, PIECE, Outstanding, Section, outstanding
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.index import vectors
from responses_mcp.manuals.index.store import Blocked, Store, Unusable, index_path, is_broken
from responses_mcp.manuals.index.turn import Turn
from responses_mcp.manuals.index.update import Changes, Manual, Vanished, begin, check_whole, compare, manual_of, update
from responses_mcp.manuals.requests import FindRequest, SearchRequest
from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.results.search_results import Unsearched
from responses_mcp.manuals.search.contract import find, packed
from responses_mcp.manuals.search.everywhere import Everywhere, Ranked
from responses_mcp.manuals.search.meaning import Meaning
from responses_mcp.manuals.search.query import query as taken_apart
from responses_mcp.manuals.search.ranking import TIME_BUDGET
from responses_mcp.manuals.search.reader import Counts, Reader, Text
from responses_mcp.manuals.search.shown import Showing, Shown
from responses_mcp.settings.model import ManualsSettings

log = logging.getLogger(__name__)

_MOST_WHOLE: Final = 1_000  # manuals that are remembered to have all their rows
_ROWS_AT_ONCE: Final = 32  # of those that get vectors


class Found(NamedTuple):
    """What a search found, in packed form, the generation it searched, and whether it missed nothing.

    `lacking` are the candidates that could not be compared with the question, which has a vector, for want of theirs;
    `compared` tells whether the others were.
    """

    payload: dict[str, Any]
    generation: int
    complete: bool
    lacking: Sequence[int] = ()
    compared: bool = False


class FoundEverywhere(NamedTuple):
    """What a search of several manuals found, what it did not search, and the rows that have no vector.

    `no_such_path` is the path that was asked for, if all was searched and nothing is at or below it. `covered` is what
    part of the question the best sections have. `slow` tells that there was no time to search all that is indexed.
    `unknown` are words of the question that no manual has.
    """

    ranked: Sequence[tuple[Ranked, Shown]]
    unsearched: Sequence[Unsearched]
    lacking: Sequence[int] = ()
    no_such_path: str | None = None
    covered: float = 1.0
    slow: bool = False
    unknown: tuple[str, ...] = ()


class Library:
    """The manuals below `settings.root`. The index is opened by the first search."""

    def __init__(self, settings: ManualsSettings) -> None:
        if not settings.root:  # "" would be the working directory
            raise ManualsError("conflict", "There is no folder of manuals; set manuals.root or MANUALS_ROOT.")
        self._settings = settings
        self._root = Path(settings.root)
        self.folder = Folder.of(settings)
        self._counts = Counts()
        self._whole = dict[int, tuple[Manual, object]]()  # manuals that have all their rows, with the state of the file
        self._lock = FairLock()  # to open the index, or to throw it away
        self._store: Store | None = None
        self._usable = False  # whether the index was opened and could be written to
        self._closed = False
        self._turn: Turn | None = None  # to fill the index with vectors
        self.age = 0  # how often the index was thrown away or given up
        self._filled = False  # whether the filling has written anything
        self.unused: str | None = None  # why the index is kept in memory although a file was wanted

    def compare(self, manual_id: str, check: CancellationCheck) -> Changes:
        """Find out what differs between the files of a manual and its index."""
        return compare(self._opened(check), self.folder, manual_id, check, largest=self._settings.max_file_bytes)

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

        largest = self._settings.max_file_bytes
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
        *,
        question: Question | None = None,
    ) -> Found:
        """Search what is indexed now, by the words of the question and by its vector, if it has one.

        What is left of `changes` is told as unscanned; None means that not even that is known. Raises Vanished when the
        index is not the one that was compared.
        """
        store = self._opened(check)
        finished = changes is not None and changes.finished
        unscanned = list(_reasons(changes))
        written = store.written()
        with store.reading(check) as connection:
            reader = self._reader(connection, request.manual_id, changes, written)
            if reader is not None:
                meaning = None if question is None else Meaning(connection, question, check)
                payload = find(
                    request,
                    reader,
                    self._settings,
                    check,
                    unfinished=not finished,
                    unscanned=len(unscanned),
                    unlisted=changes is None or not changes.whole,
                    meaning=meaning,
                )
                finished = finished and payload["gate_runs"][0]["cutoff_reason"] != TIME_BUDGET
                if meaning is None:
                    return Found(packed(payload, unscanned), reader.manual.generation, finished)
                finished = finished and not meaning.lacking
                return Found(
                    packed(payload, unscanned), reader.manual.generation, finished, meaning.lacking, meaning.used
                )
        begin(store, request.manual_id, check)
        return self.search(request, changes, check, question=question)

    def outstanding(self, manual_id: str, name: str, check: CancellationCheck) -> Outstanding:
        """Return how much of a manual has no vectors of the model `name`."""
        with self._opened(check).reading(check) as connection:
            manual = manual_of(connection, manual_id)
            if manual is None:
                return Outstanding(0, 0, 0)
            return outstanding(*vectors.count_pending(connection, name, manual.number, PIECE * MOST_PIECES))

    def without_vectors(self, manual_id: str, name: str, after: int, check: CancellationCheck) -> list[Section]:
        """Return the first sections that have no vectors of the model `name`, of those whose ids are above `after`.

        Raises ManualsError, as `keep` does, where the index is no longer the one that was to be filled.
        """
        filled = self._filled  # before the state is read, in which a batch that is written now is missing
        with self._opened(check).reading(check) as connection:
            _require_same(connection, name, filled=filled)
            manual = manual_of(connection, manual_id)
            if manual is None:
                raise _made_anew()
            return [Section(*row) for row in vectors.pending(connection, name, manual.number, after, _ROWS_AT_ONCE)]

    def places(self, manual_id: str, sections: Iterable[Section], check: CancellationCheck) -> list[Place]:
        """Return where those of some sections of a manual are that are as they were."""
        known = {each.id: each for each in sections}
        with self._opened(check).reading(check) as connection:
            same = [row[0] for row in vectors.rows(connection, known) if Section(*row) == known[row[0]]]
            return sorted(Place(manual_id, *place) for place in vectors.places(connection, same))

    def require_length(self, question: Question, check: CancellationCheck) -> None:
        """Raise `EmbeddingFailed` if the vectors of the question's model are of another length than the question's."""
        with self._opened(check).reading(check) as connection:
            _require_length(question.dimensions, vectors.model_of(connection, question.name).dimensions)

    def lacking(self, ids: Sequence[int], question: Question, check: CancellationCheck) -> list[Section]:
        """Return those of some sections that have no vectors to compare with a question.

        Raises `EmbeddingFailed` if some have vectors of another model, or the vectors of others are of another length
        than the question's: those may have been paid for, so it is not for a search to replace them.
        """
        with self._opened(check).reading(check) as connection:
            _require_length(question.dimensions, vectors.model_of(connection, question.name).dimensions)
            others, name = vectors.of_others(connection, question.name, ids)
            if others:
                raise EmbeddingFailed(
                    f"{others:,} candidates have vectors of another model ({name}); "
                    f"'{program()} manuals index --embed' replaces them."
                )
            return [Section(*row) for row in vectors.lacking(connection, question.name, ids)]

    def keep(
        self, name: str, found: Sequence[tuple[Section, Vectors]], check: CancellationCheck, *, filling: bool
    ) -> int:
        """Write the vectors of sections in one transaction; return how many of them are still as they were.

        Raises `EmbeddingFailed` if the others of that model, which were paid for, have another length, and where a
        search, which has its rows by words, cannot write now; for a `filling`, as `begin_filling` does.
        """
        if filling:
            self._require_file()
        data = {each: b"".join(map(packed_vector, its)) for each, its in found}
        dimensions = len(found[0][1][0])
        try:
            with self._opened(check).writing(check) as connection:
                _require_same(connection, name, filled=filling and self._filled)
                _require_length(dimensions, vectors.model_of(connection, name).dimensions)
                # A file may have changed meanwhile, and another section have the number of one that is gone.
                same = [Section(*row) for row in vectors.rows(connection, (each.id for each in data))]
                same = [each for each in same if each in data]
                # What a search makes may come after another process has filled the index with another model.
                given = ((each.id, data[each]) for each in same)
                vectors.write(connection, name, dimensions, given, replacing=filling)
            if filling:
                self._filled = True
        except Blocked as error:
            if filling:
                raise
            raise EmbeddingFailed(f"The vectors could not be kept: {error}.") from error
        return len(same)

    def begin_filling(self, check: CancellationCheck) -> None:
        """Keep other processes from filling the index, until `end_filling`.

        Raises ManualsError while one does, and where the index has moved into memory, which would lose the vectors; as
        `Store.writing` does where a batch, which would be paid for by then, could not be written.
        """
        store = self._opened(check)
        path = store.path
        self._require_file()
        self._filled = False
        if path is None or self._turn is not None:
            return
        turn = Turn(path)
        if not turn.take():
            raise ManualsError(
                "conflict", "Another process is making vectors for these manuals; wait until it has ended."
            )
        try:
            vectors.require_room(store, check)
            check()
        except BaseException:
            turn.give_back()  # nobody waits for it any more
            raise
        self._turn = turn

    def _require_file(self) -> None:
        if self.unused is not None:
            raise ManualsError(
                "conflict",
                f"The vectors could not be kept, because the index is in memory only ({self.unused}); make room or set "
                "manuals.index_dir to a folder that can be written to.",
            )

    def end_filling(self) -> None:
        """Let other processes fill the index. Need not be called in a thread."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.give_back()

    def search_everywhere(
        self,
        request: SearchRequest,
        manuals: Mapping[str, Changes | None],
        check: CancellationCheck,
        *,
        question: Question | None = None,
    ) -> FoundEverywhere:
        """Search what is indexed of `manuals` now, for as long as `check` allows; what is left is told.

        None stands for a manual of which not even that is known. Raises Vanished when an index is not the one that was
        compared.
        """
        everywhere: Everywhere | None = None
        unsearched: list[Unsearched] = []
        late: list[str] = []
        lacking: list[int] = []
        there = not request.path_prefix
        for name, changes in manuals.items():
            unsearched += _unsearched(name, changes, request.path_prefix)
            try:
                # One transaction for each: SQLite, once stopped, gives up all that is done in one.
                store = self._opened(check)
                written = store.written()
                with store.reading(check) as connection:
                    meaning = None if question is None else Meaning(connection, question, check)
                    reader = self._reader(connection, name, changes, written, request.path_prefix)
                    there = there or reader is None or bool(reader.first(1))
                    if everywhere is None:
                        known = self._readers(connection, manuals)
                        everywhere = Everywhere(request.query, self._settings.lexical, check, known)
                    if reader is not None and not everywhere.add(name, reader, meaning):
                        late.append(name)
                    lacking += [] if meaning is None else meaning.lacking
            except OutOfTime:
                late.append(name)
        told = {each.manual_id for each in unsearched if each.reason == TIME_BUDGET}
        slow = [Unsearched(name, TIME_BUDGET, None) for name in late if name not in told]
        unsearched += slow
        no_such_path = None if there or unsearched else request.path_prefix
        if everywhere is None:
            return FoundEverywhere([], unsearched, lacking, no_such_path, slow=bool(slow))
        ranked = self._shown(everywhere, request.limit)
        return FoundEverywhere(
            ranked, unsearched, lacking, no_such_path, everywhere.covered(), bool(slow), everywhere.unknown
        )

    def _shown(self, everywhere: Everywhere, most: int) -> list[tuple[Ranked, Shown]]:
        """Return the best rows with what they show, but those that another process has taken out meanwhile."""
        best = everywhere.best(most)
        with self._opened(unchecked).reading(unchecked) as connection:
            texts: dict[int, Text] = {}
            for name, reader in self._readers(connection, {each.manual_id for each in best}).items():
                texts.update(reader.texts(each.row.id for each in best if each.manual_id == name))
        showing = Showing(everywhere.asked)
        return [(each, showing.show(each.row, texts[each.row.id])) for each in best if each.row.id in texts]

    def _reader(
        self, connection: sqlite3.Connection, name: str, changes: Changes | None, written: object, path_prefix: str = ""
    ) -> Reader | None:
        """Return what a search reads of a manual, None where it is not known and nobody has looked for changes."""
        manual = manual_of(connection, name)
        if changes is not None and (manual is None or manual.number != changes.number):
            raise Vanished
        if manual is None:
            return None
        self._check_whole(connection, manual, written)
        return Reader(connection, manual, self._counts, path_prefix)

    def _readers(self, connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, Reader]:
        """Return what a search counts words in: the manuals that are known."""
        known = {name: manual for name in names if (manual := manual_of(connection, name)) is not None}
        return {name: Reader(connection, manual, self._counts) for name, manual in known.items()}

    def _check_whole(self, connection: sqlite3.Connection, manual: Manual, written: object) -> None:
        """Check a manual's rows, unless nothing was `written` since; that was looked up before the transaction."""
        state = manual, written
        if written is None or self._whole.get(manual.number) != state:
            check_whole(connection, manual)
            if len(self._whole) >= _MOST_WHOLE:
                self._whole.clear()
            self._whole[manual.number] = state

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
        with self._lock.hold(check):
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
                    with suppress(Unusable, sqlite3.Error):
                        if not vectors.has_vectors(store, check):
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
        self.end_filling()
        with self._lock.hold(unchecked):
            self._closed = True
            if self._store is not None:
                self._store.close()

    def _renewed(self, store: Store) -> bool:
        self._store = store
        self._counts.clear()
        self._whole.clear()
        self.age += 1
        return True

    def _opened(self, check: CancellationCheck) -> Store:
        """Return the index: in its file, or in memory where that is wanted or no file can be used."""
        with self._lock.hold(check):
            if self._closed:
                raise Unusable("it is closed")
            if self._store is None:
                path = None
                if self._settings.index_dir is not None and not self._settings.in_memory:
                    path = index_path(Path(self._settings.index_dir), self._root.resolve())
                self._store = Store(path)
            if not self._usable:
                self._store.probe(check)
                self._usable = True
            return self._store


def _require_same(connection: sqlite3.Connection, name: str, *, filled: bool) -> None:
    """Raise ManualsError if the index is not the one that was `filled`."""
    if filled and not vectors.model_of(connection, name).dimensions:
        raise _made_anew()


def _made_anew() -> ManualsError:
    return ManualsError(
        "conflict",
        "The index was removed, or was broken and is made anew, and vectors that it had are gone; run "
        f"'{program()} manuals index --embed' again.",
    )


def _require_length(given: int, others: int) -> None:
    if others not in (0, given):
        raise EmbeddingFailed(
            f"The model gives vectors of {given} numbers and the index has some of {others}; run "
            f"'{program()} manuals index --forget', and then '{program()} manuals index --embed'."
        )


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
