"""Questions as vectors, and the patience that a search has with who makes them: a second, then it does without."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from responses_mcp.manuals.embeddings.embedder import (
    Embedder,
    EmbeddingFailed,
    TextsRefused,
    model_name,
    vectors_of,
)
from responses_mcp.manuals.embeddings.likeness import Question, question
from responses_mcp.manuals.words import normalise

T = TypeVar("T")

_MOST_KEPT: Final = 256
_LONGEST: Final = 2_000  # characters of a question


class Questions:
    """The vectors of the last questions, from `embedder`. So many seconds of `patience` are what a search has."""

    def __init__(self, embedder: Embedder, patience: float) -> None:
        self.embedder = embedder
        self._patience = patience
        self._kept: OrderedDict[str, Question] = OrderedDict()  # the least recently used first
        self._resting_until = float("-inf")
        self._why = ""

    async def ask(self, query: str, deadline: float) -> Question:
        """Return a question as a vector. Raises `EmbeddingFailed`, see `within`."""
        text = normalise(query)[:_LONGEST]
        if text not in self._kept:
            (vector,) = await self.within(deadline, lambda: vectors_of(self.embedder, [text]))
            self._kept[text] = question(model_name(self.embedder), vector)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(text)
        return self._kept[text]

    async def within(self, deadline: float, work: Callable[[], Awaitable[T]]) -> T:
        """Do what needs the provider, until `deadline`.

        Raises `EmbeddingFailed`; for a while after a failure, unless a text was refused, it does so at once.
        """
        if trio.current_time() < self._resting_until:
            raise EmbeddingFailed(self._why)
        failure = self.too_slow()
        try:
            with trio.move_on_at(deadline):
                return await work()
        except TextsRefused:
            raise  # others it may take
        except EmbeddingFailed as error:
            failure = error
        self._resting_until, self._why = trio.current_time() + self.embedder.rest, str(failure)
        raise failure

    def too_slow(self) -> EmbeddingFailed:
        """Return the error of a search that has no more patience."""
        advice = getattr(self.embedder, "if_slow", ".")  # of ours; a host's own embedder need not have it
        return EmbeddingFailed(f"There were no embeddings within {self._patience:g} s{advice}")
