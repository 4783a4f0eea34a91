"""What was wrong with a configuration: problems that stop calls, warnings that do not, secrets masked.

A finding is kept in parts and worded only at the end, when every secret is known: the values of the variables
that `openai.api_key_env` and `openai.headers_env` name are learned while findings come in, and text must be
masked before it is shortened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

_KEY_FORM: Final = r"\bsk-[A-Za-z0-9_\-]{8,}"
_OPAQUE: Final = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{24,}"
_MASK: Final = "[not shown]"
_SHORTEST_SECRET: Final = 6
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


def looks_like_key(text: str) -> bool:
    """Tell whether text has the form of a secret: `sk-…`, or 24 or more letters and digits in one run."""
    return bool(re.search(_KEY_FORM, text) or re.fullmatch(_OPAQUE, text))


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return text with every secret, and whatever has the form of an OpenAI key, replaced by a note."""
    # The longest first, so that a secret which is part of another one leaves no rest behind.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, _MASK)
    return re.sub(_KEY_FORM, _MASK, text)


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
        return masked(text, self._secrets) != text

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
        lines = [self._sentence(finding) for finding in findings[:_AT_MOST]]
        if len(findings) > _AT_MOST:
            lines.append(f"{len(findings) - _AT_MOST} more like these; cure the ones above first.")
        return tuple(lines)

    def _sentence(self, finding: _Finding) -> str:
        what, where = ("".join(map(self._shown, parts)) for parts in (finding.what, finding.where))
        return f"{what} ({where}); {finding.cure}{'' if finding.cure.endswith('?') else '.'}"

    def _shown(self, part: Part) -> str:
        if isinstance(part, str):
            return part
        text = printable(masked(part.text, self._secrets))
        if len(text) > part.limit:
            text = f"{text[: part.limit - 1]}…"
        return f'"{text}"' if part.quoted else text
