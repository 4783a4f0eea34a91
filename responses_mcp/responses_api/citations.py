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
_URL = re.compile(r"https?://[^\s<>\"]+")
_UTM = r"utm_source=(?:openai|chatgpt\.com)"
_UTM_BEFORE_MORE = re.compile(rf"(?<=[?&]){_UTM}&")
# The value must end here: at a word character of a URL, or at a point that goes on, it is another value.
_UTM_AT_THE_END = re.compile(rf"[?&]{_UTM}(?![A-Za-z0-9_%+~-]|\.[A-Za-z0-9])")
# A header, what stands on its line, and all up to empty lines that no list item follows, or to the end.
_SOURCES_BLOCK = re.compile(
    r"^[ \t>#*_-]*Sources[ \t*_]*[:：](?s:.*?)(?<=\S)[^\S\n]*+"  # the full-width colon is meant
    r"(?=\n[^\S\n]*\n\s*+(?![-*+•・]|[0-9]+[.)])|\s*+\Z)",
    re.MULTILINE,
)
_LOOKED_THROUGH = 256 * 1024  # characters at the end of an answer in which its block is looked for
_ADDRESS = re.compile(r"https?://[^\s()（）<>\[\]]+")
_ISO_DATE = re.compile(r"(?<![0-9])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])")


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
    return _URL.sub(lambda url: _UTM_AT_THE_END.sub("", _UTM_BEFORE_MORE.sub("", url[0])), text)


def choose_citations(
    cited: Iterable[tuple[str, str | None]], sources: Sequence[Source], *, limit: int, date: str
) -> tuple[Citation, ...]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are (url, title) pairs of the answer's annotations. When the cut would drop every named source, the last
    place goes to the first of them, so that where the facts came from stays visible.
    """
    limit = max(1, limit)
    urls = _merge_pages(cited) or _merge_pages(((source.name, None) for source in sources if source.is_url), most=limit)
    named: dict[str, str | None] = {}
    for source in sources:
        if not source.is_url:
            named.setdefault(source.name, source.kind)
    names = list(named.items())
    chosen = (urls + names)[:limit]
    if names and len(urls) >= limit:
        chosen[-1] = names[0]
    return tuple(Citation(url, title, date) for url, title in chosen)


def _merge_pages(
    mentions: Iterable[tuple[str, str | None]], *, most: int | None = None
) -> list[tuple[str, str | None]]:
    """Join mentions of one page: the first form of its URL, and the first title that says anything.

    With `most`, what comes after so many different pages is not looked at.
    """
    merged: dict[str, tuple[str, str | None]] = {}
    for mentioned, title in mentions:
        url = without_tracking(mentioned)
        page = url.partition("#")[0]
        first, known_title = merged.get(page, (url, None))
        merged[page] = (first, known_title or title or None)
        if len(merged) == most:
            break
    return list(merged.values())


def with_sources(text: str, citations: Sequence[Citation], date: str) -> str:
    """Make sure that `text` has a `Sources:` block with dates, at its end unless the model put one elsewhere.

    A block that the model wrote with dates stays as it is; one without dates gets ours added; with no source known,
    the search itself is named.
    """
    lines = "\n".join(f"- {citation.url} ({citation.published_at})" for citation in citations)
    lines = lines or f"- web_search ({date})"
    blocks = list(_SOURCES_BLOCK.finditer(text, max(0, len(text) - _LOOKED_THROUGH)))
    if not blocks:
        head = text.rstrip()
        return f"{head}\n\nSources:\n{lines}" if head else f"Sources:\n{lines}"
    block = blocks[-1]
    # A date within an address says when a page appeared, not when it was read.
    if _ISO_DATE.search(_ADDRESS.sub("", block[0])):
        return text
    head, rest = text[: block.end()].rstrip(), text[block.end() :]
    return f"{head}\n{lines}{rest if rest.strip() else ''}"
