"""From a Response to search results: the pages that the model lists, as far as its search has seen them.

Seen is what an annotation cites, a search names as a source, or the model opened. A link that the model lists and its
search has not seen is invented, and dropped; what the model does not list is added behind what it does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import chain, islice, repeat
from typing import Any, cast

from responses_mcp.errors import RequestRefused, ServiceFailed
from responses_mcp.json_types import JsonObject, as_object, objects, text_at
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.dates import read_date
from responses_mcp.responses_api.response.parser import MOST_ITEMS, answer_messages, joined_text, no_text, unnested
from responses_mcp.responses_api.response.web_pages import (
    address,
    host_of,
    is_within,
    page_key,
    shown,
    without_tracking,
)
from responses_mcp.sanitization import line_at
from responses_mcp.usage.bill import Usage

LONGEST_TITLE = 300  # characters
LONGEST_SNIPPET = 1_000
_LONGEST_TEXT = 256 * 1024  # characters of an answer that are looked at
_MOST_ITEMS = 500  # objects in it; a search is asked for 50
_MOST_BROKEN = 50  # beginnings of objects that are none: each may be read to the end of the text

# Commas behind the last member, and backslashes that escape nothing.
_BROKEN = re.compile(r',(?=\s{0,99}[}\]])|(\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))|\\')
_EMPTY_LIST = re.compile(r"\[\s*\]")
_WRITTEN_LINK = re.compile(r"\[[^\[\]]*\]\((\S+)\)")
_NUMBER = re.compile(r"[0-9]?\.?[0-9]{1,20}")

# What models call the members, without case and punctuation.
_NAMES = {
    "url": ("url", "link", "href"),
    "title": ("title", "name"),
    "snippet": ("snippet", "description", "summary"),
    "date": ("publisheddate", "publishedat", "published", "datepublished", "date"),
    "score": ("relevancescore", "relevance", "score"),
}

_MOST_SEEN = 2_000  # annotations, and sources, that are looked at
_MOST_CHARACTERS = 256 * 1024  # of the titles and URLs of either, and of claims, which may overlap
_LONGEST_REFUSAL = 200
_BULLET = re.compile(r"\A[\s.,;:。、]*(?:[-*+•>#]+\s+|[0-9]{1,3}[.)]\s+)*")
_LINK = re.compile(r"\[[^\[\]]*\]\((?:[^()\s]++|\([^()\s]*+\))*\)|https?://\S+|[()]")


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
        known = {"publishedDate": self.published_date, "relevanceScore": self.relevance_score}
        known = {name: value for name, value in known.items() if value is not None}
        return {"title": self.title, "url": self.url, "snippet": self.snippet, **known}


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What a search has found: `total_count` pages, of which `results` are the first. `dropped` links were invented.

    `usage` is what it took; None where nobody counted. `masked` is as in `Answer`.
    """

    results: tuple[SearchResult, ...]
    total_count: int
    dropped: int = 0
    usage: Usage | None = field(default=None, compare=False)
    masked: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)

    def as_json(self) -> JsonObject:
        """Return exactly the two members of the contract."""
        return {"results": [result.as_json() for result in self.results], "totalCount": self.total_count}


def read_results(
    response: JsonObject, *, limit: int, today: str, redact: Redact, blocked: Collection[str] = ()
) -> SearchResults:
    """Read at most `limit` results out of a finished Response: those the model lists, then cited, then other sources.

    Pages of `blocked` domains are none. `today` is the date of access; what the API said passes `redact`. Finding
    nothing is no error. Raises `UpstreamError` when the model declined or said nothing at all, and when no search came
    through.
    """
    items = list(objects(response.get("output"), repeat(None, MOST_ITEMS)))
    messages = answer_messages(items, MOST_ITEMS)
    text = joined_text(messages, "output_text", "text", redact)
    listed = listed_pages(text, today=today, redact=redact)
    searches = [item for item in items if item.get("type") == "web_search_call"]
    worked = [search for search in searches if search.get("status") != "failed"]
    cited = list(_cited(items, redact, claims=not listed))
    seen = _pages(chain(cited, _consulted(worked, redact)), redact)
    if not seen and not text.strip():
        if refusal := shown(joined_text(messages, "refusal", "refusal", redact), _LONGEST_REFUSAL, redact):
            raise RequestRefused(f"The model declined to search: {refusal}")
        raise no_text(items, redact, truncated=response.get("status") == "incomplete")
    if not seen and searches and not worked:
        raise ServiceFailed("The API's web search failed; try again later.")
    only_these = not listed and not cited and is_empty_list(text)  # none: nothing fits
    seen = {key: page for key, page in seen.items() if not is_within(page.url, blocked)}
    results: dict[str, SearchResult] = {}
    dropped = 0
    for page in listed:
        key = page_key(page.url) or ""
        if (known := seen.get(key)) is not None:
            results.setdefault(key, replace(page, title=page.title or known.title, url=known.url))
        elif not is_within(page.url, blocked):
            dropped += 1
    if not only_these:
        results |= {key: known for key, known in seen.items() if key not in results}
    return SearchResults(tuple(islice(results.values(), limit)), len(results), dropped)


