"""What the server is told: one frozen tree of settings, whatever it was read from.

Nothing here reads files or the environment; `responses_mcp.settings.load` is the only reader. A tree made by
hand is as good as one that was loaded, which is how embedding hosts and tests configure the server. Names and
defaults are those of spec 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

SEARCH_EFFORT = "low"  # what the profile `search` has of its own; the rest it takes from `answer`
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")
SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")


def _no_names() -> Mapping[str, str]:
    return MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    """A search of files that lie with the API; none without `vector_store_ids`. `filters` is sent as it is."""

    vector_store_ids: tuple[str, ...] = ()
    max_num_results: int | None = None
    score_threshold: float | None = None
    filters: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A model and how it should work, for one tool (spec 3.0.1).

    Effort and verbosity are sent to the models that know them. `background` has an answer made in background mode,
    which needs storage: not with a `store` that is false. `request` is merged into the body of the request,
    `web_search` into the tool that searches the web, both as they are.
    """

    model: str = "gpt-5.2"
    reasoning_effort: str = "medium"
    verbosity: str = "medium"
    background: bool | None = None
    blocked_domains: tuple[str, ...] = ()
    file_search: FileSearch = field(default_factory=FileSearch)
    request: Mapping[str, Any] = field(default_factory=_nothing, hash=False)
    web_search: Mapping[str, Any] = field(default_factory=_nothing, hash=False)

    @property
    def store(self) -> bool:
        """Whether the API may keep the answer, as it does by default."""
        return self.request.get("store") is not False

    @property
    def service_tier(self) -> str | None:
        """How fast, and at which price, the API is asked to work."""
        tier = self.request.get("service_tier")
        return tier if isinstance(tier, str) else None

    @property
    def max_output_tokens(self) -> int | None:
        """Tokens that the model may write."""
        return _count(self.request.get("max_output_tokens"))

    @property
    def max_tool_calls(self) -> int | None:
        """Searches that the model may make for one call."""
        return _count(self.request.get("max_tool_calls"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


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

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no output may show: the key, and the values of headers."""
        return tuple(filter(None, (self.api_key, *self.headers.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """Bounds: milliseconds for a whole call, retries after the first request, connections at once, bytes of a reply.

    `handoff_ms`, where it is not 0, is after how long a call of an answer tool is handed off to a run of research, and
    `task_after_ms` after how long one in the background becomes a task for a client that takes tasks.
    `propagate_trace` sends the trace of a request along. `trust_env` says whether proxy and certificates are those
    that the process's environment names.
    """

    timeout_ms: int = 300_000
    handoff_ms: int = 0
    task_after_ms: int = 10_000
    propagate_trace: bool = False
    max_retries: int = 3
    max_connections: int = 256
    max_reply_bytes: int = 8 * 1024 * 1024
    trust_env: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPolicy:
    """Which text becomes the model's instructions (spec 4): built in, or a file merged with it."""

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
    """Search hints; `strict_domains` turns domains from a hint into a filter of the search tool.

    `timeout_ms` bounds one try of `chatgpt_o3_search`, `max_attempts` says how many tries a call has.
    """

    defaults: SearchDefaults = field(default_factory=SearchDefaults)
    strict_domains: bool = False
    timeout_ms: int = 30_000
    max_attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LocaleSettings:
    """Where the people are who ask: the name of the time zone in which a day is today."""

    time_zone: str = "Asia/Tokyo"


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalSettings:
    """Weights of the parts of a manual search's score; 0 leaves a part out."""

    coverage_weight: float = 0.5
    phrase_weight: float = 0.5
    number_context_bonus: float = 0.8
    proximity_bonus_near: float = 1.0
    proximity_bonus_far: float = 0.5
    length_penalty_weight: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    """Places that a manual search keeps for exploration, and whether it builds claim graphs.

    Ratio and scale are from 0 to 1; the minimum is a number of rows.
    """

    exploration_enabled: bool = True
    exploration_ratio: float = 0.2
    exploration_min_candidates: int = 2
    exploration_score_scale: float = 0.35
    claim_graph_enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """Results of manual searches kept for the same question.

    `sim_threshold`, from 0 to 1, is how alike two questions must be where a host brings an embedding. A kept result
    with more gaps than the maximum is searched again; -1 stands for any number. No find has conflicts.
    """

    enabled: bool = True
    sim_threshold: float = 0.92
    max_summary_gap: int = -1
    max_summary_conflict: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsSettings:
    """Who turns questions and sections into vectors, so that a search knows words that mean the same; nobody at first.

    `base_url` None stands for `openai.base_url`, and `dimensions` 0 for the model's own. Both, and `model`, are for the
    provider `api`, whose endpoint gets the key of `openai`.
    """

    provider: Literal["none", "api", "wordllama"] = "none"
    base_url: str | None = None
    model: str = "text-embedding-3-small"
    dimensions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualsSettings:
    """The folder of manuals and how it is searched. Without a `root` there are no manuals.

    Both paths are absolute once loaded. `index_dir` is the folder of the index files, for which loading fills in one in
    the user's caches; None, like `in_memory`, keeps the index in memory. A file over `max_file_bytes` is not searched.
    `exclude` are patterns of what is left out, as in a `.gitignore`. `search_tool` says whether `manual_search` is
    among the tools.
    """

    root: str | None = None
    exclude: tuple[str, ...] = ("node_modules", "__pycache__", ".venv")
    index_dir: str | None = None
    in_memory: bool = False
    max_file_bytes: int = 16 * 1024 * 1024
    search_tool: bool = True
    lexical: LexicalSettings = field(default_factory=LexicalSettings)
    find: FindSettings = field(default_factory=FindSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    embeddings: EmbeddingsSettings = field(default_factory=EmbeddingsSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchSettings:
    """Runs of research: the folder of what is known of them, and what holds for each.

    `state_dir` is the folder of the ledger of usage, too. None stands for nowhere, where no run can be begun; loading
    fills in a folder of the user's own where something is to be kept. Rows are kept for `keep_days`, with the first
    words of the question only with `keep_questions`. At most `max_running` runs of one server are on their way, each
    for `timeout_ms` at most. `on_exit` says what becomes of them when the server ends. Without `store` the API keeps
    none of them. `stores` are vector stores that a question may name, each as `name=id`.
    """

    state_dir: str | None = None
    keep_days: int = 7
    keep_questions: bool = False
    max_running: int = 8
    timeout_ms: int = 3_600_000
    on_exit: Literal["keep", "cancel"] = "keep"
    store: bool = True
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The stdio server: debug output, limits in bytes and calls, and how tool failures reach clients.

    `debug` says whether there is a debug log; `debug_file` says which file gets it too and means nothing without it.
    `drain_timeout_ms` None gives calls in flight at the end of input the time that they have anyway.
    `toolsets` None stands for the usual choice, `prompts` None for prompts in the newer revision of the protocol alone.
    """

    debug: bool = False
    debug_file: str | None = None
    show_config_on_start: bool = False
    line_mode: bool = False
    toolsets: tuple[str, ...] | None = None
    tool_errors: Literal["auto", "error", "result"] = "auto"
    instructions: bool = False
    prompts: bool | None = None
    watch_parent: bool = True
    max_message_bytes: int = 16 * 1024 * 1024
    max_unsent_bytes: int = 64 * 1024 * 1024
    max_in_flight: int = 4096
    max_result_chars: int = 60_000
    drain_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """What becomes of a secret in a text that is to be sent: it is masked, the call fails, or it is sent."""

    outgoing_secrets: Literal["mask", "refuse", "allow"] = "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSettings:
    """Whether each paid call is written down, in a database in `research.state_dir`."""

    ledger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What may be spent in US dollars, tokens and calls; None is no limit. A session is the life of one server."""

    session_cost_usd: float | None = None
    session_tokens: int | None = None
    session_calls: int | None = None
    day_cost_usd: float | None = None

    @property
    def any_of_cost(self) -> bool:
        """Tell whether a call without a known price could pass a limit unseen."""
        return self.session_cost_usd is not None or self.day_cost_usd is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model costs, in US dollars per million tokens; `web_search` is for one search. None is as usual."""

    input: float
    output: float
    cached_input: float | None = None
    web_search: float | None = None


def _no_prices() -> Mapping[str, ModelPrice]:
    return MappingProxyType({})


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
    locale: LocaleSettings = field(default_factory=LocaleSettings)
    manuals: ManualsSettings = field(default_factory=ManualsSettings)
    research: ResearchSettings = field(default_factory=ResearchSettings)
    privacy: PrivacySettings = field(default_factory=PrivacySettings)
    usage: UsageSettings = field(default_factory=UsageSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    prices: Mapping[str, ModelPrice] = field(default_factory=_no_prices)
    server: ServerSettings = field(default_factory=ServerSettings)
    problems: tuple[str, ...] = ()

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The toolsets to offer: those of `server.toolsets`, else `answer`, and `manuals` where there is a root."""
        asked = self.server.toolsets if self.server.toolsets is not None else ("answer", "manuals")
        return tuple(name for name in asked if name != "manuals" or self.manuals.root)
