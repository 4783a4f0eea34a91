"""Manuals for Trio programs: each request in a worker thread, cancelled with its caller.

Threads come from a limiter of their own, so that a long search never keeps a file from being read for the answer tools.
Indexing has no task of its own: the find that needs it does it, shares it with the finds that wait, and leaves it
half done when its time is over or its caller gives up. The next find goes on from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed, model_name
from responses_mcp.manuals.embeddings.filling import Vectors, batch, embedded, fill
from responses_mcp.manuals.embeddings.questions import Questions
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import UNREADABLE
from responses_mcp.manuals.files.listing import list_children, table_of_contents
from responses_mcp.manuals.files.passages import Passage, Wanted, passages
from responses_mcp.manuals.files.reading import ReadEnd, read, scan
from responses_mcp.manuals.requests import (
    FindRequest,
    HitsRequest,
    LsRequest,
    ReadRequest,
    ScanRequest,
    SearchRequest,
    TocRequest,
)
from responses_mcp.manuals.requests.paths import parts_of
from responses_mcp.manuals.results.cache import Embedding, FindCache
from responses_mcp.manuals.results.find_payload import Unscanned, unpacked
from responses_mcp.manuals.results.search_results import OUT_OF_TIME, SearchResults, SearchRow, Unsearched, readable
from responses_mcp.manuals.results.traces import Traces, page, placed

if TYPE_CHECKING:
    from responses_mcp.manuals.embeddings.likeness import Question
    from responses_mcp.manuals.embeddings.pieces import Outstanding, Section
    from responses_mcp.manuals.index.update import Changes
    from responses_mcp.manuals.library import Found, FoundEverywhere, Library
    from responses_mcp.settings.model import ManualsSettings

T = TypeVar("T")
Work = Callable[["Library", CancellationCheck], T]
Report = Callable[[int, int], None]
"""Told how many files are done, and of how many."""

THREADS: Final = 4
INDEXING: Final = 2  # threads more, so that building many manuals keeps nobody from reading
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Times:
    """How long things take at most, or are good for, in seconds."""

    fresh: float = 2.0  # for which a look at the files is good, or so many times as long as it took
    looks_apart: float = 20.0
    between_reports: float = 0.2  # of indexing
    # What each step has when the time of a find is over, so that finds with the smallest budget get on, too.
    least_look: float = 1.0
    least_indexing: float = 0.1
    least_search: float = 0.25
    passages: float = 3.0  # to read the texts around matches, which are left out after that
    grace: float = 1.0  # after which nobody waits any longer for a thread that hangs in the file system
    closing: float = 0.2
    patience: float = 1.0  # of a search with who makes vectors


class _Stuck(OutOfTime):
    """A thread did not stop when its time was over; it may still be at work."""


@dataclass(eq=False)
class _State:
    """What is known of one manual: how long a look at its files is good, and what of it is still to be done."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    good_until: float = float("-inf")
    changes: Changes | None = None


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What indexing a manual came to. `unindexed` maps paths to the reason for which they are not in the index."""

    manual_id: str
    files: int
    changed: int
    seconds: float
    unindexed: dict[str, str]
    in_memory: str | None


class Manuals:
    """The manuals of `settings.root`. Opens nothing before the first request; any number may run at once.

    `embedding` makes the semantic mode of the cache possible, `embedder` the ranking by meaning; the caller keeps both.
    `times` are for tests. All requests raise `ManualsError` for what the caller can understand. Close it with `aclose`,
    which ends what still runs.
    """

    def __init__(
        self,
        settings: ManualsSettings,
        *,
        embedding: Embedding | None = None,
        embedder: Embedder | None = None,
        times: Times | None = None,
    ) -> None:
        self._settings = settings
        self._times = times or Times()
        self._library: Library | None = None
        self._opening = threading.Lock()
        self._limiter = trio.CapacityLimiter(THREADS)
        self._indexing = trio.CapacityLimiter(INDEXING)
        self._closed = False
        self._states: dict[str, _State] = {}
        self._traces = Traces(time.monotonic)
        self._embedding = embedding
        self._cache = FindCache(settings.cache, time.monotonic, embedding)
        self._questions = None if embedder is None else Questions(embedder, self._times.patience)

    async def ls(self, request: LsRequest) -> JsonObject:
        """List manuals, or the children of one or of a folder in one (M2)."""
        return await self._thread(lambda library, check: list_children(library.folder, request, check))

    async def toc(self, request: TocRequest) -> JsonObject:
        """List the files of a manual, with headings when `deep` (M3)."""
        return await self._thread(lambda library, check: table_of_contents(library.folder, request, check))

    async def read(self, request: ReadRequest, *, after: ReadEnd | None = None) -> tuple[JsonObject, ReadEnd]:
        """Read a section, or what follows the end of an earlier read; tells where it ended (M6)."""
        return await self._thread(lambda library, check: read(library.folder, request, check, after=after))

    async def scan(self, request: ScanRequest) -> JsonObject:
        """Read a file piece by piece (M7)."""
        return await self._thread(lambda library, check: scan(library.folder, request, check))

    def hits(self, request: HitsRequest, *, compact: bool = False) -> JsonObject:
        """Show rows of an earlier find (M5); `compact` is the form that clients get."""
        payload = self._traces.get(request.trace_id)
        if request.kind != "unscanned":
            payload = unpacked(payload)
        return page(payload, request, compact=compact)

    async def hits_with_passages(self, request: HitsRequest) -> JsonObject:
        """Show hits as clients get them, with the places of the matches in their files."""
        if request.kind not in ("candidates", "integrated_top"):
            return self.hits(request, compact=True)
        payload = unpacked(self._traces.get(request.trace_id))
        shown = page(payload, request, compact=True)
        rows = page(payload, replace(request, kind="integrated_top"), compact=False)["items"]
        wanted = [
            Wanted(row["ref"]["manual_id"], row["path"], row["start_line"], row["title"], row["token_hits"])
            for row in rows
        ]
        return placed(shown, await self._passages(wanted))

    async def search(self, request: SearchRequest, *, on_phase: Callable[[str], None] | None = None) -> SearchResults:
        """Search all manuals, or some, and return one ranking of the sections that fit best.

        The indexes are updated first, for as long as `time_ms` allows for all of them. A manual that cannot be read, or
        that was not reached, is told of, and the others are searched. `on_phase` is as for `find`.
        """
        deadline = trio.current_time() + request.time_ms / 1000
        request = replace(request, path_prefix="/".join(parts_of(request.path_prefix)))
        if request.manual_ids:
            names = [await self._thread(partial(_name_on_disk, each)) for each in request.manual_ids]
        else:
            names = await self._thread(lambda library, _: library.folder.manuals())
        found, why = await self._with_rebuilding(
            lambda: self._search(request, list(dict.fromkeys(names)), deadline, on_phase)
        )
        texts = await self._passages(
            [Wanted(each.manual_id, each.path, each.line, each.title, each.words) for each in found.ranked]
        )
        return _results(found, texts, why)

    async def find(self, request: FindRequest, *, on_phase: Callable[[str], None] | None = None) -> JsonObject:
        """Search one manual and return the full form of the answer (M4).

        The index is updated first, for as long as `time_ms` allows; files that were not reached are the trace's
        `unscanned`. `on_phase` is told what is going on, in words for a person; it must not wait.
        """
        began = trio.current_time()
        first: Unscanned | None = None
        if request.only_unscanned_from_trace_id is not None:
            first = self._traces.get(request.only_unscanned_from_trace_id)["unscanned"]
        request = replace(request, manual_id=await self._thread(partial(_name_on_disk, request.manual_id)))
        if first is not None and first.manual_id != request.manual_id:
            first = None

        def report(done: int, total: int) -> None:
            if on_phase is not None:
                on_phase(f"indexing {request.manual_id}: {done:,} of {total:,} files")

        payload = await self._with_rebuilding(lambda: self._find(request, began, first, report))
        trace_id = self._traces.put(payload)
        answer: JsonObject = {"trace_id": trace_id, "applied": payload["applied"]}
        if request.include_claim_graph:
            answer["claim_graph"] = unpacked(payload)["claim_graph"]
        return {**answer, "summary": payload["summary"], "next_actions": []}

    async def index(self, manual_id: str, *, on_progress: Callable[[int, int], None] | None = None) -> IndexReport:
        """Update the index of one manual; `on_progress` is told how many files are done, and of how many."""
        began = trio.current_time()
        name = await self._thread(partial(_name_on_disk, manual_id))
        self._states.setdefault(name, _State()).good_until = float("-inf")
        changed = 0

        def report(done: int, total: int) -> None:
            nonlocal changed
            changed = total
            if on_progress is not None:
                on_progress(done, total)

        changes = await self._with_rebuilding(lambda: self._updated(name, float("inf"), report))
        seconds = trio.current_time() - began
        unindexed = dict(changes.unindexed) if changes is not None else {}
        if changes is not None and changes.hindered is not None:
            unindexed.update(dict.fromkeys(changes.changed, changes.hindered))
        files = changes.files if changes is not None else 0
        in_memory = self._library.unused if self._library is not None else None
        return IndexReport(name, files, changed, seconds, unindexed, in_memory)

    async def outstanding(self, manual_id: str) -> Outstanding:
        """Return how much of a manual `embed` would embed, of what is indexed."""
        name = await self._thread(partial(_name_on_disk, manual_id))
        model = model_name(self._chosen())
        work: Work[Outstanding] = lambda library, check: library.outstanding(name, model, check)  # noqa: E731
        return await self._with_rebuilding(lambda: self._thread(work))

    async def embed(self, manual_id: str, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Give vectors to all sections of a manual that have none; return how many got some.

        `on_progress` is told how many have. What is done stays done when this is cancelled or fails, or the process is
        killed. Raises `EmbeddingFailed` when the provider does.
        """
        name = await self._thread(partial(_name_on_disk, manual_id))
        embedder = self._chosen()
        model = model_name(embedder)

        async def following(after: int) -> Sequence[Section]:
            return await self._thread(lambda library, check: library.without_vectors(name, model, after, check))

        keep = partial(self._keep, embedder)
        return await self._with_rebuilding(lambda: fill(embedder, following, keep, on_progress or (lambda _: None)))

    def _chosen(self) -> Embedder:
        if self._questions is None:
            raise ManualsError("conflict", "Nobody makes vectors here; set manuals.embeddings.provider.")
        return self._questions.embedder

    async def aclose(self) -> None:
        """End all requests and close the index. Waits 0.2 s at most for threads that hang in the file system."""
        if self._closed:
            return
        self._closed = True
        with trio.move_on_after(self._times.closing, shield=True):
            for limiter in (self._limiter, self._indexing):
                for _ in range(int(limiter.total_tokens)):  # all of them: no thread is at work any more
                    await limiter.acquire_on_behalf_of(object())
            if self._library is not None:
                # Not under the default limiter: look-ups that were left behind may fill it.
                limiter = trio.CapacityLimiter(1)
                await trio.to_thread.run_sync(self._library.close, abandon_on_cancel=True, limiter=limiter)

    async def _find(self, request: FindRequest, began: float, first: Unscanned | None, report: Report) -> JsonObject:
        deadline = began + request.time_ms / 1000

        def elapsed_ms() -> float:
            return (trio.current_time() - began) * 1000

        changes = await self._updated(request.manual_id, deadline, report, request.query, first)
        vector = None
        generation = 0
        if not self._cache.bypassed(request):
            generation = await self._thread(lambda library, check: library.generation(request.manual_id, check))
            if self._embedding is not None:
                vector = await self._thread(lambda _, __: self._cache.vector(request))
        lookup = self._cache.lookup(request, generation, elapsed_ms=elapsed_ms(), vector=vector)
        if lookup.payload is not None:
            return lookup.payload

        async def search(question: Question | None) -> Found:
            until = max(deadline, trio.current_time() + self._times.least_search)
            return await self._thread(
                lambda library, check: library.search(request, changes, check, question=question), until
            )

        try:
            found, why = await self._with_meaning(request.query, search, lambda found: found.lacking)
        except OutOfTime:
            message = "The search took longer than budget.time_ms allows; ask again with a larger one."
            raise ManualsError("conflict", message) from None
        payload = found.payload
        if self._questions is not None:
            payload["applied"]["ranked_by"] = "words and meaning" if found.compared else "words"
            payload["applied"]["meaning_failure_reason"] = why
        payload["applied"].update(lookup.applied())
        self._cache.store(
            request,
            found.generation,
            payload,
            elapsed_ms=elapsed_ms(),
            complete=found.complete and why is None,
            vector=vector,
        )
        return payload

    async def _search(
        self, request: SearchRequest, names: Sequence[str], deadline: float, on_phase: Callable[[str], None] | None
    ) -> tuple[FoundEverywhere, str | None]:
        manuals: dict[str, Changes | None] = dict.fromkeys(names)
        unreadable: list[Unsearched] = []
        failures: list[Exception] = []

        async def update(name: str) -> None:
            def report(done: int, total: int) -> None:
                if on_phase is not None:
                    on_phase(f"indexing {name}: {done:,} of {total:,} files")

            try:
                manuals[name] = await self._updated(name, deadline, report, request.query)
            except ManualsError as error:
                del manuals[name]
                if error.code != "not_found":  # it has gone since it was listed
                    unreadable.append(Unsearched(name, UNREADABLE, None))
            except Exception as error:  # noqa: BLE001  # a broken index, which concerns all manuals
                failures.append(error)

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(update, name)
        if failures:
            raise failures[0]

        async def search(question: Question | None) -> FoundEverywhere:
            until = max(deadline, trio.current_time() + self._times.least_search)
            return await self._thread(
                lambda library, check: library.search_everywhere(request, manuals, check, question=question), until
            )

        try:
            found, why = await self._with_meaning(request.query, search, lambda found: found.lacking)
        except OutOfTime:
            from responses_mcp.manuals.library import FoundEverywhere  # noqa: PLC0415  # imported by now

            return FoundEverywhere([], [*unreadable, *(Unsearched(name, OUT_OF_TIME, None) for name in manuals)]), None
        return found._replace(unsearched=[*unreadable, *found.unsearched]), why

    async def _passages(self, wanted: list[Wanted]) -> list[Passage | None]:
        """Return the texts around matches, as many as there is time for."""
        found: list[Passage | None] = [None] * len(wanted)
        with suppress(OutOfTime):
            until = trio.current_time() + self._times.passages
            await self._thread(lambda library, check: passages(library.folder, wanted, found, check), until)
        return list(found)

    async def _with_meaning(
        self, query: str, search: Callable[[Question | None], Awaitable[T]], lacking: Callable[[T], Sequence[int]]
    ) -> tuple[T, str | None]:
        """Search; return what was found, and why it was not, or not all of it, compared by meaning."""
        question: Question | None = None
        why: str | None = None
        patience = self._times.patience  # with who makes vectors, not with the search itself
        began = trio.current_time()
        if self._questions is not None:
            try:
                question = await self._questions.ask(query, began + patience)
            except EmbeddingFailed as error:
                why = str(error)
        patience -= trio.current_time() - began
        found = await search(question)
        if self._questions is not None and question is not None and lacking(found):
            try:
                await self._embed_few(self._questions, lacking(found), trio.current_time() + patience)
            except EmbeddingFailed as error:
                why = str(error)
            else:
                found = await search(question)
        return found, why

    async def _embed_few(self, questions: Questions, ids: Sequence[int], deadline: float) -> None:
        """Give vectors to sections that a search met without, if they are few. Raises `EmbeddingFailed`."""
        embedder = questions.embedder
        if len(ids) > embedder.few:
            raise EmbeddingFailed(
                f"{len(ids):,} candidates have no vector yet; run 'openai-responses-mcp manuals index --embed'."
            )
        rest = await self._thread(lambda library, check: library.sections(ids, check))
        while rest:
            some = batch(rest)
            found = await questions.within(deadline, partial(embedded, embedder, some))
            await self._keep(embedder, found)
            rest = rest[len(some) :]

    async def _keep(self, embedder: Embedder, found: Sequence[tuple[Section, Vectors]]) -> int:
        model = model_name(embedder)
        work: Work[int] = lambda library, check: library.keep(model, found, check)  # noqa: E731
        return await self._thread(work, limiter=self._indexing)

    async def _updated(
        self, name: str, deadline: float, report: Report, query: str = "", first: Unscanned | None = None
    ) -> Changes | None:
        """Look at the files of a manual, unless another request just did, and index what has changed.

        Returns what is left to do at the deadline; None when that is not known by then.
        """
        state = self._states.setdefault(name, _State())
        try:
            state.lock.acquire_nowait()
        except trio.WouldBlock:
            with trio.move_on_at(deadline) as waiting:
                await state.lock.acquire()
            if waiting.cancelled_caught:
                return state.changes
        try:
            now = trio.current_time()
            if state.changes is None or now >= state.good_until:
                state.changes = None
                until = max(deadline, now + self._times.least_look)
                compare: Work[Changes] = lambda library, check: library.compare(name, check)  # noqa: E731
                state.changes = await self._thread(compare, until, self._indexing)
                took = trio.current_time() - now
                good = max(self._times.fresh, self._times.looks_apart * took)
                state.good_until = now + good if state.changes.whole else float("-inf")
            await self._update(state.changes, deadline, report, query, first)
        except _Stuck:
            state.changes = None
        except OutOfTime:
            pass
        except BaseException:
            state.changes = None  # a thread may still be at it for a moment; the next find looks what it did
            raise
        finally:
            state.lock.release()
        return state.changes

    async def _update(
        self, changes: Changes, deadline: float, report: Report, query: str, first: Unscanned | None
    ) -> None:
        total = len(changes.changed)
        steps: Iterator[None] | None = None

        def work(library: Library, check: CancellationCheck) -> None:
            nonlocal steps
            if steps is None:
                steps = library.update(changes, check, query=query, first=first)
            slice_over = time.monotonic() + self._times.between_reports
            for _ in steps:
                if time.monotonic() >= slice_over:
                    return

        until = max(deadline, trio.current_time() + self._times.least_indexing)
        while changes.changed or changes.gone:
            if total:
                report(total - len(changes.changed), total)
            await self._thread(work, until, self._indexing)

    async def _with_rebuilding(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`; when it finds the index broken, or gone, do it again with a new one."""
        for _ in range(_TRIES):
            age = self._library.age if self._library is not None else 0
            try:
                return await work()
            except ManualsError:
                raise
            except Exception as error:  # noqa: BLE001  # the library knows what a new index cures
                failure = error
            if not await self._thread(lambda library, check: library.rebuild(failure, age, check)):  # noqa: B023
                raise failure
            self._states.clear()
        message = "The index of the manuals breaks again and again; set manuals.index_dir to a folder on another disk."
        raise ManualsError("conflict", message)

    async def _thread(
        self, work: Work[T], deadline: float = float("inf"), limiter: trio.CapacityLimiter | None = None
    ) -> T:
        """Run `work` in a thread; its check raises when the caller is cancelled, and OutOfTime at the deadline.

        The caller need not wait for a thread that hangs in the file system; the thread keeps its place in the limiter.
        """
        if self._closed:
            raise await self._end()
        until = time.monotonic() + (deadline - trio.current_time())

        def check() -> None:
            trio.from_thread.check_cancelled()
            if self._closed:
                raise _closed()
            if time.monotonic() >= until:
                raise OutOfTime

        def run() -> T:
            library = self._opened()
            check()  # it may have been closed meanwhile, and must not open an index after that
            return work(library, check)

        try:
            with trio.move_on_at(deadline + self._times.grace):
                return await trio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter or self._limiter)
        except ManualsError as error:
            raise await self._end(error) from error.__cause__
        raise _Stuck

    async def _end(self, error: ManualsError | None = None) -> ManualsError:
        """Return the error that ends a request, unless the caller is cancelled: that may be what has closed us."""
        if self._closed:
            await trio.lowlevel.checkpoint_if_cancelled()
        return error or _closed()

    def _opened(self) -> Library:
        """Return the library, in a thread."""
        with self._opening:
            if self._library is None:
                from responses_mcp.manuals.library import Library  # noqa: PLC0415  # SQLite need not delay the start

                self._library = Library(self._settings)
            return self._library


def _name_on_disk(manual_id: str, library: Library, _: CancellationCheck) -> str:
    return library.folder.require_manual(manual_id)


def _results(found: FoundEverywhere, texts: Sequence[Passage | None], why: str | None) -> SearchResults:
    rows = [
        SearchRow(
            each.manual_id,
            each.path,
            readable(each.title),
            " > ".join(map(readable, passage.above.split(" > "))) if passage is not None else "",
            each.line,
            each.score,
            passage.match_line if passage is not None else None,
            passage.char_offset if passage is not None else None,
            passage.snippet if passage is not None else None,
        )
        for each, passage in zip(found.ranked, texts, strict=True)
    ]
    return SearchResults(tuple(rows), tuple(found.unsearched), why)


def _closed() -> ManualsError:
    return ManualsError("conflict", "The manuals are being closed; ask again when the server has started anew.")


def open_manuals(
    settings: ManualsSettings, *, embedding: Embedding | None = None, embedder: Embedder | None = None
) -> AbstractAsyncContextManager[Manuals]:
    """Open the folder of manuals for searching and reading.

    Args:
        settings: where the manuals and their index are, and how to rank; `root` must be set.
        embedding: turns questions into vectors, in worker threads, so that alike questions share an answer.
        embedder: turns questions and sections into vectors, so that they are compared by meaning, too; such as
            `open_embedder` gives for the settings of a server.

    Returns:
        An asynchronous context manager that gives a `Manuals`, which any number of tasks may use at once. It closes the
        `Manuals` on the way out: requests still running end with an error, the index is closed, and at most 0.2 s pass
        in waiting for threads. The caller keeps `embedding` and `embedder`.

    Raises:
        ManualsError: by requests, not by opening. Code `conflict` when there is no `root`, or the index can be kept
            neither in its folder nor in memory.
    """
    return aclosing(Manuals(settings, embedding=embedding, embedder=embedder))
