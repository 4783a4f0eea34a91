"""One value: from what a person wrote to what the server uses, or a refusal that says what was wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from responses_mcp.settings.findings import Findings, Part, Raw, looks_like_key
from responses_mcp.settings.setting import MAX_DOMAINS, TOOLSETS, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

_DECIMAL: Final = r"[+-]?[0-9]{1,30}"
_FRACTION: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,254}"
_DOMAIN: Final = r"[^\s,\x00-\x1f\x7f]{1,253}"
ON: Final = frozenset({"1", "true", "yes", "on"})
OFF: Final = frozenset({"0", "false", "no", "off"})

_LONGEST_TEXT: Final = 256
_LONGEST_PATH: Final = 4096


class Given(NamedTuple):
    """A value from the file and the line it is on. None is YAML's null, kept only under a profile's name."""

    value: object
    line: int


class Odd(NamedTuple):
    """A YAML value that no setting takes: what it is ("a date", "a mapping"), and how it was written."""

    kind: str
    text: str = ""


class Refusal(NamedTuple):
    """Why a value cannot be used: what it is, and words to use instead of the setting's and origin's own."""

    got: tuple[Part, ...]
    expected: str = ""
    cure: str = ""


def env_name(text: str) -> bool:
    """Tell whether text can be the name of an environment variable and is not, by mistake, a key itself."""
    return bool(re.fullmatch(_ENV_NAME, text)) and not looks_like_key(text)


def described(value: object) -> tuple[Part, ...]:
    """Return what a value is, as message parts: text in quotes, anything else with its type."""
    if isinstance(value, str):
        return (Raw(value),)
    if isinstance(value, bool):
        return (f"{str(value).lower()} (a boolean)",)
    if isinstance(value, int | float):
        return (Raw(repr(value), quoted=False), " (a number)")
    if value is None:
        return ("nothing",)
    if isinstance(value, Odd):
        return (Raw(value.text), f" ({value.kind})") if value.text else (value.kind,)
    return ("a mapping" if isinstance(value, dict) else "a list",)


def from_text(setting: Setting, text: str, findings: Findings) -> object:
    """Read a value that came as text (environment, command line); surrounding blanks are already gone.

    Integers and numbers are strict decimal, without an exponent. Returns the value, or a `Refusal`.
    """
    if setting.kind == "integer":
        return _number(setting, int(text), text) if re.fullmatch(_DECIMAL, text) else _refused(text, findings)
    if setting.kind == "number":
        return _number(setting, float(text), text) if re.fullmatch(_FRACTION, text) else _refused(text, findings)
    if setting.kind == "boolean":
        word = text.lower()
        return word in ON if word in ON | OFF else _refused(text, findings)
    if setting.kind == "toolsets":
        return _toolsets([part.strip() for part in text.split(",") if part.strip()], findings)
    return _text(setting, text, findings)


def from_yaml(setting: Setting, value: object, findings: Findings) -> object:
    """Read a value that a YAML file gave. Types are strict: true is no integer and "3" is no number.

    Returns the value, or a `Refusal`.
    """
    if setting.kind in {"boolean", "debug"}:
        return value if isinstance(value, bool) else _refused(value, findings)
    if setting.kind == "integer":
        if isinstance(value, float) and value.is_integer():
            return _number(setting, int(value), value)
        if isinstance(value, int) and not isinstance(value, bool):
            return _number(setting, value, value)
        return _refused(value, findings)
    if setting.kind == "number":
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(setting, float(value), value)
        return _refused(value, findings)
    if setting.kind == "domains":
        return _domains(value, findings)
    if setting.kind == "toolsets":
        if isinstance(value, str):
            return from_text(setting, value, findings)
        return _toolsets(value, findings) if isinstance(value, list) else _refused(value, findings)  # pyright: ignore[reportUnknownArgumentType]
    if setting.kind == "headers":
        return value if isinstance(value, dict) else _refused(value, findings)  # pyright: ignore[reportUnknownVariableType]
    return _text(setting, value, findings) if isinstance(value, str) else _refused(value, findings)


def _refused(value: object, findings: Findings, cure: str = "") -> Refusal:
    if isinstance(value, str) and (findings.holds_secret(value) or looks_like_key(value)):
        return Refusal(("a value that looks like a key (not shown)",))
    if isinstance(value, str) and _unfilled(value):
        return Refusal((Raw(value), ", a placeholder left unfilled"), cure=cure)
    return Refusal(described(value), cure=cure)


def _number(setting: Setting, number: float, written: object) -> float | Refusal:
    # Infinity is outside of any bounds, and so is what is no number.
    return number if setting.low <= number <= setting.high else Refusal(described(written))


def _text(setting: Setting, text: str, findings: Findings) -> str | Refusal:
    if setting.kind == "choice":
        return text if text in setting.choices else _refused(text, findings)
    if setting.kind == "env_name":
        # What is no name is most likely the key itself, so it is not repeated.
        return text if env_name(text) else Refusal(("other text (not shown)",))
    if not text.strip():
        return Refusal(("empty text",))
    if setting.kind == "url" and (not _plain_word(text) or _unfilled(text)):
        # Whatever else a URL holds, it may hold credentials.
        return Refusal(("text with blanks, controls or unfilled placeholders (not shown)",))
    if findings.holds_secret(text) or _unfilled(text):
        return _refused(text, findings)
    if setting.kind in {"path", "folder"}:
        # Undecodable names arrive as lone surrogates and are good paths; control characters never are.
        fits = len(text) <= _LONGEST_PATH and not any(char < " " or char == "\x7f" for char in text)
    else:
        fits = _plain_word(text)
    return text if fits else _refused(text, findings)


def _unfilled(text: str) -> bool:
    """Tell whether a variable is left in it, `${NAME}`, that a client should have filled in."""
    return "}" in text.partition("${")[2]


def _plain_word(text: str) -> bool:
    return len(text) <= _LONGEST_TEXT and text.isprintable() and " " not in text


def _domains(value: object, findings: Findings) -> tuple[str, ...] | Refusal:
    if not isinstance(value, list):
        return _refused(value, findings)
    items = cast("list[object]", value)
    if len(items) > MAX_DOMAINS:
        return Refusal((f"{len(items)} of them",))
    for item in items:
        if not isinstance(item, str) or not re.fullmatch(_DOMAIN, item) or not item.isprintable():
            return _inside(item, findings)
        if findings.holds_secret(item):
            return _inside(item, findings)
    return tuple(item for item in items if isinstance(item, str))


def _toolsets(value: Sequence[object], findings: Findings) -> tuple[str, ...] | Refusal:
    chosen: dict[str, None] = {TOOLSETS[0]: None}
    for item in value:
        if not isinstance(item, str) or item not in TOOLSETS:
            return _inside(item, findings)
        chosen[item] = None
    return tuple(chosen)


def _inside(item: object, findings: Findings) -> Refusal:
    return Refusal((*_refused(item, findings).got, " in it"))
