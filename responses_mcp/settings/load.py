"""Loading: command line over environment over YAML file over defaults (spec 5.1), decided once at start.

`layers` decides one setting at a time; this file decides those that lean on others and builds the tree. Nothing
here raises for what a user may write: a wrong value is a problem, and its default takes its place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.settings.files import ConfigFile, absolute, cache_folder, expanded, read_config, state_folder
from responses_mcp.settings.findings import Findings, Raw
from responses_mcp.settings.layers import IN_FILE, Layers
from responses_mcp.settings.model import ModelPrice, Profile, Settings
from responses_mcp.settings.schema import (
    BY_KEY,
    DROPPED_ENV,
    FALLBACKS,
    LEAVES_RUNS,
    MAPPINGS,
    PROFILES,
    SETTINGS,
    section_of,
)
from responses_mcp.settings.setting import OFF, ON, BadValue, from_text

FOLDER: Final = "openai-responses-mcp"
FILE: Final = "config.yaml"

_YES: Final = True
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
    on_windows = os.name == "nt" if windows is None else windows
    on_mac = not on_windows and sys.platform == "darwin"
    findings = Findings()
    base = Path(home) if home else _home(environ)
    file = _config_file(environ, config_path, base, findings, windows=on_windows)
    layers = Layers(environ, file, base, findings, windows=on_windows)
    _decide_openai(layers)
    for setting in SETTINGS:
        if setting.key not in layers.values and not setting.key.startswith("model_profiles."):
            layers.pick(setting.key)
    _decide_debug(layers, debug)
    _decide_toolsets(layers, toolsets if toolsets is None or isinstance(toolsets, str) else ",".join(toolsets))
    _decide_index(layers, cache_folder(environ, base, windows=on_windows, mac=on_mac))
    _decide_profiles(layers)
    _decide_state(layers, state_folder(environ, base, windows=on_windows, mac=on_mac))
    _check_day(layers)
    _decide_instructions(layers)
    if prices := layers.values["prices"]:
        layers.values["prices"] = MappingProxyType({name: ModelPrice(**price) for name, price in prices.items()})
        source = layers.sources.pop("prices")
        layers.sources.update({f"prices.{name}": source for name in prices})
    for name in DROPPED_ENV:
        if environ.get(name, "").strip():
            what = f"{name}: v0.9 dropped this variable, so it does nothing"
            findings.warning(what, where=(f"from env {name}",), cure="unset it")
    if environ.get("RESEARCH_ON_EXIT", "").strip():
        cure = "unset it; research_cancel and `research cancel` cancel a run"
        findings.problem(f"RESEARCH_ON_EXIT: {LEAVES_RUNS}", where=("from env RESEARCH_ON_EXIT",), cure=cure)
    layers.values["problems"] = findings.problems
    if PROFILES[0] not in layers.values["model_profiles"]:  # which fails only the tools without a profile of their own
        what = f"{_ANSWER}: expected a profile, because tools without one of their own need it, got null"
        findings.problem(what, where=layers.where(IN_FILE), cure="remove the null or set MODEL_ANSWER")
    return LoadedSettings(
        settings=_built(Settings, layers.values),
        sources=MappingProxyType(layers.sources),
        problems=findings.problems,
        warnings=findings.warnings,
        config_file=str(file.path) if file.path.name else None,
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


def _config_file(
    environ: Mapping[str, str], config_path: str | Path | None, home: Path | None, findings: Findings, *, windows: bool
) -> ConfigFile:
    """Read the file: the one asked for, or the first of the usual places that has one (spec 5.2)."""
    places = [home / ".config" / FOLDER / FILE] if home is not None else []
    if windows and environ.get("APPDATA"):
        places.append(Path(environ["APPDATA"]) / FOLDER / FILE)
    if config_path is not None:
        places = [expanded(str(config_path), home, windows=windows)]
    for path in places:
        found = read_config(path, findings)
        if found is not None:
            return found
    if config_path is not None:
        shown = Raw(str(places[0]), quoted=False, limit=300)
        findings.problem(
            "config file: expected a YAML file, but there is none at ",
            shown,
            where=("from --config",),
            cure="correct the path",
        )
    return ConfigFile(places[0] if places else Path(), {})


def _decide_openai(layers: Layers) -> None:
    """Decide the section of secrets first, so that every later message knows what to mask."""
    if from_env := layers.environ.get("OPENAI_API_KEY"):
        layers.findings.keep_secret(from_env)
    for name in ("api_key_env", "headers_env", "allow_http", "base_url"):
        layers.pick(f"openai.{name}")
    values, sources = layers.values, layers.sources
    variable: str = values["openai.api_key_env"]
    # What else is wrong with the form of a key is said by the call that needs it.
    given = layers.environ.get(variable, "")
    api_key = given.strip() or given or None
    if api_key is not None:
        layers.findings.keep_secret(api_key)
        if api_key != given:
            what = f"{variable}: the key has blanks or a line break around it, which are left out"
            layers.findings.warning(what, where=(f"from env {variable}",), cure="set it without them")
    values["openai.api_key"] = api_key
    sources["openai.api_key_present"] = f"env:{variable}" if api_key is not None else "default"
    if sources["openai.headers_env"] != "default":
        from responses_mcp.settings.address import header_values  # noqa: PLC0415 - most servers have none

        where = layers.where(IN_FILE)
        names, headers = header_values(values["openai.headers_env"], layers.environ, layers.findings, where)
        values["openai.headers_env"], values["openai.headers"] = MappingProxyType(names), MappingProxyType(headers)
        source = sources.pop("openai.headers_env") if names else "default"
        sources.update({f"openai.headers_env.{name}": source for name in names} or {"openai.headers_env": source})
    _check_base_url(layers, "openai.base_url")


def _check_base_url(layers: Layers, key: str) -> None:
    origin = layers.origin(key)
    if origin is not None and layers.sources[key] != "default":
        from responses_mcp.settings.address import checked_base_url  # noqa: PLC0415 - the default needs no check

        checked = checked_base_url(layers.values[key], allow_http=layers.values["openai.allow_http"])
        layers.accept(key, checked, origin)


def _decide_debug(layers: Layers, option: bool | str | None) -> None:
    """Decide once whether there is a debug log and which file gets it too (spec 8.1)."""
    text = layers.env("DEBUG")
    if "*" in text or "," in text:
        layers.findings.warning(
            "DEBUG: ignored, because ",
            Raw(text),
            " looks like a filter meant for other programs",
            where=("from env DEBUG",),
            cure="use 1, 0 or the path of a file",
        )
    elif "DEBUG" in layers.environ and (not text or text.lower() in ON | OFF):
        layers.accept("server.debug", text.lower() in ON, "env DEBUG")
    elif text:
        path = layers.read(BY_KEY["server.debug_file"], text, "DEBUG")
        layers.accept("server.debug_file", path, "env DEBUG")
        if not isinstance(path, BadValue):
            layers.accept("server.debug", _YES, "env DEBUG")
    if isinstance(option, str) and option.strip():
        path = from_text(BY_KEY["server.debug_file"], option, layers.findings)
        layers.accept("server.debug_file", path, "--debug")
    if option is not None and option is not False:
        layers.accept("server.debug", _YES, "--debug")


def _decide_toolsets(layers: Layers, option: str | None) -> None:
    """Decide which toolsets were asked for by name; manuals need a root, so asking without one is a problem."""
    key = "server.toolsets"
    origin = layers.origin(key)
    if option is not None:
        origin = "--toolsets"
        layers.accept(key, from_text(BY_KEY[key], option, layers.findings), origin)
    toolsets = layers.values[key] or ()
    if origin is not None and layers.values["manuals.root"] is None and "manuals" in toolsets:
        rootless = BadValue(
            ("none",),
            expected="manuals.root to be set, because manuals is in the list",
            cure="set MANUALS_ROOT or manuals.root, or drop manuals from the list",
        )
        layers.accept(key, rootless, origin)
    handed_off = layers.origin("request.handoff_ms")
    if handed_off is not None and layers.values["request.handoff_ms"] and "research" not in toolsets:
        what = "request.handoff_ms: no call is handed off without the toolset research"
        cure = "add research to server.toolsets, or remove this"
        layers.findings.warning(what, where=layers.where(handed_off), cure=cure)


def _decide_index(layers: Layers, caches: Path | None) -> None:
    """Check the root of manuals; with one, an index folder that nobody named is in the user's caches."""
    _check_base_url(layers, "manuals.embeddings.base_url")
    root, origin = layers.values["manuals.root"], layers.origin("manuals.root")
    if root is None or origin is None:
        return
    if not os.path.isdir(root):  # noqa: PTH112 - unlike Path.is_dir it raises nothing
        is_file = os.path.isfile(root)  # noqa: PTH113 - as above
        what = "it is a file, not a folder" if is_file else "there is no such folder"
        cure = "correct the path" if is_file else "create it or correct the path"
        if not is_file and re.search(r"(^|[/\\])(\$[A-Za-z_]|%\w+%)", root):  # as a shell would fill in
            cure = "write the path out, since variables in it are not filled in"
        where = (Raw(root, quoted=False, limit=300), ", ", *layers.where(origin))
        layers.findings.warning(f"manuals.root: {what}, so there are no manuals", where=where, cure=cure)
    if layers.values["manuals.index_dir"] is None and caches is not None:
        layers.values["manuals.index_dir"] = str(absolute(caches / FOLDER))


