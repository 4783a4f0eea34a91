"""What a setting is, and how a value of each kind is read from the environment and from YAML.

Text of the environment becomes what YAML would have given; from there, both are read alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeGuard

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings, nearest

Kind = Literal[
    "integer", "number", "boolean", "debug", "choice", "text", "url", "env_name", "time_zone", "path", "folder",
    "toolsets", "names", "domains", "stores", "headers", "prices", "json", "request", "web_search",
]  # fmt: skip

MAX_DOMAINS: Final = 100
"""The web search tool takes no more allowed domains than this."""

OWN_MEMBERS: Final = (
    *("model", "input", "instructions", "tools", "stream"),
    *("background", "include", "previous_response_id"),
)
"""Members of a request's body that the server writes itself."""

SINGLE_QUOTES: Final = "put text with backslashes into single quotation marks: in double ones they begin escapes"
"""The cure for a path of Windows in double quotation marks in YAML."""

PATHS: Final = ("path", "folder")
NUMBERS: Final = ("integer", "number")
_LISTS: Final = ("toolsets", "names", "domains", "stores")
_MAPPINGS: Final = {"request": OWN_MEMBERS, "web_search": ("type",), "json": (), "headers": (), "prices": ()}
_WORDS: Final = {"yes": True, "on": True, "no": False, "off": False}  # which YAML 1.1 takes for booleans
ON_OFF: Final = {**_WORDS, "true": True, "1": True, "false": False, "0": False}

_DECIMAL: Final = r"[+-]?[0-9]{1,30}"
_FRACTION: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,254}"
_DOMAIN: Final = r"[^\s,\x00-\x1f\x7f]{1,253}"
_CONTROL: Final = r"[\x00-\x1f\x7f]"
_LONGEST_TEXT: Final = 256
_LONGEST_PATH: Final = 4096
_HIGHEST_PRICE: Final = 1_000_000  # US dollars

_EXPECTED: Final[Mapping[str, str]] = {
    "boolean": "true or false",
    "debug": "true or false",
    "text": "text without blanks",
    "url": "an absolute https URL with a host and without query or fragment",
    "env_name": "the name of an environment variable",
    "time_zone": "the name of a time zone, such as Europe/Berlin or UTC",
    "path": "the path of a file",
    "folder": "the path of a folder",
    "choice": "one of",
    "toolsets": "a list of toolset names",
    "names": f"a list of at most {MAX_DOMAINS} names",
    "domains": f"a list of at most {MAX_DOMAINS} domain names",
    "stores": f"a list of at most {MAX_DOMAINS} vector stores as name=id, such as docs=vs_0123, each name once",
    "headers": "a mapping of header names to names of environment variables",
    "prices": "a mapping of model ids to mappings with input, output and maybe cached_input, web_search",
    "json": "a mapping",
    "request": "members of the body of a request",
    "web_search": "members of the tool that searches the web",
}


class Between(NamedTuple):
    """The bounds of a number. What is outside is brought within with a warning.

    Where `strict`, the contract says that it is wrong. `least` is the least value above 0, where 0 has a meaning of its
    own. With `default_below` less than `low` becomes the default, where with `low` itself hardly a call succeeds.
    """

    low: int
    high: int
    strict: bool = False
    least: int = 0
    default_below: bool = False


class Form(NamedTuple):
    """The form of a value that its type does not say, and the words of a choice."""

    kind: Kind
    choices: tuple[str, ...] = ()


class Env(NamedTuple):
    """The variable of a setting, or how those of a section begin. None is for one that has none in such a section."""

    name: str | None


class Setting(NamedTuple):
    """One row of the table: the dotted key, what a value must be, what it is for, its variable and its default."""

    key: str
    kind: Kind
    doc: str = ""
    env: str | None = None
    choices: tuple[str, ...] = ()
    bounds: Between = Between(0, 0)
    default: object = None

    @property
    def expected(self) -> str:
        """What a value has to be, as the words after "expected" in a message."""
        if self.kind in NUMBERS:
            kind = "an integer" if self.kind == "integer" else "a number"
            words = f"{kind} from {self.bounds.least or self.bounds.low} to {self.bounds.high}"
            return f"{words}, or 0" if self.bounds.least else words
        words = ", ".join(self.choices)
        return f"{_EXPECTED[self.kind]} {words if self.kind == 'choice' else f'({words})' if words else ''}".strip()


