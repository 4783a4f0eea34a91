"""Filling the index with vectors, a batch of sections at a time, a few batches at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, NamedTuple

import trio

from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed, TextsRefused, vectors_of
from responses_mcp.manuals.embeddings.pieces import Section

MOST_TEXTS: Final = 32  # in one request; there are servers that take no more
MOST_CHARACTERS: Final = 40_000
_AT_ONCE: Final = 4  # requests
_MOST_REFUSED: Final = 32  # sections in a row: then it is not for their texts

Vectors = Sequence[Sequence[float]]


class Filled(NamedTuple):
    """How many sections were kept, and which were refused, with the reason."""

    kept: int
    refused: Sequence[tuple[Section, TextsRefused]]


async def embedded(embedder: Embedder, sections: Sequence[Section]) -> list[tuple[Section, Vectors]]:
    """Return the sections with the vectors of their texts. One request. Raises `EmbeddingFailed`."""
    texts = [section.texts for section in sections]
    found = iter(await vectors_of(embedder, [text for each in texts for text in each]))
    return [(section, [next(found) for _ in each]) for section, each in zip(sections, texts, strict=True)]


def batch(sections: Sequence[Section]) -> list[Section]:
    """Return the first sections, as many as fit into one request; one at least."""
    texts = characters = 0
    for number, section in enumerate(sections):
        texts += len(section.texts)
        characters += sum(map(len, section.texts))
        if number and (texts > MOST_TEXTS or characters > MOST_CHARACTERS):
            return list(sections[:number])
    return list(sections)


async def fill(
    embedder: Embedder,
    following: Callable[[int], Awaitable[Sequence[Section]]],
    keep: Callable[[Sequence[tuple[Section, Vectors]]], Awaitable[int]],
    report: Callable[[int], None],
    most: int | None = None,
) -> Filled:
    """Embed all sections, or so many at most, those of a batch that is refused one by one.

    `following` gives some of the sections without vectors whose ids are above a number, `keep` writes those of a batch
    in one transaction and counts them. `report` is told how many are done. What is kept stays when this fails or is
    cancelled; what is under way at a failure, and may be paid for, is still kept. Raises `EmbeddingFailed`.
    """
    turn = trio.Lock()
    last, done, in_a_row = -1, 0, 0
    lengths = set[int]()
    refused: list[tuple[Section, TextsRefused]] = []
    failures: list[Exception] = []

    async def send(sections: Sequence[Section]) -> None:
        nonlocal lengths, done, in_a_row
        try:
            found = await embedded(embedder, sections)
        except TextsRefused as refusal:
            if len(sections) == 1:
                refused.append((sections[0], refusal))
                in_a_row += 1
                if in_a_row >= _MOST_REFUSED:
                    raise
            for each in sections if len(sections) > 1 else ():
                if not failures:
                    await send([each])
            return
        in_a_row = 0
        seen = lengths | {len(vector) for _, vectors in found for vector in vectors}
        require_one_length(seen)
        lengths = seen
        kept = await keep(found)  # meanwhile, others count theirs
        done += kept
        report(done)

    async def work() -> None:
        nonlocal last, most
        try:
            while not failures:
                async with turn:
                    sections = batch((await following(last))[:most])
                    if not sections:
                        return
                    last = sections[-1].id
                    most = None if most is None else most - len(sections)
                await send(sections)
        except Exception as failure:  # noqa: BLE001  # raised below, in no group
            failures.append(failure)

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(work)
    if failures:
        raise failures[0]
    return Filled(done, refused)


def require_one_length(lengths: Collection[int]) -> None:
    """Raise `EmbeddingFailed` if vectors of one model have several lengths."""
    if len(lengths) > 1:  # to keep vectors of another length throws away the others, which may have been paid for
        least, most = min(lengths), max(lengths)
        raise EmbeddingFailed(f"The provider gave vectors of {least} and of {most} numbers; use one model.")
