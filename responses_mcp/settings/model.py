"""What the server is told: one frozen tree of settings, whatever it was read from, and the one list of them.

Each annotated field is a setting: its type, its range or form, its variable, and what the reference page says of it.
`schema` makes the table from them that loading, `--show-config` and that page read. To add a setting, add a field.

Nothing here reads files or the environment. A tree made by hand is as good as a loaded one, which is how embedding
hosts and tests configure the server. Names and defaults are those of spec 5.3. Annotations are evaluated, so this
module does not postpone them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from responses_mcp.settings.forms import SWITCH, VARIABLE, Env, Headers, Members, Names, Number, Path, Prices, Text, Url


def _is_zone(name: str) -> bool:
    from responses_mcp.settings.time_zone import zone_of  # noqa: PLC0415 - few name one

    return zone_of(name) is not None


SEARCH_EFFORT = "low"  # what the profile `search` has of its own; the rest it takes from `answer`
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITIES = ("low", "medium", "high")
FileType = Literal["md", "markdown", "mdx", "txt", "rst", "adoc", "org", "html", "ipynb", "docx", "pdf", "man", "json"]
FILE_TYPES: tuple[FileType, ...] = get_args(FileType)  # which manuals can be served
SERVICE_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")

OWN_MEMBERS = ("model", "input", "instructions", "tools", "stream", "background", "include", "previous_response_id")
"""Members of a request's body that the server writes itself."""

_LARGE = 2**40
_CALL_MS = Number(1, 86_400_000, below=300_000)  # a day
_TRY_MS = Number(1, 86_400_000, below=30_000)
_RUN_MS = Number(1, 604_800_000, below=3_600_000)
_HOUR_MS = Number(0, 3_600_000)
_SHARE = Number(0, 1, whole=False)
_WEIGHT = Number(0, 100, whole=False)
_GAPS = Number(-1, 1_000_000)
_MONEY = Number(0, 1_000_000, whole=False)  # US dollars
_MESSAGE = Number(0, _LARGE, least=4096)
_COUNT = Number(0, _LARGE)

_PATTERN = r"(?=.*\S)[^\x00-\x1f\x7f]{1,253}"
_DOMAIN = r"(?![\"'$%<])[^\s,{}\x00-\x1f\x7f]{1,253}"  # nothing quoted or left unfilled
_STORE = r"[^\s,=\"']{1,100}=(?![$%<])[^\s,{}\"']{1,150}"
_WRITTEN = "remove it, since the server writes it itself"

_EFFORT = Text("one of", choices=EFFORTS)
_VERBOSITY = Text("one of", choices=VERBOSITIES)
_ZONE = Text("the name of a time zone, such as Europe/Berlin or UTC", accepts=_is_zone)
_TOOLSETS = Names("toolset names", choices=("answer", "manuals", "search", "research"))
_FORMATS = Names("names", choices=FILE_TYPES)
_STORES = Names("vector stores as name=id, such as docs=vs_0123", _STORE)
_HEADERS = Headers("a mapping of header names to names of environment variables")
_PRICES = Prices("a mapping of model ids to mappings with input, output and maybe cached_input, web_search")
_MAPPING = Members("a mapping")
_REQUEST = Members(
    "members of the body of a request",
    dict.fromkeys(OWN_MEMBERS, _WRITTEN),
    {"store": SWITCH, "service_tier": Text()}
    | dict.fromkeys(("reasoning", "text"), _MAPPING)
    | dict.fromkeys(("max_output_tokens", "max_tool_calls"), Number(1, _LARGE, strict=True)),
)
_WEB_SEARCH = Members("members of the tool that searches the web", {"type": _WRITTEN}, {"filters": _MAPPING})
_FILE_SEARCH = Members(
    "members of the tool that searches files",
    {"type": _WRITTEN, "score_threshold": "write ranking_options.score_threshold"},
)

