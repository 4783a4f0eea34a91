"""`manuals index --embed`: say what vectors will cost, ask, and make them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import trio

from responses_mcp.commands.terminal import StatusLine, Stop, counted, remark, say, write
from responses_mcp.manuals.embeddings.embedder import Place, SectionsRefused
from responses_mcp.manuals.embeddings.pieces import Outstanding
from responses_mcp.manuals.service import Manuals
from responses_mcp.settings.model import EmbeddingsSettings

_MOST_LISTED: Final = 20


async def embed(
    manuals: Manuals, settings: EmbeddingsSettings, names: Sequence[str], options: argparse.Namespace
) -> dict[str, Any]:
    """Make the vectors that manuals lack, if the user agrees to what it costs; return what was done, for `--json`.

    What works on this machine costs nothing and needs no word, unless it deletes vectors of another model. Raises
    `EmbeddingFailed`, and `Stop` at the end where sections were refused; what is done stays.
    """
    wanted = {name: await manuals.outstanding(name) for name in names}
    total = Outstanding(*map(sum, zip(*wanted.values(), strict=True)))
    free = settings.provider == "wordllama"
    dollars = 0.0 if free else total.dollars(settings.model)
    document: dict[str, Any] = {
        "provider": settings.provider,
        "model": None if free else settings.model,
        "sections": total.sections,
        "tokens": total.tokens,
        "dollars": dollars,
        "replaced": total.replaced,
        "embedded": 0,
    }
    if not total.sections:
        _tell("All sections have their vectors.", options)
        return document
    what = f"{counted(total.sections, 'section')} without vectors, about {total.tokens:,} tokens"
    if free:
        _tell(f"{what}; wordllama makes them on this machine.", options)
    else:
        cost = "for a price not known here"
        if dollars is not None:
            about = f"about ${dollars:.2f}" if dollars >= 0.01 else "less than $0.01"  # a cent
            cost = f"{about} at OpenAI's list price"
        sent = "Its text is sent" if total.sections == 1 else "Their texts are sent"
        _tell(f"{what} for {settings.model}, {cost}. {sent} to {options.vectors_from}.", options)
    if total.replaced:
        _tell(f"That deletes the vectors of another model, which {total.replaced:,} of them have.", options)
    if (total.replaced or not free) and not options.yes and not await _agreed(options):
        return document
    refused: list[Place] = []
    why = ""
    for name, lacking in wanted.items():
        if not lacking.sections:
            continue
        with StatusLine() as status:
            show = partial(status.show_progress, name, all_of_it=lacking.sections, of="sections")
            try:
                document["embedded"] += await manuals.embed(name, on_progress=show, most=lacking.sections)
            except SectionsRefused as error:
                document["embedded"] += error.kept
                refused += error.places
                why = str(error)
    have = "has" if document["embedded"] == 1 else "have"
    _tell(f"{counted(document['embedded'], 'section')} {have} vectors now.", options)
    # A file has changed meanwhile, or the model's vectors have another length than before.
    left = sum([(await manuals.outstanding(name)).sections for name in names]) - len(refused)
    if left > 0:
        _tell(f"{left:,} sections lack vectors; run it again.", options)
    if refused:
        shown = ", ".join(map(str, refused[:_MOST_LISTED]))
        more = f" and {len(refused) - _MOST_LISTED:,} more" if len(refused) > _MOST_LISTED else ""
        raise Stop(
            f"{counted(len(refused), 'section')} got no vectors, because the provider refused the text: {shown}{more}.",
            f"{why} Shorten them, or use a model that takes longer texts.",
            details={"refused": [each._asdict() for each in refused]},
        )
    return document


def _tell(sentence: str, options: argparse.Namespace) -> None:
    (remark if options.json else say)(sentence)


async def _agreed(options: argparse.Namespace) -> bool:
    """Ask on a terminal, elsewhere say how to agree; tell whether the user does."""
    if options.json or not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        _tell("Nothing was sent or deleted; add --yes to go on.", options)
        return False
    write("Go on? [y/N] ")
    sys.stdout.flush()
    answer = await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    if answer.strip().lower() in ("y", "yes"):
        return True
    say("Nothing was sent or deleted.")
    return False
