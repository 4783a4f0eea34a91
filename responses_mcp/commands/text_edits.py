"""Changing a text of others in places: what is not named by an edit stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""A string of JSON or TOML on one line, with DOTALL; one that never ends is one too, so that nobody looks again."""


class Unmergeable(Exception):  # the cause, as the second half of a sentence
    """The text cannot be read, or has no place for an entry; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Puts `text` in place of what is between two offsets; with equal offsets it only inserts."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with the edits made, which come in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def as_table(value: object) -> dict[str, Any] | None:
    """Return an object of JSON or a table of TOML as what it is, None for any other value."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None
