"""Manuals for Trio programs: each request in a worker thread, cancelled with its caller.

A search brings the index up to date first, as far as there is time, and says what it did not reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.comparing import Comparing
from responses_mcp.manuals.embeddings.embedder import Embedder
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import UNREADABLE
from responses_mcp.manuals.files.listing import list_children, table_of_contents, why_there_is_none
from responses_mcp.manuals.files.reading import ReadEnd, read, scan
from responses_mcp.manuals.files.resources import completions, list_resources, read_resource
from responses_mcp.manuals.files.unserved import in_words, readable
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
from responses_mcp.manuals.requests.uris import Place
from responses_mcp.manuals.results.kept import FindCache, Traces
from responses_mcp.manuals.results.search_results import TIME_BUDGET, SearchResults, Unsearched
from responses_mcp.manuals.threads import Threads, Times
from responses_mcp.manuals.updating import Report, Updating
from responses_mcp.under_trio import opened, require_trio

if TYPE_CHECKING:
    from responses_mcp.manuals.index.pieces import Outstanding
    from responses_mcp.manuals.index.update import Changes
    from responses_mcp.manuals.library import Found, Library
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.settings.model import ManualsSettings, Settings

T = TypeVar("T")
_FEW: Final = 3  # sections of a find, which are little


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What indexing a manual came to.

    `unindexed` maps paths to the reason for which they are not in the index; `not_served` counts files of other formats
    by their endings.
    """

    manual_id: str
    files: int
    changed: int
    seconds: float
    unindexed: dict[str, str]
    in_memory: str | None
    not_served: dict[str, int] = field(default_factory=dict[str, int])


