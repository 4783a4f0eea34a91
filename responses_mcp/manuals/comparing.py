"""Comparing by meaning, where there is somebody who makes vectors: for each search, and for all sections beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import trio

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed, model_name, vectors_of
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.threads import Threads, Times
from responses_mcp.manuals.words import normalise

if TYPE_CHECKING:
    from responses_mcp.manuals.embeddings.vectors import Vector, Vectors
    from responses_mcp.manuals.index.pieces import Outstanding, Section
    from responses_mcp.manuals.library import Library
    from responses_mcp.manuals.search.meaning import Meaning

T = TypeVar("T")
Search = Callable[["Library", CancellationCheck, "Meaning | None"], T]
"""A search by the words of a question and, if there is one, with its meaning."""

MOST_TEXTS: Final = 32  # in one request; there are servers that take no more
MOST_CHARACTERS: Final = 40_000
_AT_ONCE: Final = 4  # requests
_MOST_KEPT: Final = 256  # questions
_LONGEST: Final = 2_000  # characters of a question


class Asked(NamedTuple):
    """The vector of a question, None where there is none; `failure` says why, unless none is wanted."""

    vector: Vector | None = None
    failure: str | None = None


class Compared(NamedTuple, Generic[T]):
    """What a search found, whether meaning had a part in the order, and why none or not all were compared by it."""

    found: T
    by_meaning: bool
    failure: str | None


class Comparing:
    """The vectors of questions and sections, from `embedder` if there is one, which the caller keeps."""

    def __init__(self, embedder: Embedder | None, threads: Threads, times: Times) -> None:
        self._embedder = embedder
        self._threads = threads
        self._times = times
        self._questions: dict[str, Vector] = {}
        self._resting_until = float("-inf")
        self._why = ""
        self._filling = trio.Lock()

    @property
    def wanted(self) -> bool:
        """Tell whether there is somebody who makes vectors."""
        return self._embedder is not None

    async def asked(self, query: str) -> Asked:
        """Return a question as a vector, which has `times.patience` to be made; one that is like nothing has none."""
        if self._embedder is None:
            return Asked()
        try:
            vector = await self._question(self._embedder, query)
        except EmbeddingFailed as error:
            return Asked(failure=str(error))
        return Asked(vector if vector.factor else None)

    async def search(self, asked: Asked, work: Search[T], deadline: float) -> Compared[T]:
        """Search. Raises OutOfTime at the deadline."""

        def search(library: Library, check: CancellationCheck) -> Compared[T]:
            from responses_mcp.manuals.search.meaning import Meaning  # noqa: PLC0415  # SQLite, in a thread

            if asked.vector is None:
                return Compared(work(library, check, None), by_meaning=False, failure=asked.failure)
            meaning = Meaning(asked.vector, self._vectors(library), check)
            found = work(library, check, meaning)
            return Compared(found, by_meaning=meaning.used, failure=meaning.failure)

        return await self._threads.run(search, max(deadline, trio.current_time() + self._times.least_search))

    async def outstanding(self, name: str) -> Outstanding:
        """Return how much of a manual `fill` would embed, of what is indexed."""
        self._required()

        def count(library: Library, check: CancellationCheck) -> Outstanding:
            from responses_mcp.manuals.index.pieces import outstanding  # noqa: PLC0415  # few need it

            return outstanding(self._lacking(library, name, check))

        return await self._threads.run(count)

    async def fill(self, name: str, on_progress: Callable[[int], None], most: int | None = None) -> int:
        """Give vectors to all sections of a manual that have none, or so many at most; return how many got some.

        One fill is at work at a time. What is kept stays when this fails or is cancelled. Raises `EmbeddingFailed`.
        """
        embedder = self._required()
        turn = trio.Lock()
        last = done = 0
        failures: list[Exception] = []

        def following(library: Library, check: CancellationCheck) -> list[Section]:
            return _batch(islice(self._lacking(library, name, check, last), most))

        async def keep(made: dict[str, Sequence[float]]) -> None:
            await self._threads.run(lambda library, check: self._vectors(library).keep(made, check), indexing=True)

        async def work() -> None:
            nonlocal last, most, done
            try:
                while not failures:
                    async with turn:
                        sections = await self._threads.run(following)
                        if not sections:
                            return
                        last = sections[-1].id
                        most = None if most is None else most - len(sections)
                    texts = list(dict.fromkeys(text for each in sections for text in each.texts))
                    await keep(dict(zip(texts, await vectors_of(embedder, texts), strict=True)))
                    done += len(sections)
                    on_progress(done)
            except Exception as failure:  # noqa: BLE001  # raised below, in no group
                failures.append(failure)

        # What is under way at a failure, and may be paid for, is still kept.
        async with self._filling, trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(work)
        if failures:
            raise failures[0]
        return done

    def _lacking(self, library: Library, name: str, check: CancellationCheck, after: int = 0) -> Iterator[Section]:
        """Yield the sections of a manual behind row `after` that have texts without vectors, with these."""
        vectors = self._vectors(library)
        for rows in library.sections(name, check, after):
            known = vectors.of((text for each in rows for text in each.texts), check)
            for each in rows:
                if texts := [text for text in each.texts if text not in known]:
                    yield each._replace(texts=texts)

    async def _question(self, embedder: Embedder, query: str) -> Vector:
        """Return a question as a vector. Raises `EmbeddingFailed`; for a while after a failure, it does so at once."""
        from responses_mcp.manuals.embeddings.vectors import question  # noqa: PLC0415  # SQLite need not delay the start

        text = normalise(query)[:_LONGEST]
        made = self._questions.pop(text, None)
        if made is None:
            if trio.current_time() < self._resting_until:
                raise EmbeddingFailed(self._why)
            failure = EmbeddingFailed(f"The embeddings did not arrive within {self._times.patience:g} s; ask again.")
            try:
                with trio.move_on_after(self._times.patience):
                    made = question((await vectors_of(embedder, [text]))[0])
            except EmbeddingFailed as error:
                failure = error
            if made is None:
                self._resting_until, self._why = trio.current_time() + embedder.rest, str(failure)
                raise failure
        self._questions[text] = made  # the one used last stands last
        if len(self._questions) > _MOST_KEPT:
            del self._questions[next(iter(self._questions))]
        return made

    def _vectors(self, library: Library) -> Vectors:
        return library.vectors(model_name(self._required()))

    def _required(self) -> Embedder:
        if self._embedder is None:
            raise ManualsError(
                "conflict",
                "No provider of vectors is set; set manuals.embeddings.provider, and in a program of your own pass "
                "open_manuals the embedder of open_embedder.",
            )
        return self._embedder


def _batch(sections: Iterable[Section]) -> list[Section]:
    """Return the first sections, as many as fit into one request; one at least."""
    batch: list[Section] = []
    texts = characters = 0
    for section in sections:
        texts += len(section.texts)
        characters += sum(map(len, section.texts))
        if batch and (texts > MOST_TEXTS or characters > MOST_CHARACTERS):
            break
        batch.append(section)
    return batch
