"""The document that `--show-config` prints: what the server will do, and where each value came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

from responses_mcp.secrets import Redact, Redactor
from responses_mcp.settings.findings import printable
from responses_mcp.settings.load import LoadedSettings
from responses_mcp.settings.model import ModelPrice, Profile


def show_config(
    loaded: LoadedSettings, version: str, *, sent: Mapping[str, tuple[object, object]] = MappingProxyType({})
) -> str:
    """Return one JSON document: version, sources, effective, warnings, and problems if there are any.

    `sent` is the effort and the verbosity that requests of each profile hold, None for one that they leave out. No
    secret is in it: of the key it says whether there is one, of headers the names, of the instructions the revision.
    """
    import json  # noqa: PLC0415 - one command needs it

    document: dict[str, object] = {
        "version": version,
        "sources": loaded.sources,
        "effective": _effective(loaded),
        "warnings": loaded.warnings,
    }
    if sent:
        document["sent"] = {name: {"reasoning_effort": each[0], "verbosity": each[1]} for name, each in sent.items()}
    if loaded.problems:
        document["problems"] = loaded.problems
    redact = Redactor(loaded.settings.openai.secrets)
    return json.dumps(_shown(document, redact), ensure_ascii=False, indent=2)


def _effective(loaded: LoadedSettings) -> dict[str, Any]:
    from responses_mcp.settings.system_policy import SYSTEM_POLICY_REV  # noqa: PLC0415 - one command needs it

    settings = loaded.settings
    effective: dict[str, Any] = _shown(settings, str)
    del effective["problems"]
    effective["openai"]["api_key_present"] = settings.openai.api_key is not None
    for key in loaded.sources:
        if key.startswith("model_profiles.") and key.count(".") == 1:  # which was removed
            effective["model_profiles"][key.partition(".")[2]] = None
    whole = settings.policy.instructions is not None and settings.policy.system.merge == "replace"
    effective["policy"]["instructions"] = {"revision": None if whole else SYSTEM_POLICY_REV}
    return effective


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
