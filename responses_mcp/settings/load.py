"""Loading: command line over environment over YAML file over defaults (spec 5.1), decided once at start.

`layers` decides one setting at a time; this file decides those that lean on others and builds the tree. Nothing
here raises for what a user may write: a wrong value is a problem, and its default takes its place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from responses_mcp.settings import model, schema
from responses_mcp.settings.files import ConfigFile, absolute, cache_folder, expanded, read_config, state_folder
from responses_mcp.settings.findings import Findings, Raw
from responses_mcp.settings.layers import IN_FILE, Layers
from responses_mcp.settings.setting import OFF, ON, BadValue, from_text

FOLDER: Final = "openai-responses-mcp"
FILE: Final = "config.yaml"

_YES: Final = True
_PROFILE_FIELDS: Final = tuple(
    setting.key.removeprefix(f"model_profiles.{schema.PROFILES[0]}.")
    for setting in schema.SETTINGS
    if setting.key.startswith(f"model_profiles.{schema.PROFILES[0]}.") and setting.kind not in schema.MAPPINGS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings with their history.

    `sources` maps every dotted key of the effective configuration to `env:NAME`, `yaml:PATH`, `cli:OPTION` or
    `default`. `problems` (the same as `settings.problems`) make each call fail; `warnings` change nothing.
    `config_file` is the YAML file that was read, else the first place where one may be; None without such a place.
    """

    settings: model.Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    config_file: str | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Say what is meant to whoever passes this in the place of its settings."""
            if name in model.Settings.__dataclass_fields__:
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
    findings = Findings()
    base = Path(home) if home else _home(environ)
    file = _config_file(environ, config_path, base, findings, windows=on_windows)
    layers = Layers(environ, file, base, findings, windows=on_windows)
    values = layers.values
    openai = _openai(layers)
    for setting in schema.SETTINGS:
        if setting.key not in values and not setting.key.startswith("model_profiles."):
            layers.pick(setting)
    _decide_debug(layers, debug)
    _decide_toolsets(layers, toolsets if toolsets is None or isinstance(toolsets, str) else ",".join(toolsets))
    on_mac = not on_windows and sys.platform == "darwin"
    manuals = _manuals(layers, cache_folder(environ, base, windows=on_windows, mac=on_mac))
    profiles = _profiles(layers)
    in_background = any(each.background for each in profiles.values())
    research = _research(
        layers, state_folder(environ, base, windows=on_windows, mac=on_mac), in_background=in_background
    )
    limits = _limits(layers)
    policy = _policy(layers)
    for name in schema.DROPPED_ENV:
        if environ.get(name, "").strip():
            what = f"{name}: v0.9 dropped this variable, so it does nothing"
            findings.warning(what, where=(f"from env {name}",), cure="unset it")
    problems = findings.problems
    settings = model.Settings(
        openai=openai,
        request=model.RequestSettings(**layers.section("request")),
        model_profiles=profiles,
        policy=policy,
        search=model.SearchSettings(
            defaults=model.SearchDefaults(**layers.section("search.defaults")), **layers.section("search")
        ),
        locale=model.LocaleSettings(**layers.section("locale")),
        manuals=manuals,
        research=research,
        privacy=model.PrivacySettings(**layers.section("privacy")),
        usage=model.UsageSettings(**layers.section("usage")),
        limits=limits,
        prices=_prices(layers),
        server=model.ServerSettings(**layers.section("server")),
        problems=problems,
    )
    sources = MappingProxyType(layers.sources)
    return LoadedSettings(
        settings=settings,
        sources=sources,
        problems=problems,
        warnings=findings.warnings,
        config_file=str(file.path) if file.path.name else None,
    )


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


def _openai(layers: Layers) -> model.OpenAISettings:
    """Decide the section of secrets first, so that every later message knows what to mask."""
    from_env = layers.environ.get(model.OpenAISettings().api_key_env)
    if from_env:
        layers.findings.keep_secret(from_env)
    for name in ("api_key_env", "headers_env", "allow_http", "base_url"):
        layers.pick(schema.BY_KEY[f"openai.{name}"])
    values, sources = layers.values, layers.sources
    variable: str = values["openai.api_key_env"]
    # What else is wrong with the form of a key is said by the call that needs it.
    given = layers.environ.get(variable, "")
    api_key = given.strip() or given or None
    if api_key is not None:
        layers.findings.keep_secret(api_key)
    if api_key is not None and api_key != given:
        what = f"{variable}: the key has blanks or a line break around it, which are left out"
        layers.findings.warning(what, where=(f"from env {variable}",), cure="set it without them")
    sources["openai.api_key_present"] = f"env:{variable}" if api_key is not None else "default"
    names, headers = _headers(layers)
    _check_base_url(layers, "openai.base_url")
    return model.OpenAISettings(
        api_key_env=variable,
        base_url=values["openai.base_url"],
        allow_http=values["openai.allow_http"],
        headers_env=MappingProxyType(names),
        api_key=api_key,
        headers=MappingProxyType(headers),
    )


def _headers(layers: Layers) -> tuple[dict[str, str], dict[str, str]]:
    if layers.sources["openai.headers_env"] == "default":
        return {}, {}
    from responses_mcp.settings.address import header_values  # noqa: PLC0415 - most servers have none

    names, headers = header_values(
        layers.values["openai.headers_env"], layers.environ, layers.findings, layers.where(IN_FILE)
    )
    source = layers.sources.pop("openai.headers_env") if names else "default"
    layers.sources.update({f"openai.headers_env.{name}": source for name in names} or {"openai.headers_env": source})
    return names, headers


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
        path = layers.read(schema.BY_KEY["server.debug_file"], text, "DEBUG")
        layers.accept("server.debug_file", path, "env DEBUG")
        if not isinstance(path, BadValue):
            layers.accept("server.debug", _YES, "env DEBUG")
    if isinstance(option, str) and option.strip():
        path = from_text(schema.BY_KEY["server.debug_file"], option, layers.findings)
        layers.accept("server.debug_file", path, "--debug")
    if option is not None and option is not False:
        layers.accept("server.debug", _YES, "--debug")


def _decide_toolsets(layers: Layers, option: str | None) -> None:
    """Decide which toolsets were asked for by name; manuals need a root, so asking without one is a problem."""
    key = "server.toolsets"
    origin = layers.origin(key)
    if option is not None:
        origin = "--toolsets"
        layers.accept(key, from_text(schema.BY_KEY[key], option, layers.findings), origin)
    if origin is not None and layers.values["manuals.root"] is None and "manuals" in (layers.values[key] or ()):
        rootless = BadValue(
            ("none",),
            expected="manuals.root to be set, because manuals is in the list",
            cure="set MANUALS_ROOT or manuals.root, or drop manuals from the list",
        )
        layers.accept(key, rootless, origin)


def _cure_of_folder(path: str) -> str:
    if re.search(r"(^|[/\\])(\$[A-Za-z_]|%\w+%)", path):  # as a shell would fill in
        return "write the path out, since variables in it are not filled in"
    return "create it or correct the path"


def _manuals(layers: Layers, caches: Path | None) -> model.ManualsSettings:
    """Build the section of manuals; with a root, an index folder that nobody named is in the user's caches."""
    _check_base_url(layers, "manuals.embeddings.base_url")
    values = layers.section("manuals")
    root, origin = values["root"], layers.origin("manuals.root")
    if root is not None and origin is not None:
        if not os.path.isdir(root):  # noqa: PTH112 - unlike Path.is_dir it raises nothing
            is_file = os.path.isfile(root)  # noqa: PTH113 - as above
            what = "it is a file, not a folder" if is_file else "there is no such folder"
            layers.findings.warning(
                f"manuals.root: {what}, so there are no manuals",
                where=(Raw(root, quoted=False, limit=300), ", ", *layers.where(origin)),
                cure="correct the path" if is_file else _cure_of_folder(root),
            )
        if values["index_dir"] is None and caches is not None:
            values["index_dir"] = str(absolute(caches / FOLDER))
    return model.ManualsSettings(
        lexical=model.LexicalSettings(**layers.section("manuals.lexical")),
        find=model.FindSettings(**layers.section("manuals.find")),
        cache=model.CacheSettings(**layers.section("manuals.cache")),
        embeddings=model.EmbeddingsSettings(**layers.section("manuals.embeddings")),
        **values,
    )


