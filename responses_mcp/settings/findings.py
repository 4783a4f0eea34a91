"""What was wrong with a configuration: problems that stop calls, and warnings that do not."""

from __future__ import annotations

from typing import Final

from responses_mcp.secrets import Redact

_LONGEST_QUOTED: Final = 60  # characters
_LONGEST_PATH: Final = 300
AT_MOST: Final = 50  # a file can hold a hundred thousand wrong keys; nobody reads past the first few


def printable(text: str) -> str:
    """Return text on one line, with controls, line ends and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shown(text: str, longest: int = _LONGEST_PATH) -> str:
    """Return text from outside whole, or how long it is: a piece of a secret would not be known for one."""
    return text if len(text) <= longest else f"a text of {len(text)} characters"


def described(value: object) -> str:
    """Return what a value is: text in quotes, anything else with its type."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _LONGEST_QUOTED else shown(value, _LONGEST_QUOTED)
    if isinstance(value, bool):
        return f"{str(value).lower()} (a boolean)"
    if isinstance(value, int | float):
        return f"{value} (a number)"
    return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"


class Findings:
    """Collects problems and warnings in the order they were met, a sentence each, in which secrets may stand."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def problem(self, what: str, where: str, cure: str) -> None:
        """Add something that has to be cured before calls can work."""
        self.problems.append(_sentence(what, where, cure))

    def warning(self, what: str, where: str, cure: str) -> None:
        """Add something that the user should know, but that changes no call."""
        self.warnings.append(_sentence(what, where, cure))


def _sentence(what: str, where: str, cure: str) -> str:
    return f"{what} (from {where}); {cure}{'' if cure.endswith('?') else '.'}"


def first_of(found: list[str], redact: Redact) -> tuple[str, ...]:
    """Return the first sentences, without secrets, and how many more there are."""
    more = len(found) - AT_MOST
    told = [printable(redact(text)) for text in found[:AT_MOST]]
    return (*told, *([f"{more} more like these; correct the ones above first."] if more > 0 else []))
