"""Citations and the `Sources:` block: what the search cited and consulted, made readable (contract 3.2, 6.5 to 6.7).

The API gives no publication dates, so each citation carries the date of access, as the contract says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from responses_mcp.protocol.jsonrpc import JsonObject

# The model's private citation marks: U+E200 kind U+E202 reference U+E201. One that never closes ends with its line.
_MARKER = re.compile("\ue200[^\ue201\n]*\ue201?|[\ue200-\ue20f]")
_UTM = re.compile(r"([?&])utm_source=(?:openai|chatgpt\.com)(&|(?![\w.%+-]))")
_SOURCES_HEADER = re.compile(r"^[ \t>#*_-]*Sources[ \t*_]*[:：]", re.MULTILINE)  # the full-width colon is meant
_ISO_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


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


def without_markers(text: str) -> str:
    """Drop the private marks that leak into some answers."""
    return _MARKER.sub("", text)


def without_tracking(text: str) -> str:
    """Drop `utm_source=openai` and `utm_source=chatgpt.com` from every URL in `text`, keeping the rest of the query."""

    def rest_of_query(match: re.Match[str]) -> str:
        return match[1] if match[2] else ""

    return _UTM.sub(rest_of_query, text)


def choose_citations(
    cited: Iterable[tuple[str, str | None]], sources: Sequence[Source], *, limit: int, date: str
) -> tuple[Citation, ...]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are (url, title) pairs of the answer's annotations. When the cut would drop every named source, the last
    place goes to the first of them, so that where the facts came from stays visible.
    """
    urls = _merge((without_tracking(url), title) for url, title in cited)
    if not urls:
        urls = _merge((without_tracking(source.name), None) for source in sources if source.is_url)
    names = _merge((source.name, source.kind) for source in sources if not source.is_url)
    chosen = (urls + names)[:limit]
    if names and len(urls) >= limit:
        chosen[-1] = names[0]
    return tuple(Citation(url, title, date) for url, title in chosen)


def _merge(pairs: Iterable[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Join mentions of one page: the first form of its URL, and the first title that says anything."""
    merged: dict[str, tuple[str, str | None]] = {}
    for url, title in pairs:
        page = url.partition("#")[0]
        first, known_title = merged.get(page, (url, None))
        merged[page] = (first, known_title or title or None)
    return list(merged.values())


def with_sources(text: str, citations: Sequence[Citation], date: str) -> str:
    """Make sure that `text` ends in a `Sources:` block with dates.

    A block that the model wrote with dates stays as it is; one without dates gets ours added; with no source known,
    the search itself is named.
    """
    block = None
    for header in _SOURCES_HEADER.finditer(text):
        block = text[header.start() :]
    if block is not None and _ISO_DATE.search(block):
        return text
    lines = [f"- {citation.url} ({citation.published_at})" for citation in citations] or [f"- web_search ({date})"]
    head = text.rstrip()
    if block is None:
        head = f"{head}\n\nSources:" if head else "Sources:"
    return "\n".join([head, *lines])