class BadValue(Exception):
    """A value that cannot be used: what it is, and words to use instead of the setting's and source's own.

    A number that is out of range has `within`, the one that takes its place.
    """

    def __init__(self, got: str, *, expected: str = "", cure: str = "", within: float | None = None) -> None:
        super().__init__(got)
        self.got = got
        self.expected = expected
        self.cure = cure
        self.within = within


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether a value of the file is a mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Tell whether a value of the file is a list."""
    return isinstance(value, list)


def env_name(text: str, findings: Findings) -> bool:
    """Tell whether text can be the name of an environment variable and is not, by mistake, a key itself."""
    return bool(re.fullmatch(_ENV_NAME, text)) and not findings.may_be_key(text)


def names_in(text: str) -> list[str]:
    """Return the names in a list that came as text, with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def from_text(setting: Setting, text: str, findings: Findings) -> object:
    """Read a value that came as text (environment, command line); surrounding blanks are already gone.

    Integers and numbers are strict decimal, without an exponent. Raises `BadValue`.
    """
    value: object = text
    if setting.kind in _LISTS:
        value = names_in(text)
    elif setting.kind == "boolean":
        value = ON_OFF.get(text.lower(), text)
    elif setting.kind == "integer" and re.fullmatch(_DECIMAL, text):
        value = int(text)
    elif setting.kind == "number" and re.fullmatch(_FRACTION, text):
        value = float(text)
    return _read(setting, value, text, findings)


def from_yaml(setting: Setting, value: object, findings: Findings) -> object:
    """Read a value that a YAML file gave. Types are strict: true is no integer and "3" is no number.

    Raises `BadValue`.
    """
    listed = names_in(value) if setting.kind == "toolsets" and isinstance(value, str) else value
    try:
        return _read(setting, listed, value, findings)
    except BadValue as bad:
        if setting.kind in PATHS and isinstance(value, str) and re.search(_CONTROL, value):
            bad.cure = SINGLE_QUOTES  # most likely a tab, which "C:\temp" has
        raise


