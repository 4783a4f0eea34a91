"""Inside the YAML file: JSON's values in the notation of YAML, and those of them that the table of settings knows.

Scalars are those of JSON; what else YAML would make of plain text (`NO`, `on`, `1:30`, a date) stays text. Aliases and
tags are refused, so a small file cannot become a large tree, and nothing is constructed but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from responses_mcp.settings.findings import Findings
from responses_mcp.settings.schema import BY_KEY, CANCELS_RUNS, LEAVES_RUNS, SECTIONS
from responses_mcp.settings.setting import is_mapping

_KNOWN: Final = dict.fromkeys((*BY_KEY, *SECTIONS))
_LONGEST_NAME: Final = 80
_SHORTEST_PART: Final = 2
_MOST_SUGGESTIONS: Final = 50

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = {
    "null": r"(?:null|Null|NULL|~|)$",
    "bool": r"(?:true|True|TRUE|false|False|FALSE)$",
    "int": r"-?(?:0|[1-9][0-9]{0,29})$",
    "float": r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?$",
}

_DROPPED: Final = frozenset(
    {
        *("openai.model", "policy.prefer_search_when_unsure", "policy.requery_attempts", "policy.require_dates_iso"),
        *("policy.search_triggers", "policy.style", "responses", "search.defaults.style", "server.transport", "style"),
    }
)  # of v0.5; what lies below them went with them
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


def values_in(text: str, where: str, environ: Mapping[str, str], findings: Findings) -> dict[str, object]:
    """Return the known values in a file's text by dotted key; all that is wrong with it becomes findings.

    The keys of sections, and so of profiles, are there, too: with a mapping, or with None where the file has null.
    `environ` has the secrets that the file names.
    """
    try:
        root: object = _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:  # escapes beyond Unicode, depth
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        at = where if mark is None else f"{where} line {mark.line + 1} column {mark.column + 1}"
        words = (getattr(error, name, None) for name in ("context", "problem", "reason"))
        said = findings.shown(" ".join(filter(None, words)) or "a character or depth that YAML forbids", 160)
        findings.problem(f'config file: expected valid YAML, got an error there, "{said}"', at, "correct the file")
        return {}
    walk = _Walk(where, findings)
    if is_mapping(root):
        _learn_secrets(root, environ, findings)
        walk.take(root, "")
    elif root is not None:
        what = f"config file: expected a mapping of sections, got {findings.described(root)}"
        findings.problem(what, where, 'start it with a section such as "request:"')
    return walk.values


def _learn_secrets(root: Mapping[str, object], environ: Mapping[str, str], findings: Findings) -> None:
    """Learn the key and the headers whose variables the file names."""
    openai = root.get("openai")
    section = openai if is_mapping(openai) else {}
    headers = section.get("headers_env")
    for name in (section.get("api_key_env"), *(headers.values() if is_mapping(headers) else ())):
        secret = environ.get(name, "") if isinstance(name, str) else ""
        for each in (secret, *secret.split()):
            findings.keep_secret(each)  # "Bearer abc" holds the secret "abc"


class _Walk:
    """Goes through the file along the table of settings."""

    def __init__(self, where: str, findings: Findings) -> None:
        self.values: dict[str, object] = {}
        self._where = where
        self._findings = findings
        self._suggestions_left = _MOST_SUGGESTIONS

    def take(self, tree: Mapping[str, object], section: str) -> None:
        """Take the values below one section, whose name ends with a dot."""
        for name, value in tree.items():
            key = f"{section}{name}"
            if "." in name or key not in _KNOWN:  # a dot inside a name would pass for a path
                self._unknown(key, value)
            elif key in BY_KEY:
                if value is not None:
                    self.values[key] = value
            elif value is None or is_mapping(value):
                self.values[key] = value
                self.take(value or {}, f"{key}.")
            else:
                what = f"{key}: expected a mapping of settings, got {self._findings.described(value)}"
                self._findings.problem(what, self._where, "indent its settings below it or remove it")

    def _unknown(self, key: str, value: object) -> None:
        section, _, name = key.rpartition(".")
        plain = name.lower().replace("-", "").replace("_", "")
        add = self._findings.problem
        if plain in _OF_KEYS and section in {"", "openai"} and value is not None:
            what = "expected no API key in a file, got one (not shown)"
            cure = "remove it and put the key into the environment variable that openai.api_key_env names"
        elif (member := _PLAIN.get(plain)) is not None:
            profile = section if section.startswith("model_profiles.") else "model_profiles.answer"
            place = f"{profile}.{_MOVED[member]}"
            what = f"expected it below {place}, whose members go into the request as they are"
            cure = f"write {place}.{member}"
        elif key == "research.on_exit":
            what, cure = LEAVES_RUNS, f"remove it; {CANCELS_RUNS}"
        elif key.startswith("openai.") and key not in _DROPPED:
            what, cure = "unknown key, where a misspelled one may send the API key elsewhere", self._suggestion(key)
        else:
            add = self._findings.warning
            what, cure = "unknown key, so it does nothing", self._suggestion(key)
            if key in _DROPPED:
                what, cure = "v0.9 dropped this key, so it does nothing", "remove it"
        add(f"{self._findings.shown(key, _LONGEST_NAME)}: {what}", self._where, cure)

    def _suggestion(self, key: str) -> str:
        # Comparing costs time in proportion to the table, and a file can hold a hundred thousand unknown keys.
        if self._suggestions_left == 0 or len(key) > _LONGEST_NAME:
            return "remove it"
        self._suggestions_left -= 1
        if key in _KNOWN:
            return "write it as nested mappings, one level a line"
        near = _nearest(key)
        return f"did you mean {near}?" if near else "remove it"


def _nearest(key: str) -> str | None:
    """Return the known key that a wrong one may stand for: of the same name, or near it and spelt much alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    section, _, name = key.lower().replace("-", "_").rpartition(".")
    beside = {each.rpartition(".")[2]: each for each in _KNOWN if each.rpartition(".")[0] == section}
    near = [beside[name]] if name in beside else [each for each in _KNOWN if each.rpartition(".")[2] == name]
    longer = [each for each in beside if name in each and len(name) > _SHORTEST_PART]
    near += [beside[each] for each in longer or get_close_matches(name, beside, 1, 0.7)]
    return near[0] if near else None
