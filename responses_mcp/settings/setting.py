"""What a setting is, and how a value is read: text of the environment and values of the YAML file by one reader."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeGuard

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.findings import Findings

Kind = Literal[
    "integer", "number", "boolean", "text", "url", "time_zone", "path", "folder", "list",
    "members", "headers", "prices",
]  # fmt: skip

MOST_ITEMS: Final = 100
"""The web search tool takes no more allowed domains than this."""

_WORDS: Final = {"yes": True, "on": True, "no": False, "off": False}  # which YAML 1.1 takes for booleans
ON_OFF: Final = {**_WORDS, "true": True, "1": True, "false": False, "0": False}
NUMBERS: Final = ("integer", "number")
PATHS: Final = ("path", "folder")

_NUMBER: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_HEADER: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"
_OF_THE_REQUEST: Final = (
    *("connection", "content-length", "content-type", "expect", "host", "keep-alive", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
)  # headers that would break its framing
_HIGHEST_PRICE: Final = 1_000_000  # US dollars


class Between(NamedTuple):
    """The bounds of a number. A number out of them is brought within, with a warning; if `strict` it is a problem.

    With `default_below` a number under `low` becomes the default: with `low` itself hardly a call would succeed.
    A number above 0 is `least` or more: with less no message could be read.
    """

    low: int
    high: int
    strict: bool = False
    default_below: bool = False
    least: int = 0


_MEMBER: Final = Between(1, 2**40, strict=True)


class Form(NamedTuple):
    """The form of a value that its type does not say.

    `pattern` is that of a text, or of each item of a list; `choices` are all that such a text may be. A wrong text is
    not shown if it `may_be_key`. `wrong` are members that a mapping may not have, with the cure for each; `members` are
    those that the server reads, or adds to, with their forms.
    """

    kind: Kind
    expected: str
    pattern: str = r"[^\s\"']{1,256}"
    choices: tuple[str, ...] = ()
    may_be_key: bool = False
    wrong: tuple[tuple[str, str], ...] = ()
    members: tuple[tuple[str, Form], ...] = ()


INTEGER: Final = Form("integer", "an integer")
NUMBER: Final = Form("number", "a number")
BOOLEAN: Final = Form("boolean", "true or false")
TEXT: Final = Form("text", "text without blanks")
MEMBERS: Final = Form("members", "a mapping")
ENV_NAME: Final = Form("text", "the name of an environment variable", r"[A-Za-z_][A-Za-z0-9_]{0,254}", may_be_key=True)


class Env(NamedTuple):
    """The variable of a setting, or how those of a section begin. None is for one that has none in such a section."""

    name: str | None


class Setting(NamedTuple):
    """One row of the table: the dotted key, what a value must be, what it is for, its variable and its default.

    `above` is the key of the profile `answer` whose value stands in for a missing one.
    """

    key: str
    form: Form
    doc: str
    env: str | None = None
    bounds: Between = Between(0, 0)
    default: object = None
    above: str = ""

    @property
    def expected(self) -> str:
        """What a value has to be, as the words after "expected" in a message."""
        low, high, *_, least = self.bounds
        if self.form.kind in NUMBERS:
            return f"{self.form.expected} from {least or low} to {high}{', or 0' if least else ''}"
        words = ", ".join(self.form.choices)
        return f"{self.form.expected}{words and (f' ({words})' if self.form.kind == 'list' else f' {words}')}"


UNFILLED: Final = "a placeholder left unfilled (not shown)"


class BadValue(Exception):
    """A value that cannot be used, in words, and a cure if the usual one does not fit.

    A number that is out of range has `within`, the one that takes its place.
    """

    def __init__(self, got: str, *, cure: str = "", within: int | None = None) -> None:
        super().__init__(got)
        self.got = got
        self.cure = cure
        self.within = within


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether a value of the file is a mapping."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Tell whether a value of the file is a list."""
    return isinstance(value, list)


