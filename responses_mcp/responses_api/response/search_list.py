"""The list of pages in a model's answer, read leniently: in a fence, amid text, broken in places, or cut off.

`json_schema` output would be strict, and would cost the annotations that tell which pages were really found. So the
model is asked for a list in plain text, and whatever objects with a URL are in the answer are its items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from typing import Any

from responses_mcp.json_types import JsonObject
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.dates import read_date
from responses_mcp.responses_api.response.web_pages import shown

LONGEST_TITLE = 300  # characters
LONGEST_SNIPPET = 1_000
_LONGEST_TEXT = 256 * 1024  # characters of an answer that are looked at
_MOST_ITEMS = 500  # objects in it; a search is asked for 50
_MOST_BROKEN = 50  # beginnings of objects that are none: each may be read to the end of the text

# Commas behind the last member, and backslashes that escape nothing.
_BROKEN = re.compile(r',(?=\s{0,99}[}\]])|(\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))|\\')
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
    text = text[:_LONGEST_TEXT]
    items, broken = _items(text)
    if broken:
        items = max(items, _items(_BROKEN.sub(lambda found: found[1] or "", text))[0], key=len)
    tomorrow = date.fromisoformat(today) + timedelta(days=1)  # on some islands it has begun
    return [
        SearchResult(
            _shown(item["title"], LONGEST_TITLE, redact),
            redact(item["url"]),
            _shown(item["snippet"], LONGEST_SNIPPET, redact),
            read_date(item["date"], tomorrow),
            _score(item["score"]),
        )
        for item in items
    ]


def is_empty_list(text: str) -> bool:
    """Tell whether an answer that lists no page has an empty list in it: nothing fits, as opposed to no list."""
    return _EMPTY_LIST.search(text[:_LONGEST_TEXT]) is not None


def _items(text: str) -> tuple[list[JsonObject], int]:
    """Return the members of each object that has a URL, and how many objects did not end or were no JSON."""
    items: list[JsonObject] = []
    broken, at = 0, text.find("{")
    decoder = json.JSONDecoder(strict=False)
    while at >= 0 and broken < _MOST_BROKEN:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            broken, at = broken + 1, at + 1
        else:
            items += islice(_with_url(value), _MOST_ITEMS - len(items))
        at = text.find("{", at)
    return items, broken


def _with_url(value: Any) -> Iterator[JsonObject]:
    """Yield the members of the objects with a URL in a value of JSON, under our names and in order."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            members = {re.sub(r"[\W_]", "", name).lower(): value for name, value in each.items()}
            found = {ours: next((members[n] for n in names if n in members), None) for ours, names in _NAMES.items()}
            if isinstance(found["url"], str) and (url := found["url"].strip()):
                link = _LINK.fullmatch(url)
                yield {**found, "url": link[1] if link else url.removeprefix("<").removesuffix(">")}
            each = list(each.values())
        if isinstance(each, list):
            left += reversed(each)


def _shown(value: object, longest: int, redact: Redact) -> str:
    return shown(redact(value), longest, redact) if isinstance(value, str) else ""


def _score(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN is not
