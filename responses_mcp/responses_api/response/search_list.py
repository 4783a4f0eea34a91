"""The list of pages in a model's answer, read leniently: in a fence, amid text, broken in places, or cut off.

`json_schema` output would be strict, and would cost the annotations that tell which pages were really found. So the
model is asked for a list in plain text, and whatever objects with a URL are in the answer are its items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import cast

from responses_mcp.json_types import JsonObject
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.dates import read_date
from responses_mcp.responses_api.response.web_pages import shown

LONGEST_TITLE = 300  # characters
LONGEST_SNIPPET = 1_000
_LONGEST_TEXT = 256 * 1024  # characters of an answer that are looked at, and of all objects in it, within each other
_LONGEST_ITEM = 16 * 1024
_MOST_ITEMS = 500  # objects in it; a search is asked for 50

# Within an object only: a quotation mark in the words around it begins no string. A string that never ends is one too.
_MARK = re.compile(r'[{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_REPAIRED = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})|\\')
_EMPTY_LIST = re.compile(r"\[\s*\]")
_LINK = re.compile(r"\[[^\[\]]*\]\((\S+)\)")
_NUMBER = re.compile(r"[0-9]?\.?[0-9]{1,20}")

# What models call the members, without case and punctuation.
_NAMES = {
    "url": ("url", "link", "href"),
    "title": ("title", "name"),
    "snippet": ("snippet", "description", "summary"),
    "date": ("publisheddate", "publishedat", "published", "datepublished", "date"),
    "score": ("relevancescore", "relevance", "score"),
}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page. `published_date` is ISO and the page's own; `relevance_score` is from 0 to 1."""

    title: str
    url: str
    snippet: str
    published_date: str | None = None
    relevance_score: float | None = None

    def as_json(self) -> JsonObject:
        """Return the object of the contract; what is not known is left out."""
        found: JsonObject = {"title": self.title, "url": self.url, "snippet": self.snippet}
        if self.published_date is not None:
            found["publishedDate"] = self.published_date
        if self.relevance_score is not None:
            found["relevanceScore"] = self.relevance_score
        return found


def listed_pages(text: str, *, today: str, redact: Redact) -> list[SearchResult]:
    """Return the pages that an answer lists, in its order and with their URLs as the model wrote them.

    Titles and snippets may be empty. `today` is the newest date that is believed.
    The texts of the items pass `redact`: JSON may have escaped what nobody found in the answer as a whole.
    """
    pages: list[SearchResult] = []
    for item in map(_parsed, islice(_objects_in(text[:_LONGEST_TEXT]), _MOST_ITEMS)):
        members = {re.sub(r"[\W_]", "", name).lower(): value for name, value in item.items()}
        found = {field: next((members[n] for n in names if n in members), None) for field, names in _NAMES.items()}
        url = found["url"]
        if isinstance(url, str) and url.strip():
            pages.append(
                SearchResult(
                    _shown(found["title"], LONGEST_TITLE, redact),
                    redact(_bare(url)),
                    _shown(found["snippet"], LONGEST_SNIPPET, redact),
                    _date(found["date"], today),
                    _score(found["score"]),
                )
            )
    return pages


def is_empty_list(text: str) -> bool:
    """Tell whether an answer that lists no page has an empty list in it: nothing fits, as opposed to no list."""
    return _EMPTY_LIST.search(text[:_LONGEST_TEXT]) is not None


def _objects_in(text: str) -> Iterator[str]:
    """Yield the text of each object that ends, the inner before the outer. One pass, whatever the text is."""
    starts: list[int] = []
    place, left = 0, _LONGEST_TEXT
    while True:
        if not starts:
            place = text.find("{", place)
            if place < 0:
                return
        mark = _MARK.search(text, place)
        if mark is None:
            return
        place = mark.end()
        if mark[0] == "{":
            starts.append(mark.start())
        elif mark[0] == "}":
            start = starts.pop()
            if place - start <= min(_LONGEST_ITEM, left):
                left -= place - start
                yield text[start:place]


def _parsed(text: str) -> JsonObject:
    """Return the object that `text` is, after repairs if it needs any; the empty one if they do not help."""
    with suppress(ValueError, RecursionError):
        return cast(JsonObject, json.loads(text, strict=False))
    with suppress(ValueError, RecursionError):
        return cast(JsonObject, json.loads(_repaired(text), strict=False))
    return {}


def _repaired(text: str) -> str:
    """Drop commas behind the last member, and backslashes that escape nothing."""
    text = _REPAIRED.sub(lambda found: found[1] or "", text)
    return _ESCAPE.sub(lambda found: "" if found[0] == "\\" else found[0], text)


def _bare(url: str) -> str:
    """Return a URL out of the link or the angle brackets around it."""
    url = url.strip()
    link = _LINK.fullmatch(url)
    return link[1] if link else url.removeprefix("<").removesuffix(">")


def _shown(value: object, longest: int, redact: Redact) -> str:
    return shown(redact(value), longest, redact) if isinstance(value, str) else ""


def _date(value: object, today: str) -> str | None:
    # A day more: on some islands tomorrow has begun.
    return read_date(value, date.fromisoformat(today) + timedelta(days=1))


def _score(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN is not
