"""What a setting is, and how a value of each kind is read from the environment and from YAML.

A value that cannot be used becomes a `BadValue`, which says what was wrong with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, cast

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings, Part, Raw, looks_like_key
from responses_mcp.settings.model import ModelPrice, Settings

Kind = Literal[
    "integer",
    "number",
    "boolean",
    "choice",
    "text",
    "names",
    "stores",
    "json",
    "request",
    "web_search",
    "prices",
    "env_name",
    "time_zone",
    "url",
    "path",
    "folder",
    "domains",
    "headers",
    "toolsets",
    "debug",
]

TOOLSETS: Final = ("answer", "manuals", "search", "research")
"""Names that `server.toolsets` may hold."""

MAX_DOMAINS: Final = 100
"""The web search tool takes no more allowed domains than this."""

OWN_MEMBERS: Final = (
    *("model", "input", "instructions", "tools", "stream"),
    *("background", "include", "previous_response_id"),
)
"""Members of a request's body that the server writes itself."""

DEFAULTS: Final = Settings()

_DECIMAL: Final = r"[+-]?[0-9]{1,30}"
_FRACTION: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_ENV_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,254}"
_DOMAIN: Final = r"[^\s,\x00-\x1f\x7f]{1,253}"
YES: Final = frozenset({"yes", "on"})
NO: Final = frozenset({"no", "off"})
ON: Final = YES | {"1", "true"}
OFF: Final = NO | {"0", "false"}

_ZONES_OF_WINDOWS: Final = "; on Windows, names are known once the Python package tzdata is installed beside this one"

_LONGEST_TEXT: Final = 256
_LONGEST_PATH: Final = 4096
_OWN: Final = {"request": OWN_MEMBERS, "web_search": ("type",)}
_PRICED: Final = frozenset({"input", "output", "cached_input", "web_search"})
_HIGHEST_PRICE: Final = 1_000_000  # US dollars


class Setting(NamedTuple):
    """One row of the table.

    `low` and `high` bound integers and numbers. What is outside is brought within with a warning; where `strict`, the
    contract says that it is wrong. `least` is the least value above 0, where 0 has a meaning of its own. With
    `default_below` less than `low` becomes the default, where with `low` itself hardly a call succeeds.
    """

    key: str
    kind: Kind
    doc: str
    env: str | None = None
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    strict: bool = False
    least: int = 0
    default_below: bool = False

    @property
    def default(self) -> object:
        """The value without any configuration; None where the value comes from elsewhere (see `doc`)."""
        return value_of(DEFAULTS, self.key)

    @property
    def expected(self) -> str:
        """What a value has to be, as the words after "expected" in a message."""
        if self.kind in {"integer", "number"}:
            words = (
                f"{'an integer' if self.kind == 'integer' else 'a number'} from {self.least or self.low} to {self.high}"
            )
            return f"{words}, or 0" if self.least else words
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "toolsets":
            return f"a list of toolset names ({', '.join(TOOLSETS)})"
        return _EXPECTED[self.kind]


SINGLE_QUOTES: Final = "put text with backslashes into single quotation marks: in double ones they begin escapes"
"""The cure for a path of Windows in double quotation marks in YAML."""

_EXPECTED: Final[dict[str, str]] = {
    "boolean": "true or false",
    "debug": "true or false",
    "text": "text without blanks",
    "names": f"a list of at most {MAX_DOMAINS} names",
    "stores": f"a list of at most {MAX_DOMAINS} vector stores as name=id, such as docs=vs_0123, each name once",
    "json": "a mapping",
    "request": "members of the body of a request",
    "web_search": "members of the tool that searches the web",
    "prices": "a mapping of model ids to mappings with input, output and maybe cached_input, web_search",
    "env_name": "the name of an environment variable",
    "time_zone": "the name of a time zone, such as Europe/Berlin or UTC",
    "url": "an absolute https URL with a host and without query or fragment",
    "path": "the path of a file",
    "folder": "the path of a folder",
    "domains": f"a list of at most {MAX_DOMAINS} domain names",
    "headers": "a mapping of header names to names of environment variables",
}


def integer(key: str, low: int, high: int, doc: str, env: str | None = None) -> Setting:
    """Return the row of an integer."""
    return Setting(key, "integer", doc, env, low, high)


def number(key: str, high: int, doc: str) -> Setting:
    """Return the row of a number that is not negative."""
    return Setting(key, "number", doc, high=high)


def switch(key: str, doc: str, env: str | None = None) -> Setting:
    """Return the row of what is on or off."""
    return Setting(key, "boolean", doc, env)


def choice(key: str, choices: tuple[str, ...], doc: str, env: str | None = None) -> Setting:
    """Return the row of one word out of a few."""
    return Setting(key, "choice", doc, env, choices=choices)


