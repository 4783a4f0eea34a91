"""Citations: which of the sources that a search cited and consulted an answer names (spec 3.2, 6.5 to 6.7)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.web_pages import page_key, without_tracking

_IS_URL: Final = re.compile("https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Citation:
    """One source: its URL, or the API's name for a source without one (such as `oai-weather`), with its kind as title.

    `published_at` is "" where nothing tells it yet.
    """

    url: str
    title: str | None = None
    published_at: str = ""

    def as_json(self) -> JsonObject:
        """Return the object of the output contract; an unknown title is left out."""
        shown: JsonObject = {"url": self.url}
        if self.title:
            shown["title"] = self.title
        shown["published_at"] = self.published_at
        return shown


def choose_citations(
    cited: Iterable[Citation], consulted: Iterable[Citation], *, limit: int, date: str
) -> dict[str, Citation]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are the answer's annotations; `date` is that of what tells none. When the cut would drop every named
    source, the last of several places goes to the first of them, so that where the facts came from stays visible.
    Keys are those of pages, and names.
    """
    limit = max(1, limit)
    consulted = list(consulted)
    pages = _merged(cited) or _merged((each for each in consulted if _IS_URL.match(each.url)), most=limit)
    names = _merged(each for each in consulted if not _IS_URL.match(each.url))
    kept = [*pages, *names][:limit]
    if names and len(pages) >= limit > 1:
        kept[-1] = next(iter(names))
    found = {key: {**pages, **names}[key] for key in kept}
    return {key: each if each.published_at else replace(each, published_at=date) for key, each in found.items()}


def _merged(mentions: Iterable[Citation], *, most: int | None = None) -> dict[str, Citation]:
    """Join mentions of one page: the first form of its URL, and the first title and date that say anything.

    With `most`, what comes after so many different pages is not looked at.
    """
    merged: dict[str, Citation] = {}
    for mention in mentions:
        url = without_tracking(mention.url)
        page = page_key(url) or url
        first = merged.get(page, Citation(url))
        merged[page] = Citation(first.url, first.title or mention.title, first.published_at or mention.published_at)
        if len(merged) == most:
            break
    return merged
