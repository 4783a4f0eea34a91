"""The fake's ``POST /embeddings``: vectors of texts, as the API shapes them, from a function of the test's choice."""

from __future__ import annotations

import math
import zlib
from array import array
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .replies import Error, Json

if TYPE_CHECKING:
    from .replies import Reply

Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Returns a vector for each text."""

DIMENSIONS = 64
MOST_TEXTS = 2048


def count_words(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors that are the more alike the more words two texts share; of length 1, or of zeros."""
    vectors: list[list[float]] = []
    for text in texts:
        counts = [0.0] * DIMENSIONS
        for word in text.lower().split():
            counts[zlib.crc32(word.encode(errors="replace")) % DIMENSIONS] += 1.0
        length = math.hypot(*counts) or 1.0
        vectors.append([count / length for count in counts])
    return vectors


def answer_with_embeddings(request: Any, embed: Embed = count_words) -> Reply:
    """Reply to the parsed body of a request as the API would; vectors are cut to the `dimensions` asked for."""
    given = cast("dict[str, Any]", request) if isinstance(request, dict) else {}
    model, texts = given.get("model"), given.get("input")
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(model, str):
        return Error(400, "you must provide a model parameter", code="invalid_request_error")
    if not isinstance(texts, list) or not 0 < len(cast("list[object]", texts)) <= MOST_TEXTS:
        return Error(400, "'$.input' is invalid. Please check the API reference.", code="invalid_request_error")
    texts = [str(text) for text in cast("list[object]", texts)]
    if "" in texts:
        return Error(400, "'$.input' is invalid: an empty string.", code="invalid_request_error")
    vectors = [list(vector)[: given.get("dimensions")] for vector in embed(texts)]
    return Json(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": _encoded(vector, given.get("encoding_format"))}
                for index, vector in enumerate(vectors)
            ],
            "model": model,
            "usage": {"prompt_tokens": sum(map(len, texts)) // 4, "total_tokens": sum(map(len, texts)) // 4},
        }
    )


def _encoded(vector: list[float], form: object) -> str | list[float]:
    return b64encode(array("f", vector).tobytes()).decode() if form == "base64" else vector