def _pages(mentions: Iterable[SearchResult], redact: Redact) -> dict[str, SearchResult]:
    """Join mentions of one page: the first URL, and the first title and snippet that say anything."""
    pages: dict[str, SearchResult] = {}
    left = _MOST_CHARACTERS
    for mention in mentions:
        left -= len(mention.title) + len(mention.url)
        url = without_tracking(mention.url)
        key = page_key(url)
        if left < 0:
            break
        if key is not None:
            first = pages.get(key, SearchResult("", url, ""))
            title = first.title or shown(mention.title, LONGEST_TITLE, redact)
            pages[key] = SearchResult(title, first.url, first.snippet or mention.snippet)
    return {key: page if page.title else replace(page, title=host_of(page.url)) for key, page in pages.items()}


def _cited(items: list[JsonObject], redact: Redact, *, claims: bool) -> Iterator[SearchResult]:
    """Yield what annotations cite, in any message; with `claims` the words that they are cited for are the snippets."""
    looks, annotations = repeat(None, MOST_ITEMS), repeat(None, _MOST_SEEN)
    messages = (item for item in items if item.get("type") == "message")
    parts = [part for message in messages for part in objects(message.get("content"), looks)]
    said = "".join(text_at(part, "text") for part in parts)
    # Behind a mask the words of an annotation are elsewhere, and without it they may be half a secret.
    claims = claims and redact(said) == said
    left = _MOST_CHARACTERS
    for part in parts:
        text, done = text_at(part, "text") if claims else "", 0
        for annotation in map(unnested, objects(part.get("annotations"), annotations)):
            if annotation.get("type") != "url_citation":
                continue
            start, end = annotation.get("start_index"), annotation.get("end_index")
            if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text):
                start = end = 0
            covered = text[start : min(end, start + 4 * LONGEST_SNIPPET)]
            left -= len(covered)
            snippet = _claim(text[max(done, start - LONGEST_SNIPPET) : start], covered, redact) if left > 0 else ""
            done = max(done, end)
            url = address(line_at(annotation, "url", redact)) or ""
            yield SearchResult(line_at(annotation, "title", redact), url, snippet)


def _claim(before: str, covered: str, redact: Redact) -> str:
    """Return the words that an annotation covers; where they are a mere link, those before it on its line."""
    words = _BULLET.sub("", _LINK.sub("", covered)) or _BULLET.sub("", before.rpartition("\n")[2])
    return shown(words, LONGEST_SNIPPET, redact)


def _consulted(searches: list[JsonObject], redact: Redact) -> Iterator[SearchResult]:
    """Yield the sources of searches, and the pages that were opened."""
    looks = repeat(None, _MOST_SEEN)
    for search in searches:
        action = as_object(search.get("action"))
        for source in (action, *objects(action.get("sources"), looks)):
            yield SearchResult("", address(line_at(source, "url", redact)) or "", "")


# The list in a model's answer


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


def _with_url(value: JsonObject) -> Iterator[JsonObject]:
    """Yield the members of the objects with a URL in a value of JSON, under our names and in order."""
    left: list[Any] = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            each = cast(JsonObject, each)
            members = {re.sub(r"[\W_]", "", name).lower(): value for name, value in each.items()}
            found = {ours: next((members[n] for n in names if n in members), None) for ours, names in _NAMES.items()}
            if isinstance(found["url"], str) and (url := found["url"].strip()):
                link = _WRITTEN_LINK.fullmatch(url)
                yield {**found, "url": link[1] if link else url.removeprefix("<").removesuffix(">")}
            left += reversed(each.values())
        elif isinstance(each, list):
            left += reversed(cast(list[object], each))


def _shown(value: object, longest: int, redact: Redact) -> str:
    return shown(redact(value), longest, redact) if isinstance(value, str) else ""


def _score(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None  # NaN is not
