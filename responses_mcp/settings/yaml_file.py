"""Inside the YAML file: JSON's values in the notation of YAML, and those of them that the table of settings knows.

Scalars are those of JSON; what else YAML would make of plain text (`NO`, `on`, `1:30`, a date) stays text. Aliases and
tags are refused, so a small file cannot become a large tree, and nothing is constructed but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from responses_mcp.settings.findings import Findings, Part, Raw, place
from responses_mcp.settings.schema import BY_KEY, DROPPED_KEYS, KEY_IN_FILE, LEAVES_RUNS, MOVED, PROFILES, SECTIONS
from responses_mcp.settings.setting import SINGLE_QUOTES, described, is_mapping

_LONGEST_NAME: Final = 80
_MOST_SUGGESTIONS: Final = 50
_KEY_ELSEWHERE: Final = (
    "remove it from the file and put the key into the environment variable OPENAI_API_KEY, or the one that "
    "openai.api_key_env names"
)

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = {
    "null": r"(?:null|Null|NULL|~|)$",
    "bool": r"(?:true|True|TRUE|false|False|FALSE)$",
    "int": r"-?(?:0|[1-9][0-9]{0,29})$",
    "float": r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?$",
}


class _Loader(yaml.SafeLoader):
    """Constructs plain values; keys that are no names, or come twice, become problems and are left out."""

    yaml_implicit_resolvers = {None: [(_TAG + kind, re.compile(form)) for kind, form in _SCALARS.items()]}  # noqa: RUF012

    def __init__(self, text: str, path: Path, findings: Findings) -> None:
        super().__init__(text)
        self._untyped: Any = self  # PyYAML's own methods have no types
        self._path = path
        self._findings = findings
        self._key = ""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next node, unless it has more to it than JSON has. Raises `MarkedYAMLError`."""
        event: Any = self._untyped.peek_event()
        mark: Any = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="an alias; write out what it stands for", problem_mark=mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem="a tag; leave it out", problem_mark=mark)
        return super().compose_node(parent, index)

    def names(self, node: yaml.MappingNode) -> dict[str, Any]:
        """Return a mapping with all that is in it."""
        mapping: dict[str, Any] = {}
        above = self._key
        for name_node, node_below in node.value:
            name = self._untyped.construct_object(name_node, deep=True)
            if not isinstance(name, str):
                what = (_shown(above or "config file"), ": expected names as keys, got ", *described(name))
                self._findings.problem(*what, where=place(self._path), cure="put it in quotes if it is a name")
                continue
            self._key = f"{above}.{name}" if above else name
            if name in mapping:
                what = (_shown(self._key), ": expected each key once, got it again")
                self._findings.problem(*what, where=place(self._path), cure="remove one of the two")
            else:
                mapping[name] = self._untyped.construct_object(node_below, deep=True)
        self._key = above
        return mapping


_Loader.add_constructor(f"{_TAG}map", _Loader.names)


def values_in(path: Path, text: str, findings: Findings) -> dict[str, object]:
    """Return the known values in a file's text by dotted key; all that is wrong with it becomes findings.

    A profile's own key is there, too: with a mapping if the file names the profile, with None if it removes it.
    """
    walk = _Walk(path, findings)
    root = _root(path, text, findings)
    if is_mapping(root):
        walk.mapping(root, "")
    elif root is not None:
        findings.problem(
            "config file: expected a mapping of sections, got ",
            *described(root),
            where=place(path),
            cure='start it with a section such as "request:"',
        )
    return walk.values


def without_jargon(problem: str) -> str:
    """Return what PyYAML says, with a tab in place of an indent in words that everybody knows."""
    return problem.replace(r"found character '\t' that cannot start any token", "found a tab, not blanks")


