"""What the value of a setting has to be, and how it is read: the same from the environment and from the YAML file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeGuard
from urllib.parse import urlsplit

from responses_mcp.settings.findings import described

_MOST_ITEMS: Final = 100  # the web search tool takes no more allowed domains
_WORDS: Final = {"yes": True, "on": True, "no": False, "off": False}  # which YAML 1.1 takes for booleans
ON_OFF: Final = {**_WORDS, "true": True, "1": True, "false": False, "0": False}

_NUMBER: Final = r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})"
_WORD: Final = r"[^\s\"']{1,256}"
_PATH: Final = r"(?=.*\S)(?![\"'])[^\x00-\x1f\x7f]{1,4096}"  # cmd.exe keeps quotation marks in a variable
_VARIABLE: Final = r"(?![A-Za-z0-9]{24})[A-Za-z_][A-Za-z0-9_]{0,254}"  # some keys are nothing but letters and digits
_HIGHEST_PRICE: Final = 1_000_000  # US dollars


class BadValue(Exception):
    """A value that cannot be used, in words, and a cure if the usual one does not fit.

    A number that is out of range has `within`, the one that takes its place.
    """

    def __init__(self, got: str, *, cure: str = "", within: int | None = None) -> None:
        super().__init__(got)
        self.got = got
        self.cure = cure
        self.within = within


class Form:
    """What a value has to be: `expected` stands behind that word in a message."""

    def __init__(self, expected: str) -> None:
        self.expected = expected

    def read(self, value: object) -> object:
        """Return the value as it is used. Types are strict: "3" is no number. Raises `BadValue`."""
        used = self._used(value)
        if used is None:
            raise BadValue(described(value))
        return used

    def _used(self, value: object) -> object:
        """Return the value as it is used, None for a wrong one. Raises `BadValue` where more is to be said."""
        raise NotImplementedError


class Switch(Form):
    """True or false."""

    def _used(self, value: object) -> bool | None:
        word = _WORDS.get(value.lower()) if isinstance(value, str) else value
        return word if isinstance(word, bool) else None


class Number(Form):
    """A number from `low` to `high`. One out of them is brought within, with a warning; if `strict` it is a problem.

    One under `low` becomes `below`, if given: with `low` itself hardly a call would succeed. One above 0 is `least` or
    more: with less no message could be read.
    """

    def __init__(
        self, low: int, high: int, *, whole: bool = True, strict: bool = False, below: int | None = None, least: int = 0
    ) -> None:
        kind = "an integer" if whole else "a number"
        super().__init__(f"{kind} from {least or low} to {high}{', or 0' if least else ''}")
        self.low, self.high, self.least, self.below = low, high, least, below
        self.whole, self.strict = whole, strict

    def _used(self, value: object) -> float | None:
        if not _is_number(value) or (self.whole and value != value // 1):
            return None
        number = int(value) if self.whole else float(value)
        low = self.least or self.low if number > 0 else self.low
        if low <= number <= self.high:
            return number
        if self.strict or math.isinf(number):
            return None
        within = self.high if number > self.high else low if self.below is None else self.below
        raise BadValue(described(number), within=within)


class Text(Form):
    """A text that matches `pattern`, and one of `choices` if there are any. If `is_hidden`, no message quotes it."""

    def __init__(
        self,
        expected: str = "text without blanks",
        pattern: str = _WORD,
        choices: tuple[str, ...] = (),
        accepts: Callable[[str], bool] = str.isprintable,
        *,
        is_hidden: bool = False,
    ) -> None:
        super().__init__(f"{expected} {', '.join(choices)}" if choices else expected)
        self.choices = choices
        self._pattern, self._accepts, self._is_hidden = pattern, accepts, is_hidden

    def _used(self, value: object) -> str | None:
        if not isinstance(value, str):
            return None
        is_right = re.compile(self._pattern).fullmatch(value) and self._accepts(value)
        if is_right and value in (self.choices or (value,)):
            return value
        if self._is_hidden:
            raise BadValue("other text (not shown)")
        return None


class Path(Text):
    """A path, in which undecodable bytes may be, as lone surrogates."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected, _PATH, accepts=bool)