def section(name: str, variables: str, *rows: Setting) -> Iterator[Setting]:
    """Yield the rows of a section, each with the variable that is named after its key, if it has no other."""
    for row in rows:
        yield row._replace(key=f"{name}.{row.key}", env=row.env or f"{variables}_{row.key.upper()}")


def value_of(settings: Settings, key: str) -> object:
    """Return the value at a dotted key of a tree; None when a profile on the way is absent."""
    value: object = settings
    for part in key.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(part)
        else:
            value = getattr(value, part, None)
    return value


class BadValue(NamedTuple):
    """Why a value cannot be used: what it is, and words to use instead of the setting's and origin's own."""

    got: tuple[Part, ...]
    expected: str = ""
    cure: str = ""


class Outside(NamedTuple):
    """A number that is out of range: the value within it that takes its place, and what was given."""

    within: int
    got: tuple[Part, ...]


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
    return ("a mapping" if isinstance(value, dict) else "a list",)


def from_text(setting: Setting, text: str, findings: Findings) -> object:
    """Read a value that came as text (environment, command line); surrounding blanks are already gone.

    Integers and numbers are strict decimal, without an exponent. Returns the value, an `Outside`, or a `BadValue`.
    """
    if setting.kind == "integer":
        return _number(setting, int(text), text) if re.fullmatch(_DECIMAL, text) else _bad(text, findings)
    if setting.kind == "number":
        return _number(setting, float(text), text) if re.fullmatch(_FRACTION, text) else _bad(text, findings)
    if setting.kind == "boolean":
        word = text.lower()
        return word in ON if word in ON | OFF else _bad(text, findings)
    if (read := _LISTS.get(setting.kind)) is not None:
        return read(names_in(text), findings)
    return _text(setting, text, findings)


