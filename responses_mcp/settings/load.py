"""Loading: command line over environment over YAML file over defaults (spec 5.1), decided once at start.

Nothing here raises for what a user may write. A wrong value is a problem, and its default takes its place, not the
value of the layer below: what a person tried to override should not come back unseen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from responses_mcp.errors import program
from responses_mcp.secrets import Redactor, is_unfilled
from responses_mcp.settings.address import is_unencrypted
from responses_mcp.settings.files import Unread, absolute, expanded, read_text, user_folder
from responses_mcp.settings.findings import Findings, described, first_of, shown
from responses_mcp.settings.forms import ON_OFF, BadValue, Url, from_text, is_mapping
from responses_mcp.settings.forms import Path as PathForm
from responses_mcp.settings.model import ModelPrice, Profile, Settings
from responses_mcp.settings.schema import BY_KEY, PROFILES, SETTINGS, Setting, section_of

FOLDER: Final = "openai-responses-mcp"
FILE: Final = "config.yaml"
LIMIT: Final = 128 * 1024
"""Bytes that a configuration file may have; reading more would hold up the start by seconds."""

_DEFAULT: Final = "default"
_UNFILLED: Final = "a placeholder left unfilled (not shown)"
_NO_WORD: Final = 16
"""Characters from which on the key of the configuration is none of the words that a value may have."""
_CURES: Final = {
    "env": "correct it or unset it",
    "yaml": "correct or remove it",
    "cli": "correct the option or leave it out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with their history.

    `sources` maps the dotted key of every setting to `env:NAME`, `yaml:PATH`, `cli:OPTION` or `default`. `problems`
    are those of `settings`, which make each call fail, and a profile `answer` that was removed, which fails the calls
    that need it; `warnings` change nothing.
    `config_file` is the YAML file that was read, else the first place where one may be; None without such a place.
    """

    settings: Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    config_file: str | None = None


class _Given(NamedTuple):
    """What somebody gave for a setting, and where."""

    source: str
    value: object


def load_settings(
    environ: Mapping[str, str],
    *,
    config_path: str | Path | None = None,
    debug: bool | str | None = None,
    toolsets: str | Sequence[str] | None = None,
    home: str | Path | None = None,
    windows: bool | None = None,
) -> LoadedSettings:
    """Read the configuration; never raises for anything that a user wrote.

    `environ` is the only environment that is read. `config_path`, `debug` and `toolsets` are what the command
    line gave, None if nothing: `debug` is True for a bare `--debug` and a path for `--debug PATH`, `toolsets` are names
    in a list, or with commas between. `home` stands for `~`, and `windows` asks for the folders of Windows: `%APPDATA%`
    is the second place to look for the file, `%LOCALAPPDATA%` is for caches. Both are found out when left out: the home
    from `environ`, and for that of this process alone from the system, too.
    """
    loading = _Loading(environ, Path(home) if home else _home(environ), windows=windows)
    loading.read_file(config_path)
    loading.read_variables()
    if isinstance(debug, str) and debug.strip():
        loading.given["server.debug_file"] = _Given("cli:--debug", debug)
    if debug is not None and debug is not False:
        loading.given["server.debug"] = _Given("cli:--debug", value=True)
    if toolsets is not None:
        names = toolsets if isinstance(toolsets, str) else ",".join(toolsets)
        loading.given["server.toolsets"] = _Given("cli:--toolsets", names)
    profiles = loading.profiles()
    absent = tuple(f"model_profiles.{name}." for name in PROFILES if name not in profiles)
    for setting in SETTINGS:
        if not setting.key.startswith(absent):
            loading.decide(setting)
    values = loading.values
    values["model_profiles"] = MappingProxyType(
        {name: _built(Profile, values, f"model_profiles.{name}.") for name in profiles}
    )
    for finish in (_finish_openai, _finish_toolsets, _finish_manuals, _finish_state, _finish_instructions):
        finish(loading)
    findings, redact = loading.findings, Redactor(loading.secrets())
    values["prices"] = MappingProxyType({model: ModelPrice(**price) for model, price in values["prices"].items()})
    values["problems"] = first_of(findings.problems, redact)
    if PROFILES[0] not in profiles:  # which fails only the tools without a profile of their own
        what = "model_profiles.answer: expected a profile, because tools without one of their own need it, got null"
        findings.problem(what, loading.where(loading.file), "remove the null or set MODEL_ANSWER")
    return LoadedSettings(
        settings=_built(Settings, values),
        sources=MappingProxyType(loading.sources),
        problems=first_of(findings.problems, redact),
        warnings=first_of(findings.warnings, redact),
        config_file=loading.file.removeprefix("yaml:") or None,
    )