def _read(setting: Setting, value: object, written: object, findings: Findings) -> object:
    """Read a value by its kind; `written` is what a message shows of it."""
    kind = setting.kind
    if kind in NUMBERS:
        if isinstance(value, int | float) and not isinstance(value, bool) and (kind == "number" or value == value // 1):
            return _number(setting, float(value) if kind == "number" else int(value), findings.described(written))
    elif kind in {"boolean", "debug"}:
        word = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if isinstance(word, bool):
            return word
    elif kind in _LISTS:
        if is_list(value):
            return _list(setting, value, findings)
    elif kind in _MAPPINGS:
        if is_mapping(value):
            return _mapping(kind, value, findings)
    elif isinstance(value, str):
        return _text(setting, value, findings)
    raise _bad(written, findings)


def _bad(value: object, findings: Findings, end: str = "", cure: str = "") -> BadValue:
    if isinstance(value, str) and findings.may_be_key(value):
        return BadValue(f"a value that looks like a key (not shown){end}")
    unfilled = isinstance(value, str) and is_unfilled(value)
    return BadValue(f"{findings.described(value)}{', a placeholder left unfilled' if unfilled else ''}{end}", cure=cure)


def _number(setting: Setting, number: float, written: str) -> float:
    low, high, strict, least, default_below = setting.bounds
    low = least or low if number > 0 else low
    if low <= number <= high:
        return number
    if strict or number == math.inf:
        raise BadValue(written)
    lowest = setting.default if default_below and isinstance(setting.default, int) else low
    raise BadValue(written, within=lowest if number < low else high)


def _text(setting: Setting, text: str, findings: Findings) -> str:
    kind = setting.kind
    if kind == "choice":
        if text not in setting.choices:
            raise _bad(text, findings)
        return text
    if kind == "env_name":
        if not env_name(text, findings):  # most likely the key itself, so it is not repeated
            raise BadValue("other text (not shown)")
        return text
    if not text.strip():
        raise BadValue("empty text")
    is_word = len(text) <= _LONGEST_TEXT and text.isprintable() and " " not in text
    if kind == "url" and (not is_word or is_unfilled(text)):
        # Whatever else a URL holds, it may hold credentials.
        raise BadValue("text with blanks, controls or unfilled placeholders (not shown)")
    # What is wrong with credentials in an address is said by whoever checks it.
    if is_unfilled(text) or (not (kind == "url" and "@" in text) and findings.holds_secret(text)):
        raise _bad(text, findings)
    if kind in PATHS:
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":  # cmd.exe keeps them in a variable
            raise BadValue(findings.shown(text), cure="leave out the quotation marks")
        # Undecodable names arrive as lone surrogates and are good paths; control characters never are.
        is_word = len(text) <= _LONGEST_PATH and not re.search(_CONTROL, text)
    if not is_word:
        raise _bad(text, findings)
    if kind == "time_zone":
        from responses_mcp.settings.time_zone import cure_of_zone  # noqa: PLC0415 - few have one

        if cure := cure_of_zone(text):
            raise BadValue(findings.described(text), cure=cure)
    return text


def _list(setting: Setting, items: Sequence[object], findings: Findings) -> tuple[str, ...]:
    if len(items) > MAX_DOMAINS:
        raise BadValue(f"{len(items)} of them")
    names: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise _bad(item, findings, " in it")
        if setting.choices and item not in setting.choices:
            near = nearest(item, setting.choices)
            raise _bad(item, findings, " in it", f"did you mean {near}?" if near else "")
        if not re.fullmatch(_DOMAIN, item) or not item.isprintable() or findings.holds_secret(item):
            raise _bad(item, findings, " in it")
        name, _, store = item.partition("=")
        if setting.kind == "stores" and (not store or not name or any(each.startswith(f"{name}=") for each in names)):
            raise _bad(item, findings, " in it")
        names.append(item)
    return tuple(dict.fromkeys((setting.choices[0], *names))) if setting.kind == "toolsets" else tuple(names)


def _mapping(kind: str, tree: Mapping[str, object], findings: Findings) -> Mapping[str, object]:
    if kind == "headers":  # `header_values` reads them
        return {name: each for name, each in tree.items() if each is not None}
    if kind == "prices":
        return {model: _price(model, given, findings) for model, given in tree.items()}
    if written := next((name for name in _MAPPINGS[kind] if name in tree), None):
        raise BadValue(f"{written}, which the server writes itself", cure="remove it")
    if _is_odd(tree, findings):
        raise BadValue("one with a key or a number that JSON has not (not shown)")
    return tree


def _is_odd(value: object, findings: Findings) -> bool:
    """Tell whether something in it is nothing that JSON has, or holds a secret."""
    if is_mapping(value):
        return any(_is_odd(each, findings) for pair in value.items() for each in pair)
    if is_list(value):
        return any(_is_odd(each, findings) for each in value)
    if isinstance(value, str):
        return findings.holds_secret(value)
    return isinstance(value, float) and not math.isfinite(value)


def _price(model: str, given: object, findings: Findings) -> Mapping[str, float]:
    named = given if is_mapping(given) else {}
    prices = {name: float(each) for name, each in named.items() if _is_price(each)}
    unknown = prices.keys() - {"input", "output", "cached_input", "web_search"}
    if {"input", "output"} - prices.keys() or unknown or len(prices) < len(named) or findings.may_be_key(model):
        raise BadValue(f"something else for {findings.described(model)}")
    return prices


def _is_price(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _HIGHEST_PRICE
