"""What turns texts into vectors, how it fails, and the name under which its vectors are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final, Protocol

from responses_mcp.errors import ResponsesMcpError
from responses_mcp.manuals.index.pieces import FORM

USED: Final = ContextVar[dict[str, int] | None]("USED", default=None)
"""What the running call had an API embed, in its own words for tokens, and `attempts`; None where nobody asks."""

_LONGEST: Final = 8192  # numbers of a vector


class EmbeddingFailed(ResponsesMcpError):  # a search goes on by words; a command ends
    """There are no vectors. The message says why, in a sentence that shows no secret."""


class Embedder(Protocol):
    """Turns texts into vectors. Any number of tasks may use it at once."""

    @property
    def name(self) -> str:
        """Say whose vectors they are: those of another name cannot be compared with them."""
        ...

    @property
    def rest(self) -> float:
        """Return for how many seconds after a failure searches leave it alone: each would wait as long again."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return a vector of finite numbers for each text, all of one length, which need not be 1.

        One request, for 32 texts at most. Cancelling ends it. Raises `EmbeddingFailed`.
        """
        ...

    async def aclose(self) -> None:
        """Give back what it holds."""
        ...


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return what an embedder gives for some texts: a vector for each, all of one length, which is checked here.

    Raises `EmbeddingFailed`.
    """
    vectors = await embedder.embed(texts)
    try:
        found = [*vectors]
        length = len(found[0])
        are_numbers = all(len(each) == length and math.isfinite(math.hypot(*each)) for each in found)
        if are_numbers and len(found) == len(texts) and 0 < length <= _LONGEST:
            return found
    except (IndexError, TypeError):
        pass
    raise EmbeddingFailed(
        f"The embedder {embedder.name!r} must give one vector of finite numbers for each of {len(texts)} texts, and "
        "gave something else; check manuals.embeddings."
    )


def model_name(embedder: Embedder) -> str:
    """Return the name under which the index keeps vectors of texts that were cut as they are now."""
    return f"{embedder.name} {FORM}"
