"""Loading: command line over environment over YAML file over defaults (spec 5.1), decided once at start.

Nothing here raises for what a user may write. A wrong value is a problem, and its default takes its place, not the
value of the layer below: what a person tried to override should not come back unseen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from responses_mcp.settings.files import Unread, absolute, expanded, read_text, user_folder
from responses_mcp.settings.findings import Findings
from responses_mcp.settings.model import ModelPrice, Profile, Settings
from responses_mcp.settings.schema import BY_KEY, CANCELS_RUNS, LEAVES_RUNS, PROFILES, SETTINGS, section_of
from responses_mcp.settings.setting import ON_OFF, PATHS, UNFILLED, BadValue, Setting, from_text, read

FOLDER: Final = "openai-responses-mcp"
FILE: Final = "config.yaml"
LIMIT: Final = 128 * 1024
"""Bytes that a configuration file may have; reading more would hold up the start by seconds."""

_DEFAULT: Final = "default"
_PROFILES: Final = "model_profiles."
_ANSWER: Final = f"{_PROFILES}{PROFILES[0]}"


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
    findings = Findings()
    findings.keep_secret(environ.get("OPENAI_API_KEY", ""))
    loading = _Loading(environ, Path(home) if home else _home(environ), findings, windows=windows)
    loading.read_file(config_path)
    loading.given.update(_variables(environ, findings))
    if isinstance(debug, str) and debug.strip():
        loading.given["server.debug_file"] = _Given("cli:--debug", debug)
    if debug is not None and debug is not False:
        loading.given["server.debug"] = _Given("cli:--debug", value=True)
    if toolsets is not None:
        names = toolsets if isinstance(toolsets, str) else ",".join(toolsets)
        loading.given["server.toolsets"] = _Given("cli:--toolsets", names)
    values, sources = loading.values, loading.sources
    for setting in SETTINGS:  # `openai` first, since the other findings must know its secrets
        if not setting.key.startswith(_PROFILES):
            loading.decide(setting)
        if setting.key == "openai.headers_env":
            _finish_openai(loading)
    _finish_profiles(loading)
    for finish in (_finish_toolsets, _finish_manuals, _finish_state, _finish_instructions):
        finish(loading)
    prices: Mapping[str, Any] = values["prices"]
    values["prices"] = MappingProxyType({model: ModelPrice(**price) for model, price in prices.items()})
    if prices:
        source = sources.pop("prices")
        sources.update({f"prices.{model}.{name}": source for model, price in prices.items() for name in price})
    if environ.get("RESEARCH_ON_EXIT", "").strip():
        findings.problem(f"RESEARCH_ON_EXIT: {LEAVES_RUNS}", "env RESEARCH_ON_EXIT", f"unset it; {CANCELS_RUNS}")
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


def _variables(environ: Mapping[str, str], findings: Findings) -> Iterator[tuple[str, _Given]]:
    """Yield what the environment gives. An empty one counts as unset, but `DEBUG` switches the log off then."""
    for setting in SETTINGS:
        text = environ.get(setting.env, "").strip() if setting.env else ""
        if setting.key == "server.debug":
            yield from _debug(environ.get("DEBUG"), findings)
        elif text and (
            setting.key != "server.line_mode" or text == "1"
        ):  # of which "1" alone says something (spec 5.4)
            yield setting.key, _Given(f"env:{setting.env}", from_text(setting, text))


def _debug(given: str | None, findings: Findings) -> Iterator[tuple[str, _Given]]:
    text = "" if given is None else given.strip()
    switch = ON_OFF.get(text.lower(), bool(text))
    if "*" in text or "," in text:
        what = f"DEBUG: ignored, because {findings.described(text)} looks like a filter meant for other programs"
        findings.warning(what, "env DEBUG", "use 1, 0 or the path of a file")
    elif given is not None:
        yield "server.debug", _Given("env:DEBUG", switch)
        if text and text.lower() not in ON_OFF:
            yield "server.debug_file", _Given("env:DEBUG", text)


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

                found = values_in(text, self.where(self.file), self.environ, self.findings)
                self.given = {key: _Given(self.file, value) for key, value in found.items()}
            return
        self.file = f"yaml:{places[0]}" if places else "yaml:"
        if asked is not None:
            what = f"config file: expected a YAML file, but there is none at {self.where(self.file)}"
            self.findings.problem(what, "--config", "correct the path")

    def where(self, source: str) -> str:
        """Return a source as a finding names it."""
        kind, _, rest = source.partition(":")
        return f"env {rest}" if kind == "env" else self.findings.shown(rest, 300)

    def decide(self, setting: Setting) -> None:
        """Decide one setting: what is given, else its default."""
        self.values[setting.key], self.sources[setting.key] = setting.default, _DEFAULT
        if (given := self.given.get(setting.key)) is not None:
            try:
                value = read(setting, given.value, self.findings)
            except BadValue as bad:
                if bad.within is None:
                    self.refuse(setting.key, bad)
                    return
                value = bad.within if setting.form.kind == "integer" else float(bad.within)
                what = f"{setting.key}: expected {setting.expected}, got {bad.got}, so {bad.within} is used"
                self.findings.warning(what, self.where(given.source), _cure(given.source))
            self.values[setting.key], self.sources[setting.key] = (
                self._placed(setting, given.source, value),
                given.source,
            )

    def _placed(self, setting: Setting, source: str, value: object) -> object:
        """Return a value; a path as one from the folder of the file, or from a home."""
        if (
            setting.form.kind not in PATHS
            or not isinstance(value, str)
            or (setting.key, value) == ("server.debug_file", "-")
        ):
            return value
        path = expanded(value, self.home, windows=self.windows)
        path = Path(self.file.removeprefix("yaml:")).parent / path if source == self.file else path
        # A folder is opened later, maybe from another working directory.
        return str(absolute(path) if setting.form.kind == "folder" else path)

    def refuse(self, key: str, bad: BadValue, expected: str = "") -> None:
        """Report a value as a problem, with the default in its place."""
        source = self.given[key].source if key in self.given else self.file
        kind, _, name = source.partition(":")
        unset = f"set {name} where the client is started, or take it out of the client's entry"
        cure = unset if kind == "env" and bad.got == UNFILLED else bad.cure or _cure(source)
        what = f"{key}: expected {expected or BY_KEY[key].expected}, got {bad.got}"
        self.findings.problem(what, self.where(source), cure)
        self.values[key], self.sources[key] = BY_KEY[key].default, _DEFAULT

    def warn(self, key: str, what: str, cure: str) -> None:
        """Report what is odd about a value that is given."""
        self.findings.warning(f"{key}: {what}", self.where(self.sources[key]), cure)

    def folder(self, kind: Literal["cache", "state"]) -> str | None:
        """Return our folder among those of the user; None for a user without a home."""
        mac = not self.windows and sys.platform == "darwin"
        found = user_folder(kind, self.environ, self.home, windows=self.windows, mac=mac)
        return None if found is None else str(absolute(found / FOLDER))


def _cure(source: str) -> str:
    cures = {
        "env": "correct it or unset it",
        "yaml": "correct or remove it",
        "cli": "correct the option or leave it out",
    }
    return cures[source.partition(":")[0]]


def _finish_openai(loading: _Loading) -> None:
    """Decide the key, and the values of headers."""
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
    _check_address(loading, "openai.base_url")


def _check_address(loading: _Loading, key: str) -> None:
    if loading.sources[key] != _DEFAULT:
        from responses_mcp.settings.address import checked_base_url  # noqa: PLC0415 - the default needs no check

        allow_http = loading.values["openai.allow_http"]
        try:
            loading.values[key] = checked_base_url(loading.values[key], loading.findings, allow_http=allow_http)
        except BadValue as bad:
            loading.refuse(key, bad)


def _finish_toolsets(loading: _Loading) -> None:
    """Put `answer` first in a list of toolsets; manuals need a root, so to list them without one is a problem."""
    key, values = "server.toolsets", loading.values
    if values[key] is not None:
        values[key] = tuple(dict.fromkeys((PROFILES[0], *values[key])))
    toolsets = values[key] or ()
    if "manuals" in toolsets and values["manuals.root"] is None:
        cure = "set MANUALS_ROOT or manuals.root, or drop manuals from the list"
        expected = "manuals.root to be set, because manuals is in the list"
        loading.refuse(key, BadValue("none", cure=cure), expected)
    if values["request.handoff_ms"] and "research" not in toolsets:
        cure = "add research to server.toolsets, or remove this"
        loading.warn("request.handoff_ms", "no call is handed off without the toolset research", cure)


def _finish_manuals(loading: _Loading) -> None:
    """Check the root of manuals; with one, an index folder that nobody named is in the user's caches."""
    _check_address(loading, "manuals.embeddings.base_url")
    root = loading.values["manuals.root"]
    if root is None:
        return
    if not os.path.isdir(root):  # noqa: PTH112 - unlike Path.is_dir it raises nothing
        shown = loading.findings.shown(root, 300)
        what = f"there is no such folder, so there are no manuals: {shown}"
        loading.warn("manuals.root", what, "create it or correct the path, in which no variables are filled in")
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


