"""Every pattern in the package takes time in proportion to its text, in the way in which it is used.

Patterns are found, not listed: a new one is covered without anybody thinking of it. For each, texts are made out of
what it repeats itself, and out of what patterns stumble over.
"""

import ast
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any, AnyStr

import pytest

import responses_mcp
from tests.growth import Hostile, superlinear

FRAGMENTS = (
    *" \t\n0aあ-_.,#|`~*><&%:=/[(){}\"'\\\u3000", "\n \n", "- ", ", ", "://", "http://", "https://a?utm_source=openai&",
    "](", "[](", "((", '\\"', "<!--", "/*", "sk-", "bearer ", "a ", "a,", "a@", "a_", "1.", "\ue200",
)  # fmt: skip

# Patterns that never meet more than so many characters; there, the square will do.
SHORT = {f"manuals.search.contract._OF_TWO[{number}]": 300 for number in range(3)}
SHORT |= {"manuals.formats.asciidoc._HEADING": 500, "manuals.formats.org._TAGS": 500}  # of a line

# Functions that compile a pattern when they are called; tests/test_linear_scans.py has them.
COMPILE_LATER = {
    "secrets._known",
    "secrets._pattern",
    "sanitization.sanitized",
    "manuals.files.exclusion._compiled",
    "settings.forms._used",
    "responses_api.response.sources._dates",
    "commands.terminal._pieces",
    "commands.manuals._search",  # words of the question, which are few
}


@dataclass
class Found:
    """A compiled pattern, the names by which modules know it, and the methods that they call."""

    pattern: re.Pattern[Any]
    names: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


@cache
def modules() -> dict[str, tuple[ModuleType, ast.Module]]:
    """Return the modules of the package and their syntax by name, without the package's own name."""
    names = [info.name for info in pkgutil.walk_packages(responses_mcp.__path__, "responses_mcp.")]
    found = {name.removeprefix("responses_mcp."): import_module(name) for name in names}
    return {name: (module, ast.parse(inspect.getsource(module))) for name, module in found.items()}


@cache
def patterns() -> tuple[Found, ...]:
    """Return every pattern that is there once all modules are imported, and those given to `re` as texts."""
    found: dict[re.Pattern[Any], Found] = {}

    def take(pattern: re.Pattern[Any], name: str, uses: set[str]) -> None:
        each = found.setdefault(pattern, Found(pattern))
        each.names.add(name)
        each.uses |= uses

    for name, (module, tree) in modules().items():
        used = list(attributes(tree))
        for member, value in list(vars(module).items()):
            for where, pattern in held_by(value, member):
                take(pattern, f"{name}.{where}", {use for owner, use, _ in used if owner == where})
        for owner, use, node in used:
            if isinstance(node, ast.Call) and owner == "re" and hasattr(re.Pattern, use):
                text = eval(compile(ast.Expression(node.args[0]), name, "eval"), dict(vars(module)))
                take(re.compile(text), f"{name} line {node.lineno}", {use})
    return tuple(found.values())


def held_by(value: object, name: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in a value with their names: in containers, and among the attributes of classes of ours."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, tuple | list | set | frozenset):
        inside = list(enumerate(value))
    elif isinstance(value, type) and value.__module__.startswith("responses_mcp."):
        inside = list(vars(value).items())
    for key, each in inside:
        yield from held_by(each, f"{name}[{key!r}]")


def attributes(tree: ast.AST) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield each `name.attribute` of a module, and once more with the call where it is called."""
    for node in ast.walk(tree):
        inner = node.func if isinstance(node, ast.Call) else node
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            yield inner.value.id, inner.attr, node


# Texts made for a pattern


def texts_for(pattern: re.Pattern[AnyStr]) -> Iterator[Hostile[AnyStr]]:
    """Yield, for each way into a pattern, that way followed by each fragment, and both of them again and again."""
    made = {"": None}
    made[_walk(import_module("re._parser").parse(pattern.pattern, pattern.flags), "", made)] = None

    as_bytes: bool = isinstance(pattern.pattern, bytes)

    def fit(text: str) -> Any:
        return text.encode() if as_bytes else text

    for way, fragment in product(made, (*FRAGMENTS, "")):
        yield Hostile(fit(""), fit(way + fragment or "ab"), fit("\0"))
        yield Hostile(fit(way), fit(fragment or "a\n"), fit("\0"))


def _walk(parsed: Any, before: str, made: dict[str, None]) -> str:
    """Return `before` and a text that a parsed pattern matches; add to `made` what leads to each repetition in it."""
    for kind, value in parsed:
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                once = _walk(value[2], before, made)
                if value[1] > 100:
                    made |= dict.fromkeys((before, once, once[len(before) :]))
                before += once[len(before) :] * min(value[0], 40)
            case "BRANCH":
                before, *_ = [_walk(each, before, made) for each in value[1]]
            case "SUBPATTERN":
                before = _walk(value[3], before, made)
            case "ATOMIC_GROUP":
                before = _walk(value, before, made)
            case "ASSERT" | "ASSERT_NOT":
                inside = _walk(value[1], before, made)
                before = inside if value[0] < 0 and str(kind) == "ASSERT" else before
            case "LITERAL":
                before += chr(value)
            case "NOT_LITERAL" | "ANY":
                before += "b" if value == ord("a") else "a"
            case "IN":
                before += _member(value)
    return before


CATEGORIES = {"DIGIT": "0", "NOT_DIGIT": "a", "SPACE": " ", "NOT_SPACE": "a", "WORD": "a", "NOT_WORD": "-"}


def _member(options: list[tuple[Any, Any]]) -> str:
    """Return a character of a parsed set; of one that is named by what is not in it, one that is in few sets."""
    if str(options[0][0]) == "NEGATE":
        return "b"
    for kind, value in options:
        match str(kind):
            case "LITERAL":
                return chr(value)
            case "RANGE":
                return chr(value[0])
    return CATEGORIES[str(options[0][1]).removeprefix("CATEGORY_")]


def everywhere(pattern: re.Pattern[AnyStr], text: AnyStr) -> object:
    """Look from place to place until the end: what `sub` does, and `search` or `findall` at most."""
    return pattern.sub(text[:0], text)


USES: dict[str, Callable[[re.Pattern[Any], Any], object]] = {
    "match": re.Pattern.match,
    "fullmatch": re.Pattern.fullmatch,
}


@pytest.mark.parametrize("found", patterns(), ids=lambda found: min(found.names))
def test_a_pattern_takes_time_in_proportion_to_its_text(found: Found) -> None:
    [short] = {SHORT.get(name, 0) for name in found.names}
    bounds: dict[str, Any] = {"longest": short, "power": 2.5} if short else {}
    for use in {USES.get(use, everywhere) for use in found.uses or {"search"}}:
        assert superlinear(partial(use, found.pattern), texts_for(found.pattern), **bounds) is None


def test_patterns_that_are_compiled_later_are_known() -> None:
    later = {
        f"{name}.{inside.name}"
        for name, (_, tree) in modules().items()
        for inside in ast.walk(tree)
        if isinstance(inside, ast.FunctionDef | ast.AsyncFunctionDef)
        if any((owner, use) == ("re", "compile") for owner, use, _ in attributes(inside))
    }
    assert later == COMPILE_LATER
