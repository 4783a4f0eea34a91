"""The time zone in which a day is today: of the dates that a question is asked with, and of access (spec 9).

Asia/Tokyo, the default, is a fixed offset: Japan has had no daylight saving time since 1951. So nobody who keeps it
needs time zone data, which Windows does not have; for other zones Python's `zoneinfo` finds it, there in the package
tzdata.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from responses_mcp.errors import ConfigError

TOKYO: Final = "Asia/Tokyo"
_FIXED: Final[dict[str, tzinfo]] = {TOKYO: timezone(timedelta(hours=9), TOKYO), "UTC": UTC}


def zone_of(name: str) -> tzinfo | None:
    """Return the time zone of that name, None if there is none or its data is missing.

    Names are those of the IANA database, such as Europe/Berlin, and UTC.
    """
    if name in _FIXED:
        return _FIXED[name]
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - few need another zone

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone; no name at all; a folder of them, such as "Europe"
        return None


def today_in(name: str) -> str:
    """Return today's date in that time zone as YYYY-MM-DD.

    Raises `ConfigError` for a zone that there is not; loaded settings have none such.
    """
    zone = zone_of(name)
    if zone is None:
        raise ConfigError([f"locale.time_zone: {name!r} is not the name of a time zone; set it to one."])
    return datetime.now(zone).date().isoformat()