def _finish_profiles(loading: _Loading) -> None:
    """Decide the profiles: one exists if the file holds it or a variable names its model.

    The first exists by default too, unless the file removes it with null. Fields that a profile lacks are those of
    the first, with their source.
    """
    profiles: dict[str, Profile] = {}
    for name in PROFILES:
        at = f"{_PROFILES}{name}"
        model, in_file = loading.given.get(f"{at}.model"), loading.given.get(at)
        if model is None or model.source == loading.file:
            if in_file is None and name != PROFILES[0]:
                continue
            if in_file is not None and in_file.value is None:
                loading.sources[at] = loading.file
                continue
        for setting in SETTINGS:
            if setting.key.startswith(f"{at}."):
                loading.decide(setting)
                _inherit(loading, setting, f"{_ANSWER}{setting.key.removeprefix(at)}")
        profiles[name] = _built(Profile, loading.values, f"{at}.")
    loading.values["model_profiles"] = MappingProxyType(profiles)


def _inherit(loading: _Loading, setting: Setting, above: str) -> None:
    """Take a field, or member of a mapping, that a profile lacks from the first; null takes a member out."""
    values, sources, key = loading.values, loading.sources, setting.key
    if setting.form.kind == "mapping":
        source = sources.pop(key)
        own: Mapping[str, object] = values[key] or {}
        members: dict[str, object] = {**values.get(above, {}), **own}
        values[key] = MappingProxyType({name: each for name, each in members.items() if each is not None})
        for name in values[key]:
            sources[f"{key}.{name}"] = source if name in own else sources[f"{above}.{name}"]
        return
    if values[key] in (None, ()):
        values[key], sources[key] = values.get(above, BY_KEY[above].default), sources.get(above, _DEFAULT)
    if values[key] in (None, ()):  # it is not sent
        del sources[key]


def _finish_instructions(loading: _Loading) -> None:
    values, key = loading.values, "policy.system.path"
    path = values[key]
    if values["policy.system.source"] == "file":
        if key not in loading.given:
            cure = "add the path or set the source to builtin"
            loading.refuse(key, BadValue("none", cure=cure), "the path of a file, because policy.system.source is file")
        elif path is not None:
            from responses_mcp.settings import system_policy  # noqa: PLC0415 - few starts need the text

            built_in = system_policy.built_in(values["locale.time_zone"])
            values["policy.instructions"] = system_policy.instructions_from(
                Path(path),
                values["policy.system.merge"],
                built_in,
                loading.where(loading.sources[key]),
                loading.findings,
            )
    elif path is not None:
        cure = "set the source to file or remove the path"
        loading.warn(key, "this file is not used, because policy.system.source is builtin", cure)
    for name in ("revision", "sha256", "length"):
        loading.sources[f"policy.instructions.{name}"] = loading.sources["policy.system.source"]
