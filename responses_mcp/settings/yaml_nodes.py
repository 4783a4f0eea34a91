"""Inside the YAML file: from text to the values that the table of settings knows, with the line of each.

The file is composed into nodes and never constructed into objects. Only keys that the table knows are looked at, so
tags, dates, endless aliases and deep nesting have nothing to work on, and every finding has a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from responses_mcp.settings.findings import Findings, Raw, place
from responses_mcp.settings.schema import BY_KEY, DROPPED_KEYS, KEY_IN_FILE, PROFILES, SECTIONS
from responses_mcp.settings.setting import SINGLE_QUOTES, Given, Kind, Odd, described

_MEANS_ADDRESS: Final = "did you mean openai.base_url?"
_URL: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_HOST: Final = re.compile(
    r"\s*(?:[^\s/@]*@)?"
    r"(?:\[[0-9A-Fa-f:.]+\]|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[\w-]+\.)+[A-Za-z]{2,}\.?|(?![0-9]+:)[\w.-]+(?=:[0-9]))"
    r"(?=[:/?#\s]|$)"
)
_NO_HOST: Final = re.compile(
    r"\s*gpt-[0-9][\w-]*(?:\.[\w-]+)?\s*$|\S*\.(?:cer|crt|pem)\s*$"
)  # but a model or a file of certificates
_OF_HOST: Final = re.compile(r"(?i)(?:base|endpoint|gateway|host|hostname|server|url)$")
_LONGEST_ADDRESS: Final = 300
_LONGEST_NAME: Final = 80
_MOST_SUGGESTIONS: Final = 50
_MOST_NODES: Final = 2_000  # of a setting that is a tree
_MOST_UNKNOWN: Final = 100_000  # nodes below keys that are not known
_MOST_LEVELS: Final = 8

_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = frozenset({"yes", "true", "on"})
_FALSE: Final = frozenset({"no", "false", "off"})
_INTEGER: Final = re.compile(r"[+-]?(0|[1-9][0-9_]{0,29})")
_FLOAT: Final = re.compile(r"[+-]?([0-9][0-9_]{0,29}\.[0-9_]{0,30}|\.[0-9][0-9_]{0,29})([eE][+-]?[0-9]{1,3})?")


def values_in(path: Path, text: str, findings: Findings) -> dict[str, Given]:
    """Return the known values in a file's text by dotted key; all that is wrong with it becomes findings."""
    walk = _Walk(path, findings)
    root = _root(path, text, findings)
    if root is not None:
        walk.mapping(root, "")
    return walk.values


def without_jargon(problem: str) -> str:
    """Return what PyYAML says, with a tab in place of an indent in words that everybody knows."""
    return problem.replace(r"found character '\t' that cannot start any token", "found a tab, not blanks")


def _root(path: Path, text: str, findings: Findings) -> yaml.MappingNode | None:
    try:
        node: Any = yaml.SafeLoader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        escape = "double-quoted" in (error.context or "") and "escape" in (error.problem or "")
        findings.problem(
            "config file: expected valid YAML, got an error there, ",
            Raw(" ".join(filter(None, (error.context, without_jargon(error.problem or "")))), limit=160),
            where=place(path) if mark is None else place(path, mark.line + 1, mark.column + 1),
            cure=SINGLE_QUOTES if escape else "correct the file",
        )
        return None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The check of characters knows only an offset, and escapes beyond Unicode fail inside Python.
        offset = getattr(error, "position", None)
        findings.problem(
            "config file: expected printable text, got a character or escape that YAML forbids",
            where=place(path, 0 if offset is None else text.count("\n", 0, offset) + 1),
            cure="remove it",
        )
        return None
    except RecursionError:
        what = "config file: expected a few levels, got far too many"
        findings.problem(what, where=place(path), cure="flatten it")
        return None
    if isinstance(node, yaml.MappingNode):
        return node
    if node is not None and node.tag != f"{_TAG}null":
        findings.problem(
            "config file: expected a mapping of sections, got ",
            *described(_plain(node)),
            where=place(path, node.start_mark.line + 1),
            cure='start it with a section such as "request:"',
        )
    return None


