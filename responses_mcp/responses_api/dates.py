"""Dates as the contract wants them: Asia/Tokyo, ISO (contract 9)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

# Japan has had no daylight saving time since 1951, so the offset needs no time zone data (design: Windows has none).
TOKYO = timezone(timedelta(hours=9), "Asia/Tokyo")


def today_in_tokyo() -> str:
    """Return today's date in Asia/Tokyo as YYYY-MM-DD."""
    return datetime.now(TOKYO).date().isoformat()
