"""The provider `wordllama`: word vectors of 16 MB in the wheel of that name, an extra. English, without a network."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import trio

from responses_mcp.errors import installing
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8  # texts
_FOREIGN: Final = re.compile("[\u0370-\u1fff\u2c00-\U0010ffff]")  # Greek and what follows, without signs
_MOST_FOREIGN: Final = 0.02  # of the characters


class WordVectors:
    """The model of wordllama, loaded by the first use, in a thread. It works in one thread at a time."""

    name = "wordllama l2_supercat 256"
    rest = 0.5  # the first use may end while the thread still loads

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(1)
        self._loading = threading.Lock()  # a thread that was left behind by a cancel may still be at it
        self._model: Any = None

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return a vector for each text, see `Embedder`; one of zeros for a text that is not in English letters.

        A cancel leaves the thread behind.
        """
        work = partial(self._embed, list(texts))
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    def _embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        with self._loading:
            if self._model is None:
                self._model = _load()
        # A few at once: all texts of a batch take the room of its longest.
        vectors: list[list[float]] = self._model.embed(texts, return_np=False, batch_size=_AT_ONCE)
        return [
            vector if _may_be_english(text) else [0.0] * len(vector)
            for text, vector in zip(texts, vectors, strict=True)
        ]

    async def aclose(self) -> None:
        """Drop the model."""
        self._model = None
        await trio.lowlevel.checkpoint()


def _may_be_english(text: str) -> bool:
    """Tell whether a text has hardly a letter of another script: of these the model knows no words."""
    return _MOST_FOREIGN * len(text) >= len(_FOREIGN.findall(text))


def _load() -> Any:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        wordllama = import_module("wordllama")
        # The tokenizer is not where that package looks for it first, so it would be downloaded; but it is in the wheel,
        # in a folder of the name that a cache has.
        folder = Path(str(wordllama.__file__)).parent
        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    except ImportError as error:
        raise EmbeddingFailed(
            f"The package wordllama is not installed; {installing('semantic')}, or choose another "
            "manuals.embeddings.provider."
        ) from error
    except Exception as error:
        log.warning("manuals: wordllama cannot be loaded", exc_info=True)
        raise EmbeddingFailed(
            f"The model of wordllama cannot be loaded ({type(error).__name__}); {installing('semantic')}."
        ) from error
    finally:
        # To import it gives the root logger a handler of its own, on stderr.
        root.handlers[:] = before
        root.setLevel(level)