class _Walk:
    """Goes through the nodes along the table of settings."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.values: dict[str, Given] = {}
        self._path = path
        self._findings = findings
        self._suggestions_left = _MOST_SUGGESTIONS
        self._nodes_left = 0
        self._unknown_left = _MOST_UNKNOWN

    def mapping(self, node: yaml.MappingNode, prefix: str) -> None:
        """Take the values below one section."""
        for name, value, line in self._pairs(node, prefix):
            # A dot inside a name would pass for a path.
            key = f"{prefix}{name}" if "." not in name else ""
            if key in BY_KEY:
                plain = self._leaf(BY_KEY[key].kind, value, f"{key}.")
                if plain is not None:
                    self.values[key] = Given(plain, line)
            elif key in SECTIONS:
                self._section(key, value, line)
            else:
                self._unknown(f"{prefix}{name}", value, line)

    def _leaf(self, kind: Kind, node: yaml.Node, prefix: str) -> object:
        if kind == "headers":
            return self._names(node, prefix)
        if kind in {"prices", "json"}:
            self._nodes_left = _MOST_NODES
            return self._tree(node, prefix)
        return _plain(node)

    def _tree(self, node: yaml.Node, prefix: str, depth: int = 0) -> object:
        """Return a node with all that is in it; aliases within aliases come to an end."""
        self._nodes_left -= 1
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if depth > _MOST_LEVELS or self._nodes_left < 0:
            return Odd("far too much")
        if isinstance(node, yaml.MappingNode):
            pairs = self._pairs(node, prefix)
            return {name: self._tree(value, f"{prefix}{name}.", depth + 1) for name, value, _ in pairs}
        return [self._tree(item, prefix, depth + 1) for item in node.value[: max(0, self._nodes_left)]]

    def _names(self, node: yaml.Node, prefix: str) -> object:
        if not isinstance(node, yaml.MappingNode):
            return _plain(node)
        pairs = ((name, _plain(value)) for name, value, _ in self._pairs(node, prefix))
        return {name: value for name, value in pairs if value is not None}

    def _section(self, key: str, node: yaml.Node, line: int) -> None:
        profile = key.startswith("model_profiles.") and key.removeprefix("model_profiles.") in PROFILES
        if isinstance(node, yaml.MappingNode):
            if profile:
                self.values[key] = Given({}, line)
            self.mapping(node, f"{key}.")
            return
        plain = _plain(node)
        if plain is not None:
            name, glued, _ = str(plain).partition(":")
            is_setting = glued and f"{key}.{name}" in BY_KEY
            self._problem(
                Raw(key, quoted=False),
                ": expected a mapping of settings, got ",
                *described(plain),
                line=line,
                cure="put a blank behind the colon" if is_setting else "indent its settings below it or remove it",
            )
        elif profile:
            self.values[key] = Given(None, line)

    def _unknown(self, key: str, node: yaml.Node, line: int) -> None:
        shown = Raw(key, quoted=False, limit=_LONGEST_NAME)
        if key in KEY_IN_FILE and (value := _plain(node)) is not None:
            self._findings.keep_secret(str(value))
            self._problem(
                shown,
                ": expected no API key in a file, got one (not shown)",
                line=line,
                cure="remove it from the file and put the key into the environment variable OPENAI_API_KEY, "
                "or the one that openai.api_key_env names",
            )
            return
        if key in DROPPED_KEYS:
            self._findings.warning(
                shown, ": v0.9 dropped this key, so it does nothing", where=place(self._path, line), cure="remove it"
            )
            return
        meant = self._suggestion(key)
        # Or the key would go where it is not meant to go.
        may_be_host = key.startswith("openai.") or meant == "did you mean openai?"
        is_address = key != "$schema" and self._holds_address(node, may_be_host=may_be_host)
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}str" and node.value.strip():
            is_address |= may_be_host and _OF_HOST.search(key) is not None
        if is_address or (meant == _MEANS_ADDRESS and node.tag != f"{_TAG}null"):
            # Not a section, in which the address would stand one level too high.
            may_help = meant.startswith("write ") or "base_url" in meant or isinstance(node, yaml.MappingNode)
            cure = meant if meant and may_help else f"{_MEANS_ADDRESS} If not, remove it"
            self._problem(shown, ": unknown key, and perhaps the address that the API key is for", line=line, cure=cure)
            return
        what = ": unknown key, so it does nothing"
        self._findings.warning(shown, what, where=place(self._path, line), cure=meant or "remove it")

    def _holds_address(self, node: yaml.Node, depth: int = 0, *, may_be_host: bool) -> bool:
        """Tell whether a URL, or perhaps a host, is a node or below it."""
        self._unknown_left -= 1
        if isinstance(node, yaml.ScalarNode):
            text: str = node.value[:_LONGEST_ADDRESS]
            is_host = may_be_host and _NO_HOST.match(text) is None and _HOST.match(text) is not None
            return is_host or _URL.match(text) is not None
        if depth > _MOST_LEVELS or self._unknown_left < 0:  # aliases within aliases come to an end
            return False
        within: list[yaml.Node] = node.value
        if isinstance(node, yaml.MappingNode):
            within = [value for _, value in node.value]
        return any(self._holds_address(each, depth + 1, may_be_host=may_be_host) for each in within)

    def _suggestion(self, key: str) -> str:
        if key in BY_KEY or key in SECTIONS:
            return "write it as nested mappings, one level a line"
        # Comparing costs time in proportion to the table, and a file can hold a hundred thousand unknown keys.
        if self._suggestions_left == 0 or len(key) > _LONGEST_NAME:
            return ""
        self._suggestions_left -= 1
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        names, last = [*BY_KEY, *SECTIONS], key.rpartition(".")[2]
        within = key.rpartition(".")[0]
        near = [name for name in names if name.rpartition(".")[2] == last]
        near += [name for name in names if name.rpartition(".")[0] == within and name.endswith(f"_{last}")]
        near += get_close_matches(key.lower(), names, n=1, cutoff=0.6)
        return f"did you mean {near[0]}?" if near else ""

    def _pairs(self, node: yaml.MappingNode, prefix: str) -> Iterator[tuple[str, yaml.Node, int]]:
        """Yield name, value and line of each pair once. Merge keys are refused: merges of merges grow by powers."""
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                self._problem(
                    "config file: expected each mapping to hold its own keys, got a merge key (<<)",
                    line=line,
                    cure="write the merged keys out",
                )
            elif not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                self._problem(
                    "config file: expected names as keys, got ",
                    *described(_plain(key)),
                    line=line,
                    cure="put it in quotes if it is a name",
                )
            elif key.value in seen:
                self._problem(
                    Raw(f"{prefix}{key.value}", quoted=False, limit=_LONGEST_NAME),
                    ": expected each key once, got it again",
                    line=line,
                    cure="remove one of the two",
                )
            else:
                seen.add(key.value)
                yield key.value, value, line

    def _problem(self, *what: str | Raw, line: int, cure: str) -> None:
        self._findings.problem(*what, where=place(self._path, line), cure=cure)


def _plain(node: yaml.Node, depth: int = 0) -> object:
    """Return a node as text, number, boolean, None or a list of these, or as `Odd` if it is none of them."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if depth == 0 and node.tag == f"{_TAG}seq":
        return [_plain(item, depth + 1) for item in node.value]
    return Odd("a mapping" if isinstance(node, yaml.MappingNode) else "a list")


def _scalar(node: yaml.ScalarNode) -> object:
    kind = node.tag.removeprefix(_TAG)
    text: str = node.value
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if kind == "int" and _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if kind == "float" and _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    if kind in {"int", "float"}:
        return Odd("a number in another form than plain decimal", text)
    return Odd("a date", text) if kind == "timestamp" else Odd("a value with a tag of its own")
