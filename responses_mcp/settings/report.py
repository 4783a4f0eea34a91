"""The document that `--show-config` prints: what the server will do, and where each value came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

from responses_mcp.secrets import Redact, Redactor
from responses_mcp.settings.findings import printable
from responses_mcp.settings.load import LoadedSettings
from responses_mcp.settings.model import ModelPrice, Profile, Settings


def show_config(
    loaded: LoadedSettings,
    version: str,
    *,
    key_problem: str | None = None,
    sent: Mapping[str, tuple[object, object]] = MappingProxyType({}),
) -> str:
    """Return one JSON document: version, sources, effective, warnings, and problems if there are any.

    `key_problem` says why no call can be made with the key, which is not among the problems: it may be the client who
    has it. `sent` is the effort and the verbosity that requests of each profile hold, None for one that they leave out.
    No secret is in it: of the key it says whether there is one, of headers the names, of the instructions a digest.
    """
    import json  # noqa: PLC0415 - one command needs it

    redact = Redactor(loaded.settings.openai.secrets)
    effective = _effective(loaded, redact)
    document: dict[str, object] = {
        "version": version,
        "sources": dict(_sources(effective, loaded.sources)),
        "effective": effective,
        "warnings": loaded.warnings,
    }
    if sent:
        document["sent"] = {name: {"reasoning_effort": each[0], "verbosity": each[1]} for name, each in sent.items()}
    if loaded.problems:
        document["problems"] = loaded.problems
    if key_problem is not None:
        document["key_problem"] = key_problem
    return json.dumps(_shown(document, redact), ensure_ascii=False, indent=2)


def _effective(loaded: LoadedSettings, redact: Redact) -> dict[str, Any]:
    settings = loaded.settings
    effective: dict[str, Any] = _shown(settings, redact)
    del effective["problems"]
    effective["openai"]["api_key_present"] = settings.openai.api_key is not None
    for key in loaded.sources:
        if key.startswith("model_profiles.") and key.count(".") == 1:  # which was removed
            effective["model_profiles"][key.partition(".")[2]] = None
    effective["policy"]["instructions"] = _instructions(settings)
    return effective


def _sources(
    tree: Mapping[str, Any], sources: Mapping[str, str], at: str = "", above: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the key of each value with where it came from: a source of its own, or that of what it is in."""
    for name, value in tree.items():
        key = f"{at}{name}"
        source = sources.get(key, above)
        if isinstance(value, Mapping) and value:
            yield from _sources(value, sources, f"{key}.", source)  # pyright: ignore[reportUnknownArgumentType]
        elif source:
            yield key, source


def _instructions(settings: Settings) -> dict[str, Any]:
    from hashlib import sha256  # noqa: PLC0415 - one command needs it

    from responses_mcp.settings.system_policy import SYSTEM_POLICY_REV, instructions_for  # noqa: PLC0415

    policy = settings.policy
    text = instructions_for(policy, settings.locale.time_zone)
    whole = policy.instructions is not None and policy.system.merge == "replace"
    return {
        "revision": None if whole else SYSTEM_POLICY_REV,
        "sha256": sha256(text.encode()).hexdigest()[:12],
        "length": len(text),
    }


def _shown(value: Any, redact: Redact) -> Any:
    """Return what JSON can say of a value, without secrets; of profiles and prices only what they have."""
    if is_dataclass(value):
        tree = {each.name: getattr(value, each.name) for each in fields(value) if each.repr}
        is_whole = not isinstance(value, Profile | ModelPrice)
        value = {name: each for name, each in tree.items() if is_whole or each not in (None, (), {})}
    if isinstance(value, str):
        return printable(redact(value))
    if isinstance(value, Mapping):
        return {_shown(key, redact): _shown(item, redact) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_shown(item, redact) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