def _built(section: Any, values: Mapping[str, Any], at: str = "") -> Any:
    """Return a section, made from the values of its keys; a field without one keeps its default."""
    given: dict[str, Any] = {}
    for each in fields(section):
        key = f"{at}{each.name}"
        if key in values:
            given[each.name] = values[key]
        elif (inner := section_of(each.type)) is not None:
            given[each.name] = _built(inner, values, f"{key}.")
    return section(**given)


def _home(environ: Mapping[str, str]) -> Path | None:
    for name in ("HOME", "USERPROFILE"):
        if environ.get(name):
            return Path(environ[name])
    if environ is not os.environ:  # what others pass is all that they mean, as tests of a host do
        return None
    try:
        return Path.home()
    except RuntimeError:  # a user without a home
        return None


class _Loading:
    """What is given, by dotted key, and what was decided so far. `file` is the source of what the file says."""

    def __init__(self, environ: Mapping[str, str], home: Path | None, *, windows: bool | None) -> None:
        self.environ = environ
        self.home = home
        self.windows = os.name == "nt" if windows is None else windows
        self.findings = Findings()
        self.file = "yaml:"
        self.given: dict[str, _Given] = {}
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}

    def read_file(self, asked: str | Path | None) -> None:
        """Read the file: the one asked for, or the first of the usual places that has one (spec 5.2).

        A file that is there and cannot be used is a problem, and everything keeps its default.
        """
        places = [self.home / ".config" / FOLDER / FILE] if self.home is not None else []
        if self.windows and self.environ.get("APPDATA"):
            places.append(Path(self.environ["APPDATA"]) / FOLDER / FILE)
        if asked is not None:
            places = [expanded(str(asked), self.home)]
        for path in places:
            text = read_text(path, LIMIT)
            if isinstance(text, Unread) and text.missing and asked is None:
                continue
            self.file = f"yaml:{path}"
            if isinstance(text, Unread):
                what = f"config file: expected a YAML file in UTF-8 of at most {LIMIT // 1024} KiB, got {text.reason}"
                self.findings.problem(what, self.where(self.file), "give the path of such a file or correct this one")
                return
            from responses_mcp.settings.yaml_file import values_in  # noqa: PLC0415 - the only way to PyYAML

            found = values_in(text, self.where(self.file), self.findings)
            self.given = {key: _Given(self.file, value) for key, value in found.items()}
            return
        self.file = f"yaml:{places[0]}" if places else "yaml:"

    def read_variables(self) -> None:
        """Read the environment. An empty variable counts as unset, but `DEBUG` switches the log off then."""
        for setting in SETTINGS:
            text = self.environ.get(setting.env, "").strip() if setting.env else ""
            # Of MCP_LINE_MODE "1" alone says something (spec 5.4).
            if text and setting.env != "DEBUG" and (setting.env != "MCP_LINE_MODE" or text == "1"):
                self.given[setting.key] = _Given(f"env:{setting.env}", from_text(setting.form, text))
        text = self.environ.get("DEBUG", "").strip()
        if "*" in text or "," in text:
            what = f"DEBUG: ignored, because {described(text)} looks like a filter meant for other programs"
            self.findings.warning(what, "env DEBUG", "use 1, 0 or the path of a file")
        elif "DEBUG" in self.environ:
            self.given["server.debug"] = _Given("env:DEBUG", ON_OFF.get(text.lower(), bool(text)))
            if text and text.lower() not in ON_OFF:
                self.given["server.debug_file"] = _Given("env:DEBUG", text)

    def profiles(self) -> list[str]:
        """Return the profiles that there are: those that the file holds, or of which a variable names the model.

        The first exists by default, too, unless the file removes it with null.
        """
        found: list[str] = []
        for name in PROFILES:
            key = f"model_profiles.{name}"
            model, in_file = self.given.get(f"{key}.model"), self.given.get(key)
            if model is not None and model.source != self.file:
                found.append(name)
            elif in_file is not None and in_file.value is None:
                self.sources[key] = self.file
            elif in_file is not None or name == PROFILES[0]:
                found.append(name)
        return found

    def where(self, source: str) -> str:
        """Return a source as a finding names it."""
        kind, _, rest = source.partition(":")
        return f"env {rest}" if kind == "env" else shown(rest)

    def decide(self, setting: Setting) -> None:
        """Decide one setting: what is given, else that of the profile `answer`, else its default."""
        key, given = setting.key, self.given.get(setting.key)
        self._fall_back(setting)
        if given is None:
            return
        try:
            value = self._read(setting, given.value, from_file=given.source == self.file)
            self.values[key], self.sources[key] = value, given.source
        except BadValue as bad:
            self.refuse(key, bad)

    def _fall_back(self, setting: Setting) -> None:
        self.values[setting.key] = self.values.get(setting.above, setting.default)
        self.sources[setting.key] = self.sources.get(setting.above, _DEFAULT)

    def _read(self, setting: Setting, given: object, *, from_file: bool) -> object:
        """Return a value as it is used. Members of a mapping join those of `answer`, and null takes one out."""
        if isinstance(given, str) and is_unfilled(given):
            raise BadValue(_UNFILLED)
        value = setting.form.read(given)
        written = repr(value)
        if Redactor(each for each in self.secrets() if each and len(each) >= _NO_WORD)(written) != written:
            raise BadValue("a value that looks like a key (not shown)")
        if is_mapping(value):
            members = {**self.values[setting.key], **value}
            return MappingProxyType({name: each for name, each in members.items() if each is not None})
        if not isinstance(value, str):
            return value
        if isinstance(setting.form, Url) and is_unencrypted(value) and not self.values["openai.allow_http"]:
            cure = "use https, or set openai.allow_http: true in the YAML file if that network is yours"
            raise BadValue("one with http, which would carry the key unencrypted", cure=cure)
        if not isinstance(setting.form, PathForm) or (setting.key, value) == ("server.debug_file", "-"):
            return value
        path = expanded(value, self.home)
        return str(absolute(Path(self.file.removeprefix("yaml:")).parent / path if from_file else path))

    def refuse(self, key: str, bad: BadValue, expected: str = "") -> None:
        """Report a value that does not count: a number out of range as a warning, all else as a problem."""
        setting, source = BY_KEY[key], self.given[key].source if key in self.given else self.file
        what = f"expected {expected or setting.form.expected}, got {bad.got}"
        cure = bad.cure or _CURES[source.partition(":")[0]]
        if bad.within is not None:
            self.values[key], self.sources[key] = setting.form.read(bad.within), source
            self.warn(key, f"{what}, so {bad.within} is used", cure)
            return
        if bad.got == _UNFILLED and source.startswith("env:"):
            cure = f"set {source[4:]} where the client is started, or take it out of the client's entry"
        self._fall_back(setting)
        self.findings.problem(f"{key}: {what}", self.where(source), cure)

    def warn(self, key: str, what: str, cure: str) -> None:
        """Report what is odd about a value that is given."""
        self.findings.warning(f"{key}: {what}", self.where(self.sources[key]), cure)

    def folder(self, kind: Literal["cache", "state"]) -> str | None:
        """Return our folder among those of the user; None for a user without a home."""
        found = user_folder(kind, self.environ, self.home, windows=self.windows)
        return None if found is None else str(absolute(found / FOLDER))

    def secrets(self) -> list[str | None]:
        """Return what no finding may show: keys in either variable, and the values of headers."""
        values = self.values  # which may not be decided yet
        names = ("OPENAI_API_KEY", values.get("openai.api_key_env"), *values.get("openai.headers_env", {}).values())
        return [self.environ.get(name or "") for name in names]