_Text = Annotated[str, Text()]
_Address = Annotated[str, Url("an absolute https URL with a host and without query or fragment")]
_File = Annotated[str, Path("the path of a file")]
_Folder = Annotated[str, Path("the path of a folder")]
_Names = Annotated[tuple[str, ...], Names("names", _PATTERN)]
_Domains = Annotated[tuple[str, ...], Names("domain names", _DOMAIN)]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A model and how it should work, for one tool (spec 3.0.1). The mappings go to the API as they are."""

    model: Annotated[_Text, Env("MODEL_ANSWER"), "Model id that the tool calls."] = "gpt-5.2"
    reasoning_effort: Annotated[
        str,
        _EFFORT,
        Env("ANSWER_EFFORT"),
        "Reasoning effort. If a model refuses it, the nearest that it has is used.",
    ] = "medium"
    verbosity: Annotated[str, _VERBOSITY, Env("ANSWER_VERBOSITY"), "Length of the answer, for models that know it."] = (
        "medium"
    )
    background: Annotated[
        bool | None,
        "Answer in background mode, unless `request` has `store: false`: a stream that breaks is taken up again, and a "
        "cancelled call is cancelled at the API too. Not for `search`.",
    ] = None
    blocked_domains: Annotated[_Domains, "Domains that are neither searched nor cited, subdomains included."] = ()
    request: Annotated[
        Mapping[str, Any],
        _REQUEST,
        "Members of the body of each request: `max_output_tokens`, `max_tool_calls`, `service_tier`, `store` and "
        f"others. Not those that the server writes itself: `{'`, `'.join(OWN_MEMBERS)}`.",
    ] = field(default_factory=_nothing, hash=False)
    web_search: Annotated[
        Mapping[str, Any],
        _WEB_SEARCH,
        "Members of the tool that searches the web: `search_context_size`, `user_location` and others.",
    ] = field(default_factory=_nothing, hash=False)
    file_search: Annotated[
        Mapping[str, Any],
        _FILE_SEARCH,
        "Members of the tool that searches files: `vector_store_ids`, without which no file is searched, "
        "`max_num_results`, `ranking_options` and others. Not for `search`.",
    ] = field(default_factory=_nothing, hash=False)

    @property
    def store(self) -> bool:
        """Whether the API may keep the answer, as it does by default."""
        return self.request.get("store") is not False

    @property
    def service_tier(self) -> str | None:
        """How fast, and at which price, the API is asked to work."""
        tier = self.request.get("service_tier")
        return tier if isinstance(tier, str) else None

    def most(self, name: Literal["max_output_tokens", "max_tool_calls"], usual: int) -> int:
        """Return `usual`, or less if `request` has a lower bound of that name."""
        bound = self.request.get(name)
        return min(usual, bound) if type(bound) is int and bound > 0 else usual


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISettings:
    """Where the API is and how to be let in. `api_key` and `headers` hold secrets, which no output shows."""

    api_key_env: Annotated[str, VARIABLE, "Environment variable that holds the API key."] = "OPENAI_API_KEY"
    allow_http: Annotated[bool, "Let `openai.base_url` be http on a host that is not loopback."] = False
    base_url: Annotated[
        _Address, Env("OPENAI_BASE_URL"), "Where the API is: https, or http as `openai.allow_http` says."
    ] = "https://api.openai.com/v1"
    headers_env: Annotated[
        Mapping[str, str], _HEADERS, "Extra request headers: name to the environment variable of its value."
    ] = field(default_factory=_nothing)
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=_nothing, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no output may show: the key, and the values of headers."""
        return tuple(filter(None, (self.api_key, *self.headers.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """Bounds of a call, in milliseconds and bytes, and how it is sent."""

    timeout_ms: Annotated[
        int,
        _CALL_MS,
        Env("OPENAI_API_TIMEOUT"),
        "Milliseconds for a call, all retries included.",
    ] = 300_000
    handoff_ms: Annotated[
        int, _HOUR_MS, "Milliseconds after which a call becomes a run of the toolset `research`; 0 means never."
    ] = 0
    task_after_ms: Annotated[
        int, _HOUR_MS, "Milliseconds after which a call in background mode becomes a task, for clients that take tasks."
    ] = 10_000
    max_retries: Annotated[int, Number(0, 10), "Retries after the first request: 429, 5xx, lost connections."] = 3
    max_connections: Annotated[int, Number(1, 10_000), "Connections to the API at once; further calls wait."] = 256
    max_reply_bytes: Annotated[int, Number(2**16, 2**26), Env(None), "Largest reply, or event of a stream."] = 2**23
    propagate_trace: Annotated[bool, Env(None), "Send the trace headers of a request's `_meta` to the API."] = False
    trust_env: Annotated[
        bool,
        Env(None),
        "Follow `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and `SSL_CERT_DIR`. Without them "
        "there is no proxy, and the certificates of the package certifi are trusted.",
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPolicy:
    """Which text becomes the model's instructions (spec 4): built in, or a file merged with it."""

    source: Annotated[Literal["builtin", "file"], "Whether the model's instructions are in `path`."] = "builtin"
    path: Annotated[_File | None, "Text (UTF-8, at most 256 KiB); relative to the folder of the YAML file."] = None
    merge: Annotated[
        Literal["replace", "prepend", "append"], "Whether the file replaces the built-in policy or joins it."
    ] = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """Citations shown, and the model's instructions: the text resolved at load; None stands for the built-in one."""

    max_citations: Annotated[int, Number(1, 10, strict=True), Env("MAX_CITATIONS"), "Most citations in an answer."] = 3
    system: SystemPolicy = field(default_factory=SystemPolicy)
    instructions: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDefaults:
    """Hints sent with each query when the caller gives none."""

    recency_days: Annotated[int, Number(0, 36_500), "How many days back counts as recent, if a call gives none."] = 60
    max_results: Annotated[int, Number(1, 100), "How many results to look at, if a call gives none."] = 5
    domains: Annotated[_Domains, Env(None), "Domains to prefer, if a call gives none."] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """How questions and `chatgpt_o3_search` search."""

    defaults: SearchDefaults = field(default_factory=SearchDefaults)
    strict_domains: Annotated[bool, Env(None), "Search only the given domains instead of preferring them."] = False
    timeout_ms: Annotated[int, _TRY_MS, "Milliseconds that one try of `chatgpt_o3_search` may take."] = 30_000
    max_attempts: Annotated[int, Number(1, 10), "Tries of `chatgpt_o3_search`."] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LocaleSettings:
    """Where the people are who ask."""

    time_zone: Annotated[str, _ZONE, Env("MCP_TIME_ZONE"), "Time zone in which a day is today: in hints and dates."] = (
        "Asia/Tokyo"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalSettings:
    """Weights of the parts of a manual search's score; 0 leaves a part out."""

    coverage_weight: Annotated[float, _WEIGHT, "Bonus by the share of the question's words in a section."] = 0.5
    phrase_weight: Annotated[float, _WEIGHT, "Bonus for longer words of the question, as written."] = 0.5
    number_context_bonus: Annotated[float, _WEIGHT, "Bonus for a number beside a word such as 番号 or 別表."] = 0.8
    proximity_bonus_near: Annotated[float, _WEIGHT, "Bonus for a number and a word next to each other."] = 1.0
    proximity_bonus_far: Annotated[float, _WEIGHT, "Bonus for a number and a word some way from each other."] = 0.5
    length_penalty_weight: Annotated[float, _WEIGHT, "Deduction for long sections."] = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class FindSettings:
    """Places that a manual search keeps for exploration, and whether it builds claim graphs."""

    exploration_enabled: Annotated[bool, "Keep places among the candidates for sections that rank too low."] = True
    exploration_ratio: Annotated[float, _SHARE, "Share of the candidates that these places are."] = 0.2
    exploration_min_candidates: Annotated[int, Number(0, 1_000), "How many places there are at least."] = 2
    exploration_score_scale: Annotated[float, _SHARE, "What their scores are multiplied by."] = 0.35
    claim_graph_enabled: Annotated[bool, "Build the claim graph where it is asked for; otherwise it is empty."] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """Results of manual searches kept for the same question; of the maxima -1 stands for any number."""

    enabled: Annotated[bool, "Answer a repeated search from memory, unless its arguments say otherwise."] = True
    sim_threshold: Annotated[
        float, _SHARE, "How alike two questions must be to share a result, where a provider compares meanings."
    ] = 0.92
    max_summary_gap: Annotated[int, _GAPS, "A kept result with more gaps is searched again; -1 means never."] = -1
    max_summary_conflict: Annotated[int, _GAPS, "No effect: a search counts no conflicts."] = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsSettings:
    """Who turns questions and sections into vectors, so that a search knows words that mean the same."""

    provider: Annotated[
        Literal["none", "api", "wordllama"],
        "Who compares meanings in a search. `api` sends the questions, and the texts of the manuals once, to an "
        "`/embeddings` endpoint; `wordllama` works on this machine, for English, and needs the extra `semantic`.",
    ] = "none"
    base_url: Annotated[_Address | None, "Where `/embeddings` is, if not at `openai.base_url`. It gets the key."] = None
    model: Annotated[_Text, "Model id that the provider `api` is asked for."] = "text-embedding-3-small"
    dimensions: Annotated[int, Number(0, 4096), "Length of the vectors of `api`; 0 means the model's own."] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualsSettings:
    """The folder of manuals and how it is searched. Without a `root` there are no manuals.

    Both paths are absolute once loaded. Without an `index_dir` the index is in memory; loading fills one in.
    """

    root: Annotated[_Folder | None, "Folder that holds the manuals; relative to that of the YAML file."] = None
    exclude: Annotated[_Names, "Patterns of what to leave out, as in a `.gitignore`; `!` keeps some."] = (
        "node_modules",
        "__pycache__",
        ".venv",
    )
    formats: Annotated[
        tuple[str, ...],
        _FORMATS,
        "Types of files to serve; `[md, json]` are those of the contract.",
    ] = FILE_TYPES
    index_dir: Annotated[_Folder | None, "Folder for the index; by default one in the user's cache folder."] = None
    search_tool: Annotated[bool, "Offer the tool `manual_search`, which searches all manuals at once."] = True
    lexical: Annotated[LexicalSettings, Env("LEXICAL")] = field(default_factory=LexicalSettings)
    find: Annotated[FindSettings, Env("MANUAL_FIND")] = field(default_factory=FindSettings)
    cache: Annotated[CacheSettings, Env("SEM_CACHE")] = field(default_factory=CacheSettings)
    embeddings: Annotated[EmbeddingsSettings, Env("MANUALS_EMBEDDINGS")] = field(default_factory=EmbeddingsSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchSettings:
    """Runs of research. Without a `state_dir` no run can be begun; loading fills one in where something is kept."""

    state_dir: Annotated[_Folder | None, "Folder for runs and the ledger; by default one in the state folder."] = None
    keep_days: Annotated[int, Number(1, 365), "Days for which a run can be asked for."] = 7
    max_running: Annotated[int, Number(1, 1_000), "Runs at once, of all servers; more are refused."] = 8
    timeout_ms: Annotated[int, _RUN_MS, "Milliseconds for a run once it is sent; then it is cancelled."] = 3_600_000
    stores: Annotated[tuple[str, ...], _STORES, "Vector stores that a question may have searched."] = ()
    store: Annotated[bool, "Whether the API keeps runs. `false` ends a run with its server or connection."] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """What becomes of a secret in a text that is to be sent."""

    outgoing_secrets: Annotated[
        Literal["mask", "refuse", "allow"],
        "What becomes of keys, tokens and passwords in a question: they are masked, the call fails, or they are sent. "
        "In texts for embeddings they are masked, too, unless they are allowed.",
    ] = "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSettings:
    """Whether each paid call is written down."""

    ledger: Annotated[bool, "Write down what each call used and cost, without text, in `research.state_dir`."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What may be spent in US dollars, tokens and calls; None is no limit. A session is the life of one server."""

    session_cost_usd: Annotated[float | None, _MONEY, "US dollars that one server may spend in its life."] = None
    session_tokens: Annotated[int | None, _COUNT, "Tokens that one server may use in its life."] = None
    session_calls: Annotated[int | None, _COUNT, "Calls with a request that one server may make in its life."] = None
    day_cost_usd: Annotated[
        float | None, _MONEY, "US dollars a day (UTC) for all servers of this user. Needs the ledger."
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The stdio server: debug output, limits in bytes and calls, and how tool failures reach clients."""

    debug: Annotated[bool, Env("DEBUG"), "Debug log on stderr. `DEBUG` also takes the path of a log file."] = False
    debug_file: Annotated[_File | None, Env(None), "File for the log, too; relative to that of the YAML file."] = None
    show_config_on_start: Annotated[bool, Env(None), "Print the effective configuration on stderr, then serve."] = False
    line_mode: Annotated[bool, "Answer in lines of JSON from the start. Of the variable only 1 counts."] = False
    toolsets: Annotated[
        tuple[str, ...] | None,
        _TOOLSETS,
        "Toolsets to offer; `answer` is always among them, `manuals` needs `manuals.root`. Without a list, `manuals` "
        "come with a root. `search` and `research` are there only where they are listed.",
    ] = None
    tool_errors: Annotated[
        Literal["auto", "error", "result"],
        "How older clients learn of a failed tool: a JSON-RPC error, or a result with `isError`. `auto` is `result` "
        "for clients that are known to drop the details of errors, and `error` for all others.",
    ] = "auto"
    instructions: Annotated[bool, "Tell the client's model, in the handshake, when to prefer these tools."] = False
    prompts: Annotated[
        bool | None,
        "Offer prompts, which clients show as slash commands. Not set, only revision 2026-07-28 has them.",
    ] = None
    watch_parent: Annotated[
        bool,
        "End when the process that started the server is gone, no call is in flight and nothing is heard for some "
        "seconds. Switch it off for a launcher that ends while the client goes on.",
    ] = True
    max_message_bytes: Annotated[int, _MESSAGE, "Largest message that is read, in bytes; 0 means no limit."] = 2**24
    max_unsent_bytes: Annotated[
        int, Number(1, _LARGE), "Bytes of output that may wait for a client that does not read, before calls wait too."
    ] = 2**26
    max_in_flight: Annotated[int, Number(1, 1_000_000), "Tool calls accepted at once."] = 4096
    max_result_chars: Annotated[
        int,
        Number(1_000, 500_000),
        "Characters of an answer that a tool returns. A longer one is cut at a sentence, is marked, and keeps its "
        "sources; longer `data` of `research` is left out.",
    ] = 60_000
    drain_timeout_ms: Annotated[
        int | None,
        _HOUR_MS,
        "Milliseconds for running calls after the end of input. Not set, each has its own while somebody reads stdout.",
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """What a model costs, in US dollars per million tokens; `web_search` is for one search. None is as usual."""

    input: float
    output: float
    cached_input: float | None = None
    web_search: float | None = None


def _answer_only() -> Mapping[str, Profile]:
    return MappingProxyType({"answer": Profile()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the server needs to know. `problems` holds what was wrong with the configuration, a sentence each.

    A server started with problems lists its tools and fails each call with them, because clients hide stderr
    and a server that refuses to start takes its tools away without a word.
    """

    openai: OpenAISettings = field(default_factory=OpenAISettings)
    request: Annotated[RequestSettings, Env("OPENAI")] = field(default_factory=RequestSettings)
    model_profiles: Mapping[str, Profile] = field(default_factory=_answer_only)
    policy: PolicySettings = field(default_factory=PolicySettings)
    search: Annotated[SearchSettings, Env("SEARCH")] = field(default_factory=SearchSettings)
    locale: LocaleSettings = field(default_factory=LocaleSettings)
    manuals: Annotated[ManualsSettings, Env("MANUALS")] = field(default_factory=ManualsSettings)
    research: Annotated[ResearchSettings, Env("RESEARCH")] = field(default_factory=ResearchSettings)
    privacy: Annotated[PrivacySettings, Env("PRIVACY")] = field(default_factory=PrivacySettings)
    usage: Annotated[UsageSettings, Env("USAGE")] = field(default_factory=UsageSettings)
    limits: Annotated[LimitSettings, Env("LIMITS")] = field(default_factory=LimitSettings)
    prices: Annotated[
        Mapping[str, ModelPrice],
        _PRICES,
        "Model id to `input`, `output` and, if they differ from the usual, `cached_input` (US dollars per million "
        "tokens) and `web_search` (US dollars per search). They win over the table of the package.",
    ] = field(default_factory=_nothing)
    server: Annotated[ServerSettings, Env("MCP")] = field(default_factory=ServerSettings)
    problems: tuple[str, ...] = ()

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The toolsets to offer: those of `server.toolsets`, else `answer`, and `manuals` where there is a root."""
        asked = self.server.toolsets if self.server.toolsets is not None else ("answer", "manuals")
        return tuple(name for name in asked if name != "manuals" or self.manuals.root)
