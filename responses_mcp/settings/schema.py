"""The table of settings, one row each: what loading, `--show-config` and the reference page read.

The rows are the annotated fields of `model`; to add a setting, add one there. Keys are dotted paths through the tree of
`Settings`. The keys and variables of contract 5.3 and 5.4 are among them; the others are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from responses_mcp.settings.address import NETWORK_VARIABLES
from responses_mcp.settings.model import SEARCH_EFFORT, Profile, Settings
from responses_mcp.settings.setting import Between, Env, Form, Kind, Setting

PROFILES: Final = ("answer", "answer_detailed", "answer_quick", "search")
"""Names that `model_profiles` may hold (spec 3.0, and ours); the first is the one that the others lean on."""

FALLBACKS: Final = {"model_profiles.search.reasoning_effort": SEARCH_EFFORT}
"""Fields that do not lean on it."""

MAPPINGS: Final = ("request", "web_search")
"""Fields of a profile that are passed on as they are, and merged with those of the first member by member."""

MOVED: Final = {
    **dict.fromkeys(
        (*("max_output_tokens", "max_tool_calls", "service_tier"), *("store", "prompt_cache_key", "safety_identifier")),
        "request",
    ),
    **dict.fromkeys(("search_context_size", "external_web_access", "user_location"), "web_search"),
}
"""Members of the API's requests that profiles once had as fields of their own, and where they are now."""

_PROFILE_ENV: Final = {
    "answer.model": "MODEL_ANSWER",
    "answer.reasoning_effort": "ANSWER_EFFORT",
    "answer.verbosity": "ANSWER_VERBOSITY",
    "answer_detailed.model": "MODEL_DETAILED",
    "answer_quick.model": "MODEL_QUICK",
    "search.model": "MODEL_SEARCH",
}
_KINDS: Final[Mapping[type, Kind]] = {int: "integer", float: "number", bool: "boolean"}


def section_of(annotation: Any) -> Any:
    """Return the dataclass that a field holds, None if it holds none."""
    bare = getattr(annotation, "__origin__", annotation)
    return bare if is_dataclass(bare) else None


def _rows(section: Any, at: str = "", variables: str | None = None) -> Iterator[Setting]:
    for each in fields(section):
        key, marks = f"{at}{each.name}", getattr(each.type, "__metadata__", ())
        env = next((mark for mark in marks if isinstance(mark, Env)), None)
        if (inner := section_of(each.type)) is not None:
            yield from _rows(inner, f"{key}.", variables if env is None else env.name)
        elif each.name == "model_profiles":
            yield from _profile_rows()
        elif marks:
            default = each.default if each.default_factory is MISSING else each.default_factory()
            named = env.name if env is not None else variables and f"{variables}_{each.name.upper()}"
            yield _row(Setting(key, "boolean", env=named, default=default), get_args(each.type))


def _row(row: Setting, marks: tuple[Any, ...]) -> Setting:
    """Return a row with what the type of its field says, and what the marks beside it do."""
    types = [each for each in get_args(marks[0]) or marks[:1] if each is not NoneType]
    if get_origin(marks[0]) is Literal:
        row = row._replace(kind="choice", choices=get_args(marks[0]))
    elif types[0] in _KINDS:
        row = row._replace(kind=_KINDS[types[0]])
    for mark in marks[1:]:
        if isinstance(mark, str):
            row = row._replace(doc=mark)
        elif isinstance(mark, Between):
            row = row._replace(bounds=mark)
        elif isinstance(mark, Form):
            row = row._replace(kind=mark.kind, choices=mark.choices)
    return row


def _profile_rows() -> Iterator[Setting]:
    for name in PROFILES:
        for row in _rows(Profile):
            key, env = f"model_profiles.{name}.{row.key}", _PROFILE_ENV.get(f"{name}.{row.key}")
            yield row._replace(key=key, env=env, default=row.default if name == PROFILES[0] else None)


SETTINGS: Final = tuple(_rows(Settings))

READ_BY_SERVER: Final = tuple(dict.fromkeys((*(row.env for row in SETTINGS if row.env), *NETWORK_VARIABLES)))
"""The variables that a server reads: those of settings, of proxies and of certificates."""

PATHS: Final = frozenset(
    {*(row.env for row in SETTINGS if row.env and row.kind in {"path", "folder"}), "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
"""Those of them that hold paths; the last one may hold several."""

BY_KEY: Final = {setting.key: setting for setting in SETTINGS}

SECTIONS: Final = frozenset(
    setting.key.rsplit(".", depth)[0] for setting in SETTINGS for depth in range(1, setting.key.count(".") + 1)
)
"""Keys that hold further keys."""

DROPPED_KEYS: Final = frozenset(
    {
        *("openai.model", "policy.prefer_search_when_unsure", "policy.requery_attempts", "policy.require_dates_iso"),
        *("policy.search_triggers", "policy.style", "responses", "search.defaults.style", "server.transport", "style"),
    }
)
"""Keys of v0.5 that v0.9 dropped; what lies below them went with them."""

LEAVES_RUNS: Final = "a server that ends leaves its runs to the API, so this does nothing"
"""Why `research.on_exit` is a problem: some rely on it."""

DROPPED_ENV: Final = ("REQUERY_ATTEMPTS",)
"""Environment variables of v0.5 whose setting v0.9 dropped."""

KEY_IN_FILE: Final = frozenset(
    {
        *("openai.api_key", "openai.apikey", "openai.apiKey", "openai.api-key", "openai.key"),
        *("api_key", "apiKey", "OPENAI_API_KEY"),
    }
)
"""Places where people write the API key into a file, which spec 8 forbids."""


def value_of(settings: object, key: str) -> object:
    """Return the value at a dotted key of a tree; None when a profile on the way is absent."""
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if hasattr(value, "get") else getattr(value, part, None)
    return value
