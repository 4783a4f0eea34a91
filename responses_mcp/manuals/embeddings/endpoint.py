"""The provider `api`: any server with OpenAI's `/embeddings`."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final, cast

import trio

from responses_mcp.errors import KeyUnusable, UpstreamError
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.manuals.embeddings.embedder import USED, EmbeddingFailed
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.settings.model import EmbeddingsSettings

_MOST_TOKENS: Final = 100_000_000  # of one reply; more is no count
_HURRY: Final = 5.0  # seconds, as a search has them, in which nothing is waited for to be asked again
_CLAUSE: Final = re.compile("[.;:] ")


class EmbeddingsEndpoint:
    """The `/embeddings` of the server that `api` asks, with texts as `masked` returns them.

    `aclose` closes the connections of `api`.
    """

    rest = 10.0

    def __init__(
        self, settings: EmbeddingsSettings, api: Callable[[], ResponsesApi], masked: Callable[[str], str] = str
    ) -> None:
        self._settings = settings
        self._masked = masked
        self._open = api
        self._opened = False
        self.name = f"api {settings.model} {settings.dimensions or ''}".strip()

    @cached_property
    def _api(self) -> ResponsesApi:
        self._opened = True
        return self._open()

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return a vector for each text, see `Embedder`. Cancelling closes the socket."""
        given = [self._masked(text) for text in texts]
        body: JsonObject = {"model": self._settings.model, "input": given}
        if self._settings.dimensions:
            body["dimensions"] = self._settings.dimensions
        # Who has no time to wait is told why it failed, and not that there was no time; what is learnt is still tried.
        left = trio.current_effective_deadline() - trio.current_time()
        wanted = self._settings.dimensions
        try:
            return await self._api.post(
                "/embeddings", body, lambda reply: _vectors(_counted(reply), len(texts), wanted), once=left <= _HURRY
            )
        except UpstreamError as error:
            raise EmbeddingFailed(f"The embeddings endpoint failed: {self._told(error)}") from error

    def _told(self, error: UpstreamError) -> str:
        """Return what an error says, with a cure that applies here in place of those for the answer tools."""
        if isinstance(error, KeyUnusable):
            return f"{error.cause} {error.remedy or 'Set it, or set manuals.embeddings.provider to none.'}"
        cause = _CLAUSE.split(str(error) if error.unquoted is None else error.unquoted, maxsplit=1)[0].rstrip(".")
        said = f": {error.said.rstrip('.')}" if error.said else ""
        address = "manuals.embeddings.base_url"
        if self._settings.base_url is None:
            address = f"openai.base_url ({address} is not set)"
        return f"{cause}{said}. Check {address}, manuals.embeddings.model and the network."

    async def aclose(self) -> None:
        """Close the connections, if there are any."""
        if self._opened:
            await self._api.aclose()


def _counted(reply: JsonObject) -> JsonObject:
    """Add what a reply says that it took to what the running call used, and return the reply."""
    used = USED.get()
    if used is not None:
        tokens = as_object(reply.get("usage")).get("total_tokens")
        if type(tokens) is int and 0 <= tokens <= _MOST_TOKENS:
            for name in ("input_tokens", "total_tokens"):
                used[name] = used.get(name, 0) + tokens
        used["attempts"] = used.get("attempts", 0) + 1
    return reply


def _vectors(reply: JsonObject, count: int, wanted: int) -> list[Sequence[float]]:
    """Return the vectors of a reply in the order of the texts, empty ones where it has none for a text.

    Raises `EmbeddingFailed` where a server embeds nothing, or in another length than it was asked for.
    """
    found: dict[object, Sequence[float]] = {}
    with suppress(AttributeError, KeyError, OverflowError, TypeError, ValueError):
        for place, item in enumerate(cast("list[JsonObject]", reply["data"])):
            found[item.get("index", place)] = array("f", cast("list[float]", item["embedding"]))
    vectors = [found.pop(index, ()) for index in range(count)]
    # A text may be like nothing, but a model that knows none of several is none.
    if count > 1 and not any(map(any, vectors)):
        raise EmbeddingFailed(
            "The embeddings endpoint answered only zeros; check manuals.embeddings.base_url and "
            "manuals.embeddings.model."
        )
    if wanted and len(vectors[0]) not in (0, wanted):
        raise EmbeddingFailed(
            f"The embeddings endpoint returned vectors of {len(vectors[0])} numbers, not {wanted}; set "
            "manuals.embeddings.dimensions to what the model can give, or to 0."
        )
    return [*vectors, *found.values()]