class Manuals:
    """The manuals of `settings.root`. Opens nothing before the first request; any number may run at once.

    `embedder` makes the ranking by meaning and the semantic mode of the cache possible; the caller keeps it. `times`
    are for tests. All requests raise `ManualsError` for what the caller can understand. Close it with `aclose`, which
    ends what still runs.
    """

    def __init__(
        self,
        settings: ManualsSettings,
        *,
        embedder: Embedder | None = None,
        times: Times | None = None,
    ) -> None:
        self._times = times or Times()
        self._threads = Threads(settings, self._times)
        self._updating = Updating(self._threads, self._times)
        self._comparing = Comparing(embedder, self._threads, self._times)
        self._traces = Traces()
        self._cache = FindCache(settings.cache)

    async def ls(self, request: LsRequest) -> JsonObject:
        """List manuals, or the children of one or of a folder in one (M2)."""
        return await self._threads.run(lambda library, check: list_children(library.folder, request, check))

    async def toc(self, request: TocRequest) -> JsonObject:
        """List the files of a manual, with headings when `deep` (M3)."""
        return await self._threads.run(lambda library, check: table_of_contents(library.folder, request, check))

    async def read(self, request: ReadRequest, *, after: ReadEnd | None = None) -> tuple[JsonObject, ReadEnd]:
        """Read a section, or what follows the end of an earlier read; tells where it ended (M6)."""
        return await self._threads.run(lambda library, check: read(library.folder, request, check, after=after))

    async def scan(self, request: ScanRequest) -> JsonObject:
        """Read a file piece by piece (M7)."""
        return await self._threads.run(lambda library, check: scan(library.folder, request, check))

    async def resources(self, after: Place | None) -> tuple[list[JsonObject], str | None]:
        """List manuals and files behind a place; tells the URI behind which the next page begins."""
        return await self._threads.run(lambda library, check: list_resources(library.folder, after, check))

    async def resource(self, place: Place) -> list[JsonObject]:
        """Read a file, a section or the list of a folder, as the contents of a resource."""
        return await self._threads.run(lambda library, check: read_resource(library.folder, place, check))

    async def complete(self, manual_id: str | None, typed: str) -> list[str]:
        """Propose paths in a manual, or manuals if `manual_id` is None."""
        return await self._threads.run(lambda library, check: completions(library.folder, manual_id, typed, check))

    def hits(self, request: HitsRequest, *, compact: bool = False) -> JsonObject:
        """Show rows of an earlier find (M5); `compact` is the form that clients get, with the places of the matches."""
        return self._pages(request, compact=compact)()

    async def hits_with_passages(self, request: HitsRequest) -> JsonObject:
        """Show hits as clients get them; in a thread, because rows may be long."""
        shown = self._pages(request, compact=True)
        return await self._threads.run(lambda _, __: shown())

    def _pages(self, request: HitsRequest, *, compact: bool) -> Callable[[], JsonObject]:
        from responses_mcp.manuals.search.contract import page  # noqa: PLC0415  # imported by the find

        self._threads.require_open()
        return partial(page, self._traces.get(request.trace_id), request, compact=compact)

    async def search(self, request: SearchRequest, *, on_phase: Callable[[str], None] | None = None) -> SearchResults:
        """Search all manuals, or some, and return one ranking of the sections that fit best.

        The indexes are updated first, for as long as `time_ms` allows for all of them. A manual that cannot be read, or
        that was not reached, is told of, and the others are searched. `on_phase` is as for `find`.
        Raises `ManualsError` where there is none at all.
        """
        require_trio()
        deadline = trio.current_time() + request.time_ms / 1000
        request = replace(request, path_prefix="/".join(parts_of(request.path_prefix)))
        if request.manual_ids:
            names = [await self._threads.run(partial(_name_on_disk, each)) for each in request.manual_ids]
        else:
            names, why_none = await self._threads.run(_names)
            if why_none is not None:
                raise ManualsError("not_found", why_none)
        results, others = await self._rebuilding(
            lambda: self._search(request, list(dict.fromkeys(names)), deadline, on_phase)
        )
        fits = not (results.fits_badly or (results.unknown and results.was_in_time))
        if fits or results.no_such_path is not None:
            return results
        return replace(results, others=readable(others))

    async def find(self, request: FindRequest, *, on_phase: Callable[[str], None] | None = None) -> JsonObject:
        """Search one manual and return the full form of the answer (M4).

        The index is updated first, for as long as `time_ms` allows; files that were not reached are the trace's
        `unscanned`. `on_phase` is told what is going on, in words for a person; it must not wait.
        """
        require_trio()
        began = trio.current_time()
        earlier: JsonObject | None = None
        if request.only_unscanned_from_trace_id is not None:
            earlier = self._traces.get(request.only_unscanned_from_trace_id)
        request = replace(request, manual_id=await self._threads.run(partial(_name_on_disk, request.manual_id)))
        first: Collection[str] = ()
        if earlier is not None and earlier["manual_id"] == request.manual_id:
            from responses_mcp.manuals.search.contract import unscanned_of  # noqa: PLC0415  # imported by that find

            first = [path for path, _ in unscanned_of(earlier)]

        report = _reporting(on_phase, request.manual_id)
        payload = await self._rebuilding(lambda: self._find(request, began, first, report))
        trace_id = self._traces.put(payload)
        answer: JsonObject = {"trace_id": trace_id, "applied": payload["applied"]}
        if request.include_claim_graph:
            from responses_mcp.manuals.search.contract import graph_of  # noqa: PLC0415  # imported by the find

            answer["claim_graph"] = graph_of(payload)
        if payload["summary"]["candidates"] < _FEW and (others := readable(payload["others"])):
            answer["note"] = f"{in_words(others)}."
        return {**answer, "summary": payload["summary"], "next_actions": []}

    async def index(self, manual_id: str, *, on_progress: Callable[[int, int], None] | None = None) -> IndexReport:
        """Update the index of one manual; `on_progress` is told how many files are done, and of how many."""
        require_trio()
        began = trio.current_time()
        name = await self._threads.run(partial(_name_on_disk, manual_id))
        self._updating.require_look(name)
        changed = 0

        def report(done: int, total: int) -> None:
            nonlocal changed
            changed = total
            if on_progress is not None:
                on_progress(done, total)

        changes = await self._rebuilding(lambda: self._updating.updated(name, float("inf"), report))
        seconds = trio.current_time() - began
        unindexed = dict(changes.unindexed) if changes is not None else {}
        if changes is not None and changes.hindered is not None:
            unindexed.update(dict.fromkeys(changes.changed, changes.hindered))
        files = changes.files if changes is not None else 0
        others = dict(changes.others) if changes is not None else {}
        return IndexReport(name, files, changed, seconds, unindexed, self._threads.in_memory, others)

    async def outstanding(self, manual_id: str) -> Outstanding:
        """Return how much of a manual `embed` would embed, of what is indexed."""
        name = await self._threads.run(partial(_name_on_disk, manual_id))
        return await self._rebuilding(lambda: self._comparing.outstanding(name))

    async def embed(
        self, manual_id: str, *, on_progress: Callable[[int], None] | None = None, most: int | None = None
    ) -> int:
        """Give vectors to all sections of a manual that have none; return how many got some.

        At most `most` sections are sent: while files change, those that lack vectors become others. `on_progress` is
        told how many have them. What is done stays done when this is cancelled or fails, or the process is killed.
        Raises `EmbeddingFailed` when the provider fails.
        """
        name = await self._threads.run(partial(_name_on_disk, manual_id))
        return await self._rebuilding(lambda: self._comparing.fill(name, on_progress or (lambda _: None), most))

    async def aclose(self) -> None:
        """End all requests and close the index. Waits 0.2 s at most for threads that hang in the file system."""
        await self._threads.aclose()

    async def _rebuilding(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._threads.rebuilding(work, self._updating.forget)

    async def _find(self, request: FindRequest, began: float, first: Collection[str], report: Report) -> JsonObject:
        deadline = began + request.time_ms / 1000

        def elapsed_ms() -> float:
            return (trio.current_time() - began) * 1000

        changes = await self._updating.updated(request.manual_id, deadline, report, request.query, first)
        generation = 0
        if not self._cache.bypassed(request):
            generation = await self._threads.run(lambda library, check: library.generation(request.manual_id, check))
        asked = await self._comparing.asked(request.query)
        lookup = self._cache.lookup(request, generation, elapsed_ms=elapsed_ms(), vector=asked.vector)
        if lookup.payload is not None:
            return lookup.payload

        def search(library: Library, check: CancellationCheck, meaning: Meaning | None) -> Found:
            return library.search(request, changes, check, meaning)

        try:
            found, by_meaning, why = await self._comparing.search(asked, search, deadline)
        except OutOfTime:
            message = "The search took longer than budget.time_ms allows; ask again with a larger one."
            raise ManualsError("conflict", message) from None
        payload = found.payload
        payload["others"] = dict(changes.others) if changes is not None else {}
        if self._comparing.wanted:
            payload["applied"]["ranked_by"] = "words and meaning" if by_meaning else "words"
            payload["applied"]["meaning_failure_reason"] = why
        payload["applied"].update(lookup.applied())
        if found.complete and why is None:
            self._cache.store(request, found.generation, payload, elapsed_ms=elapsed_ms(), vector=asked.vector)
        return payload

    async def _search(
        self, request: SearchRequest, names: Sequence[str], deadline: float, on_phase: Callable[[str], None] | None
    ) -> tuple[SearchResults, Counter[str]]:
        """Return what was found, and how many files of other formats there are, by endings."""
        manuals: dict[str, Changes | None] = dict.fromkeys(names)
        unsearched: list[Unsearched] = []
        failures: list[Exception] = []

        async def update(name: str) -> None:
            report = _reporting(on_phase, name)
            try:
                manuals[name] = await self._updating.updated(name, deadline, report, request.query)
            except ManualsError as error:
                del manuals[name]
                if error.code != "not_found":  # it has gone since it was listed
                    unsearched.append(Unsearched(name, UNREADABLE, None))
            except Exception as error:  # noqa: BLE001  # a broken index, which concerns all manuals
                failures.append(error)

        async with trio.open_nursery() as nursery:  # one that waits for its index must not take the time of the others
            for name in names:
                nursery.start_soon(update, name)
        if failures:
            raise failures[0]
        others = sum((each.others for each in manuals.values() if each is not None), Counter[str]())

        def search(library: Library, check: CancellationCheck, meaning: Meaning | None) -> SearchResults:
            return library.search_everywhere(request, manuals, check, meaning)

        asked = await self._comparing.asked(request.query)
        try:
            found, _, why = await self._comparing.search(asked, search, deadline)
        except OutOfTime:
            found, why = SearchResults((), tuple(Unsearched(name, TIME_BUDGET, None) for name in manuals)), None
        return replace(found, unsearched=(*unsearched, *found.unsearched), not_by_meaning=why), others


def _reporting(on_phase: Callable[[str], None] | None, name: str) -> Report:
    """Return what tells, in words for a person, how far the index of a manual is."""

    def report(done: int, total: int) -> None:
        if on_phase is not None:
            on_phase(f"indexing {name}: {done:,} of {total:,} files")

    return report


def _names(library: Library, _: CancellationCheck) -> tuple[list[str], str | None]:
    """Return the ids of all manuals; or none, and why there are none."""
    names = library.folder.manuals()
    return names, None if names else why_there_is_none(library.folder.root)


def _name_on_disk(manual_id: str, library: Library, _: CancellationCheck) -> str:
    return library.folder.require_manual(manual_id)


def open_manuals(
    settings: ManualsSettings | Settings, *, embedder: Embedder | None = None
) -> AbstractAsyncContextManager[Manuals]:
    """Open the folder of manuals for searching and reading.

    Args:
        settings: where the manuals and their index are, and how to rank; `root` must be set. Of all settings, such as
            `load_settings` gives, those of the manuals are taken.
        embedder: turns questions and sections into vectors, so that they are compared by meaning, too, and questions
            that mean the same share an answer; such as `open_embedder` gives for the settings of a server.

    Returns:
        An asynchronous context manager that gives a `Manuals`, which any number of tasks may use at once. It closes the
        `Manuals` on the way out: requests still running end with an error, the index is closed, and at most 0.2 s pass
        in waiting for threads. The caller keeps `embedder`.

    Raises:
        ManualsError: by requests, not by opening. Code `conflict` when there is no `root`, or the index can be kept
            neither in its folder nor in memory.
    """
    from responses_mcp.settings.model import ManualsSettings  # noqa: PLC0415  # whoever made settings has it

    chosen = settings if isinstance(settings, ManualsSettings) else settings.manuals
    return opened(Manuals(chosen, embedder=embedder))