def names_in(text: str) -> list[str]:
    """Return the names in a list that came as text, with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def from_yaml(setting: Setting, value: object, findings: Findings) -> object:
    """Read a value that a YAML file gave. Types are strict: true is no integer and "3" is no number.

    Returns the value, an `Outside`, or a `BadValue`.
    """
    if setting.kind in {"boolean", "debug"}:
        word = value.lower() if isinstance(value, str) else ""
        if word in YES | NO:  # as YAML 1.1 has them
            return word in YES
        return value if isinstance(value, bool) else _bad(value, findings)
    if setting.kind == "integer":
        if isinstance(value, float) and value.is_integer():
            return _number(setting, int(value), value)
        if isinstance(value, int) and not isinstance(value, bool):
            return _number(setting, value, value)
        return _bad(value, findings)
    if setting.kind == "number":
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(setting, float(value), value)
        return _bad(value, findings)
    if setting.kind in {"json", "request", "web_search"}:
        return _tree(value, _OWN.get(setting.kind, ()), findings)
    if setting.kind == "prices":
        return _prices(value)
    if (read := _LISTS.get(setting.kind)) is not None:
        if setting.kind == "toolsets" and isinstance(value, str):
            return from_text(setting, value, findings)
        return read(cast("list[object]", value), findings) if isinstance(value, list) else _bad(value, findings)
    if setting.kind == "headers":
        pairs = cast("dict[str, object]", value).items() if isinstance(value, dict) else ()
        given = {name: each for name, each in pairs if each is not None}
        return given if isinstance(value, dict) else _bad(value, findings)
    if setting.kind in {"path", "folder"} and isinstance(value, str) and _has_control(value):
        return _bad(value, findings)._replace(cure=SINGLE_QUOTES)  # most likely a tab, which "C:\temp" has
    return _text(setting, value, findings) if isinstance(value, str) else _bad(value, findings)


def _bad(value: object, findings: Findings) -> BadValue:
    if isinstance(value, str) and (findings.holds_secret(value) or looks_like_key(value)):
        return BadValue(("a value that looks like a key (not shown)",))
    if isinstance(value, str) and is_unfilled(value):
        return BadValue((Raw(value), ", a placeholder left unfilled"))
    return BadValue(described(value))


def _number(setting: Setting, number: float, written: object) -> float | Outside | BadValue:
    low = (setting.least or setting.low) if number > 0 else setting.low
    if low <= number <= setting.high:
        return number
    if setting.strict or number == math.inf:
        return BadValue(described(written))
    lowest = cast(int, setting.default) if setting.default_below else low
    return Outside(lowest if number < low else setting.high, described(written))


def _text(setting: Setting, text: str, findings: Findings) -> str | BadValue:
    if setting.kind == "choice":
        return text if text in setting.choices else _bad(text, findings)
    if setting.kind == "env_name":
        # What is no name is most likely the key itself, so it is not repeated.
        return text if env_name(text) else BadValue(("other text (not shown)",))
    if not text.strip():
        return BadValue(("empty text",))
    if setting.kind == "url" and (not _plain_word(text) or is_unfilled(text)):
        # Whatever else a URL holds, it may hold credentials.
        return BadValue(("text with blanks, controls or unfilled placeholders (not shown)",))
    if findings.holds_secret(text) or is_unfilled(text):
        return _bad(text, findings)
    if setting.kind in {"path", "folder"}:
        # Undecodable names arrive as lone surrogates and are good paths; control characters never are.
        fits = len(text) <= _LONGEST_PATH and not _has_control(text)
        if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":  # cmd.exe keeps them in a variable
            return BadValue((Raw(text, quoted=False),), cure="leave out the quotation marks")
    else:
        fits = _plain_word(text)
        if fits and setting.kind == "time_zone" and not _is_time_zone(text):
            return BadValue((Raw(text),), cure=_cure_of_time_zone(text))
    return text if fits else _bad(text, findings)


def _has_control(text: str) -> bool:
    return any(char < " " or char == "\x7f" for char in text)


def _is_time_zone(text: str) -> bool:
    from responses_mcp.settings.time_zone import zone_of  # noqa: PLC0415 - few have one

    return zone_of(text) is not None


def _cure_of_time_zone(text: str) -> str:
    from responses_mcp.settings.time_zone import near_zone  # noqa: PLC0415 - few have one

    near = near_zone(text)
    return (
        f"did you mean {near}? Correct it or leave it out" if near else f"correct it or leave it out{_ZONES_OF_WINDOWS}"
    )


def _plain_word(text: str) -> bool:
    return len(text) <= _LONGEST_TEXT and text.isprintable() and " " not in text


def _domains(items: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    if len(items) > MAX_DOMAINS:
        return BadValue((f"{len(items)} of them",))
    for item in items:
        if not isinstance(item, str) or not re.fullmatch(_DOMAIN, item) or not item.isprintable():
            return _inside(item, findings)
        if findings.holds_secret(item):
            return _inside(item, findings)
    return tuple(item for item in items if isinstance(item, str))


def _stores(items: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    stores = _domains(items, findings)
    if isinstance(stores, BadValue):
        return stores
    names = [name if id_ else "" for name, _, id_ in (each.partition("=") for each in stores)]
    wrong = next((each for at, each in enumerate(stores) if not names[at] or names[at] in names[:at]), None)
    return stores if wrong is None else _inside(wrong, findings)


def _tree(value: object, own: Sequence[str], findings: Findings) -> dict[str, object] | BadValue:
    """Return a mapping as it is, if it is JSON without secrets, and none of its names is one of `own`."""
    bad = _bad(value, findings)
    tree = cast("dict[str, object]", value) if isinstance(value, dict) else None
    if tree is None or _odd(tree, findings):
        return bad
    written = next((name for name in own if name in tree), None)
    return tree if written is None else BadValue((f"{written}, which the server writes itself",), cure="remove it")


def _odd(value: object, findings: Findings) -> bool:
    """Tell whether something in it is nothing that JSON has, or holds a secret."""
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return any(_odd(each, findings) for pair in pairs for each in pair)
    if isinstance(value, list):
        return any(_odd(each, findings) for each in cast("list[object]", value))
    if isinstance(value, str):
        return findings.holds_secret(value)
    return isinstance(value, float) and not math.isfinite(value)


def _prices(value: object) -> Mapping[str, ModelPrice] | BadValue:
    if not isinstance(value, dict):
        return BadValue(described(value))
    prices: dict[str, ModelPrice] = {}
    for model, given in cast("dict[str, object]", value).items():
        named = cast("dict[str, object]", given) if isinstance(given, dict) else {}
        fields = {name: _price(each) for name, each in named.items()}
        if not {"input", "output"} <= fields.keys() <= _PRICED or None in fields.values():
            return BadValue(("something else for ", Raw(model)))
        prices[model] = ModelPrice(**cast("dict[str, float]", fields))
    return MappingProxyType(prices)


def _price(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _HIGHEST_PRICE:
        return float(value)
    return None


def _toolsets(value: Sequence[object], findings: Findings) -> tuple[str, ...] | BadValue:
    chosen: dict[str, None] = {TOOLSETS[0]: None}
    for item in value:
        if not isinstance(item, str) or item not in TOOLSETS:
            return _inside(item, findings)
        chosen[item] = None
    return tuple(chosen)


_LISTS: Final = {"toolsets": _toolsets, "domains": _domains, "names": _domains, "stores": _stores}


def _inside(item: object, findings: Findings) -> BadValue:
    return BadValue((*_bad(item, findings).got, " in it"))
