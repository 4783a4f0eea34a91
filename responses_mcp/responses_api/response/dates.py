"""Dates as models and pages write them: calendar dates that have come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

_FIRST: Final = date(1900, 1, 1)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = rf"({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATE: Final = re.compile(
    r"(?<![0-9])([0-9]{4}) ?[-/.年\u2010-\u2013\u2212] ?([0-9]{1,2}) ?[-/.月\u2010-\u2013\u2212] ?([0-9]{1,2})(?![0-9])"
    rf"|(?<![A-Za-z]){_MONTH} ?([0-9]{{1,2}})(?:st|nd|rd|th|),? ([0-9]{{4}})(?![0-9])"
    rf"|(?<![0-9])([0-9]{{1,2}})(?:st|nd|rd|th|) {_MONTH},? ([0-9]{{4}})(?![0-9])",
    re.IGNORECASE,
)


def read_date(value: object, newest: date) -> str | None:
    """Return the calendar date with which a value begins as YYYY-MM-DD, if it is not after `newest`."""
    found = _DATE.match(value.lstrip()) if isinstance(value, str) else None
    day = _calendar_date(found, newest) if found else None
    return day.isoformat() if day else None


def dates_in(text: str, newest: date) -> Iterator[date]:
    """Yield the calendar dates in a text that are not after `newest`."""
    return filter(None, (_calendar_date(found, newest) for found in _DATE.finditer(text)))


def _calendar_date(found: re.Match[str], newest: date) -> date | None:
    """Return the day that a match means; None if no calendar has it, or it is after `newest`."""
    year, month, day = filter(None, found.groups())
    if not year.isdigit():
        year, month, day = day, year, month
    elif not month.isdigit():
        year, day = day, year
    try:
        meant = date(int(year), int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1, int(day))
    except ValueError:
        return None
    return meant if _FIRST <= meant <= newest else None
