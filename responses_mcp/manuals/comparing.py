"""Comparing by meaning, where there is somebody who makes vectors: for each search, and for all sections beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from responses_mcp.errors import program
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed, SectionsRefused, model_name
from responses_mcp.manuals.embeddings.filling import Vectors, batch, embedded, fill, require_one_length
from responses_mcp.manuals.embeddings.questions import Questions
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.threads import Threads, Times, Work

if TYPE_CHECKING:
    from responses_mcp.manuals.embeddings.likeness import Question
    from responses_mcp.manuals.embeddings.pieces import Outstanding, Section
    from responses_mcp.manuals.library import Library


class _Compared(Protocol):
    @property
    def lacking(self) -> Sequence[int]: ...


T = TypeVar("T", bound=_Compared)
Search = Callable[["Library", CancellationCheck, "Question | None"], T]
"""A search by the words of a question and, if it has one, by its vector; tells what it met without a vector."""


class Comparing:
    """The vectors of questions and sections, from `embedder` if there is one, which the caller keeps."""

    def __init__(self, embedder: Embedder | None, threads: Threads, times: Times) -> None:
        self._threads = threads
        self._times = times
        self._questions = None if embedder is None else Questions(embedder, times.patience)
        self._embedding_few = trio.Lock()
        self._filling = trio.Lock()

    @property
    def wanted(self) -> bool:
        """Tell whether there is somebody who makes vectors."""
        return self._questions is not None

    async def search(self, query: str, work: Search[T], deadline: float) -> tuple[T, str | None]:
        """Search; return what was found, and why it was not, or not all of it, compared by meaning.

        Raises OutOfTime at the deadline.
        """

        async def search(question: Question | None) -> T:
            until = max(deadline, trio.current_time() + self._times.least_search)
            return await self._threads.run(lambda library, check: work(library, check, question), until)

        question: Question | None = None
        why: str | None = None
        patience = self._times.patience  # with who makes vectors, not with the search itself
        began = trio.current_time()
        if self._questions is not None:
            try:
                asked = await self._questions.ask(query, began + patience)
                if asked.is_like_nothing:  # so nothing will be compared, which would tell of another length
                    await self._threads.run(lambda library, check: library.require_length(asked, check))
                else:
                    question = asked
            except EmbeddingFailed as error:
                why = str(error)
        patience -= trio.current_time() - began
        found = await search(question)
        if self._questions is not None and question is not None and found.lacking:
            try:
                await self._embed_few(self._questions, question, found.lacking, trio.current_time() + patience)
            except EmbeddingFailed as error:
                why = str(error)
            else:
                found = await search(question)
        return found, why

    async def outstanding(self, name: str) -> Outstanding:
        """Return how much of a manual `fill` would embed, of what is indexed."""
        model = model_name(self._embedder())
        return await self._threads.run(lambda library, check: library.outstanding(name, model, check))

    async def fill(self, name: str, on_progress: Callable[[int], None], most: int | None = None) -> int:
        """Give vectors to all sections of a manual that have none, or so many at most; return how many got some.

        One fill of an index is at work at a time, so that none pays for what another has in hand. Raises
        `EmbeddingFailed`, such as `SectionsRefused` when all is done but that, and `ManualsError` while another process
        fills the index.
        """
        embedder = self._embedder()
        model = model_name(embedder)

        async def following(after: int) -> Sequence[Section]:
            return await self._threads.run(lambda library, check: library.without_vectors(name, model, after, check))

        async with self._filling:
            try:
                await self._threads.run(lambda library, check: library.begin_filling(check), indexing=True)
                keep = partial(self._keep, embedder, filling=True)
                filled = await fill(embedder, following, keep, on_progress, most)
            finally:
                self._threads.end_filling()
        if filled.refused:
            refused = [section for section, _ in filled.refused]
            places = await self._threads.run(lambda library, check: library.places(name, refused, check))
            if places:
                raise SectionsRefused(str(filled.refused[0][1]), places, filled.kept)
        return filled.kept

    def _embedder(self) -> Embedder:
        if self._questions is None:
            raise ManualsError(
                "conflict",
                "No provider of vectors is set up; set manuals.embeddings.provider, and in a program of your own give "
                "open_manuals the embedder of open_embedder.",
            )
        return self._questions.embedder

    async def _embed_few(self, questions: Questions, question: Question, ids: Sequence[int], deadline: float) -> None:
        """Give vectors to sections that a search met without, if they are few. Raises `EmbeddingFailed`."""
        embedder = questions.embedder
        lacking: Work[list[Section]] = lambda library, check: library.lacking(ids, question, check)  # noqa: E731
        many = len(await self._threads.run(lacking))
        if many > embedder.few:
            raise EmbeddingFailed(f"{many:,} candidates have no vector yet; run '{program()} manuals index --embed'.")
        with trio.move_on_at(deadline) as waiting:
            await self._embedding_few.acquire()
        if waiting.cancelled_caught:
            raise questions.too_slow()
        try:
            rest = await self._threads.run(lacking)  # another search may have met the same
            while rest:
                some = batch(rest)
                found = await questions.within(deadline, partial(embedded, embedder, some))
                require_one_length({question.dimensions, *(len(vector) for _, its in found for vector in its)})
                await self._keep(embedder, found, filling=False)
                rest = rest[len(some) :]
        finally:
            self._embedding_few.release()

    async def _keep(self, embedder: Embedder, found: Sequence[tuple[Section, Vectors]], *, filling: bool) -> int:
        model = model_name(embedder)
        work: Work[int] = lambda library, check: library.keep(model, found, check, filling=filling)  # noqa: E731
        return await self._threads.run(work, indexing=True)
