"""Manuals for Trio programs: each request in a worker thread, cancelled with its caller (contract of the manuals).

Threads come from a limiter of their own, so that a long search never keeps a file from being read for the answer tools.
Indexing has no task of its own: the find that needs it does it, shares it with the finds that wait, and leaves it
half done when its time is over or its caller gives up. The next find goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from responses_mcp.manuals.cache import Embedding, FindCache
from responses_mcp.manuals.checks import Check, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.listing import list_children, table_of_contents
from responses_mcp.manuals.reading import ReadEnd, read, scan
from responses_mcp.manuals.requests import (
    FindRequest,
    HitsRequest,
    LsRequest,
    ReadRequest,
    ScanRequest,
    TocRequest,
)
from responses_mcp.manuals.traces import Traces, Unscanned, page, unpacked

if TYPE_CHECKING:
    from responses_mcp.manuals.index import Refresh
    from responses_mcp.manuals.library import Library
    from responses_mcp.settings.model import ManualsSettings

T = TypeVar("T")
JsonObject = dict[str, Any]

THREADS: Final = 4
INDEXING: Final = 2  # threads more, so that building many manuals keeps nobody from reading
FRESH: Final = 2.0  # seconds for which a look at the files is good
_SLICE: Final = 0.2  # seconds of indexing between two reports

# Seconds that each step has when the time is over, so that finds with the smallest budget get on, too.
_LEAST_LOOK: Final = 1.0
_LEAST_INDEXING: Final = 0.1
_LEAST_SEARCH: Final = 0.25

_GRACE: Final = 1.0  # seconds after which nobody waits any longer for a thread that hangs in the file system
_CLOSING: Final = 0.2  # seconds
_TRIES: Final = 3


class _Stuck(OutOfTime):
    """A thread did not stop when its time was over; it may still be at work."""


@dataclass(eq=False)
class _State:
    """What is known of one manual: when its files were looked at, and what of that is still to be done."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    looked: float = float("-inf")
    refresh: Refresh | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """Who wants an index brought up to date, until when, and in what order; `report` is told how far it is."""

    name: str
    deadline: float
    report: Callable[[int, int], None]
    query: str = ""
    first: Unscanned | None = None


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

    `embedding` makes the semantic mode of the cache possible. All requests raise `ManualsError` for what the caller can
    understand. Close it with `aclose`, which ends what still runs.
    """

    def __init__(self, settings: ManualsSettings, *, embedding: Embedding | None = None) -> None:
        self._settings = settings
        self._library: Library | None = None
        self._opening = trio.Lock()
        self._limiter = trio.CapacityLimiter(THREADS)
        self._indexing = trio.CapacityLimiter(INDEXING)
        self._closed = False
        self._states: dict[str, _State] = {}
        self._traces = Traces(settings.trace.max_keep, settings.trace.ttl_sec, time.monotonic)
        self._embedding = embedding
        self._cache = FindCache(settings.cache, time.monotonic, embedding)

    async def ls(self, request: LsRequest) -> JsonObject:
        """List manuals, or the children of one or of a folder in one (contract 2)."""
        library = await self._opened()
        return await self._thread(lambda check: list_children(library.folder, request, check))

    async def toc(self, request: TocRequest) -> JsonObject:
        """List the files of a manual, with headings when `deep` (contract 3)."""
        library = await self._opened()
        return await self._thread(lambda check: table_of_contents(library.folder, request, check))

    async def read(self, request: ReadRequest, *, after: int | None = None) -> tuple[JsonObject, ReadEnd]:
        """Read a section, or from the character `after` on; tells where it ended (contract 6)."""
        library = await self._opened()
        return await self._thread(lambda check: read(library.folder, request, check, after=after))

    async def scan(self, request: ScanRequest) -> JsonObject:
        """Read a file piece by piece (contract 7)."""
        library = await self._opened()
        return await self._thread(lambda check: scan(library.folder, request, check))

    def hits(self, request: HitsRequest, *, compact: bool = False) -> JsonObject:
        """Show rows of an earlier find (contract 5); `compact` is the form that clients get."""
        payload = self._traces.get(request.trace_id)
        if request.kind != "unscanned":
            payload = unpacked(payload)
        return page(payload, request, compact=compact)

    async def find(self, request: FindRequest, *, on_phase: Callable[[str], None] | None = None) -> JsonObject:
        """Search one manual and return the full form of the answer (contract 4).

        The index is brought up to date first, for as long as `time_ms` allows; files that were not reached are the
        trace's `unscanned`. `on_phase` is told what is going on, in words for a person; it must not wait.
        """
        began = trio.current_time()
        library = await self._opened()
        first: Unscanned | None = None
        if request.only_unscanned_from_trace_id is not None:
            first = self._traces.get(request.only_unscanned_from_trace_id)["unscanned"]
        request = replace(
            request, manual_id=await self._thread(lambda _: library.folder.require_manual(request.manual_id))
        )
        if first is not None and first.manual_id != request.manual_id:
            first = None
        payload = await self._mending(library, lambda: self._find(library, request, began, first, on_phase))
        trace_id = self._traces.put(payload)
        answer: JsonObject = {"trace_id": trace_id, "applied": payload["applied"]}
        if request.include_claim_graph:
            answer["claim_graph"] = unpacked(payload)["claim_graph"]
        return {**answer, "summary": payload["summary"], "next_actions": []}

    async def index(self, manual_id: str, *, on_progress: Callable[[int, int], None] | None = None) -> IndexReport:
        """Bring the index of one manual up to date; `on_progress` is told how many files are done, and of how many."""
        began = trio.current_time()
        library = await self._opened()
        name = await self._thread(lambda _: library.folder.require_manual(manual_id))
        self._states.setdefault(name, _State()).looked = float("-inf")
        changed = 0

        def report(done: int, all_of_it: int) -> None:
            nonlocal changed
            changed = all_of_it
            if on_progress is not None:
                on_progress(done, all_of_it)

        wish = _Wish(name, float("inf"), report)
        refresh = await self._mending(library, lambda: self._refreshed(library, wish))
        seconds = trio.current_time() - began
        unindexed = dict(refresh.unindexed) if refresh is not None else {}
        files = refresh.files if refresh is not None else 0
        return IndexReport(name, files, changed, seconds, unindexed, library.unused)

    async def aclose(self) -> None:
        """End all requests and close the index. Waits 0.2 s at most for threads that hang in the file system."""
        if self._closed:
            return
        self._closed = True
        with trio.move_on_after(_CLOSING, shield=True):
            for limiter in (self._limiter, self._indexing):
                for _ in range(int(limiter.total_tokens)):  # all of them: no thread is at work any more
                    await limiter.acquire_on_behalf_of(object())
            if self._library is not None:
                # Not under the default limiter: look-ups that were left behind may fill it.
                limiter = trio.CapacityLimiter(1)
                await trio.to_thread.run_sync(self._library.close, abandon_on_cancel=True, limiter=limiter)

    async def _find(
        self,
        library: Library,
        request: FindRequest,
        began: float,
        first: Unscanned | None,
        on_phase: Callable[[str], None] | None,
    ) -> JsonObject:
        deadline = began + request.time_ms / 1000

        def report(done: int, all_of_it: int) -> None:
            if on_phase is not None:
                on_phase(f"indexing {request.manual_id}: {done:,} of {all_of_it:,} files")

        def elapsed_ms() -> float:
            return (trio.current_time() - began) * 1000

        refresh = await self._refreshed(library, _Wish(request.manual_id, deadline, report, request.query, first))
        vector = None
        if self._cache.bypassed(request):
            generation = 0
        else:
            generation = await self._thread(lambda check: library.generation(request.manual_id, check))
            if self._embedding is not None:
                vector = await self._thread(lambda _: self._cache.vector(request))
        lookup = self._cache.lookup(request, generation, elapsed_ms=elapsed_ms(), vector=vector)
        if lookup.payload is not None:
            return lookup.payload
        until = max(deadline, trio.current_time() + _LEAST_SEARCH)
        try:
            found = await self._thread(lambda check: library.search(request, refresh, check), until)
        except OutOfTime:
            message = "The search took longer than budget.time_ms allows; ask again with a larger one."
            raise ManualsError("conflict", message) from None
        payload = found.payload
        payload["applied"].update(lookup.applied())
        self._cache.store(
            request, found.generation, payload, elapsed_ms=elapsed_ms(), complete=found.complete, vector=vector
        )
        return payload

    async def _refreshed(self, library: Library, wish: _Wish) -> Refresh | None:
        """Look at the files of a manual, unless somebody just did, and index what has changed, until the deadline.

        Returns what is left to do; None when time was over before that was known.
        """
        state = self._states.setdefault(wish.name, _State())
        try:
            state.lock.acquire_nowait()
        except trio.WouldBlock:
            with trio.move_on_at(wish.deadline) as waiting:
                await state.lock.acquire()
            if waiting.cancelled_caught:
                return state.refresh
        try:
            await self._work_off(library, wish, state)
        except OutOfTime as over:
            if isinstance(over, _Stuck):
                state.refresh = None
        except BaseException:
            state.refresh = None  # a thread may still be at it for a moment; the next find looks what it did
            raise
        finally:
            state.lock.release()
        return state.refresh

    async def _work_off(self, library: Library, wish: _Wish, state: _State) -> None:
        now = trio.current_time()
        if state.refresh is None or now >= state.looked + FRESH:
            state.refresh = None
            until = max(wish.deadline, now + _LEAST_LOOK)
            state.refresh = await self._thread(lambda check: library.compare(wish.name, check), until, self._indexing)
            state.looked = now if state.refresh.whole else float("-inf")
        refresh = state.refresh
        all_of_it = len(refresh.stale)
        steps: Iterator[None] | None = None

        def work(check: Check) -> None:
            nonlocal steps
            if steps is None:
                steps = library.bring_up(refresh, check, query=wish.query, first=wish.first)
            slice_over = time.monotonic() + _SLICE
            for _ in steps:
                if time.monotonic() >= slice_over:
                    return

        until = max(wish.deadline, trio.current_time() + _LEAST_INDEXING)
        while refresh.stale or refresh.gone:
            if all_of_it:
                wish.report(all_of_it - len(refresh.stale), all_of_it)
            await self._thread(work, until, self._indexing)

    async def _opened(self) -> Library:
        if self._library is None:
            async with self._opening:
                if self._library is None:
                    self._library = await self._thread(lambda _: _library(self._settings))
        return self._library

    async def _mending(self, library: Library, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`; when it finds the index broken, or gone, do it again with a new one."""
        for _ in range(_TRIES):
            age = library.age
            try:
                return await work()
            except ManualsError:
                raise
            except Exception as error:  # noqa: BLE001  # the library knows what can be mended
                failure = error
            if not await self._thread(partial(library.mend, failure, age)):
                raise failure
            self._states.clear()
        message = "The index of the manuals breaks again and again; set manuals.index_dir to a folder on another disk."
        raise ManualsError("conflict", message)

    async def _thread(
        self, work: Callable[[Check], T], deadline: float = float("inf"), limiter: trio.CapacityLimiter | None = None
    ) -> T:
        """Run `work` in a thread; its check raises when the caller is cancelled, and OutOfTime at the deadline.

        The caller need not wait for a thread that hangs in the file system; the thread keeps its place in the limiter.
        """
        if self._closed:
            raise _closed()
        until = time.monotonic() + (deadline - trio.current_time())

        def check() -> None:
            trio.from_thread.check_cancelled()
            if self._closed:
                raise _closed()
            if time.monotonic() >= until:
                raise OutOfTime

        with trio.move_on_at(deadline + _GRACE):
            return await trio.to_thread.run_sync(work, check, abandon_on_cancel=True, limiter=limiter or self._limiter)
        raise _Stuck


def _closed() -> ManualsError:
    return ManualsError("conflict", "The manuals are being closed; ask again when the server has started anew.")


def _library(settings: ManualsSettings) -> Library:
    from responses_mcp.manuals.library import Library  # noqa: PLC0415  # with SQLite, and in a thread

    return Library(settings)


def open_manuals(
    settings: ManualsSettings, *, embedding: Embedding | None = None
) -> AbstractAsyncContextManager[Manuals]:
    """Give out a `Manuals` that is closed on the way out."""
    return aclosing(Manuals(settings, embedding=embedding))