def _root(path: Path, text: str, findings: Findings) -> object:
    try:
        return _Loader(text, path, findings).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        escape = "double-quoted" in (error.context or "") and "escape" in (error.problem or "")
        findings.problem(
            "config file: expected valid YAML, got an error there, ",
            Raw(" ".join(filter(None, (error.context, without_jargon(error.problem or "")))), limit=160),
            where=place(path) if mark is None else place(path, mark.line + 1, mark.column + 1),
            cure=SINGLE_QUOTES if escape else "correct the file",
        )
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The check of characters knows only an offset, and escapes beyond Unicode fail inside Python.
        offset = getattr(error, "position", None)
        findings.problem(
            "config file: expected printable text, got a character or escape that YAML forbids",
            where=place(path, 0 if offset is None else text.count("\n", 0, offset) + 1),
            cure="remove it",
        )
    except RecursionError:
        what = "config file: expected a few levels, got far too many"
        findings.problem(what, where=place(path), cure="flatten it")
    return None


class _Walk:
    """Goes through the file along the table of settings."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.values: dict[str, object] = {}
        self._where = place(path)
        self._findings = findings
        self._suggestions_left = _MOST_SUGGESTIONS

    def mapping(self, tree: Mapping[str, object], prefix: str) -> None:
        """Take the values below one section."""
        for name, value in tree.items():
            # A dot inside a name would pass for a path.
            key = f"{prefix}{name}" if "." not in name else ""
            if key in SECTIONS:
                self._section(key, value)
            elif key not in BY_KEY:
                self._unknown(f"{prefix}{name}", value)
            elif value is not None:
                self.values[key] = value

    def _section(self, key: str, value: object) -> None:
        is_profile = key.startswith("model_profiles.") and key.removeprefix("model_profiles.") in PROFILES
        if is_mapping(value):
            if is_profile:
                self.values[key] = value
            self.mapping(value, f"{key}.")
        elif value is not None:
            is_setting = isinstance(value, str) and f"{key}.{value.partition(':')[0]}" in BY_KEY
            cure = "put a blank behind the colon" if is_setting else "indent its settings below it or remove it"
            self._problem(key, "expected a mapping of settings, got ", *described(value), cure=cure)
        elif is_profile:
            self.values[key] = None

    def _unknown(self, key: str, value: object) -> None:
        profile, _, member = key.rpartition(".")
        if key in KEY_IN_FILE and value is not None:
            self._findings.keep_secret(str(value))
            self._problem(key, "expected no API key in a file, got one (not shown)", cure=_KEY_ELSEWHERE)
        elif key in DROPPED_KEYS:
            self._warning(key, "v0.9 dropped this key, so it does nothing", cure="remove it")
        elif member in MOVED and profile.startswith("model_profiles.") and profile.count(".") == 1:
            place = f"{profile}.{MOVED[member]}"
            what = f"expected it below {place}, whose members go into the request as they are"
            self._problem(key, what, cure=f"write {place}.{member}")
        elif key == "research.on_exit":
            self._problem(key, LEAVES_RUNS, cure="remove it; research_cancel and `research cancel` cancel a run")
        elif key.startswith("openai."):
            what = "unknown key, where a misspelled one may send the API key elsewhere"
            self._problem(key, what, cure=self._suggestion(key))
        else:
            self._warning(key, "unknown key, so it does nothing", cure=self._suggestion(key))

    def _problem(self, key: str, what: str, *more: Part, cure: str) -> None:
        self._findings.problem(_shown(key), f": {what}", *more, where=self._where, cure=cure)

    def _warning(self, key: str, what: str, *, cure: str) -> None:
        self._findings.warning(_shown(key), f": {what}", where=self._where, cure=cure)

    def _suggestion(self, key: str) -> str:
        if key in BY_KEY or key in SECTIONS:
            return "write it as nested mappings, one level a line"
        # Comparing costs time in proportion to the table, and a file can hold a hundred thousand unknown keys.
        if self._suggestions_left == 0 or len(key) > _LONGEST_NAME:
            return "remove it"
        self._suggestions_left -= 1
        from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

        within, _, last = key.rpartition(".")
        names = [*BY_KEY, *SECTIONS]
        near = [name for name in names if name.rpartition(".")[2] == last]
        near += [name for name in names if name.rpartition(".")[0] == within and name.endswith(f"_{last}")]
        near += get_close_matches(key.lower(), names, n=1, cutoff=0.8)
        return f"did you mean {near[0]}?" if near else "remove it"


def _shown(key: str) -> Raw:
    return Raw(key, quoted=False, limit=_LONGEST_NAME)
