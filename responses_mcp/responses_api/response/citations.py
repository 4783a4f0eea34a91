"""Citations: which of the sources that a search cited and consulted an answer names (spec 3.2, 6.5 to 6.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.web_pages import page_key, without_tracking


@dataclass(frozen=True, slots=True)
class Citation:
    """One source: its URL, or the API's name for a source without one (such as `oai-weather`)."""

    url: str
    title: str | None
    published_at: str

    def as_json(self) -> JsonObject:
        """Return the object of the output contract; an unknown title is left out."""
        shown: JsonObject = {"url": self.url}
        if self.title:
            shown["title"] = self.title
        shown["published_at"] = self.published_at
        return shown


@dataclass(frozen=True, slots=True)
class Source:
    """A page or data feed that a search consulted. `kind` is the API's word, such as `url` or `api`."""

    name: str
    kind: str
    is_url: bool


class Cited(NamedTuple):
    """A page that the answer cites or a search consulted, as it is mentioned once."""

    url: str
    title: str | None = None
    published_at: str | None = None


def choose_citations(
    cited: Iterable[Cited], sources: Sequence[Source], *, limit: int, date: str
) -> tuple[Citation, ...]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are the answer's annotations; `date` is that of what tells none. When the cut would drop every named
    source, the last of several places goes to the first of them, so that where the facts came from stays visible.
    """
    limit = max(1, limit)
    urls = _merge_pages(cited) or _merge_pages((Cited(source.name) for source in sources if source.is_url), most=limit)
    named: dict[str, Cited] = {}
    for source in sources:
        if not source.is_url:
            named.setdefault(source.name, Cited(source.name, source.kind))
    names = list(named.values())
    chosen = (urls + names)[:limit]
    if names and len(urls) >= limit > 1:
        chosen[-1] = names[0]
    return tuple(Citation(each.url, each.title, each.published_at or date) for each in chosen)


def _merge_pages(mentions: Iterable[Cited], *, most: int | None = None) -> list[Cited]:
    """Join mentions of one page: the first form of its URL, and the first title and date that say anything.

    With `most`, what comes after so many different pages is not looked at.
    """
    merged: dict[str, Cited] = {}
    for mention in mentions:
        url = without_tracking(mention.url)
        page = page_key(url) or url.partition("#")[0]
        first = merged.get(page, Cited(url))
        title, published = first.title or mention.title or None, first.published_at or mention.published_at
        merged[page] = Cited(first.url, title, published)
        if len(merged) == most:
            break
    return list(merged.values())
