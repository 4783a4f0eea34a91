"""What of a section is turned into vectors: pieces of its text, each with its title and the headings above it.

Also how many tokens that is, roughly, and what they cost.
"""

from __future__ import annotations

from typing import Final, NamedTuple

FORM: Final = 1
"""Names this way of cutting: vectors of texts that were cut in another way are not compared."""

PIECE: Final = 1_400  # characters: what small models take, and few enough for one subject
MOST_PIECES: Final = 4  # of a row, so that a search compares 1,600 vectors at most
_LONGEST_HEAD: Final = 200  # characters
_CHARACTERS_A_TOKEN: Final = 4  # of alphabets; of kana and kanji it is about one
_DOLLARS: Final = {  # for a million tokens
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}


class Section(NamedTuple):
    """A row of the index: its id, its title, the headings above it, and its text."""

    id: int
    title: str
    crumbs: str
    body: str

    @property
    def texts(self) -> list[str]:
        """Return what is embedded of it, a text at least."""
        head = " > ".join(filter(None, (self.crumbs, self.title)))[-_LONGEST_HEAD:]
        pieces = [self.body[at : at + PIECE] for at in range(0, min(len(self.body), PIECE * MOST_PIECES), PIECE)]
        return [f"{head}\n{piece}" for piece in pieces or [""]]


class Outstanding(NamedTuple):
    """What has no vectors yet: so many sections, of so many tokens, which are an estimate.

    So many of them have vectors of another model, which will be `replaced`.
    """

    sections: int
    tokens: int
    replaced: int

    def dollars(self, model: str) -> float | None:
        """Return what that costs at OpenAI's list price, None for a model whose price is not known."""
        price = _DOLLARS.get(model)
        return None if price is None else self.tokens * price / 1_000_000


def outstanding(sections: int, characters: int, size: int, replaced: int) -> Outstanding:
    """Return how much sections of so many characters are, which take `size` bytes."""
    wide = (size - characters) // 2  # characters of three bytes each
    return Outstanding(sections, (characters - wide) // _CHARACTERS_A_TOKEN + wide, replaced)
