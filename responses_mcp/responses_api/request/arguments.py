"""What callers pass to the tools, read and checked: one reader, with a strictness where the contracts differ.

The answer tools (spec 6, step 2) and research read leniently, because clients and models send numbers as strings and
lists as JSON text; a number is also a query. `chatgpt_o3_search` (docs/search.md) refuses whatever it does not list,
with the value and what is allowed, so a query must be a text there. Neither sends nonsense on. Every refusal is a
`BadArgument` that names the argument; None counts as absent, and unknown arguments are ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from responses_mcp.errors import BadArgument
from responses_mcp.json_types import replace_lone_surrogates
from responses_mcp.settings.model import SearchDefaults

MOST_DAYS: Final = 36_500
MOST_ANSWER_RESULTS: Final = 100
LONGEST_QUERY: Final = 4_000  # characters of a search
MOST_RESULTS: Final = 50
USUAL_LIMIT: Final = 10
ANY_LANGUAGE: Final = "auto"
TIMEFRAMES: Final = {"recent": 7, "past_week": 7, "past_month": 30, "past_year": 365}  # days

Strictness: TypeAlias = Literal["clamped", "bounded", "strict"]
"""What happens to a number out of bounds: the nearest within, or a refusal. "strict" takes whole numbers alone."""

_WHOLE: Final = re.compile(r"\s*[0-9]{1,4}(?:\.0*)?\s*")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,20}(?:[-_][A-Za-z0-9]{1,8}){0,4}")
_JSON_BEGINS: Final = ("[", "{", '"')
_LONGEST_VALUE: Final = 40  # characters of a wrong value that are repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, with the hints that go along: days, number of results, domains to prefer (bare hosts or URLs)."""

    query: str
    recency_days: int
    max_results: int
    domains: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to search for, and within which bounds."""

    query: str
    limit: int = USUAL_LIMIT
    language: str = ANY_LANGUAGE
    timeframe: str | None = None


def read_question(arguments: Mapping[str, object], defaults: SearchDefaults) -> Question:
    """Return the question that the arguments ask, leniently; hints that are absent come from `defaults`.

    An empty list of domains is none, whatever `defaults` prefer.
    """
    query = read_query(arguments.get("query"))
    days = read_number("recency_days", arguments.get("recency_days"), least=0, most=MOST_DAYS)
    results = read_number("max_results", arguments.get("max_results"), least=1, most=MOST_ANSWER_RESULTS)
    domains = read_domains(arguments.get("domains"))
    return Question(
        query=query,
        recency_days=defaults.recency_days if days is None else days,
        max_results=defaults.max_results if results is None else results,
        domains=defaults.domains if domains is None else domains,
    )


def read_search_query(arguments: Mapping[str, object]) -> SearchQuery:
    """Return the search that the arguments ask for, strictly."""
    allowed = f"a text of 1 to {LONGEST_QUERY} characters"
    value, language, timeframe = (arguments.get(name) for name in ("query", "language", "timeframe"))
    if not isinstance(value, str):
        raise _refused("query", value, allowed)
    query = replace_lone_surrogates(value).strip()
    if not 1 <= len(query) <= LONGEST_QUERY:
        size = f"has {len(query)} characters" if query else "is empty"
        raise BadArgument(f"query {size}; it must be {allowed}.")
    limit = read_number("limit", arguments.get("limit"), least=1, most=MOST_RESULTS, strictness="strict")
    tag = language.strip() if isinstance(language, str) else ""
    if language not in (None, "") and not _LANGUAGE.fullmatch(tag):  # "" as the contract's own code takes it
        raise _refused("language", language, f'a language tag such as "ja" or "en", or "{ANY_LANGUAGE}"')
    if not (timeframe is None or (isinstance(timeframe, str) and timeframe in TIMEFRAMES)):
        raise _refused("timeframe", timeframe, f"one of {', '.join(TIMEFRAMES)}")
    return SearchQuery(
        query=query,
        limit=USUAL_LIMIT if limit is None else limit,
        language=ANY_LANGUAGE if tag.lower() in ("", ANY_LANGUAGE) else tag,
        timeframe=timeframe,
    )


def read_query(value: object) -> str:
    """Return the text of a question; a number is one too."""
    if not isinstance(value, str) and not math.isfinite(_as_number(value)):
        raise BadArgument("query is missing or is not a text; pass the question as the string argument `query`.")
    if not (text := str(value)).strip():
        raise BadArgument("query is empty; put the question into it.")
    return text


def read_number(name: str, value: object, *, least: int, most: int, strictness: Strictness = "clamped") -> int | None:
    """Return a whole number, also one that came as a text; None if it is absent, or blank and not strict."""
    if value is None or (strictness != "strict" and _is_absent(value)):
        return None
    number, allowed = _as_number(value), f"a whole number from {least} to {most}"
    if strictness == "strict":
        is_whole = number.is_integer() and (not isinstance(value, str) or _WHOLE.fullmatch(value))
        if not (is_whole and least <= number <= most):
            raise _refused(name, value, allowed)
    if not math.isfinite(number):
        raise BadArgument(f"{name} is not a number; pass {allowed}, or leave it out.")
    if strictness == "bounded" and not least <= round(number) <= most:
        raise BadArgument(f"{name} is not from {least} to {most}; pass such a number, or leave it out.")
    return max(least, min(most, round(number)))


def read_seconds(name: str, value: object) -> float:
    """Return a time in seconds, which may be endless; what is absent is none."""
    seconds = 0.0 if _is_absent(value) else _as_number(value)
    if not seconds >= 0:
        raise BadArgument(f"{name} is not a number of seconds; pass 0 or more, or leave it out.")
    return seconds


def read_flag(name: str, value: object) -> bool:
    """Return whether something is wanted, also where that came as a text; what is absent is not."""
    word = str(value).strip().lower() if isinstance(value, bool | str | None) else "?"
    if word not in ("true", "false", "none", "null", ""):
        raise BadArgument(f"{name} is not true or false; pass one of them, or leave it out.")
    return word == "true"


def read_word(name: str, value: object) -> str | None:
    """Return a text without its outer blanks; None if it is absent or blank."""
    if _is_absent(value):
        return None
    if not isinstance(value, str):
        raise BadArgument(f"{name} is not a text; pass it as a string, or leave it out.")
    return value.strip()


def read_object(name: str, value: object) -> Mapping[str, object] | None:
    """Return an object, also one that came as JSON text; None if it is absent or blank."""
    if _is_absent(value):
        return None
    found = _decoded(value) if isinstance(value, str) else value
    if found is None or isinstance(found, Mapping):
        return cast("Mapping[str, object] | None", found)
    raise BadArgument(f"{name} is not an object; pass a JSON object, or leave it out.")


def read_domains(
    value: object, name: str = "domains", *, like: str = '["example.jp", "example.com"]', only: bool = False
) -> tuple[str, ...] | None:
    """Return names from a list, a JSON list in a text, or a text with commas or blanks between; None if absent.

    A list without a name in it is empty. Where `only` these are allowed, None or a blank among them is refused: all
    would be allowed for want of one. A refusal shows what it should be `like`, also for JSON that is cut off: no name
    begins as JSON does.
    """
    if isinstance(value, str) and (value.lstrip().startswith(_JSON_BEGINS) or value.strip() == "null"):
        value = _decoded(value)
    if _is_absent(value):
        return None
    names: list[list[str]] = []
    for each in cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]:
        if not isinstance(each, str | None) or (each or "").lstrip().startswith(_JSON_BEGINS):
            raise BadArgument(f"{name} is not a list of strings; pass it like {like}, or leave it out.")
        names.append((each or "").replace(",", " ").split())
    if only and not all(names):
        raise BadArgument(f"{name} has a name that is empty; pass it like {like}, or leave it out.")
    found = tuple(dict.fromkeys(one for several in names for one in several))
    return found if found or isinstance(value, list | tuple) else None


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_number(value: object) -> float:
    """Return a number, also one that came as a text; "not a number" for everything else."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return float(value)
    return math.nan


def _decoded(text: str) -> object:
    """Return what a JSON text says, and any other text as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _refused(name: str, value: object, allowed: str) -> BadArgument:
    return BadArgument(f"{name} is {_shown(value)}; it must be {allowed}.")


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"a text of {len(value)} characters"  # not its beginning: half a secret would not be recognised
    if isinstance(value, int) and abs(value) >= 10**1000:
        return "a number of too many digits"  # Python refuses to write one of thousands
    text = replace_lone_surrogates(json.dumps(value, ensure_ascii=False, default=repr))
    return text if isinstance(value, str) or len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
