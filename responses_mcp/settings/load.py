"""Loading: command line over environment over YAML file over defaults (spec 5.1), decided once at start.

Nothing here raises for what a user may write. A wrong value is a problem, and its default takes its place, not the
value of the layer below: what a person tried to override should not come back unseen.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.files import Unread, absolute, expanded, read_text, user_folder
from responses_mcp.settings.findings import Findings
from responses_mcp.settings.model import SEARCH_EFFORT, ModelPrice, Profile, Settings
from responses_mcp.settings.schema import BY_KEY, LEAVES_RUNS, PROFILES, SETTINGS, section_of
from responses_mcp.settings.setting import NUMBERS, ON_OFF, PATHS, BadValue, Setting, from_text, from_yaml

FOLDER: Final = "openai-responses-mcp"
FILE: Final = "config.yaml"
LIMIT: Final = 128 * 1024
"""Bytes that a configuration file may have; reading more would hold up the start by seconds."""

_DEFAULT: Final = "default"
_ANSWER: Final = f"model_profiles.{PROFILES[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with their history.

    `sources` maps every dotted key of the effective configuration to `env:NAME`, `yaml:PATH`, `cli:OPTION` or
    `default`. `problems` are those of `settings`, which make each call fail, and a profile `answer` that was removed,
    which fails the calls that need it; `warnings` change nothing.
    `config_file` is the YAML file that was read, else the first place where one may be; None without such a place.
    """

    settings: Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    config_file: str | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Say what is meant to whoever passes this in the place of its settings."""
            if name in Settings.__dataclass_fields__:
                raise TypeError(f"this is a LoadedSettings, which has no {name}; pass its .settings")
            raise AttributeError(f"LoadedSettings has no attribute {name!r}")


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
    findings = Findings()
    findings.keep_secret(environ.get("OPENAI_API_KEY", ""))
    loading = _Loading(environ, Path(home) if home else _home(environ), findings, windows=windows)
    loading.read_file(config_path)
    _decide_openai(loading)
    for setting in SETTINGS:
        if setting.key not in loading.values and not setting.key.startswith("model_profiles."):
            loading.pick(setting.key)
    _decide_debug(loading, debug)
    _decide_toolsets(loading, toolsets if toolsets is None or isinstance(toolsets, str) else ",".join(toolsets))
    _decide_manuals(loading)
    _decide_profiles(loading)
    _decide_state(loading)
    _decide_instructions(loading)
    values, sources = loading.values, loading.sources
    if prices := values["prices"]:
        values["prices"] = MappingProxyType({name: ModelPrice(**price) for name, price in prices.items()})
        source = sources.pop("prices")
        sources.update({f"prices.{name}": source for name in prices})
    if environ.get("REQUERY_ATTEMPTS", "").strip():
        what = "REQUERY_ATTEMPTS: v0.9 dropped this variable, so it does nothing"
        findings.warning(what, "env REQUERY_ATTEMPTS", "unset it")
    if environ.get("RESEARCH_ON_EXIT", "").strip():
        cure = "unset it; research_cancel and `research cancel` cancel a run"
        findings.problem(f"RESEARCH_ON_EXIT: {LEAVES_RUNS}", "env RESEARCH_ON_EXIT", cure)
    values["problems"] = findings.problems
    if PROFILES[0] not in values["model_profiles"]:  # which fails only the tools without a profile of their own
        what = f"{_ANSWER}: expected a profile, because tools without one of their own need it, got null"
        findings.problem(what, loading.where(loading.file), "remove the null or set MODEL_ANSWER")
    return LoadedSettings(
        settings=_built(Settings, values),
        sources=MappingProxyType(sources),
        problems=findings.problems,
        warnings=findings.warnings,
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
    """The values decided so far, and what to decide the others from. `file` is the source of what the file says."""

    def __init__(
        self, environ: Mapping[str, str], home: Path | None, findings: Findings, *, windows: bool | None
    ) -> None:
        self.environ = environ
        self.home = home
        self.findings = findings
        self.windows = os.name == "nt" if windows is None else windows
        self.file = "yaml:"
        self.in_file: Mapping[str, object] = {}
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
            places = [expanded(str(asked), self.home, windows=self.windows)]
        for path in places:
            text = read_text(path, LIMIT)
            if isinstance(text, Unread) and text.missing:
                continue
            self.file = f"yaml:{path}"
            if isinstance(text, Unread):
                what = f"config file: expected a YAML file in UTF-8 of at most {LIMIT // 1024} KiB, got {text.reason}"
                self.findings.problem(what, self.where(self.file), "give the path of such a file or cure this one")
            else:
                from responses_mcp.settings.yaml_file import values_in  # noqa: PLC0415 - the only way to PyYAML

                self.in_file = values_in(text, self.where(self.file), self.environ, self.findings)
            return
        self.file = f"yaml:{places[0]}" if places else "yaml:"
        if asked is not None:
            what = f"config file: expected a YAML file, but there is none at {self.where(self.file)}"
            self.findings.problem(what, "--config", "correct the path")

    def env(self, setting: Setting) -> str:
        """Return the variable of a setting without surrounding blanks; an empty one counts as unset."""
        text = self.environ.get(setting.env, "").strip() if setting.env else ""
        if setting.kind == "debug" or (setting.key == "server.line_mode" and text != "1"):
            return ""  # DEBUG sets two keys at once; of the other one "1" alone says something (spec 5.4)
        return text

    def source_of(self, key: str) -> str:
        """Return where a key is set, the environment before the file."""
        setting = BY_KEY[key]
        return f"env:{setting.env}" if self.env(setting) else self.file if key in self.in_file else _DEFAULT

    def where(self, source: str) -> str:
        """Return a source as a finding names it."""
        kind, _, rest = source.partition(":")
        return f"env {rest}" if kind == "env" else self.findings.shown(rest, 300)

    def pick(self, key: str) -> None:
        """Decide one setting: environment, else file, else default."""
        source = self.source_of(key)
        if source.startswith("env:"):
            self.take(key, source, from_text, self.env(BY_KEY[key]))
        elif source == self.file:
            self.take(key, source, from_yaml, self.in_file[key])
        else:
            self.values[key], self.sources[key] = BY_KEY[key].default, _DEFAULT

    def take(self, key: str, source: str, read: Callable[[Setting, Any, Findings], object], given: object) -> None:
        """Read a value and take it, or refuse it."""
        name = source.removeprefix("env:")
        if name != source and isinstance(given, str) and is_unfilled(given):
            cure = f"set {name} where the client is started, or take it out of the client's entry"
            self.refuse(key, source, BadValue("a placeholder left unfilled (not shown)", cure=cure))
            return
        try:
            self.put(key, source, read(BY_KEY[key], given, self.findings))
        except BadValue as bad:
            self.refuse(key, source, bad)

    def put(self, key: str, source: str, value: object) -> None:
        """Take a value. A path in the file is relative to the folder of the file."""
        kind = BY_KEY[key].kind
        if kind in PATHS and isinstance(value, str) and (key, value) != ("server.debug_file", "-"):
            path = expanded(value, self.home, windows=self.windows)
            path = Path(self.file.removeprefix("yaml:")).parent / path if source == self.file else path
            # A folder is opened later, maybe from another working directory.
            value = str(absolute(path) if kind == "folder" else path)
        self.values[key], self.sources[key] = value, source

    def refuse(self, key: str, source: str, bad: BadValue) -> None:
        """Report a value as a problem, with the default in its place, or as a warning with the one `within` range."""
        setting, where = BY_KEY[key], self.where(source)
        cure = "set it to a number or unset it" if setting.kind in NUMBERS else "correct it or unset it"
        if not source.startswith("env:"):
            cure = "correct or remove it" if source == self.file else "correct the option or leave it out"
        what = f"{key}: expected {bad.expected or setting.expected}, got {bad.got}"
        if bad.within is None:
            self.findings.problem(what, where, bad.cure or cure)
            self.values[key], self.sources[key] = setting.default, _DEFAULT
        else:
            self.findings.warning(f"{what}, so {bad.within} is used", where, cure)
            self.put(key, source, bad.within if setting.kind == "integer" else float(bad.within))

    def folder(self, kind: Literal["cache", "state"]) -> str | None:
        """Return our folder among those of the user; None for a user without a home."""
        mac = not self.windows and sys.platform == "darwin"
        found = user_folder(kind, self.environ, self.home, windows=self.windows, mac=mac)
        return None if found is None else str(absolute(found / FOLDER))


def _decide_openai(loading: _Loading) -> None:
    """Decide the section of secrets: the key, the headers, and where both go."""
    for name in ("api_key_env", "headers_env", "allow_http", "base_url"):
        loading.pick(f"openai.{name}")
    values, sources = loading.values, loading.sources
    variable: str = values["openai.api_key_env"]
    # What else is wrong with the form of a key is said by the call that needs it.
    given = loading.environ.get(variable, "")
    api_key = given.strip() or given or None
    loading.findings.keep_secret(given)
    if api_key is not None and api_key != given:
        what = f"{variable}: the key has blanks or a line break around it, which are left out"
        loading.findings.warning(what, f"env {variable}", "set it without them")
    values["openai.api_key"] = api_key
    sources["openai.api_key_present"] = f"env:{variable}" if api_key is not None else _DEFAULT
    if sources["openai.headers_env"] != _DEFAULT:
        from responses_mcp.settings.address import header_values  # noqa: PLC0415 - most servers have none

        source = sources.pop("openai.headers_env")
        headers = header_values(values["openai.headers_env"], loading.environ, loading.findings, loading.where(source))
        values["openai.headers_env"] = MappingProxyType({name: variable for name, (variable, _) in headers.items()})
        values["openai.headers"] = MappingProxyType({name: value for name, (_, value) in headers.items()})
        named = {f"openai.headers_env.{name}": source for name in headers}
        sources.update(named or {"openai.headers_env": _DEFAULT})
    _check_base_url(loading, "openai.base_url")


def _check_base_url(loading: _Loading, key: str) -> None:
    if (source := loading.sources[key]) != _DEFAULT:
        from responses_mcp.settings.address import checked_base_url  # noqa: PLC0415 - the default needs no check

        allow_http = loading.values["openai.allow_http"]
        loading.take(
            key, source, lambda _, url, found: checked_base_url(url, found, allow_http=allow_http), loading.values[key]
        )


def _decide_debug(loading: _Loading, option: bool | str | None) -> None:
    """Decide once whether there is a debug log and which file gets it too (spec 8.1)."""
    text = loading.environ.get("DEBUG", "").strip()
    switch = ON_OFF.get(text.lower())
    if "*" in text or "," in text:
        shown = loading.findings.described(text)
        what = f"DEBUG: ignored, because {shown} looks like a filter meant for other programs"
        loading.findings.warning(what, "env DEBUG", "use 1, 0 or the path of a file")
    elif "DEBUG" in loading.environ and (not text or switch is not None):
        loading.put("server.debug", "env:DEBUG", bool(switch))
    elif text:
        loading.take("server.debug_file", "env:DEBUG", from_text, text)
        if loading.sources["server.debug_file"] == "env:DEBUG":
            loading.put("server.debug", "env:DEBUG", value=True)
    if isinstance(option, str) and option.strip():
        loading.take("server.debug_file", "cli:--debug", from_text, option)
    if option is not None and option is not False:
        loading.put("server.debug", "cli:--debug", value=True)


def _decide_toolsets(loading: _Loading, option: str | None) -> None:
    """Decide which toolsets were asked for by name; manuals need a root, so asking without one is a problem."""
    key = "server.toolsets"
    if option is not None:
        loading.take(key, "cli:--toolsets", from_text, option)
    toolsets = loading.values[key] or ()
    if "manuals" in toolsets and loading.values["manuals.root"] is None:
        expected = "manuals.root to be set, because manuals is in the list"
        cure = "set MANUALS_ROOT or manuals.root, or drop manuals from the list"
        loading.refuse(key, loading.sources[key], BadValue("none", expected=expected, cure=cure))
    if loading.values["request.handoff_ms"] and "research" not in toolsets:
        what = "request.handoff_ms: no call is handed off without the toolset research"
        where = loading.where(loading.sources["request.handoff_ms"])
        loading.findings.warning(what, where, "add research to server.toolsets, or remove this")


def _decide_manuals(loading: _Loading) -> None:
    """Check the root of manuals; with one, an index folder that nobody named is in the user's caches."""
    _check_base_url(loading, "manuals.embeddings.base_url")
    root = loading.values["manuals.root"]
    if root is None:
        return
    if not os.path.isdir(root):  # noqa: PTH112 - unlike Path.is_dir it raises nothing
        what, cure = "there is no such folder", "create it or correct the path"
        if os.path.isfile(root):  # noqa: PTH113 - as above
            what, cure = "it is a file, not a folder", "correct the path"
        elif re.search(r"(^|[/\\])(\$[A-Za-z_]|%\w+%)", root):  # as a shell would fill in
            cure = "write the path out, since variables in it are not filled in"
        what = f"manuals.root: {what}, so there are no manuals: {loading.findings.shown(root, 300)}"
        loading.findings.warning(what, loading.where(loading.sources["manuals.root"]), cure)
    if loading.values["manuals.index_dir"] is None:
        loading.values["manuals.index_dir"] = loading.folder("cache")


