"""From a Response to search results: the pages that the model lists, as far as its search has seen them.

Seen is what an annotation cites, a search names as a source, or the model opened. A link that the model lists and its
search has not seen is invented, and dropped; what the model does not list is added behind what it does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

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
    cited = _pages(_cited(items, redact, claims=not listed), redact)
    searches = [item for item in items if item.get("type") == "web_search_call"]
    worked = [search for search in searches if search.get("status") != "failed"]
    seen = (
        cited | _pages(_consulted(worked, redact), redact) | cited
    )  # the cited ones come first, and as they are cited
    if not seen:
        _check_that_something_was_said(response, items, messages, text, redact)
        if searches and not worked:
            raise ServiceFailed("The API's web search failed; try again later.")
    listed, seen = _without(listed, seen, blocked)
    results: dict[str, SearchResult] = {}
    dropped = 0
    for page in listed:
        key = page_key(page.url)
        known = seen.get(key) if key is not None else None
        if key is None or known is None:
            dropped += 1
        elif key not in results:
            results[key] = replace(page, title=page.title or known.title, url=known.url)
    if listed or cited or not is_empty_list(text):
        for key, known in seen.items():
            results.setdefault(key, known)
    return SearchResults(tuple(islice(results.values(), limit)), len(results), dropped)


def _check_that_something_was_said(
    response: JsonObject, items: list[JsonObject], messages: list[list[JsonObject]], text: str, redact: Redact
) -> None:
    if text.strip():
        return
    refusal = shown(joined_text(messages, "refusal", "refusal", redact), _LONGEST_REFUSAL, redact)
    if refusal:
        raise RequestRefused(f"The model declined to search: {refusal}")
    raise no_text(items, redact, truncated=response.get("status") == "incomplete")


def _without(
    listed: list[SearchResult], seen: dict[str, SearchResult], blocked: Collection[str]
) -> tuple[list[SearchResult], dict[str, SearchResult]]:
    return (
        [page for page in listed if not is_within(page.url, blocked)],
        {key: page for key, page in seen.items() if not is_within(page.url, blocked)},
    )


def _pages(mentions: Iterator[SearchResult], redact: Redact) -> dict[str, SearchResult]:
    """Join mentions of one page: the first URL, and the first title and snippet that say anything."""
    pages: dict[str, SearchResult] = {}
    left = _MOST_CHARACTERS
    for page in islice(mentions, _MOST_SEEN):
        left -= len(page.title) + len(page.url)
        if left < 0:
            break
        url = without_tracking(page.url)
        key = page_key(url)
        if key is None:
            continue
        first = pages.get(key)
        title = first.title if first is not None and first.title != host_of(first.url) else ""
        title = title or shown(page.title, LONGEST_TITLE, redact)
        snippet = (first.snippet if first is not None else "") or page.snippet
        url = first.url if first is not None else url
        pages[key] = SearchResult(title or host_of(url), url, snippet)
    return pages


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
        text, done = text_at(part, "text"), 0
        for annotation in map(unnested, objects(part.get("annotations"), annotations)):
            if annotation.get("type") == "url_citation":
                start, end = _place(annotation, text)
                covered = text[start : min(end, start + 4 * LONGEST_SNIPPET)]
                left -= len(covered)
                snippet = _claim(text, done, start, covered, redact) if claims and left > 0 else ""
                done = max(done, end)
                url = address(line_at(annotation, "url", redact)) or ""
                yield SearchResult(line_at(annotation, "title", redact), url, snippet)


def _consulted(searches: list[JsonObject], redact: Redact) -> Iterator[SearchResult]:
    """Yield the sources of searches, and the pages that were opened."""
    looks = repeat(None, _MOST_SEEN)
    for search in searches:
        action = as_object(search.get("action"))
        for source in (action, *objects(action.get("sources"), looks)):
            yield SearchResult("", address(line_at(source, "url", redact)) or "", "")


def _place(annotation: JsonObject, text: str) -> tuple[int, int]:
    start, end = annotation.get("start_index"), annotation.get("end_index")
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(text):
        return 0, 0
    return start, end


def _claim(text: str, done: int, start: int, covered: str, redact: Redact) -> str:
    """Return the words that an annotation covers; where they are a mere link, those before it on its line."""
    covered = _BULLET.sub("", _LINK.sub("", covered))
    if not covered:
        first = min(start, max(done, start - LONGEST_SNIPPET))
        covered = _BULLET.sub("", text[max(first, text.rfind("\n", first, start) + 1) : start])
    return shown(covered, LONGEST_SNIPPET, redact)