def _finish_openai(loading: _Loading) -> None:
    """Take the key, and the values of headers, out of the environment."""
    values, environ, findings = loading.values, loading.environ, loading.findings
    variable: str = values["openai.api_key_env"]
    given = environ.get(variable, "")
    api_key = given.strip() or given or None  # what is wrong with a key is said by the call that needs it
    values["openai.api_key"] = api_key
    loading.sources["openai.api_key_present"] = f"env:{variable}" if api_key is not None else _DEFAULT
    headers = dict[str, str]()
    for header, name in values["openai.headers_env"].items():
        value = environ.get(name, "").strip(" ")
        unfilled = any(map(is_unfilled, value.split()))
        if value and value.isascii() and value.isprintable() and not unfilled:
            headers[header] = value
            continue
        got = _UNFILLED if unfilled else "other characters (not shown)" if value else "none"
        what = f"openai.headers_env.{header}: expected a value of printable ASCII in the environment variable {name}"
        passing = f"let the client's entry pass it on ({program('install', 'CLIENT', '--write')})"
        cure = f"set {name} where the client is started and {passing}, or remove the header"
        findings.problem(f"{what}, got {got}", loading.where(loading.sources["openai.headers_env"]), cure)
    values["openai.headers"] = MappingProxyType(headers)


