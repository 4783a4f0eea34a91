"""One entry in a YAML text, `CONTAINER: {NAME: entry}` in blocks, found and changed without writing the rest anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import yaml

from responses_mcp.commands.clients.files import Change, Unmergeable, check_entry, newline_of
from responses_mcp.settings.yaml_nodes import without_jargon

_MOST: Final = 2**20  # characters; they take the parser some seconds
_INDENT: Final = 2
_TAG: Final = "tag:yaml.org,2002:"
_COLON: Final = re.compile(r"[ \t]*:")
# What is no text, by the core schema of YAML 1.2, which Goose follows: there `yes` is a text, and `1e3` a number.
_NO_TEXT: Final = (
    ("null", r"\A(?:~|null|Null|NULL)?\Z", ("", *"~nN")),
    ("bool", r"\A(?:true|True|TRUE|false|False|FALSE)\Z", tuple("tTfF")),
    ("int", r"\A(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z", tuple("-+0123456789")),
    ("float", r"\A[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", tuple("-+.0123456789")),
    ("float", r"\A(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z", tuple("-+.")),
)
_BY_FIRST: Final = {
    first: [(f"{_TAG}{kind}", re.compile(pattern)) for kind, pattern, starts in _NO_TEXT if first in starts]
    for first in dict.fromkeys(start for _, _, starts in _NO_TEXT for start in starts)
}
# A text to Goose, such as a telephone number; other readers may take it for a number, so it is written in quotes.
_LEADING_ZERO: Final = re.compile(r"\A[-+]?0[0-9]+\Z")
_AS_GOOSE_READS: Final = {first: [(f"{_TAG}str", _LEADING_ZERO), *kinds] for first, kinds in _BY_FIRST.items()}

_Pair = tuple[yaml.Node, yaml.Node]


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = _AS_GOOSE_READS

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):  # those within others grow by powers
            raise Unmergeable("it refers to parts of itself with *; write these out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping by names as they are written: `1` and `true` are no texts, but the name of a variable is."""
        if not isinstance(node, yaml.MappingNode) or not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "no mapping by names", node.start_mark)
        construct = cast(Any, self).construct_object
        return {key.value: construct(value, deep=deep) for key, value in node.value}


class _Dumper(yaml.SafeDumper):
    yaml_implicit_resolvers = _BY_FIRST

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


