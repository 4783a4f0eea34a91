"""The lines of a `Sources:` block: which sources they name, and which date stands beside each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date

from responses_mcp.responses_api.response.dates import WrittenDate, dates_in
from responses_mcp.responses_api.response.web_pages import page_key

MARKER = re.compile(
    r"[ \t\u3000>]*(?:[-*+](?![^ \t\r])|[•・‣◦●○■□◆◇①-⑳]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?[0-9A-Za-z]{1,4}\])"
)
ADDRESS = re.compile(r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]+", re.IGNORECASE)
_BRACKET = re.compile(r"[()\[\]]")
_OPENING = {")": "(", "]": "["}
_GLUED = re.compile(r"[(\[]|[^\x00-\x7f]")  # where an address may have ended without a space
_BEHIND = ".,;:!?'*_~&(["  # what ends a sentence or emphasis, and no address
_OURS = re.compile(r"- (.*) \(([0-9]{4}-[0-9]{2}-[0-9]{2})\)")
_MOST_ADDRESSES = 500  # that are compared with the pages that are looked for


@dataclass(slots=True)
class Wanted:
    """The sources to look for: the index of each by the key of its page or by its name, and by what our line says.

    `looked_at` counts the addresses that were compared so far.
    """

    pages: Mapping[str, int]
    names: Mapping[str, int]
    written: Mapping[str, int]
    looked_at: int = field(default=0)


@dataclass(frozen=True, slots=True)
class _Mention:
    start: int
    end: int
    source: int | None  # None for an address that nobody asked about


def our_line(name: str, published: str) -> str:
    """Return the line that we write for a source."""
    return f"- {name} ({published})"


def dates_beside(body: str, wanted: Wanted, newest: date) -> dict[int, WrittenDate | None]:
    """Return which of the wanted sources the lines name, each with the date beside it, if there is one.

    Of several dates the first in ISO form is taken, or else the first.
    """
    found: dict[int, WrittenDate | None] = {}
    for entry in _entries(body, newest):
        for source, written in _dated(entry, wanted, newest):
            known = found.get(source)
            if known is None or (written is not None and written.is_iso and not known.is_iso):
                found[source] = written
    return found


def _entries(body: str, newest: date) -> Iterator[str]:
    """Yield what says one thing: an item of a list with all below it, a row of a table, or lines around an address."""
    entry: list[str] = []
    indent, has_address, has_date = -1, False, False
    for line in body.split("\n"):
        marker = MARKER.match(line)
        row = line.lstrip(" \t>").startswith("|")
        depth = len(line) - len(line.lstrip(" \t\u3000>"))
        address = bool(ADDRESS.search(line))
        if marker or row:
            begins = row or indent < 0 or depth <= indent
        else:
            begins = not line.strip(" \t>") or (indent < 0 and has_address and (address or has_date))
        if begins:
            yield "\n".join(entry)
            entry, has_address, has_date = [], False, False
            indent = depth if marker else -1
        entry.append(line)
        has_address = has_address or address
        has_date = has_date or (indent < 0 and any(dates_in(line, newest)))
    yield "\n".join(entry)


def _dated(entry: str, wanted: Wanted, newest: date) -> Iterator[tuple[int, WrittenDate | None]]:
    if "://" not in entry and not any(name in entry for name in wanted.names):
        return
    ours = _OURS.fullmatch(entry)
    if ours is not None and ours[1] in wanted.written:
        yield wanted.written[ours[1]], next(dates_in(ours[2], newest), None)
        return
    mentions = list(_addresses(entry, wanted))
    # A date within an address says when a page appeared on a site, and a name within one is none.
    plain = _without(entry, mentions)
    mentions = sorted([*mentions, *_names(plain, wanted)], key=lambda mention: mention.start)
    dates = list(dates_in(plain, newest))
    if len({mention.source for mention in mentions}) == 1 and mentions[0].source is not None:
        behind = mentions[0].start
        yield mentions[0].source, _best(sorted(dates, key=lambda each: each.start < behind))
        return
    in_front = bool(mentions and dates and dates[0].start < mentions[0].start and dates[-1].start < mentions[-1].start)
    bounds = [0, *(mention.start for mention in mentions)] if in_front else [m.start for m in mentions] + [len(entry)]
    at = 0
    for place, mention in enumerate(mentions):
        beside: list[WrittenDate] = []
        while at < len(dates) and dates[at].start < bounds[place + 1]:
            if dates[at].start >= bounds[place]:
                beside.append(dates[at])
            at += 1
        if mention.source is not None:
            yield mention.source, _best(beside)


def _best(dates: Iterable[WrittenDate]) -> WrittenDate | None:
    return min(dates, key=lambda each: each.is_access, default=None)


def _addresses(entry: str, wanted: Wanted) -> Iterator[_Mention]:
    for found in ADDRESS.finditer(entry):
        address = _trimmed(found[0])
        start = found.start()
        wanted.looked_at += 1
        known = _known(address, wanted) if wanted.looked_at <= _MOST_ADDRESSES else None
        if known is None:
            yield _Mention(start, start + len(address), None)
        else:
            yield _Mention(start, start + known[0], known[1])


def _known(address: str, wanted: Wanted) -> tuple[int, int] | None:
    """Return the length of the address and the source it means: the whole of it, or less where something touches it."""
    glued = _GLUED.search(address)
    foreign = next((at for at, character in enumerate(address) if not character.isascii()), len(address))
    pieces = [address[:end].rstrip(_BEHIND) for end in (len(address), foreign, glued.start() if glued else 0)]
    for candidate in dict.fromkeys((address, *pieces)):
        key = page_key(candidate)
        if key is not None and key in wanted.pages:
            return len(candidate), wanted.pages[key]
    return None


def _trimmed(address: str) -> str:
    """Cut an address at a bracket that it did not open."""
    opened = {"(": 0, "[": 0}
    for bracket in _BRACKET.finditer(address):
        if bracket[0] in opened:
            opened[bracket[0]] += 1
            continue
        opened[_OPENING[bracket[0]]] -= 1
        if opened[_OPENING[bracket[0]]] < 0:
            address = address[: bracket.start()]
            break
    return address


def _without(entry: str, mentions: Iterable[_Mention]) -> str:
    pieces: list[str] = []
    at = 0
    for mention in mentions:
        pieces += (entry[at : mention.start], " " * (mention.end - mention.start))
        at = mention.end
    return "".join(pieces) + entry[at:]


def _names(plain: str, wanted: Wanted) -> Iterator[_Mention]:
    for name, source in wanted.names.items():
        at = plain.find(name)
        while at >= 0:
            end = at + len(name)
            if not _in_word(plain[at - 1 : at]) and not _in_word(plain[end : end + 1]):
                yield _Mention(at, end, source)
            at = plain.find(name, end)


def _in_word(character: str) -> bool:
    return character in {"-", "_"} or (character.isascii() and character.isalnum())
