"""What was wrong with a configuration: problems that stop calls, warnings that do not, secrets masked."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.secrets import Redactor

_OPAQUE: Final = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{24,}"
_SHORTEST_SECRET: Final = 4  # characters, as a `Redactor` has it
_SHORTEST_REFUSED: Final = 16  # a key such as `lm-studio`, or an organisation in a header, is a word of other values
_AT_MOST: Final = 50  # a file can hold a hundred thousand wrong keys; nobody reads past the first few


def printable(text: str) -> str:
    """Return text on one line, with controls, line ends and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class Findings:
    """Collects problems and warnings in the order they were met, a sentence each.

    Text from outside goes through `shown` on its way into a sentence. So every secret has to be known before.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._secrets: set[str] = set()
        self._redact = self._refused = Redactor()

    def keep_secret(self, value: str) -> None:
        """Learn a value that no finding may show."""
        if len(value.strip()) >= _SHORTEST_SECRET:
            self._secrets.add(value.strip())
            self._redact = Redactor(self._secrets)
            self._refused = Redactor(each for each in self._secrets if len(each) >= _SHORTEST_REFUSED)

    def holds_secret(self, text: str) -> bool:
        """Tell whether text contains a long secret, or what has the form of one."""
        return self._refused(text) != text

    def may_be_key(self, text: str) -> bool:
        """Tell whether text holds a secret, or is 24 or more letters and digits in one run, as some keys are."""
        return self.holds_secret(text) or re.fullmatch(_OPAQUE, text) is not None

    def shown(self, text: str, limit: int = 60) -> str:
        """Return text from outside as a sentence may have it: masked, printable, and shortened then."""
        text = printable(self._redact(text))
        return text if len(text) <= limit else f"{text[: limit - 1]}…"

    def described(self, value: object) -> str:
        """Return what a value is: text in quotes, anything else with its type."""
        if isinstance(value, str):
            return "a value that looks like a key (not shown)" if self.may_be_key(value) else f'"{self.shown(value)}"'
        if isinstance(value, bool):
            return f"{str(value).lower()} (a boolean)"
        if isinstance(value, int | float):
            return f"{self.shown(repr(value))} (a number)"
        return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"

    def problem(self, what: str, where: str, cure: str) -> None:
        """Add something that has to be cured before calls can work."""
        self.problems.append(_sentence(what, where, cure))

    def warning(self, what: str, where: str, cure: str) -> None:
        """Add something that the user should know, but that changes no call."""
        self.warnings.append(_sentence(what, where, cure))


def _sentence(what: str, where: str, cure: str) -> str:
    return f"{what} (from {where}); {cure}{'' if cure.endswith('?') else '.'}"


def first_of(found: list[str]) -> tuple[str, ...]:
    """Return the first sentences, and how many more there are."""
    more = len(found) - _AT_MOST
    return (*found[:_AT_MOST], *([f"{more} more like these; correct the ones above first."] if more > 0 else []))
