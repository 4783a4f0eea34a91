"""Which embedder the settings ask for, and what it sends where. By default there is none, and nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responses_mcp.manuals.embeddings.embedder import Embedder
    from responses_mcp.responses_api.api import ResponsesApi
    from responses_mcp.settings.model import Settings


def open_embedder(settings: Settings, api: Callable[[], ResponsesApi] | None = None) -> Embedder | None:
    """Return what `manuals.embeddings` asks for, if anything; nothing is loaded or sent before its first use.

    `api` gives the connections that the answer tools use. They are used here, too, where `base_url` is theirs.
    """
    chosen = settings.manuals.embeddings
    if chosen.provider == "wordllama":
        from responses_mcp.manuals.embeddings.word_vectors import WordVectors  # noqa: PLC0415  # few have it

        return WordVectors()
    if chosen.provider == "none":
        return None
    # Few ask for it.
    from responses_mcp.manuals.embeddings.endpoint import EmbeddingsEndpoint  # noqa: PLC0415
    from responses_mcp.secrets import OutgoingText  # noqa: PLC0415

    openai = settings.openai

    def of_its_own() -> ResponsesApi:
        from responses_mcp.responses_api.api import ResponsesApi  # noqa: PLC0415

        return ResponsesApi(replace(openai, base_url=address_of(settings)), settings.request)

    shared = chosen.base_url in (None, openai.base_url)
    outgoing = OutgoingText(settings.privacy.outgoing_secrets, settings.openai.secrets)
    opening = api if shared and api is not None else of_its_own
    return EmbeddingsEndpoint(chosen, opening, lambda text: outgoing.masked(text).text)


def address_of(settings: Settings) -> str:
    """Return the base URL that the provider `api` asks: its own, or that of the answer tools."""
    return settings.manuals.embeddings.base_url or settings.openai.base_url


def what_is_sent(settings: Settings) -> str | None:
    """Return what leaves this machine for the embeddings of manuals, in words for a person; None for nothing."""
    chosen = settings.manuals.embeddings
    if chosen.provider != "api":
        return None
    openai = settings.openai
    return (
        f"the texts of the manuals (when 'manuals index --embed' runs) and the question of each "
        f"search are sent to {address_of(settings)}/embeddings, for the model {chosen.model}, "
        f"with the key of {openai.api_key_env} if there is one"
    )
