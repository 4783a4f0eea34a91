"""What a setting is, and how a value of each kind is read from the environment and from YAML.

A value that cannot be used becomes a `BadValue`, which says what was wrong with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeGuard

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings, Part, Raw

Number = Literal["integer", "number"]
Word = Literal["boolean", "debug", "choice", "text", "url", "env_name", "time_zone", "path", "folder"]
Several = Literal["toolsets", "names", "domains", "stores", "headers", "prices", "json", "request", "web_search"]
Kind = Number | Word | Several

TOOLSETS: Final = ("answer", "manuals", "search", "research")
"""Names that `server.toolsets` may hold."""

MAX_DOMAINS: Final = 100
"""The web search tool takes no more allowed domains than this."""

OWN_MEMBERS: Final = (
    *("model", "input", "instructions", "tools", "stream"),
    *("background", "include", "previous_response_id"),
)
"""Members of a request's body that the server writes itself."""

SINGLE_QUOTES: Final = "put text with backslashes into single quotation marks: in double ones they begin escapes"
"""The cure for a path of Windows in double quotation marks in YAML."""

YES: Final = frozenset({"yes", "on"})
NO: Final = frozenset({"no", "off"})
ON: Final = YES | {"1", "true"}
OFF: Final = NO | {"0", "false"}

_DECIMAL: Final = r"[+-]?[0-9]{1,30}"
_FRACTION: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,254}"
_DOMAIN: Final = r"[^\s,\x00-\x1f\x7f]{1,253}"
_CONTROL: Final = r"[\x00-\x1f\x7f]"
_LONGEST_TEXT: Final = 256
_LONGEST_PATH: Final = 4096
_OWN: Final = {"request": OWN_MEMBERS, "web_search": ("type",)}
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
    "toolsets": f"a list of toolset names ({', '.join(TOOLSETS)})",
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
        if self.kind in {"integer", "number"}:
            kind = "an integer" if self.kind == "integer" else "a number"
            words = f"{kind} from {self.bounds.least or self.bounds.low} to {self.bounds.high}"
            return f"{words}, or 0" if self.bounds.least else words
        return f"one of {', '.join(self.choices)}" if self.kind == "choice" else _EXPECTED[self.kind]


class BadValue(NamedTuple):
    """Why a value cannot be used: what it is, and words to use instead of the setting's and origin's own."""

    got: tuple[Part, ...]
    expected: str = ""
    cure: str = ""


class Outside(NamedTuple):
    """A number that is out of range: the value within it that takes its place, and what was given."""

    within: int
    got: tuple[Part, ...]


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
    return ("a mapping" if isinstance(value, dict) else "a list",)


def from_text(setting: Setting, text: str, findings: Findings) -> object:
    """Read a value that came as text (environment, command line); surrounding blanks are already gone.

    Integers and numbers are strict decimal, without an exponent. Returns the value, an `Outside`, or a `BadValue`.
    """
    if setting.kind == "integer" and re.fullmatch(_DECIMAL, text):
        return _number(setting, int(text), text)
    if setting.kind == "number" and re.fullmatch(_FRACTION, text):
        return _number(setting, float(text), text)
    if setting.kind == "boolean" and text.lower() in ON | OFF:
        return text.lower() in ON
    if setting.kind in {"integer", "number", "boolean"}:
        return _bad(text, findings)
    if setting.kind in _LISTS:
        return _LISTS[setting.kind](names_in(text), findings)
    return _text(setting, text, findings)


