"""Placeholders: what stands where a password or a key would, and is neither.

A thing is judged as a whole. People choose passwords with `pass`, `$` or a year in them, and any word may be in a key.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_WORDS: Final = frozenset({
    "password", "passwd", "passphrase", "passcode", "passwort", "pass", "pwd", "pw", "secret", "token",
    "credentials", "credential", "creds", "apikey", "key", "your", "example", "sample", "dummy", "fake", "mock",
    "test", "testing", "demo", "placeholder", "changeme", "changeit", "change", "replace", "insert", "enter",
    "redacted", "masked", "hidden", "removed", "foo", "bar", "baz", "qux", "xxx",
})  # fmt: skip
# What may stand beside these words. Alone, or with a count, it is a bad password and no placeholder.
_BESIDE: Final = frozenset({
    "a", "an", "the", "this", "that", "is", "not", "my", "our", "some", "any", "actual", "real", "new", "old",
    "here", "goes", "me", "it", "now", "put", "with", "please", "for", "and", "only", "purposes", "super", "very",
    "top", "strong", "secure", "long", "word", "value", "string", "api", "access", "auth", "administrator", "admin",
    "root", "username", "user", "name", "login", "database", "db", "application", "app", "service", "server",
    "client", "guest", "default", "account", "personal", "prod", "dev", "local", "id", "sql", "postgresql",
    "postgres", "mysql", "mariadb", "redis", "mongodb", "mongo", "rabbitmq", "minio", "elastic", "docker", "aws",
    "google", "github", "gitlab", "slack", "stripe", "openai", "anthropic",
})  # fmt: skip
_DEFAULTS: Final = frozenset({
    "postgres", "mysql", "mariadb", "mongodb", "rabbitmq", "guest", "admin", "root", "username", "x-oauth-basic",
})  # fmt: skip
_FORMS: Final = frozenset({
    "akia", "asia", "ghp", "gho", "ghu", "ghs", "ghr", "pat", "glpat", "xoxb", "aiza", "aizasy", "sk", "live",
    "ant", "api03", "proj", "svcacct",
})  # fmt: skip
_ALL: Final = _WORDS | _BESIDE
_IN_KEYS: Final = _FORMS | {word for word in _ALL if len(word) > 2}  # shorter ones are there by chance
_LONGEST: Final = max(map(len, _ALL))
_SEPARATORS: Final = frozenset("-_.: ")
_HIDING: Final = "*•●….-_"

# A name within marks of a template, or behind a dollar; not amid a word, for people put signs into words.
_REFERENCE: Final = re.compile(
    r"(?<![^\W_])(?:\$\{(?P<shell>[^{}]*)\}|[$#]?\{\{?(?P<braces>[^{}]*)\}\}?|\$\((?P<make>[^()]*)\)|<(?P<angle>[^<>]*)>"
    r"|\[(?P<square>[^\[\]]*)\]|%\((?P<python>[^()%]*)\)s|%(?P<windows>[^%()]*)%|\$(?:env:)?(?P<dollar>\w+))(?![^\W_])"
)
_DEFAULT: Final = re.compile(r":?[-=+]")
_BETWEEN: Final = re.compile(r"[\s._:|?()\[\]-]+")
_NAME: Final = re.compile(r"[^\W\d_]+[0-9]?")
_COUNT: Final = re.compile(r"(?<![0-9])1(?:2(?:34?)?)?\Z")
_XS: Final = re.compile(r"x{3,}")
_OF_SECRETS: Final = ("pass", "pwd", "secret", "token")
_SHORT: Final = 5  # characters; what has no more is no password worth hiding

_ROWS: Final = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiopasdfghjklzxcvbnm")
_NEXT: Final = frozenset(pair for row in _ROWS for each in pairwise(row) for pair in (each, each[::-1]))
_RUN: Final = 4  # characters of counting, or of the same; chance makes shorter ones
_LONG: Final = 32  # characters
_FEWEST: Final = 10  # different characters in so many that nobody typed
_FEWEST_BESIDE: Final = 6  # letters and digits beside words and counting, in what nobody typed


def is_placeholder(password: str, user: str) -> bool:
    """Tell whether what stands behind a user's name in an address is a placeholder, or a default, as a whole."""
    if set(password.lower()) <= {*_HIDING, "x"} or (len(set(password)) == 1 and not password.isalnum()):
        return True
    named = _REFERENCE.sub(lambda found: "password" if _is_reference(found) else found[0], password)
    return _is_worded(named) or (password == user and _is_name(user))


def is_made_up(key: str) -> bool:
    """Tell whether a key of a known form is one that documentation shows."""
    lowered = key.lower()
    if "example" in lowered or (len(key) >= _LONG and len(set(key)) < _FEWEST):
        return True
    beside = _without_runs(_without(lowered, _IN_KEYS))
    return sum(map(str.isalnum, beside)) < _FEWEST_BESIDE


def _is_reference(found: re.Match[str]) -> bool:
    kind, inside = found.lastgroup, found[found.lastindex or 0]
    if kind == "shell" and (default := _DEFAULT.search(inside)):
        value = inside[default.end() :]
        return _is_name(inside[: default.start()]) and (len(value) <= _SHORT or _is_worded(value))
    if kind == "square":  # which people leave around what they put there
        return _is_worded(inside)
    if kind == "dollar" and not inside.isupper():  # with which a password may begin
        return _is_worded(inside) or (
            _is_name(inside)
            and any(each in inside.lower() for each in _OF_SECRETS)
            and not any(each.isdigit() for each in inside)
        )
    return _is_name(inside)


def _is_name(text: str) -> bool:
    """Tell whether a text is a name, or several, as programs have them: chance puts digits between letters."""
    parts = [part for part in _BETWEEN.sub("_", text).split("_") if part]
    return bool(parts) and all(map(_NAME.fullmatch, parts))


def _is_worded(text: str) -> bool:
    """Tell whether a text is made of words of placeholders, of what may stand beside them, and of a count."""
    lowered = _XS.sub("xxx", text.lower().strip(_HIDING))
    if lowered in _DEFAULTS:
        return True
    words = _COUNT.sub("", lowered)
    if not set(_without(words, _ALL)) <= _SEPARATORS:
        return False
    return not set(_without(words, _BESIDE)) <= _SEPARATORS


def _without(lowered: str, words: frozenset[str]) -> str:
    """Return a text with a dash for each of the words, the longest that there is at a place."""
    rest: list[str] = []
    at = 0
    while at < len(lowered):
        long = next((size for size in range(_LONGEST, 0, -1) if lowered[at : at + size] in words), 0)
        rest.append("-" if long else lowered[at])
        at += long or 1
    return "".join(rest)


def _without_runs(lowered: str) -> str:
    """Return a text without what counts, spells the alphabet, follows a keyboard or repeats one character."""
    rest: list[str] = []
    start = 0
    for at in range(1, len(lowered) + 1):
        pair = (lowered[at - 1], lowered[at]) if at < len(lowered) else ("", " ")
        if pair[0] != pair[1] and pair not in _NEXT:
            if at - start < _RUN:
                rest.append(lowered[start:at])
            start = at
    return "".join(rest)