def _decide_state(loading: _Loading) -> None:
    """Name a folder in the user's state folder where something is kept, and nobody named one."""
    values, key = loading.values, "limits.day_cost_usd"
    in_background = any(profile.background for profile in values["model_profiles"].values())
    keeps = values["usage.ledger"] or "research" in (values["server.toolsets"] or ()) or in_background
    if values["research.state_dir"] is None and keeps:
        values["research.state_dir"] = loading.folder("state")
    if values[key] is not None and not values["usage.ledger"]:
        expected = "usage.ledger to be true, because only the ledger knows what was spent before"
        cure = "set usage.ledger to true or remove the limit"
        loading.refuse(key, loading.sources[key], BadValue("a limit without it", expected=expected, cure=cure))


def _decide_profiles(loading: _Loading) -> None:
    """Decide the profiles: one exists if the file holds it or a variable names its model.

    The first exists by default too, unless the file removes it with null. Fields that a profile lacks are those of
    the first, with their source.
    """
    profiles: dict[str, Profile] = {}
    for name in PROFILES:
        at = f"model_profiles.{name}"
        if not loading.env(BY_KEY[f"{at}.model"]):
            if at not in loading.in_file and name != PROFILES[0]:
                continue
            if loading.in_file.get(at, at) is None:
                loading.sources[at] = loading.file
                continue
        for setting in SETTINGS:
            if setting.key.startswith(f"{at}."):
                loading.pick(setting.key)
                merge = _merge_members if setting.kind in {"request", "web_search"} else _inherit
                merge(loading, setting.key, f"{_ANSWER}{setting.key.removeprefix(at)}")
        profiles[name] = _built(Profile, loading.values, f"{at}.")
    loading.values["model_profiles"] = MappingProxyType(profiles)


