"""Dates as models and pages write them: calendar dates that have come, and in a text which of them are of access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_FIRST_YEAR = 1900
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(r"([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})日?(?:[T\s].*)?", re.DOTALL)
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATES = re.compile(
    r"(?<![0-9])([0-9]{4}) ?[-/.年\u2010-\u2013\u2212] ?([0-9]{1,2}) ?[-/.月\u2010-\u2013\u2212] ?([0-9]{1,2})(?![0-9])"
    rf"|(?<![A-Za-z]){_MONTH} ?([0-9]{{1,2}})(?:st|nd|rd|th|),? ([0-9]{{4}})(?![0-9])"
    rf"|(?<![0-9])([0-9]{{1,2}})(?:st|nd|rd|th|) {_MONTH},? ([0-9]{{4}})(?![0-9])",
    re.IGNORECASE,
)
_ACCESS_BEFORE = re.compile(r"access|retriev|viewed|visited|checked|アクセス|閲覧|取得|確認|参照", re.IGNORECASE)
_ACCESS_BEHIND = re.compile(r"日? ?に?(?:アクセス|閲覧|取得|確認|参照)")
_LABEL = 24  # characters in front of a date in which its label is


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date in a text: where it stands, its ISO form, and whether it is one of access."""

    start: int
    iso: str
    is_access: bool


def read_date(value: object, newest: date) -> str | None:
    """Return a calendar date as YYYY-MM-DD, if it is not after `newest`; a time behind it is dropped."""
    found = _DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    return _calendar_date(found[1], found[2], found[3], newest) if found is not None else None


def dates_in(text: str, newest: date) -> Iterator[WrittenDate]:
    """Yield the calendar dates in `text` that are not after `newest`."""
    behind = 0
    for found in _DATES.finditer(text):
        year, month, day = found[1] or found[6] or found[9], found[2] or found[4] or found[8], found[3] or found[5]
        iso = _calendar_date(year, month, day or found[7], newest)
        before = text[max(behind, found.start() - _LABEL) : found.start()]
        behind = found.end()
        if iso is not None:
            is_access = bool(_ACCESS_BEFORE.search(before) or _ACCESS_BEHIND.match(text, behind))
            yield WrittenDate(found.start(), iso, is_access)


def _calendar_date(year: str, month: str, day: str, newest: date) -> str | None:
    number = int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1
    try:
        found = date(int(year), number, int(day))
    except ValueError:
        return None
    return found.isoformat() if date(_FIRST_YEAR, 1, 1) <= found <= newest else None