def _research(layers: Layers, state: Path | None, *, in_background: bool) -> model.ResearchSettings:
    """Build the section of research; where something is kept, a folder that nobody named is in the state folder."""
    values = layers.section("research")
    offered = "research" in (layers.values["server.toolsets"] or ())
    origin = layers.origin("request.handoff_ms")
    if origin is not None and layers.values["request.handoff_ms"] and not offered:
        layers.findings.warning(
            "request.handoff_ms: no call is handed off without the toolset research",
            where=layers.where(origin),
            cure="add research to server.toolsets, or remove this",
        )
    keeps = layers.values["usage.ledger"] or offered or in_background
    if values["state_dir"] is None and state is not None and keeps:
        values["state_dir"] = str(absolute(state / FOLDER))
    return model.ResearchSettings(**values)


def _prices(layers: Layers) -> Mapping[str, model.ModelPrice]:
    prices: Mapping[str, model.ModelPrice] = layers.values["prices"]
    if prices:
        source = layers.sources.pop("prices")
        layers.sources.update({f"prices.{name}": source for name in prices})
    return prices


def _limits(layers: Layers) -> model.LimitSettings:
    key = "limits.day_cost_usd"
    origin = layers.origin(key)
    if origin is not None and layers.values[key] is not None and not layers.values["usage.ledger"]:
        unknown = BadValue(
            ("a limit without it",),
            expected="usage.ledger to be true, because only the ledger knows what was spent before",
            cure="set usage.ledger to true or remove the limit",
        )
        layers.accept(key, unknown, origin)
    return model.LimitSettings(**layers.section("limits"))