class YamlDocument:
    """A text, and the entry in it."""

    def __init__(self, text: str, *, container: str, name: str) -> None:
        """Read the text; raises Unmergeable."""
        self._text = text
        self._container = container
        self._name = name
        self._newline = newline_of(text)
        loader, self._root = _parsed(text)
        self._pair = _pair_of(self._root, container)
        inside = None if self._pair is None else self._pair[1]
        if inside is not None and not isinstance(inside, yaml.MappingNode) and inside.tag != f"{_TAG}null":
            raise Unmergeable(f"{container} in it is not a mapping; correct that")
        self._inside = inside if isinstance(inside, yaml.MappingNode) else None
        self._ours = _pair_of(self._inside, name)
        self.entries: Mapping[str, Any] = {} if self._inside is None else _constructed(loader, self._inside)
        """All entries, by name."""
        self.entry: Any = self.entries.get(name)
        """The entry as it is now; None if there is none."""
        check_entry(self.entry)

    def changed(self, entry: Mapping[str, Any]) -> Change:
        """Return the text with this entry, which is the first of the entries if it is new."""
        drops_comments = False
        if self._ours is not None:
            start, end = self._lines_of(self._ours)
            new = self._block(entry, self._ours[0].start_mark.column)
            drops_comments = self._has_comments(start, end, self._ours)
        else:
            start, end, new = self._insertion(entry)
        if not self._text[start:].endswith("\n") and end == len(self._text) > start:
            new = new.removesuffix(self._newline)
        text = f"{self._text[:start]}{new}{self._text[end:]}"
        self._check(text, entry, "add the entry")
        return Change(text, drops_comments)

    def removed(self) -> Change:
        """Return the text without the entry, which must be there; a comment behind it on its line goes with it."""
        if self._pair is None or self._ours is None:
            raise ValueError(self._name)
        start, end = self._lines_of(self._ours)
        colon = self._behind_colon(self._pair[0])
        left = " {}" if len(self.entries) == 1 else ""  # what is empty would be no mapping
        text = f"{self._text[:colon]}{left}{self._text[colon:start]}{self._text[end:]}"
        self._check(text, None, "remove the entry")
        return Change(text, self._has_comments(start, end, self._ours))

    def _check(self, text: str, entry: Mapping[str, Any] | None, by_hand: str) -> None:
        """Raise Unmergeable for a text that does not say what this one says, with this entry, or without one."""
        why = f"it is written in a way that was not understood; {by_hand} by hand"
        try:
            again = YamlDocument(text, container=self._container, name=self._name)
        except Unmergeable as error:
            raise Unmergeable(why) from error
        if again.entry != entry or again._others() != self._others():
            raise Unmergeable(why)

    def _others(self) -> list[object]:
        """Return what the text says outside of the container, and in it besides the entry."""
        both = _pairs(self._root, without=self._container), _pairs(self._inside, without=self._name)
        return [[(_said(key), _said(value)) for key, value in pairs] for pairs in both]

    def _insertion(self, entry: Mapping[str, Any]) -> tuple[int, int, str]:
        """Return from where to where the text is to be replaced, and by what."""
        if self._pair is None:
            end = len(self._text)
            column = 0 if self._root is None else self._root.start_mark.column
            between = "" if not self._text or self._text.endswith("\n") else self._newline
            header = f"{' ' * column}{self._container}:{self._newline}"
            return end, end, between + header + self._block(entry, column + _INDENT)
        key, value = self._pair
        if self._inside is not None and self._inside.value:
            if self._inside.flow_style:
                raise Unmergeable(f"{self._container} is written in braces there; write each entry on lines of its own")
            start = self._next_line(key.end_mark.index)
            return start, start, self._block(entry, self._inside.start_mark.column)
        colon, end = self._behind_colon(key), self._next_line(value.end_mark.index)
        rest = self._text[value.end_mark.index : end].rstrip("\r\n")
        return colon, end, rest + self._newline + self._block(entry, key.start_mark.column + _INDENT)

    def _block(self, entry: Mapping[str, Any], column: int) -> str:
        """Return the lines of an entry."""
        lines = yaml.dump(
            {self._name: dict(entry)},
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=float("inf"),
            default_flow_style=False,
        ).splitlines()
        return "".join(f"{' ' * column}{line}{self._newline}" for line in lines)

    def _lines_of(self, pair: _Pair) -> tuple[int, int]:
        """Return from where to where the lines of a pair go."""
        start = self._text.rfind("\n", 0, pair[0].start_mark.index) + 1
        return start, self._next_line(len(self._text[: _end(pair[1])].rstrip()))

    def _next_line(self, at: int) -> int:
        return self._text.find("\n", at) + 1 or len(self._text)

    def _behind_colon(self, key: yaml.Node) -> int:
        found = _COLON.match(self._text, key.end_mark.index)
        return key.end_mark.index if found is None else found.end()

    def _has_comments(self, start: int, end: int, pair: _Pair) -> bool:
        """Tell whether there is a `#` between the values in some lines of the text."""
        for scalar in (*_scalars(pair[0]), *_scalars(pair[1])):
            if "#" in self._text[start : scalar.start_mark.index]:
                return True
            start = scalar.end_mark.index
        return "#" in self._text[start:end]


def _parsed(text: str) -> tuple[_Loader, yaml.MappingNode | None]:
    if len(text) > _MOST:
        raise Unmergeable(f"it has more than {_MOST // 2**20} MiB")
    try:
        loader = _Loader(text)
        node: Any = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        why = without_jargon(error.problem or error.context or "")
        raise Unmergeable(f"it is not valid YAML ({where}{why}); correct that") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the check of characters knows no line
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise Unmergeable(f"it is not valid YAML (line {line}: a character that it forbids); correct that") from error
    except RecursionError as error:
        raise Unmergeable("it is nested too deeply") from error
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise Unmergeable("it holds something other than one mapping")
    return loader, node


def _constructed(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    try:
        return {str(key): value for key, value in loader.construct_mapping(node, deep=True).items()}
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, LookupError, AttributeError) as error:
        raise Unmergeable("an entry in it holds a value that cannot be read") from error


def _pairs(node: yaml.MappingNode | None, *, without: str) -> list[_Pair]:
    return [] if node is None else [pair for pair in node.value if pair[0].value != without]


def _pair_of(node: yaml.MappingNode | None, name: str) -> _Pair | None:
    found: Sequence[_Pair] = [] if node is None else [pair for pair in node.value if pair[0].value == name]
    if len(found) > 1:
        raise Unmergeable(f"{name} stands there twice; correct that")
    return found[0] if found else None


def _inner(node: yaml.Node) -> list[yaml.Node]:
    """Return what stands in a list or a mapping: of the latter each key, and each value behind its key."""
    if isinstance(node, yaml.MappingNode):
        pairs = cast(list[_Pair], node.value)
        return [each for pair in pairs for each in pair]
    return cast(list[yaml.Node], node.value)


def _said(node: yaml.Node) -> object:
    """Return what a node says, without its places; numbers stay text."""
    if isinstance(node, yaml.ScalarNode):
        return node.tag, node.value
    return node.tag, [_said(each) for each in _inner(node)]


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield the scalars in a node, in the order of the text."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    else:
        for each in _inner(node):
            yield from _scalars(each)


def _end(node: yaml.Node) -> int:
    """Return where a node ends: a block without what stands behind its last value, which the parser counts in."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        return _end(_inner(node)[-1])
    return node.end_mark.index
