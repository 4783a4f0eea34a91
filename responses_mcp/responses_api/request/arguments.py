"""What callers pass to the tools, read and checked.

Reading is lenient (spec 6, step 2), because clients and models send numbers as strings and lists as JSON text; a number
is also a query. None and blank text count as absent, and unknown arguments are ignored. Every refusal is a
`BadArgument` with the name of the argument, its value and what it must be.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final, cast

from responses_mcp.errors import BadArgument
from responses_mcp.json_types import replace_lone_surrogates, unquoted
from responses_mcp.settings.model import SearchDefaults

MOST_DAYS: Final = 36_500
MOST_ANSWER_RESULTS: Final = 100
LONGEST_QUERY: Final = 4_000  # characters of a search
MOST_RESULTS: Final = 50
USUAL_LIMIT: Final = 10
ANY_LANGUAGE: Final = "auto"
TIMEFRAMES: Final = {"recent": 7, "past_week": 7, "past_month": 30, "past_year": 365}  # days

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,20}(?:[-_][A-Za-z0-9]{1,8}){0,4}")
_TIMEFRAME: Final = re.compile("|".join(TIMEFRAMES))
_ANY: Final = re.compile(r".*", re.DOTALL)
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
    """Return the question that the arguments ask; hints that are absent come from `defaults`.

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
    """Return the search that the arguments ask for; what is out of bounds is refused."""
    query = replace_lone_surrogates(read_query(arguments.get("query"), most=LONGEST_QUERY)).strip()
    limit = read_number("limit", arguments.get("limit"), least=1, most=MOST_RESULTS, bounded=True)
    tag = f'a language tag such as "ja" or "en", or "{ANY_LANGUAGE}"'
    language = read_word("language", arguments.get("language"), _LANGUAGE, tag) or ANY_LANGUAGE
    timeframe = read_word("timeframe", arguments.get("timeframe"), _TIMEFRAME, f"one of {', '.join(TIMEFRAMES)}")
    language = ANY_LANGUAGE if language.lower() == ANY_LANGUAGE else language
    return SearchQuery(query=query, limit=limit or USUAL_LIMIT, language=language, timeframe=timeframe)


def read_query(value: object, most: float = math.inf) -> str:
    """Return the text of a question, which may have come as a number; `most` characters, without its outer blanks."""
    text = value if isinstance(value, str) else str(value) if math.isfinite(_as_number(value)) else ""
    if not 1 <= len(text.strip()) <= most:
        bounds = "" if most == math.inf else f" of 1 to {most} characters"
        raise _refused("query", value, f"the question, as a text{bounds}")
    return text


def read_number(name: str, value: object, *, least: int, most: int, bounded: bool = False) -> int | None:
    """Return a number, rounded to a whole one; None if it is absent.

    Where it is out of bounds, it is the nearest within, or refused if `bounded`.
    """
    if value is None or _is_absent(value):
        return None
    number = _as_number(value)
    if not math.isfinite(number) or (bounded and not least <= round(number) <= most):
        raise _refused(name, value, f"a whole number from {least} to {most}")
    return max(least, min(most, round(number)))


def read_seconds(name: str, value: object) -> float:
    """Return a time in seconds, which may be endless; what is absent is none."""
    seconds = 0.0 if _is_absent(value) else _as_number(value)
    if not seconds >= 0:
        raise _refused(name, value, "a number of seconds, 0 or more")
    return seconds


def read_flag(name: str, value: object) -> bool:
    """Return whether something is wanted, also where that came as a text; what is absent is not."""
    word = str(value).strip().lower() if isinstance(value, bool | str | None) else "?"
    if word not in ("true", "false", "none", "null", ""):
        raise _refused(name, value, "true or false")
    return word == "true"


def read_word(name: str, value: object, pattern: re.Pattern[str] = _ANY, allowed: str = "a text") -> str | None:
    """Return a text without its outer blanks; None if it is absent. What `pattern` does not match is refused."""
    if _is_absent(value):
        return None
    if not (isinstance(value, str) and pattern.fullmatch(value.strip())):
        raise _refused(name, value, allowed)
    return value.strip()


def read_object(name: str, value: object) -> Mapping[str, object] | None:
    """Return an object, also one that came as JSON text; None if it is absent."""
    if _is_absent(value):
        return None
    found = unquoted(value)
    if found is None or isinstance(found, Mapping):
        return cast("Mapping[str, object] | None", found)
    raise _refused(name, value, "a JSON object")


def read_domains(
    value: object, name: str = "domains", *, like: str = '["example.jp", "example.com"]', only: bool = False
) -> tuple[str, ...] | None:
    """Return names from a list, a JSON list in a text, or a text with commas or blanks between; None if absent.

    A list without a name in it is empty. Where `only` these are allowed, None or a blank among them is refused: all
    would be allowed for want of one. JSON that is cut off is refused, too: no name begins like that.
    """
    given = unquoted(value)
    if given is None or _is_absent(given):
        return None
    names: list[list[str]] = []
    for each in cast("Sequence[object]", given) if isinstance(given, list | tuple) else [given]:
        if not isinstance(each, str | None) or (each or "").lstrip().startswith(_JSON_BEGINS):
            raise _refused(name, value, f"a list of strings like {like}")
        names.append((each or "").replace(",", " ").split())
    if only and not all(names):
        raise BadArgument(f"{name} has an empty name; it must be a list of strings like {like}.")
    found = tuple(dict.fromkeys(chain.from_iterable(names)))
    return found if found or isinstance(given, list | tuple) else None


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _as_number(value: object) -> float:
    """Return a number, also one that came as a text; "not a number" for everything else."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return float(value)
    return math.nan


def _refused(name: str, value: object, allowed: str) -> BadArgument:
    return BadArgument(f"{name} is {_shown(value)}; it must be {allowed}.")


def _shown(value: object) -> str:
    if _is_absent(value):
        return "missing" if value is None else "empty"
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"a text of {len(value)} characters"  # not its beginning: half a secret would not be recognised
    if isinstance(value, int) and abs(value) >= 10**_LONGEST_VALUE:
        return "a number of too many digits"  # Python refuses to write one of thousands
    if isinstance(value, str | int | float):
        return replace_lone_surrogates(json.dumps(value, ensure_ascii=False))
    return "an object" if isinstance(value, Mapping) else "a list" if isinstance(value, list | tuple) else "no JSON"
