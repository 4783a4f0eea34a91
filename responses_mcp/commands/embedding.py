"""`manuals index --embed`: say what vectors will cost, ask, and make them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from responses_mcp.commands.terminal import StatusLine, counted, remark, say
from responses_mcp.manuals.embeddings.provider import address_of
from responses_mcp.manuals.index.pieces import Outstanding
from responses_mcp.manuals.service import Manuals
from responses_mcp.settings.model import Settings

_DOLLARS: Final = {  # for a million tokens, at OpenAI's list prices
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}


async def embed(
    manuals: Manuals, settings: Settings, names: Sequence[str], options: argparse.Namespace
) -> dict[str, Any]:
    """Make the vectors that manuals lack, if the user agrees to what it costs; return what was done, for `--json`.

    What works on this machine costs nothing and needs no word. Raises `EmbeddingFailed`; what is done stays.
    """
    tell = remark if options.json else say
    chosen = settings.manuals.embeddings
    wanted = {name: await manuals.outstanding(name) for name in names}
    total = Outstanding(*map(sum, zip(*wanted.values(), strict=True)))
    free = chosen.provider == "wordllama"
    price = 0.0 if free else _DOLLARS.get(chosen.model)
    dollars = None if price is None else total.tokens * price / 1_000_000
    document: dict[str, Any] = {
        "provider": chosen.provider,
        "model": None if free else chosen.model,
        "sections": total.sections,
        "tokens": total.tokens,
        "dollars": dollars,
        "embedded": 0,
    }
    if not total.sections:
        tell("All sections have their vectors.")
        return document
    what = f"{counted(total.sections, 'section')} without vectors, about {total.tokens:,} tokens"
    if free:
        tell(f"{what}; wordllama makes them on this machine.")
    else:
        cost = "at an unknown price" if dollars is None else f"about ${dollars:.2f} at OpenAI's list price"
        tell(f"{what} for {chosen.model}, {cost}. The text is sent to {address_of(settings)}.")
    if not free and not options.yes:
        tell("Nothing was sent; add --yes to send the text.")
        return document
    for name, lacking in wanted.items():
        if not lacking.sections:
            continue
        with StatusLine() as status:

            def show(done: int, of: str = f"{lacking.sections:,} sections of {name}", on: StatusLine = status) -> None:
                on.show(f"vectors for {done:,} of {of}")

            document["embedded"] += await manuals.embed(name, on_progress=show, most=lacking.sections)
    tell(f"{counted(document['embedded'], 'section')} got vectors.")
    return document
