"""A question with its hints, read from what a caller gave (spec 6, step 2).

Leniently, because clients and models send numbers as strings and lists as JSON text; but nonsense is never sent on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from responses_mcp.errors import BadArgument
from responses_mcp.settings.model import SearchDefaults

MOST_DAYS: Final = 36_500
MOST_RESULTS: Final = 100

_JSON_BEGINS: Final = ("[", "{", '"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, with the hints that go along: days, number of results, domains to prefer (bare hosts or URLs)."""

    query: str
    recency_days: int
    max_results: int
    domains: Sequence[str] = ()


def read_question(arguments: Mapping[str, object], defaults: SearchDefaults) -> Question:
    """Return the question that the arguments ask; hints that are absent come from `defaults`.

    "5" is 5, a list may come as JSON text or as words, None and "" are absent, numbers are brought into range, and
    other arguments are ignored. An empty list of domains is none. Raises `BadArgument`, which names the argument.
    """
    query = read_query(arguments.get("query"))
    days = read_number("recency_days", arguments.get("recency_days"), least=0, most=MOST_DAYS)
    results = read_number("max_results", arguments.get("max_results"), least=1, most=MOST_RESULTS)
    domains = read_domains(arguments.get("domains"))
    return Question(
        query=query,
        recency_days=defaults.recency_days if days is None else days,
        max_results=defaults.max_results if results is None else results,
        domains=defaults.domains if domains is None else domains,
    )


def read_query(value: object) -> str:
    """Return the text of a question; a number is one too. Raises `BadArgument`."""
    text = None
    if isinstance(value, str) or _is_number(value):
        with suppress(ValueError):  # a number of thousands of digits
            text = str(value)
    if text is None:
        raise BadArgument("query is missing or is not a text; pass the question as the string argument `query`.")
    if not text.strip():
        raise BadArgument("query is empty; put the question into it.")
    return text


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and (type(value) is int or math.isfinite(value))
    )


def read_number(name: str, value: object, *, least: int, most: int, clamp: bool = True) -> int | None:
    """Return a hint as a whole number; None, a blank text and absent mean the default.

    A number out of bounds counts as the nearest within, and without `clamp` is refused. Raises `BadArgument`.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise BadArgument(f"{name} is not a number; pass a whole number from {least} to {most}, or leave it out.")
    if not clamp and not least <= round(number) <= most:
        raise BadArgument(f"{name} is not from {least} to {most}; pass such a number, or leave it out.")
    return max(least, min(most, round(number)))


def read_flag(name: str, value: object) -> bool:
    """Return whether something is wanted, also where that came as a text; None and a blank text are no.

    Raises `BadArgument`.
    """
    word = str(value).strip().lower() if isinstance(value, bool | str | None) else "?"
    if word not in ("true", "false", "none", "null", ""):
        raise BadArgument(f"{name} is not true or false; pass one of them, or leave it out.")
    return word == "true"


def read_seconds(name: str, value: object) -> float:
    """Return a time in seconds, which may be endless; None is none. Raises `BadArgument`."""
    seconds = math.nan
    if value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        with suppress(ValueError, OverflowError):
            seconds = float(value or 0)
    if not seconds >= 0:
        raise BadArgument(f"{name} is not a number of seconds; pass 0 or more, or leave it out.")
    return seconds


def read_domains(
    value: object, name: str = "domains", *, like: str = '["example.jp", "example.com"]', only: bool = False
) -> tuple[str, ...] | None:
    """Return domains from a list, a JSON list in a text, or a text with commas or blanks between.

    None is absent, and so are a blank text and `null`. A list without a name in it is none, whatever the settings
    prefer; but where `only` these are allowed, None or a blank among them is refused: all would be allowed for want of
    one. Raises `BadArgument`, which shows what it should be `like`, also for JSON that is cut off: no name begins as
    JSON does.
    """
    if isinstance(value, str) and (value.lstrip().startswith(_JSON_BEGINS) or value.strip() == "null"):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if _is_absent(value):
        return None
    listed = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [value]
    words = [each for each in listed if each is not None]
    if not all(isinstance(each, str) and not each.lstrip().startswith(_JSON_BEGINS) for each in words):
        raise BadArgument(f"{name} is not a list of strings; pass it like {like}, or leave it out.")
    if only and not all(map(_names, listed)):
        raise BadArgument(f"{name} has a name that is empty; pass it like {like}, or leave it out.")
    domains = [name for each in words for name in _names(each)]
    return tuple(dict.fromkeys(domains)) if domains or isinstance(value, list | tuple) else None


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _names(listed: object) -> list[str]:
    """Return the names in a member of a list, which may hold several."""
    return listed.replace(",", " ").split() if isinstance(listed, str) else []


def read_word(name: str, value: object) -> str | None:
    """Return a text without its outer blanks; None and a blank one are absent. Raises `BadArgument`."""
    if _is_absent(value):
        return None
    if not isinstance(value, str):
        raise BadArgument(f"{name} is not a text; pass it as a string, or leave it out.")
    return value.strip()


def read_object(name: str, value: object) -> Mapping[str, object] | None:
    """Return an object, also one that came as JSON text; None and a blank text are absent. Raises `BadArgument`."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = False
    if value is None or isinstance(value, Mapping):
        return cast("Mapping[str, object] | None", value)
    raise BadArgument(f"{name} is not an object; pass a JSON object, or leave it out.")