def _profiles(layers: Layers) -> Mapping[str, model.Profile]:
    """Decide the profiles: one exists if the file holds it or a variable names its model.

    The first exists by default too, unless the file removes it with null. Fields that a profile lacks are those of
    the first, with their source.
    """
    profiles: dict[str, model.Profile] = {}
    first = schema.PROFILES[0]
    for name in schema.PROFILES:
        at = f"model_profiles.{name}"
        in_file = layers.file.values
        if not layers.env(schema.BY_KEY[f"{at}.model"].env):
            if at not in in_file and name != first:
                continue
            if in_file.get(at, at) is None:
                layers.sources[at] = layers.source_of(IN_FILE)
                continue
        for field in _PROFILE_FIELDS:
            _pick_field(layers, f"{at}.{field}", f"model_profiles.{first}.{field}")
        for field in schema.MAPPINGS:
            _merge_members(layers, f"{at}.{field}", f"model_profiles.{first}.{field}")
        file_search = model.FileSearch(**layers.section(f"{at}.file_search"))
        profiles[name] = model.Profile(file_search=file_search, **layers.section(at))
    if first not in profiles:
        layers.findings.problem(
            f"model_profiles.{first}: expected a profile, because every call needs one, got null",
            where=layers.where(IN_FILE),
            cure="remove the null or set MODEL_ANSWER",
        )
    return MappingProxyType(profiles)


def _pick_field(layers: Layers, key: str, fallback: str) -> None:
    layers.pick(schema.BY_KEY[key])
    whole = key.rpartition(".")[0]
    if whole.endswith(".file_search") and layers.has_any(whole):
        if layers.values[key] in (None, ()):  # filters for other stores would be wrong
            del layers.sources[key]
        return
    if layers.values[key] is None and key in schema.FALLBACKS:
        layers.values[key] = schema.FALLBACKS[key]
    elif layers.values[key] in (None, ()):
        layers.values[key] = layers.values.get(fallback, schema.BY_KEY[fallback].default)
        layers.sources[key] = layers.sources.get(fallback, "default")
    if layers.values[key] in (None, ()):  # it is not sent
        del layers.sources[key]


def _merge_members(layers: Layers, key: str, fallback: str) -> None:
    """Decide a mapping that is passed on: a member that a profile lacks is that of the first; null takes one out."""
    layers.pick(schema.BY_KEY[key])
    source = layers.sources.pop(key)
    own: Mapping[str, object] = layers.values[key] or {}
    inherited: Mapping[str, object] = layers.values.get(fallback, {})
    members = {name: value for name, value in {**inherited, **own}.items() if value is not None}
    for name in members:
        layers.sources[f"{key}.{name}"] = source if name in own else layers.sources[f"{fallback}.{name}"]
    layers.values[key] = MappingProxyType(members)


def _policy(layers: Layers) -> model.PolicySettings:
    system = model.SystemPolicy(**layers.section("policy.system"))
    instructions = None
    origin = layers.origin("policy.system.path")
    if origin is None and system.source == "file":
        bad = BadValue(
            ("none",),
            expected="the path of a file, because policy.system.source is file",
            cure="add the path or set the source to builtin",
        )
        layers.problem("policy.system.path", bad, IN_FILE)
    elif origin is not None and system.path is not None and system.source == "file":
        from responses_mcp.settings import system_policy  # noqa: PLC0415 - few starts need the text

        built_in = system_policy.built_in(layers.values["locale.time_zone"])
        where = layers.where(origin)
        instructions = system_policy.instructions_from(
            Path(system.path), system.merge, built_in, where, layers.findings
        )
    elif origin is not None and system.path is not None:
        layers.findings.warning(
            "policy.system.path: this file is not used, because policy.system.source is builtin",
            where=layers.where(origin),
            cure="set the source to file or remove the path",
        )
    for name in ("revision", "sha256", "length"):
        layers.sources[f"policy.instructions.{name}"] = layers.sources["policy.system.source"]
    return model.PolicySettings(system=system, instructions=instructions, **layers.section("policy"))