def _inherit(loading: _Loading, key: str, fallback: str) -> None:
    """Take a field that a profile lacks from the first, but a search of files as a whole or not at all."""
    values, sources = loading.values, loading.sources
    whole = key[: key.find(".file_search.") + len(".file_search.")]
    has_own = ".file_search." in key and any(each.startswith(whole) for each in loading.in_file)
    if values[key] in (None, ()) and not has_own:
        values[key] = values.get(fallback, BY_KEY[fallback].default)
        sources[key] = sources.get(fallback, _DEFAULT)
        if key == "model_profiles.search.reasoning_effort":
            values[key], sources[key] = SEARCH_EFFORT, _DEFAULT
    if values[key] in (None, ()):  # it is not sent
        sources.pop(key, None)
        values[key] = BY_KEY[fallback].default


def _merge_members(loading: _Loading, key: str, fallback: str) -> None:
    """Decide a mapping that is passed on: a member that a profile lacks is that of the first; null takes one out."""
    source = loading.sources.pop(key)
    own: Mapping[str, object] = loading.values[key] or {}
    members: dict[str, object] = {**loading.values.get(fallback, {}), **own}
    loading.values[key] = MappingProxyType({name: each for name, each in members.items() if each is not None})
    for name in loading.values[key]:
        loading.sources[f"{key}.{name}"] = source if name in own else loading.sources[f"{fallback}.{name}"]


def _decide_instructions(loading: _Loading) -> None:
    values, key = loading.values, "policy.system.path"
    source, path = loading.source_of(key), values[key]
    if values["policy.system.source"] == "file":
        if source == _DEFAULT:
            expected = "the path of a file, because policy.system.source is file"
            bad = BadValue("none", expected=expected, cure="add the path or set the source to builtin")
            loading.refuse(key, loading.file, bad)
        elif path is not None:
            from responses_mcp.settings import system_policy  # noqa: PLC0415 - few starts need the text

            built_in = system_policy.built_in(values["locale.time_zone"])
            values["policy.instructions"] = system_policy.instructions_from(
                Path(path), values["policy.system.merge"], built_in, loading.where(source), loading.findings
            )
    elif path is not None:
        what = f"{key}: this file is not used, because policy.system.source is builtin"
        loading.findings.warning(what, loading.where(source), "set the source to file or remove the path")
    for name in ("revision", "sha256", "length"):
        loading.sources[f"policy.instructions.{name}"] = loading.sources["policy.system.source"]
