"""Inside the YAML file: JSON's values in the notation of YAML, and those of them that the table of settings knows.

Scalars are those of JSON; what else YAML would make of plain text (`NO`, `on`, `1:30`, a date) stays text. Aliases and
tags are refused, so a small file cannot become a large tree, and nothing is constructed but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from responses_mcp.settings.findings import Findings, nearest
from responses_mcp.settings.schema import BY_KEY, LEAVES_RUNS, PROFILES, SECTIONS
from responses_mcp.settings.setting import SINGLE_QUOTES, is_mapping

_LONGEST_NAME: Final = 80
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
_KEYS_OF_API: Final = frozenset(
    {
        *("openai.api_key", "openai.apikey", "openai.apiKey", "openai.api-key", "openai.key"),
        *("api_key", "apiKey", "OPENAI_API_KEY"),
    }
)  # places where people write the API key into a file, which spec 8 forbids
_MOVED: Final = {
    **dict.fromkeys(
        (*("max_output_tokens", "max_tool_calls", "service_tier"), *("store", "prompt_cache_key", "safety_identifier")),
        "request",
    ),
    **dict.fromkeys(("search_context_size", "external_web_access", "user_location"), "web_search"),
}  # members of the API's requests that profiles once had as fields of their own, and where they are now


class _Loader(yaml.SafeLoader):
    """Constructs plain values. Keys that come twice, or are no names, are left out and noted in `wrong`."""

    yaml_implicit_resolvers = {None: [(_TAG + kind, re.compile(form)) for kind, form in _SCALARS.items()]}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.wrong: list[tuple[str, object]] = []  # the key, or that of the mapping with what is no name
        self._untyped: Any = self  # PyYAML's own methods have no types
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
                self.wrong.append((above, name))
                continue
            self._key = f"{above}.{name}" if above else name
            if name in mapping:
                self.wrong.append((self._key, name))
            else:
                mapping[name] = self._untyped.construct_object(node_below, deep=True)
        self._key = above
        return mapping


_Loader.add_constructor(f"{_TAG}map", _Loader.names)


def values_in(text: str, where: str, environ: Mapping[str, str], findings: Findings) -> dict[str, object]:
    """Return the known values in a file's text by dotted key; all that is wrong with it becomes findings.

    A profile's own key is there, too: with a mapping if the file names the profile, with None if it removes it.
    `environ` has the secrets that the file names.
    """
    walk = _Walk(where, findings)
    try:
        loader = _Loader(text)
        root: object = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = where if mark is None else f"{where} line {mark.line + 1} column {mark.column + 1}"
        said = " ".join(filter(None, (error.context, without_jargon(error.problem or ""))))
        what = f'config file: expected valid YAML, got an error there, "{findings.shown(said, 160)}"'
        is_escape = "double-quoted" in said and "escape" in said
        findings.problem(what, at, SINGLE_QUOTES if is_escape else "correct the file")
        return {}
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The check of characters knows only an offset, and escapes beyond Unicode fail inside Python.
        offset = getattr(error, "position", None)
        at = where if offset is None else f"{where} line {text.count(chr(10), 0, offset) + 1}"
        what = "config file: expected printable text, got a character or escape that YAML forbids"
        findings.problem(what, at, "remove it")
        return {}
    except RecursionError:
        findings.problem("config file: expected a few levels, got far too many", where, "flatten it")
        return {}
    if is_mapping(root):
        _learn_secrets(root, environ, findings)
    for key, name in loader.wrong:
        if isinstance(name, str):
            walk.problem(key, "expected each key once, got it again", "remove one of the two")
        else:
            what = f"expected names as keys, got {findings.described(name)}"
            walk.problem(key or "config file", what, "put it in quotes if it is a name")
    if is_mapping(root):
        walk.mapping(root, "")
    elif root is not None:
        what = f"expected a mapping of sections, got {findings.described(root)}"
        walk.problem("config file", what, 'start it with a section such as "request:"')
    return walk.values


def without_jargon(problem: str) -> str:
    """Return what PyYAML says, with a tab in place of an indent in words that everybody knows."""
    return problem.replace(r"found character '\t' that cannot start any token", "found a tab, not blanks")


def _learn_secrets(root: Mapping[str, object], environ: Mapping[str, str], findings: Findings) -> None:
    """Learn the key and the headers whose variables the file names, and a key in the file itself."""
    openai = root.get("openai")
    section = openai if is_mapping(openai) else {}
    headers = section.get("headers_env")
    for name in (section.get("api_key_env"), *(headers.values() if is_mapping(headers) else ())):
        secret = environ.get(name, "") if isinstance(name, str) else ""
        for each in (secret, *(secret.split() if name != section.get("api_key_env") else ())):
            findings.keep_secret(each)  # "Bearer abc" holds the secret "abc"
    for key in _KEYS_OF_API:
        within, _, name = key.rpartition(".")
        value = (section if within else root).get(name)
        findings.keep_secret("" if value is None else str(value))


class _Walk:
    """Goes through the file along the table of settings."""

    def __init__(self, where: str, findings: Findings) -> None:
        self.values: dict[str, object] = {}
        self._where = where
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

    def problem(self, key: str, what: str, cure: str) -> None:
        """Report what is wrong with a key."""
        self._findings.problem(f"{self._findings.shown(key, _LONGEST_NAME)}: {what}", self._where, cure)

    def _section(self, key: str, value: object) -> None:
        is_profile = key in {f"model_profiles.{name}" for name in PROFILES}
        if is_mapping(value):
            if is_profile:
                self.values[key] = value
            self.mapping(value, f"{key}.")
        elif value is not None:
            is_setting = isinstance(value, str) and f"{key}.{value.partition(':')[0]}" in BY_KEY
            cure = "put a blank behind the colon" if is_setting else "indent its settings below it or remove it"
            self.problem(key, f"expected a mapping of settings, got {self._findings.described(value)}", cure)
        elif is_profile:
            self.values[key] = None

    def _unknown(self, key: str, value: object) -> None:
        profile, _, member = key.rpartition(".")
        if key in _KEYS_OF_API and value is not None:
            cure = "remove it from the file and put the key into the environment variable OPENAI_API_KEY, or the one "
            self.problem(
                key, "expected no API key in a file, got one (not shown)", f"{cure}that openai.api_key_env names"
            )
        elif member in _MOVED and re.fullmatch(r"model_profiles\.[^.]*", profile):
            place = f"{profile}.{_MOVED[member]}"
            what = f"expected it below {place}, whose members go into the request as they are"
            self.problem(key, what, f"write {place}.{member}")
        elif key == "research.on_exit":
            self.problem(key, LEAVES_RUNS, "remove it; research_cancel and `research cancel` cancel a run")
        elif key.startswith("openai.") and key not in _DROPPED:
            what = "unknown key, where a misspelled one may send the API key elsewhere"
            self.problem(key, what, self._suggestion(key))
        else:
            what, cure = "unknown key", self._suggestion(key)
            if key in _DROPPED:
                what, cure = "v0.9 dropped this key", "remove it"
            shown = self._findings.shown(key, _LONGEST_NAME)
            self._findings.warning(f"{shown}: {what}, so it does nothing", self._where, cure)

    def _suggestion(self, key: str) -> str:
        if key in BY_KEY or key in SECTIONS:
            return "write it as nested mappings, one level a line"
        # Comparing costs time in proportion to the table, and a file can hold a hundred thousand unknown keys.
        if self._suggestions_left == 0 or len(key) > _LONGEST_NAME:
            return "remove it"
        self._suggestions_left -= 1
        near = nearest(key, [*BY_KEY, *SECTIONS])
        return f"did you mean {near}?" if near else "remove it"