def _finish_toolsets(loading: _Loading) -> None:
    """Put `answer` first in a list of toolsets; manuals need a root, so to list them without one is a problem."""
    key, values = "server.toolsets", loading.values
    if values[key] is not None:
        values[key] = tuple(dict.fromkeys((PROFILES[0], *values[key])))
    if "manuals" in (values[key] or ()) and values["manuals.root"] is None:
        cure = "set MANUALS_ROOT or manuals.root, or drop manuals from the list"
        expected = "manuals.root to be set, because manuals is in the list"
        loading.refuse(key, BadValue("none", cure=cure), expected)


def _finish_manuals(loading: _Loading) -> None:
    """Check the root of manuals; with one, an index folder that nobody named is in the user's caches."""
    root = loading.values["manuals.root"]
    if root is None:
        return
    if not os.path.isdir(root):  # noqa: PTH112 - unlike Path.is_dir it raises nothing
        what = f"there is no such folder, so there are no manuals: {shown(root)}"
        loading.warn("manuals.root", what, "create it or correct the path")
    if loading.values["manuals.index_dir"] is None:
        loading.values["manuals.index_dir"] = loading.folder("cache")


def _finish_state(loading: _Loading) -> None:
    """Name a folder in the user's state folder where something is kept, and nobody named one."""
    values, key = loading.values, "limits.day_cost_usd"
    in_background = any(profile.background for profile in values["model_profiles"].values())
    keeps = values["usage.ledger"] or "research" in (values["server.toolsets"] or ()) or in_background
    if values["research.state_dir"] is None and keeps:
        values["research.state_dir"] = loading.folder("state")
    if values[key] is not None and not values["usage.ledger"]:
        cure = "set usage.ledger to true or remove the limit"
        expected = "usage.ledger to be true, because only the ledger knows what was spent before"
        loading.refuse(key, BadValue("a limit without it", cure=cure), expected)


def _finish_instructions(loading: _Loading) -> None:
    """Read the text of the user's policy, if that is the source of the instructions."""
    values, sources, key = loading.values, loading.sources, "policy.system.path"
    path = values[key]
    sources["policy.instructions"] = sources["policy.system.source"]
    if values["policy.system.source"] == "builtin":
        return
    if path is not None:
        from responses_mcp.settings import system_policy  # noqa: PLC0415 - few starts need the text

        built_in = system_policy.built_in(values["locale.time_zone"])
        where, merge = loading.where(sources[key]), values["policy.system.merge"]
        text = system_policy.instructions_from(Path(path), merge, built_in, where, loading.findings)
        values["policy.instructions"] = text
    elif key not in loading.given:
        cure = "add the path or set the source to builtin"
        loading.refuse(key, BadValue("none", cure=cure), "the path of a file, because policy.system.source is file")
