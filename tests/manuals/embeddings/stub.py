"""An embedder without a network, whose vectors are alike where texts share words."""

from collections.abc import Awaitable, Callable, Sequence

import trio

from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.testing import count_words


class StubEmbedder:
    """Counts words, of which `same` maps some to others that mean the same; `before` may wait or raise."""

    rest = 10.0

    def __init__(self, same: dict[str, str] | None = None, *, name: str = "stub", dimensions: int = 64) -> None:
        self.name = name
        self.same = same or {}
        self.dimensions = dimensions
        self.asked: list[list[str]] = []
        self.before: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
        self.closed = False

    @property
    def texts(self) -> list[str]:
        return [text for texts in self.asked for text in texts]

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        self.asked.append(list(texts))
        await self.before()
        meant = [" ".join(self.same.get(word, word) for word in text.split()) for text in texts]
        return [vector[: self.dimensions] for vector in count_words(meant)]

    async def aclose(self) -> None:
        self.closed = True


async def fail() -> None:
    await trio.lowlevel.checkpoint()
    raise EmbeddingFailed("It is down.")
