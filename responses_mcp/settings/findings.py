"""What was wrong with a configuration: problems that stop calls, warnings that do not, secrets masked.

A finding is kept in parts and worded only at the end, when every secret is known: the values of the variables
that `openai.api_key_env` and `openai.headers_env` name are learned while findings come in, and text must be
masked before it is shortened.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.secrets import Redact, Redactor

_OPAQUE: Final = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{24,}"
_SHORTEST_SECRET: Final = 4  # characters, as a `Redactor` has it
_AT_MOST: Final = 50


class Raw(NamedTuple):
    """Text that came from outside: masked, made printable and shortened before anybody sees it."""

    text: str
    quoted: bool = True
    limit: int = 60


Part = str | Raw


def place(path: Path, line: int = 0, column: int = 0) -> tuple[Part, ...]:
    """Return a file, and a line and column in it if known (counted from 1), as the `where` of a finding."""
    parts: tuple[Part, ...] = ("from ", Raw(str(path), quoted=False, limit=300))
    if line:
        parts = (*parts, f" line {line}")
    return (*parts, f" column {column}") if column else parts


def printable(text: str) -> str:
    """Return text on one line, with controls, line ends and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class _Finding(NamedTuple):
    """What is wrong, where it was set, and what to do: a sentence when put together."""

    what: tuple[Part, ...]
    where: tuple[Part, ...]
    cure: str

    def sentence(self, redact: Redact) -> str:
        """Return the finding in words, with text from outside redacted first and shortened then."""
        what, where = ("".join(_shown(part, redact) for part in parts) for parts in (self.what, self.where))
        return f"{what} ({where}); {self.cure}{'' if self.cure.endswith('?') else '.'}"


def _shown(part: Part, redact: Redact) -> str:
    if isinstance(part, str):
        return part
    text = printable(redact(part.text))
    if len(text) > part.limit:
        text = f"{text[: part.limit - 1]}…"
    return f'"{text}"' if part.quoted else text


class Findings:
    """Collects problems and warnings in the order they were met."""

    def __init__(self) -> None:
        self._problems: list[_Finding] = []
        self._warnings: list[_Finding] = []
        self._secrets: set[str] = set()

    def keep_secret(self, value: str) -> None:
        """Learn a value that no finding may show."""
        self._secrets.add(value)
        self._secrets.add(value.strip())

    def holds_secret(self, text: str) -> bool:
        """Tell whether text contains a secret, or what has the form of one."""
        known = any(secret in text for secret in self._secrets if len(secret) >= _SHORTEST_SECRET)
        return known or Redactor()(text) != text

    def may_be_key(self, text: str) -> bool:
        """Tell whether text holds a secret, or is 24 or more letters and digits in one run, as some keys are."""
        return self.holds_secret(text) or re.fullmatch(_OPAQUE, text) is not None

    def problem(self, *what: Part, where: tuple[Part, ...], cure: str) -> None:
        """Add something that has to be cured before calls can work."""
        self._problems.append(_Finding(what, where, cure))

    def warning(self, *what: Part, where: tuple[Part, ...], cure: str) -> None:
        """Add something that the user should know, but that changes no call."""
        self._warnings.append(_Finding(what, where, cure))

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, one sentence each."""
        return self._worded(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return self._worded(self._warnings)

    def _worded(self, findings: list[_Finding]) -> tuple[str, ...]:
        # A file of one mebibyte can hold a hundred thousand wrong keys; nobody reads past the first few.
        redact = Redactor(self._secrets)
        lines = [finding.sentence(redact) for finding in findings[:_AT_MOST]]
        if len(findings) > _AT_MOST:
            lines.append(f"{len(findings) - _AT_MOST} more like these; cure the ones above first.")
        return tuple(lines)
