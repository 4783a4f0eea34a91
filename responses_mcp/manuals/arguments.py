"""Raw JSON arguments read one by one, with messages that name the field, what it is, and what it may be.

Null stands for absent. An integer may come as a text of digits, or as a float without a fraction; a boolean is none,
whatever Python thinks (contract 4 and 5). Fields may be dotted, `budget.time_ms`: the last word is the member that is
read, all of it is what messages say. Every reader raises `ManualsError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from responses_mcp.manuals.errors import ErrorCode, ManualsError

GREATEST: Final = 2**53 - 1  # beyond it JSON numbers are not exact

_LONGEST_SHOWN: Final = 40  # characters of a value that a message repeats
_DIGITS: Final = re.compile(r"[+-]?\d{1,20}")


def known(tool: str, arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the arguments that are not null; refuse those that are not among `names`."""
    for name in arguments:
        if name not in names:
            raise ManualsError(
                "invalid_parameter",
                f"{_shown(name)} is no argument of {tool}; leave it out. Known are {', '.join(names)}.",
                field=name[:_LONGEST_SHOWN],
            )
    return {name: value for name, value in arguments.items() if value is not None}


def text(given: Mapping[str, Any], field: str, meaning: str) -> str:
    """Return a string that must be there and not be blank, without white space around it."""
    value = _member(given, field)
    if value is None:
        raise missing(field, meaning)
    if not isinstance(value, str) or not value.strip():
        raise wrong(field, meaning, value)
    return value.strip()


def flag(given: Mapping[str, Any], field: str) -> bool | None:
    """Return a boolean, None when it is absent. Nothing else is taken for one."""
    value = _member(given, field)
    if value is not None and not isinstance(value, bool):
        raise wrong(field, "true or false", value)
    return value


def members(given: Mapping[str, Any], field: str, meaning: str) -> Mapping[str, Any] | None:
    """Return an object, None when it is absent."""
    value = _member(given, field)
    if value is not None and not isinstance(value, dict):
        raise wrong(field, meaning, value)
    return cast(Mapping[str, Any] | None, value)


def integer(
    given: Mapping[str, Any], field: str, default: int, *, least: int = 1, most: float = GREATEST, when: str = ""
) -> int:
    """Return an integer within bounds, or `default` when it is absent. `when` says what the bounds hang on."""
    number = integer_or_none(given, field, least=least, most=most, when=when)
    return default if number is None else number


def integer_or_none(
    given: Mapping[str, Any], field: str, *, least: int = 1, most: float = GREATEST, when: str = ""
) -> int | None:
    """Return an integer within bounds, None when it is absent."""
    value = _member(given, field)
    if value is None:
        return None
    allowed = f"an integer of {least} or more" if most >= GREATEST else f"an integer from {least} to {most}"
    return whole(field, value, least=least, most=most, meaning=allowed + when)


def whole(field: str, value: object, *, least: int, most: float = GREATEST, meaning: str) -> int:
    """Return `value` as an integer within bounds."""
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif (isinstance(value, float) and value.is_integer()) or (
        isinstance(value, str) and _DIGITS.fullmatch(value.strip())
    ):
        number = int(value)
    if number is None or not least <= number <= most:
        raise wrong(field, meaning, value)
    return number


def missing(field: str, meaning: str, code: ErrorCode = "invalid_parameter") -> ManualsError:
    """Word the refusal of a request without `field`."""
    return ManualsError(code, f"{field} is missing; pass {meaning}.", field=field)


def wrong(
    field: str, meaning: str, value: object, code: ErrorCode = "invalid_parameter", *, link: str = ""
) -> ManualsError:
    """Word the refusal of a value. `link` goes before what it is, as in "got an array with 5"."""
    return ManualsError(code, f"{field} must be {meaning}, got {link}{_shown(value)}.", field=field)


def _member(given: Mapping[str, Any], field: str) -> object:
    return given.get(field.rpartition(".")[2])


def _shown(value: object) -> str:
    """Return what a value is: itself if that is short, else its kind and size."""
    if isinstance(value, list):
        return f"an array of {len(cast(list[object], value))}"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"a string of {len(value)} characters"
    if isinstance(value, int) and abs(value) > GREATEST:
        return "an integer that is too large"
    return json.dumps(value, ensure_ascii=False)