def _decide_state(layers: Layers, state: Path | None) -> None:
    """Name a folder in the user's state folder where something is kept, and nobody named one."""
    values = layers.values
    in_background = any(profile.background for profile in values["model_profiles"].values())
    keeps = values["usage.ledger"] or "research" in (values["server.toolsets"] or ()) or in_background
    if values["research.state_dir"] is None and state is not None and keeps:
        values["research.state_dir"] = str(absolute(state / FOLDER))


def _check_day(layers: Layers) -> None:
    key = "limits.day_cost_usd"
    origin = layers.origin(key)
    if origin is not None and layers.values[key] is not None and not layers.values["usage.ledger"]:
        unknown = BadValue(
            ("a limit without it",),
            expected="usage.ledger to be true, because only the ledger knows what was spent before",
            cure="set usage.ledger to true or remove the limit",
        )
        layers.accept(key, unknown, origin)


def _decide_profiles(layers: Layers) -> None:
    """Decide the profiles: one exists if the file holds it or a variable names its model.

    The first exists by default too, unless the file removes it with null. Fields that a profile lacks are those of
    the first, with their source.
    """
    profiles: dict[str, Profile] = {}
    in_file = layers.file.values
    for name in PROFILES:
        at = f"model_profiles.{name}"
        if not layers.env(BY_KEY[f"{at}.model"].env):
            if at not in in_file and name != PROFILES[0]:
                continue
            if in_file.get(at, at) is None:
                layers.sources[at] = layers.source_of(IN_FILE)
                continue
        for setting in SETTINGS:
            if setting.key.startswith(f"{at}."):
                layers.pick(setting.key)
                (_merge_members if setting.kind in MAPPINGS else _inherit)(layers, setting.key, at)
        profiles[name] = _built(Profile, layers.values, f"{at}.")
    layers.values["model_profiles"] = MappingProxyType(profiles)


