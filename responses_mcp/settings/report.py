"""The document that `--show-config` prints: what the server will do, and where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

from responses_mcp.secrets import Redact, Redactor
from responses_mcp.settings.findings import printable
from responses_mcp.settings.load import LoadedSettings
from responses_mcp.settings.model import Settings


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

    settings = loaded.settings
    document: dict[str, Any] = {
        "version": version,
        "sources": {key: loaded.sources[key] for key in sorted(loaded.sources, key=_section)},
        "effective": _effective(settings, loaded.sources),
        "warnings": list(loaded.warnings),
    }
    if sent:
        document["sent"] = {name: {"reasoning_effort": each[0], "verbosity": each[1]} for name, each in sent.items()}
    if loaded.problems:
        document["problems"] = list(loaded.problems)
    if key_problem is not None:
        document["key_problem"] = key_problem
    return json.dumps(_clean(document, Redactor(settings.openai.secrets)), ensure_ascii=False, indent=2)


def _section(key: str) -> int:
    return list(Settings.__dataclass_fields__).index(key.partition(".")[0])


def _effective(settings: Settings, sources: Mapping[str, str]) -> dict[str, Any]:
    effective = _shown(settings)
    del effective["problems"]
    effective["openai"]["api_key_present"] = settings.openai.api_key is not None
    for key in sources:
        if key.startswith("model_profiles.") and key.count(".") == 1:  # which was removed
            effective["model_profiles"][key.partition(".")[2]] = None
    effective["policy"]["instructions"] = _instructions(settings)
    return effective


def _shown(section: Any) -> dict[str, Any]:
    """Return a section as JSON, without secrets; of profiles and prices only what they have."""
    shown: dict[str, Any] = {}
    for each in fields(section):
        value = getattr(section, each.name)
        if is_dataclass(value):
            shown[each.name] = _shown(value)
        elif each.name in {"model_profiles", "prices"}:
            shown[each.name] = {name: _without_empty(_shown(one)) for name, one in value.items()}
        elif each.repr:
            shown[each.name] = value
    return shown


def _without_empty(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if value not in (None, (), {})}


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


def _clean(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return printable(redact(value))
    if isinstance(value, Mapping):
        return {_clean(key, redact): _clean(item, redact) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_clean(item, redact) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