class Url(Form):
    """The address of an API, without a slash at its end. No message quotes a wrong one: people paste keys into it."""

    def _used(self, value: object) -> str | None:
        if not isinstance(value, str):
            return None
        if "\\" in value or "@" in value.partition("?")[0]:
            cure = "put credentials into an environment variable and name it in openai.headers_env"
            raise BadValue("a URL with credentials or a backslash (not shown)", cure=cure)
        try:
            parts = urlsplit(value)
            is_whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            is_whole = False
        if not is_whole or not re.fullmatch(r"[^\s?#]{1,256}", value) or not value.isprintable():
            raise BadValue("other text (not shown)")
        return value.rstrip("/")


class Names(Form):
    """A list of texts of one form, or text with commas between them."""

    def __init__(self, what: str, pattern: str = _WORD, choices: tuple[str, ...] = ()) -> None:
        listed = f" ({', '.join(choices)})" if choices else ""
        super().__init__(f"a list of at most {_MOST_ITEMS} {what}{listed}")
        self.choices = choices
        self._item = Text(what, pattern, choices)

    def _used(self, value: object) -> tuple[object, ...] | None:
        items = names_in(value) if isinstance(value, str) else value
        if not _is_list(items):
            return None
        if len(items) > _MOST_ITEMS:
            raise BadValue(f"{len(items)} of them")
        try:
            return tuple(map(self._item.read, items))
        except BadValue as bad:
            raise BadValue(f"{bad.got} in it") from None


class Members(Form):
    """A mapping that goes to the API as it is.

    `wrong` has members that it may not have, with the cure for each; `known` those that the server reads as well.
    """

    def __init__(self, expected: str, wrong: Mapping[str, str] = {}, known: Mapping[str, Form] = {}) -> None:
        super().__init__(expected)
        self._wrong, self._known = wrong, known

    def _used(self, value: object) -> Mapping[str, object] | None:
        if not is_mapping(value):
            return None
        members = dict(value)
        for name, cure in self._wrong.items():
            if name in members:
                raise BadValue(f"{name} among them", cure=cure)
        for name, form in self._known.items():
            if members.get(name) is not None:
                try:
                    members[name] = form.read(members[name])
                except BadValue as bad:
                    raise BadValue(f"{bad.got} for {name}", cure=f"make it {form.expected}") from None
        try:
            json.dumps(members, allow_nan=False)
        except (ValueError, RecursionError):
            raise BadValue("one with a number that JSON does not have") from None
        return members


class Headers(Form):
    """A mapping of the names of headers to those of the variables that hold their values."""

    def _used(self, value: object) -> Mapping[str, object] | None:
        if not is_mapping(value):
            return None
        for header, name in value.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", header):
                raise BadValue(f"{described(header)}, which is no name of a header")
            try:
                _ = name is None or VARIABLE.read(name)
            except BadValue as bad:
                cure = "put the value into an environment variable and write its name here"
                raise BadValue(f"{bad.got} for {header}", cure=cure) from None
        return value


class Prices(Form):
    """A mapping of models to what they cost."""

    def _used(self, value: object) -> Mapping[str, object] | None:
        if not is_mapping(value):
            return None
        return {model: _price(model, given) for model, given in value.items() if given is not None}


def _price(model: str, given: object) -> Mapping[str, float]:
    named = {name: each for name, each in given.items() if each is not None} if is_mapping(given) else {}
    prices = {name: float(each) for name, each in named.items() if _is_number(each) and 0 <= each <= _HIGHEST_PRICE}
    is_known = {"input", "output"} <= prices.keys() <= {"input", "output", "cached_input", "web_search"}
    if not is_known or len(prices) < len(named):
        raise BadValue(f"something else for {described(model)}")
    return prices


SWITCH: Final = Switch("true or false")
VARIABLE: Final = Text("the name of an environment variable", _VARIABLE, is_hidden=True)


class Env(NamedTuple):
    """The variable of a setting, or how those of a section begin. None is for one that has none in such a section."""

    name: str | None


def from_text(form: Form, text: str) -> object:
    """Return what text of the environment or the command line would be in the YAML file."""
    if isinstance(form, Switch):
        return ON_OFF.get(text.lower(), text)
    if isinstance(form, Number) and re.fullmatch(_NUMBER, text):
        return float(text) if "." in text else int(text)
    return text


def names_in(text: str) -> list[str]:
    """Return the names in a list that came as text, with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether a value of the file is a mapping."""
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