def from_yaml(setting: Setting, value: object, findings: Findings) -> object:
    """Read a value that a YAML file gave. Types are strict: true is no integer and "3" is no number.

    Returns the value, an `Outside`, or a `BadValue`.
    """
    kind = setting.kind
    if kind in {"boolean", "debug"}:
        word = value.lower() if isinstance(value, str) else ""
        if isinstance(value, bool) or word in YES | NO:  # which YAML 1.1 takes for booleans
            return word in YES if word else value
    elif kind in {"integer", "number"}:
        if isinstance(value, int | float) and not isinstance(value, bool) and (kind == "number" or value == value // 1):
            return _number(setting, float(value) if kind == "number" else int(value), value)
    elif kind in _LISTS:
        listed = names_in(value) if kind == "toolsets" and isinstance(value, str) else value
        if is_list(listed):
            return _LISTS[kind](listed, findings)
    elif is_mapping(value):
        if kind in {"json", *_OWN}:
            return _passed_on(value, _OWN.get(kind, ()), findings)
        if kind == "prices":
            return _prices(value, findings)
        if kind == "headers":
            return {name: each for name, each in value.items() if each is not None}
    elif isinstance(value, str) and kind not in {"json", "headers", "prices", *_OWN}:
        read = _text(setting, value, findings)
        if isinstance(read, BadValue) and kind in {"path", "folder"} and re.search(_CONTROL, value):
            return read._replace(cure=SINGLE_QUOTES)  # most likely a tab, which "C:\temp" has
        return read
    return _bad(value, findings)


def _bad(value: object, findings: Findings) -> BadValue:
    if isinstance(value, str) and findings.may_be_key(value):
        return BadValue(("a value that looks like a key (not shown)",))
    if isinstance(value, str) and is_unfilled(value):
        return BadValue((Raw(value), ", a placeholder left unfilled"))
    return BadValue(described(value))


def _number(setting: Setting, number: float, written: object) -> float | Outside | BadValue:
    low, high, strict, least, default_below = setting.bounds
    low = least or low if number > 0 else low
    if low <= number <= high:
        return number
    if strict or number == math.inf:
        return BadValue(described(written))
    lowest = setting.default if default_below and isinstance(setting.default, int) else low
    return Outside(lowest if number < low else high, described(written))


def _text(setting: Setting, text: str, findings: Findings) -> str | BadValue:
    kind = setting.kind
    if kind == "choice":
        return text if text in setting.choices else _bad(text, findings)
    if kind == "env_name":
        # What is no name is most likely the key itself, so it is not repeated.
        return text if env_name(text, findings) else BadValue(("other text (not shown)",))
    if not text.strip():
        return BadValue(("empty text",))
    is_word = len(text) <= _LONGEST_TEXT and text.isprintable() and " " not in text
    if kind == "url" and (not is_word or is_unfilled(text)):
        # Whatever else a URL holds, it may hold credentials.
        return BadValue(("text with blanks, controls or unfilled placeholders (not shown)",))
    # What is wrong with credentials in an address is told by whoever checks it.
    if is_unfilled(text) or (not (kind == "url" and "@" in text) and findings.holds_secret(text)):
        return _bad(text, findings)
    if kind in {"path", "folder"}:
        # Undecodable names arrive as lone surrogates and are good paths; control characters never are.
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":  # cmd.exe keeps them in a variable
            return BadValue((Raw(text, quoted=False),), cure="leave out the quotation marks")
        return text if len(text) <= _LONGEST_PATH and not re.search(_CONTROL, text) else _bad(text, findings)
    if is_word and kind == "time_zone":
        from responses_mcp.settings.time_zone import cure_of_zone  # noqa: PLC0415 - few have one

        cure = cure_of_zone(text)
        return BadValue((Raw(text),), cure=cure) if cure else text
    return text if is_word else _bad(text, findings)


def _inside(item: object, findings: Findings) -> BadValue:
    return BadValue((*_bad(item, findings).got, " in it"))


def _domains(items: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    if len(items) > MAX_DOMAINS:
        return BadValue((f"{len(items)} of them",))
    names: list[str] = []
    for item in items:
        if not isinstance(item, str) or not re.fullmatch(_DOMAIN, item) or not item.isprintable():
            return _inside(item, findings)
        if findings.holds_secret(item):
            return _inside(item, findings)
        names.append(item)
    return tuple(names)


def _stores(items: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    stores = _domains(items, findings)
    if isinstance(stores, BadValue):
        return stores
    names = [name if id_ else "" for name, _, id_ in (each.partition("=") for each in stores)]
    wrong = next((each for at, each in enumerate(stores) if not names[at] or names[at] in names[:at]), None)
    return stores if wrong is None else _inside(wrong, findings)


def _toolsets(items: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    chosen = [TOOLSETS[0]]
    for item in items:
        if not isinstance(item, str) or item not in TOOLSETS:
            return _inside(item, findings)
        chosen.append(item)
    return tuple(dict.fromkeys(chosen))


_LISTS: Final = {"toolsets": _toolsets, "domains": _domains, "names": _domains, "stores": _stores}


def _passed_on(tree: dict[str, object], own: Sequence[str], findings: Findings) -> dict[str, object] | BadValue:
    """Return a mapping as it is, if it is JSON without secrets, and none of its names is one of `own`."""
    written = next((name for name in own if name in tree), None)
    if written is not None:
        return BadValue((f"{written}, which the server writes itself",), cure="remove it")
    return BadValue(("one with a key or a number that JSON has not (not shown)",)) if _odd(tree, findings) else tree


def _odd(value: object, findings: Findings) -> bool:
    """Tell whether something in it is nothing that JSON has, or holds a secret."""
    if is_mapping(value):
        return any(_odd(each, findings) for pair in value.items() for each in pair)
    if is_list(value):
        return any(_odd(each, findings) for each in value)
    if isinstance(value, str):
        return findings.holds_secret(value)
    return isinstance(value, float) and not math.isfinite(value)


def _prices(value: Mapping[str, object], findings: Findings) -> dict[str, dict[str, float]] | BadValue:
    prices: dict[str, dict[str, float]] = {}
    for model, given in value.items():
        named = given.items() if is_mapping(given) else ()
        fields = {name: float(each) for name, each in named if _is_price(each)}
        missing = {"input", "output"} - fields.keys()
        unknown = fields.keys() - {"input", "output", "cached_input", "web_search"}
        if missing or unknown or len(fields) < len(named) or findings.may_be_key(model):
            return BadValue(("something else for ", Raw(model)))
        prices[model] = fields
    return prices


def _is_price(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _HIGHEST_PRICE
