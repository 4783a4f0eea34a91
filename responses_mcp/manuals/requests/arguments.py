"""Raw JSON arguments read one by one, with messages that name the field, what it is, and what it may be.

Null stands for absent. An object or a list may come as JSON text. An integer may come as a text of digits, or as a
float without a fraction; a boolean is none, whatever Python thinks (M4.36, M5). Every method raises `ManualsError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from responses_mcp.json_types import unquoted
from responses_mcp.manuals.errors import ErrorCode, ManualsError

_T = TypeVar("_T")
GREATEST: Final = 2**53 - 1  # beyond it JSON numbers are not exact

_LONGEST_SHOWN: Final = 40  # characters of a value that a message repeats
_DIGITS: Final = re.compile(r"[+-]?\d{1,20}")


class Arguments:
    """The members of a JSON object; messages put `within`, such as `budget.`, before their names."""

    def __init__(self, members: Mapping[str, Any], within: str = "") -> None:
        self._members = members
        self._within = within

    @classmethod
    def of_tool(cls, tool: str, members: Mapping[str, Any], *names: str, allowed: Sequence[str] = ()) -> Arguments:
        """Return the arguments of a call; refuse those that are neither among `names` nor `allowed` beside them."""
        for name in members:
            if name not in names and name not in allowed:
                message = f"{_shown(name)} is no argument of {tool}; leave it out. It takes {', '.join(names)}."
                raise ManualsError("invalid_parameter", message, field=name[:_LONGEST_SHOWN])
        return cls(members)

    def get(self, name: str, default: object = None) -> object:
        """Return a value as it came, `default` when it is absent."""
        value = self._members.get(name)
        return default if value is None else value

    def text(self, name: str, meaning: str, code: ErrorCode = "invalid_parameter") -> str:
        """Return a string that must be there and not be blank."""
        value = self.get(name)
        if value is None:
            raise self.missing(name, meaning, code)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(name, meaning, value, code)
        return value

    def flag(self, name: str) -> bool | None:
        """Return a boolean, None when it is absent. Nothing else is taken for one."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def members(self, name: str, meaning: str) -> Arguments | None:
        """Return an object, None when it is absent."""
        value = unquoted(self.get(name))
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, meaning, value)
        return Arguments(cast(Mapping[str, Any], value), f"{name}.")

    def cursor(self, first: str, *others: str) -> Arguments:
        """Return the cursor as an object with these members; an integer stands for the first of them."""
        value = self.get("cursor")
        members = unquoted(value)
        if not isinstance(members, dict):
            if value is not None:
                meaning = f"next_cursor of the page before, an object like {{{first}}}, or that integer of 0 or more"
                self._whole("cursor", value, meaning, least=0)
            members = {first: value}
        members = cast(Mapping[str, Any], members)
        if members and members.keys().isdisjoint((first, *others)):  # to ignore it would silently start over
            meaning = f"an object with {' or '.join((first, *others))}"
            raise self.wrong("cursor", meaning, next(iter(members)), link="one with ")
        return Arguments(members, "cursor.")

    def integer(self, name: str, default: _T, *, least: int = 1, most: float = GREATEST, when: str = "") -> int | _T:
        """Return an integer within bounds, or `default` when it is absent. `when` says what the bounds hang on."""
        value = self.get(name)
        if value is None:
            return default
        allowed = f"an integer of {least} or more" if most >= GREATEST else f"an integer from {least} to {most}"
        return self._whole(name, value, allowed + when, least=least, most=most)

    def missing(self, name: str, meaning: str, code: ErrorCode = "invalid_parameter") -> ManualsError:
        """Return the error of a request without a field."""
        field = self._within + name
        return ManualsError(code, f"{field} is missing; pass {meaning}.", field=field)

    def wrong(
        self, name: str, meaning: str, value: object, code: ErrorCode = "invalid_parameter", *, link: str = ""
    ) -> ManualsError:
        """Return the error of a value. `link` goes before what it is, as in "got an array with 5"."""
        field = self._within + name
        return ManualsError(code, f"{field} must be {meaning}, got {link}{_shown(value)}.", field=field)

    def _whole(self, name: str, value: object, meaning: str, *, least: int, most: float = GREATEST) -> int:
        written = isinstance(value, str) and _DIGITS.fullmatch(value.strip())
        if isinstance(value, bool) or not (
            written or isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        ):
            raise self.wrong(name, meaning, value)
        number = int(cast("str | float", value))
        if not least <= number <= most:
            raise self.wrong(name, meaning, value)
        return number


def _shown(value: object) -> str:
    """Return what a value is: itself if that is short, else its kind and size."""
    if isinstance(value, list):
        return f"an array of {len(cast(list[object], value))}"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"a string of {len(value)} characters" if value.strip() else f"{len(value)} blanks"
    if isinstance(value, int) and abs(value) > GREATEST:
        return "an integer that is too large"
    return json.dumps(value, ensure_ascii=False)
