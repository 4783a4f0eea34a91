"""Inside the YAML file: JSON's values in the notation of YAML, and those of them that the table of settings knows.

Scalars are those of JSON; what else YAML would make of plain text (`NO`, `on`, `1:30`, a date) stays text. Aliases and
tags are refused, so a small file cannot become a large tree, and nothing is constructed but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from responses_mcp.settings.findings import AT_MOST, Findings, described, shown
from responses_mcp.settings.forms import is_mapping
from responses_mcp.settings.schema import BY_KEY, SECTIONS

_KNOWN: Final = dict.fromkeys((*BY_KEY, *SECTIONS))
_LONGEST_NAME: Final = 80

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = {
    "null": r"(?:null|Null|NULL|~|)$",
    "bool": r"(?:true|True|TRUE|false|False|FALSE)$",
    "int": r"-?(?:0|[1-9][0-9]{0,29})$",
    "float": r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?$",
}

_OF_KEYS: Final = ("apikey", "key", "openaiapikey")  # where people write the key, which spec 8 forbids
_MOVED: Final = {
    **dict.fromkeys(
        (*("max_output_tokens", "max_tool_calls", "service_tier"), *("store", "prompt_cache_key", "safety_identifier")),
        "request",
    ),
    **dict.fromkeys(("search_context_size", "external_web_access", "user_location"), "web_search"),
}  # members of the API's requests that profiles once had as fields of their own, and where they are now
_PLAIN: Final = {name.replace("_", ""): name for name in _MOVED}


class _Loader(yaml.SafeLoader):
    """Constructs plain values, and refuses what else YAML has: tags, aliases, keys that are no text or come twice."""

    yaml_implicit_resolvers = {None: [(_TAG + kind, re.compile(form)) for kind, form in _SCALARS.items()]}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._untyped: Any = self  # PyYAML's own methods have no types
        self._path: list[str] = []

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next node, unless it has more to it than JSON has. Raises `MarkedYAMLError`."""
        event: Any = self._untyped.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None:
            what = "a tag or an alias; leave it out, or write its value instead"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=self._untyped.peek_event().start_mark)
        return super().compose_node(parent, index)

    def names(self, node: yaml.MappingNode) -> dict[str, Any]:
        """Return a mapping with all that is in it."""
        mapping: dict[str, Any] = {}
        for name_node, node_below in node.value:
            name = self._untyped.construct_object(name_node, deep=True)
            self._path.append(str(name))
            if not isinstance(name, str) or name in mapping:
                what = "comes twice; remove one" if isinstance(name, str) else "is not a string; put it in quotes"
                said = f"{'.'.join(self._path)} {what}"
                raise yaml.MarkedYAMLError(problem=said, problem_mark=name_node.start_mark)
            mapping[name] = self._untyped.construct_object(node_below, deep=True)
            self._path.pop()
        return mapping


_Loader.add_constructor(f"{_TAG}map", _Loader.names)


def values_in(text: str, where: str, findings: Findings) -> dict[str, object]:
    """Return the known values in a file's text by dotted key; all that is wrong with it becomes findings.

    The keys of sections, and so of profiles, are there, too: with a mapping, or with None where the file has null.
    """
    try:
        root: object = _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:  # escapes beyond Unicode, depth
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        at = where if mark is None else f"{where} line {mark.line + 1} column {mark.column + 1}"
        words = (getattr(error, name, None) for name in ("context", "problem", "reason"))
        said = shown(" ".join(filter(None, words)) or "a character or depth that YAML forbids", 160)
        findings.problem(f'config file: expected valid YAML, got an error there, "{said}"', at, "correct the file")
        return {}
    if is_mapping(root):
        return dict(_known_values(root, "", where, findings))
    if root is not None:
        what = f"config file: expected a mapping of sections, got {described(root)}"
        findings.problem(what, where, 'start it with a section such as "request:"')
    return {}


def _known_values(
    tree: Mapping[str, object], section: str, where: str, findings: Findings
) -> Iterator[tuple[str, object]]:
    """Yield the known keys below one section, whose name ends with a dot, with their values."""
    for name, value in tree.items():
        key = f"{section}{name}"
        if "." in name or key not in _KNOWN:  # a dot inside a name would pass for a path
            _report_unknown(section, name, value, where, findings)
        elif key in BY_KEY:
            if value is not None:
                yield key, value
        elif value is None or is_mapping(value):
            yield key, value
            yield from _known_values(value or {}, f"{key}.", where, findings)
        else:
            what = f"{key}: expected a mapping of settings, got {described(value)}"
            findings.problem(what, where, "indent its settings below it or remove it")


def _report_unknown(section: str, name: str, value: object, where: str, findings: Findings) -> None:
    key, add = shown(f"{section}{name}", _LONGEST_NAME), findings.problem
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in _OF_KEYS and section in {"", "openai."} and value is not None:
        what = "expected no API key in a file, got one (not shown)"
        cure = "remove it and put the key into the environment variable that openai.api_key_env names"
    elif (member := _PLAIN.get(plain)) is not None:
        is_profile = section.startswith("model_profiles.") and section.count(".") > 1
        profile = section if is_profile else "model_profiles.answer."
        place = f"{profile}{_MOVED[member]}"
        what = f"expected it below {place}, whose members go into the request as they are"
        cure = f"write {place}.{member}"
    elif key == "research.on_exit":
        what = "a server that ends leaves its runs to the API, so this does nothing"
        cure = "remove it; research_cancel and `research cancel` cancel a run"
    elif section == "openai." and name != "model":  # which v0.5 had
        what = "unknown key, where a misspelled one may send the API key elsewhere"
        cure = _nearest(section, name, findings.problems)
    else:
        add, what = findings.warning, "unknown key, so it does nothing"
        cure = _nearest(section, name, findings.warnings)
    add(f"{key}: {what}", where, cure)


def _nearest(section: str, name: str, found: list[str]) -> str:
    """Return the cure for an unknown key: the known one beside it that is spelt like it, if any is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    if len(found) >= AT_MOST:  # nobody reads further, and comparing takes time in proportion to the table
        return "remove it"
    beside = [key[len(section) :] for key in _KNOWN if key.startswith(section) and "." not in key[len(section) :]]
    near = get_close_matches(name.lower(), beside, 1, 0.7)
    return f"did you mean {section}{near[0]}?" if near else "remove it"
