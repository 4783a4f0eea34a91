"""What the server is told: one frozen tree of settings, whatever it was read from.

Nothing here reads files or the environment; `responses_mcp.settings.load` is the only reader. A tree made by
hand is as good as one that was loaded, which is how embedding hosts and tests configure the server. Names and
defaults are those of the contract, section 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")


def _no_names() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A model and how it should work, for one tool (contract 3.0.1)."""

    model: str = "gpt-5.2"
    reasoning_effort: str = "medium"
    verbosity: str = "medium"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISettings:
    """Where the Responses API is and how to be let in.

    `api_key` and `headers` hold resolved secrets; they are never printed, and never come from a file.
    """

    api_key_env: str = "OPENAI_API_KEY"
    base_url: str = "https://api.openai.com/v1"
    allow_http: bool = False
    headers_env: Mapping[str, str] = field(default_factory=_no_names)
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=_no_names, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """Bounds: milliseconds for a whole call, retries after the first request, connections at once."""

    timeout_ms: int = 300_000
    max_retries: int = 3
    max_connections: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPolicy:
    """Which text becomes the model's instructions (contract 4): built in, or a file merged with it."""

    source: Literal["builtin", "file"] = "builtin"
    path: str | None = None
    merge: Literal["replace", "prepend", "append"] = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """Citations shown at most (1 to 10), and the model's instructions.

    `instructions` is the text resolved from `system` at load; None stands for the built-in text.
    """

    max_citations: int = 3
    system: SystemPolicy = field(default_factory=SystemPolicy)
    instructions: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDefaults:
    """Hints sent with each query when the caller gives none: days, number of results, domains."""

    recency_days: int = 60
    max_results: int = 5
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Search hints; `strict_domains` turns domains from a hint into a filter of the search tool."""

    defaults: SearchDefaults = field(default_factory=SearchDefaults)
    strict_domains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The stdio server: debug output, limits in bytes and calls, and how tool failures reach clients.

    `debug` says whether there is a debug log; `debug_file` says which file gets it too and means nothing without it.
    `toolsets` None stands for the usual choice.
    """

    debug: bool = False
    debug_file: str | None = None
    show_config_on_start: bool = False
    line_mode: bool = False
    toolsets: tuple[str, ...] | None = None
    tool_errors: Literal["error", "result"] = "error"
    instructions: bool = False
    max_message_bytes: int = 64 * 1024 * 1024
    max_unsent_bytes: int = 64 * 1024 * 1024
    max_in_flight: int = 4096
    drain_timeout_ms: int = 10_000


def _answer_only() -> Mapping[str, Profile]:
    return MappingProxyType({"answer": Profile()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the server needs to know. `problems` holds what was wrong with the configuration, a sentence each.

    A server started with problems lists its tools and fails each call with them, because clients hide stderr
    and a server that refuses to start takes its tools away without a word.
    """

    openai: OpenAISettings = field(default_factory=OpenAISettings)
    request: RequestSettings = field(default_factory=RequestSettings)
    model_profiles: Mapping[str, Profile] = field(default_factory=_answer_only)
    policy: PolicySettings = field(default_factory=PolicySettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    problems: tuple[str, ...] = ()