def names_in(text: str) -> list[str]:
    """Return the names in a list that came as text, with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def from_text(setting: Setting, text: str) -> object:
    """Return what text of the environment or the command line would be in the YAML file."""
    if setting.form.kind == "boolean":
        return ON_OFF.get(text.lower(), text)
    if setting.form.kind in NUMBERS and re.fullmatch(_NUMBER, text):
        return float(text) if "." in text else int(text)
    return text


def read(setting: Setting, value: object, findings: Findings) -> object:
    """Return the value of a setting. Types are strict: true is no integer and "3" is no number. Raises `BadValue`."""
    form, kind = setting.form, setting.form.kind
    if isinstance(value, str) and is_unfilled(value):
        raise BadValue(UNFILLED)
    if kind == "boolean":
        word = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if isinstance(word, bool):
            return word
    elif kind in NUMBERS:
        if _is_number(value) and (kind == "number" or value == value // 1):
            return _number(setting, float(value) if kind == "number" else int(value), findings)
    elif kind == "list":
        items: object = names_in(value) if isinstance(value, str) else value
        if is_list(items):
            return _list(form, items, findings)
    elif kind in {"members", "headers", "prices"}:
        if is_mapping(value):
            return _mapping(form, value, findings)
    elif kind != "url":
        return _text(form, value, findings)
    elif isinstance(value, str):
        return value  # `checked_base_url` reads it
    raise BadValue(findings.described(value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(setting: Setting, number: float, findings: Findings) -> float:
    low, high, is_strict, default_below, least = setting.bounds
    low = least if number > 0 and least else low
    if low <= number <= high:
        return number
    got = findings.described(number)
    if is_strict or math.isinf(number):
        raise BadValue(got)
    lowest = setting.default if default_below and isinstance(setting.default, int) else low
    raise BadValue(got, within=lowest if number < low else high)


def _text(form: Form, text: object, findings: Findings) -> str:
    """Return a text, or an item of a list."""
    if not isinstance(text, str):
        raise BadValue(findings.described(text))
    # Undecodable names arrive as lone surrogates and are good paths.
    is_right = re.compile(form.pattern).fullmatch(text) and (text.isprintable() or form.kind in PATHS)
    if is_right and form.kind == "time_zone":
        from responses_mcp.settings.time_zone import zone_of  # noqa: PLC0415 - few have one

        is_right = zone_of(text) is not None
    holds_secret = findings.may_be_key if form.may_be_key else findings.holds_secret
    if not is_right or holds_secret(text) or (form.choices and text not in form.choices):
        raise BadValue("other text (not shown)" if form.may_be_key else findings.described(text))
    return text


def _list(form: Form, items: list[object], findings: Findings) -> tuple[str, ...]:
    if len(items) > MOST_ITEMS:
        raise BadValue(f"{len(items)} of them")
    try:
        return tuple(_text(form, item, findings) for item in items)
    except BadValue as bad:
        raise BadValue(f"{bad.got} in it") from None


def _mapping(form: Form, tree: Mapping[str, object], findings: Findings) -> Mapping[str, object]:
    if form.kind == "headers":
        return _headers(tree, findings)
    if form.kind == "prices":
        return {model: _price(model, given, findings) for model, given in tree.items() if given is not None}
    for name, cure in form.wrong:
        if name in tree:
            raise BadValue(f"{name} among them", cure=cure)
    for name, inner in form.members:
        if tree.get(name) is not None:
            try:
                value = read(Setting(name, inner, "", bounds=_MEMBER), tree[name], findings)
            except BadValue as bad:
                raise BadValue(f"{bad.got} for {name}", cure=f"make it {inner.expected}") from None
            tree = {**tree, name: value}
    try:
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise BadValue("one with a number that JSON does not have") from None
    if findings.holds_secret(text):
        raise BadValue("one with what looks like a key (not shown)")
    return tree


def _headers(tree: Mapping[str, object], findings: Findings) -> Mapping[str, str]:
    """Return the names of the variables that hold the values of headers."""
    variables: dict[str, str] = {}
    spelt: dict[str, str] = {}
    for header, name in tree.items():
        if name is None:
            continue
        if not re.fullmatch(_HEADER, header) or findings.may_be_key(header) or header.lower() in _OF_THE_REQUEST:
            raise BadValue(f"{findings.described(header)}, which is no header that may be set")
        if spelt.setdefault(header.lower(), header) != header:
            raise BadValue(f"{findings.described(header)} twice")
        try:
            variables[header] = _text(ENV_NAME, name, findings)
        except BadValue as bad:
            cure = "put the value into an environment variable and write its name here"
            raise BadValue(f"{bad.got} for {findings.shown(header)}", cure=cure) from None
    return variables


def _price(model: str, given: object, findings: Findings) -> Mapping[str, float]:
    named = {name: each for name, each in given.items() if each is not None} if is_mapping(given) else {}
    prices = {name: float(each) for name, each in named.items() if _is_number(each) and 0 <= each <= _HIGHEST_PRICE}
    unknown = prices.keys() - {"input", "output", "cached_input", "web_search"}
    if {"input", "output"} - prices.keys() or unknown or len(prices) < len(named) or findings.may_be_key(model):
        raise BadValue(f"something else for {findings.described(model)}")
    return prices