def _inherit(layers: Layers, key: str, profile: str) -> None:
    """Take a field that a profile lacks from the first, but a search of files as a whole or not at all."""
    whole, fallback = f"{profile}.file_search", f"{_ANSWER}{key.removeprefix(profile)}"
    has_own = key.startswith(f"{whole}.") and any(each.startswith(f"{whole}.") for each in layers.file.values)
    if layers.values[key] in (None, ()) and not has_own:
        layers.values[key] = FALLBACKS.get(key, layers.values.get(fallback, BY_KEY[fallback].default))
        layers.sources[key] = "default" if key in FALLBACKS else layers.sources.get(fallback, "default")
    if layers.values[key] in (None, ()):  # it is not sent
        layers.sources.pop(key, None)
        layers.values[key] = BY_KEY[fallback].default


def _merge_members(layers: Layers, key: str, profile: str) -> None:
    """Decide a mapping that is passed on: a member that a profile lacks is that of the first; null takes one out."""
    fallback = f"{_ANSWER}{key.removeprefix(profile)}"
    source = layers.sources.pop(key)
    own: Mapping[str, object] = layers.values[key] or {}
    members: dict[str, object] = {**layers.values.get(fallback, {}), **own}
    layers.values[key] = MappingProxyType({name: each for name, each in members.items() if each is not None})
    for name in layers.values[key]:
        layers.sources[f"{key}.{name}"] = source if name in own else layers.sources[f"{fallback}.{name}"]


def _decide_instructions(layers: Layers) -> None:
    values, key = layers.values, "policy.system.path"
    origin, path = layers.origin(key), values[key]
    if values["policy.system.source"] == "file":
        if origin is None:
            expected = "the path of a file, because policy.system.source is file"
            bad = BadValue(("none",), expected=expected, cure="add the path or set the source to builtin")
            layers.accept(key, bad, IN_FILE)
        elif path is not None:
            from responses_mcp.settings import system_policy  # noqa: PLC0415 - few starts need the text

            built_in = system_policy.built_in(values["locale.time_zone"])
            values["policy.instructions"] = system_policy.instructions_from(
                Path(path), values["policy.system.merge"], built_in, layers.where(origin), layers.findings
            )
    elif origin is not None and path is not None:
        what = f"{key}: this file is not used, because policy.system.source is builtin"
        layers.findings.warning(what, where=layers.where(origin), cure="set the source to file or remove the path")
    for name in ("revision", "sha256", "length"):
        layers.sources[f"policy.instructions.{name}"] = layers.sources["policy.system.source"]
