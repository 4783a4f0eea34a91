"""From a Response to search results: the pages that the model lists, as far as its search has seen them.

Seen is what an annotation cites, a search names as a source, or the model opened. A link that the model lists and its
search has not seen is invented, and dropped; what the model does not list is added behind what it does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice, repeat

from responses_mcp.errors import RequestRefused, ServiceFailed
from responses_mcp.json_types import JsonObject, as_object, objects, text_at
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.markdown import address
from responses_mcp.responses_api.response.parser import MOST_ITEMS, answer_messages, joined_text, no_text, unnested
from responses_mcp.responses_api.response.search_list import (
    LONGEST_SNIPPET,
    LONGEST_TITLE,
    SearchResult,
    is_empty_list,
    listed_pages,
)
from responses_mcp.responses_api.response.web_pages import host_of, is_within, page_key, shown, without_tracking
from responses_mcp.sanitization import line_at
from responses_mcp.usage.bill import Usage

_MOST_SEEN = 2_000  # annotations, and sources, that are looked at
_MOST_CHARACTERS = 256 * 1024  # of the titles and URLs of either, and of claims, which may overlap
_LONGEST_REFUSAL = 200
_BULLET = re.compile(r"\A[\s.,;:。、]*(?:[-*+•>#]+\s+|[0-9]{1,3}[.)]\s+)*")
_LINK = re.compile(r"\[[^\[\]]*\]\((?:[^()\s]++|\([^()\s]*+\))*\)|https?://\S+|[()]")


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
    for key, known in {} if only_these else seen.items():
        results.setdefault(key, known)
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
