"""From a Response to search results: the pages that the model lists, as far as its search has seen them.

Seen is what an annotation cites, a search names as a source, or the model opened. A link that the model lists and its
search has not seen is invented, and dropped; what the model does not list is added behind what it does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import repeat

from responses_mcp.errors import RequestRefused, ServiceFailed
from responses_mcp.json_types import JsonObject, objects, text_at
from responses_mcp.responses_api.response.parser import (
    MOST_SOURCES,
    annotations_of,
    answer_messages,
    joined_text,
    no_text,
    output_items,
    search_actions,
)
from responses_mcp.responses_api.response.sources import read_date
from responses_mcp.responses_api.response.web_pages import LINK, address, is_within, page_key, shown
from responses_mcp.sanitization import line_at
from responses_mcp.secrets import Redact
from responses_mcp.usage.models import Usage

_LONGEST_TITLE = 300  # characters
_LONGEST_SNIPPET = 1_000  # or refusal
_LONGEST_TEXT = 256 * 1024  # characters of an answer that are looked at
_MOST_LISTED = 500  # pages in it; a search is asked for 50
_MOST_BROKEN = 100  # beginnings of objects that are none: each may be read to the end of the text

# Commas behind the last member, and backslashes that escape nothing.
_BROKEN = re.compile(r',(?=\s{0,99}[}\]])|(\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))|\\')
_EMPTY_LIST = re.compile(r"\[\s*\]")
_WRAPPED = re.compile(r"\A(?:\[[^\[\]]*\]\(|<)(\S+)[)>]\Z")
_CITING = re.compile(rf"\(?(?:{LINK}|https?://\S+)[),;.]*")
_BULLET = re.compile(r"\A[\s.,;:。、)]*(?:[-*+•>#]+\s+|[0-9]{1,3}[.)]\s+)*")

# What models call the members instead, without case and underscores.
_OTHER_NAMES = {"link": "url", "description": "snippet", "date": "publisheddate", "score": "relevancescore"}


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
        more = {"publishedDate": self.published_date, "relevanceScore": self.relevance_score}
        known = {name: value for name, value in more.items() if value is not None}
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
    items = output_items(response)
    messages = answer_messages(items)
    text = joined_text(messages, "output_text", "text", redact)
    newest = date.fromisoformat(today) + timedelta(days=1)  # on some islands it has begun
    listed = [_page(item, newest, redact) for item in listed_items(text)]
    cited = list(_cited(messages, redact, quoted=not listed))
    actions = search_actions(items)
    looks = repeat(None, MOST_SOURCES)
    consulted = [source for action in actions for source in (action, *objects(action.get("sources"), looks))]
    others = [_page(mention, newest, redact) for mention in (*cited, *consulted)]
    seen = {page_key(page.url): page.url for page in reversed(others) if page.url}
    if not seen and not text.strip():
        if refusal := shown(joined_text(messages, "refusal", "refusal", redact), _LONGEST_SNIPPET, redact):
            raise RequestRefused(f"The model declined to search: {refusal}")
        raise no_text(truncated=response.get("status") == "incomplete")
    if not seen and not actions and any(item.get("type") == "web_search_call" for item in items):
        raise ServiceFailed("The API's web search failed; try again later.")
    if not listed and not cited and _EMPTY_LIST.search(text):  # nothing fits
        others = []
    found: dict[str | None, SearchResult] = {}
    for page in (*listed, *others):
        if (first := found.setdefault(key := page_key(page.url), page)) is not page:
            found[key] = replace(first, title=first.title or page.title, snippet=first.snippet or page.snippet)
    pages = [replace(found[key], url=seen[key]) for key in found if key in seen]
    pages = [page for page in pages if not is_within(page.url, blocked)]
    named = (replace(page, title=page.title or page.url.split("/")[2]) for page in pages[:limit])
    return SearchResults(tuple(named), len(pages), sum(page_key(page.url) not in seen for page in listed))


def _cited(messages: list[list[JsonObject]], redact: Redact, *, quoted: bool) -> Iterator[JsonObject]:
    """Yield the annotations that cite a page; with `quoted` each with its line, from the citation before it on."""
    texts = [text_at(part, "text") for parts in messages for part in parts]
    # Behind a mask the words of an annotation are elsewhere, and without it they may be half a secret.
    text = texts[0] if quoted and len(texts) == 1 and redact(texts[0]) == texts[0] else ""
    done = 0
    for annotation in annotations_of(messages):
        if annotation.get("type") == "url_citation":
            end, line = annotation.get("end_index"), ""
            if isinstance(end, int) and done < end <= len(text):
                line = text[max(done, end - _LONGEST_SNIPPET) : end].rstrip().rpartition("\n")[2]
                done = end
            yield {**annotation, "snippet": _BULLET.sub("", _CITING.sub(" ", line))}


def _page(mention: JsonObject, newest: date, redact: Redact) -> SearchResult:
    """Return what a mention says of a page; the URL is empty where it is none. Dates after `newest` are none."""

    def line(name: str, longest: int) -> str:
        return shown(line_at(mention, name, redact), longest, redact) if mention.get(name) else ""

    return SearchResult(
        line("title", _LONGEST_TITLE),
        address(_WRAPPED.sub(r"\1", line_at(mention, "url", redact))) or "",
        line("snippet", _LONGEST_SNIPPET),
        read_date(mention.get("publisheddate"), newest),
        _score(mention.get("relevancescore")),
    )


def listed_items(text: str) -> list[JsonObject]:
    """Return the items that an answer lists, in its order: the objects of JSON that have a URL, as the model wrote it.

    Names in them are without case and underscores. What was cut off is no item. JSON is mended only where that finds
    more items: a text in it may have a comma before a bracket.
    """
    text = text[:_LONGEST_TEXT]
    texts = dict.fromkeys((text, _BROKEN.sub(lambda found: found[1] or "", text)))
    return max(map(_items, texts), key=len)


def _items(text: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    decoder = json.JSONDecoder(object_hook=found.append, strict=False)
    broken, at = 0, text.find("{")
    while at >= 0 and broken < _MOST_BROKEN:
        before = len(found)
        try:
            _, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            del found[before:]  # they are found again
            broken, at = broken + 1, at + 1
        at = text.find("{", at)
    plain = ({name.replace("_", "").lower(): value for name, value in each.items()} for each in found[:_MOST_LISTED])
    items = ({_OTHER_NAMES.get(name, name): value for name, value in each.items()} for each in plain)
    return [item for item in items if text_at(item, "url").strip()]


def _score(value: object) -> float | None:
    try:
        score = float(str(value))
    except (ValueError, RecursionError):  # a list in a list, and so on
        return None
    return score if 0 <= score <= 1 else None  # NaN is not
