"""Dates as models and pages write them: calendar dates that have come, and in a text which of them are of access."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

_FIRST_YEAR = 1900
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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
_LONGEST = 80  # characters of a value that is a date


class WrittenDate(NamedTuple):
    """A date in a text: where it stands, whether it is one of access, and its ISO form."""

    start: int
    is_access: bool
    iso: str


def read_date(value: object, newest: date) -> str | None:
    """Return the calendar date with which a value begins as YYYY-MM-DD, if it is not after `newest`."""
    if not isinstance(value, str):
        return None
    found = next(dates_in(value.strip()[:_LONGEST], newest), None)
    return found.iso if found is not None and found.start == 0 else None


def dates_in(text: str, newest: date) -> Iterator[WrittenDate]:
    """Yield the calendar dates in `text` that are not after `newest`."""
    behind = 0
    for found in _DATES.finditer(text):
        year, month, day = filter(None, found.groups())
        if not year.isdigit():
            year, month, day = day, year, month
        elif not month.isdigit():
            year, day = day, year
        before = text[max(behind, found.start() - _LABEL) : found.start()]
        behind = found.end()
        try:
            day_meant = date(int(year), int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1, int(day))
        except ValueError:
            continue
        if date(_FIRST_YEAR, 1, 1) <= day_meant <= newest:
            is_access = bool(_ACCESS_BEFORE.search(before) or _ACCESS_BEHIND.match(text, behind))
            yield WrittenDate(found.start(), is_access, day_meant.isoformat())
