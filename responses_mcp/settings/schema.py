"""Every setting there is, one row each: the only list that the loader, `--show-config` and the reference page read.

How to add a setting: give it a field with a default in `model`, then a row here. Keys are dotted paths through the
`Settings` tree, so a default is never written twice. The keys and environment names of contract 5.3 and 5.4 come first
in their section; the others are ours. Of the manuals' settings the contract names those of scores, exploration, the
claim graph and the cache.
"""

from __future__ import annotations

from typing import Final

from responses_mcp.settings.address import NETWORK_VARIABLES
from responses_mcp.settings.model import EFFORTS, SEARCH_EFFORT, VERBOSITIES
from responses_mcp.settings.setting import OWN_MEMBERS, Setting, choice, integer, number, section, switch

PROFILES: Final = ("answer", "answer_detailed", "answer_quick", "search")
"""Names that `model_profiles` may hold (spec 3.0, and ours); the first is the one that the others lean on."""

FALLBACKS: Final = {"model_profiles.search.reasoning_effort": SEARCH_EFFORT}
"""Fields that do not lean on it."""

SHARED_FIELDS: Final = ("model", "reasoning_effort", "verbosity")
"""Fields of a profile that it always has; the others are sent only where they are set."""

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

_LARGE: Final = 2**40

_PROFILE_ENV: Final = {
    "answer.model": "MODEL_ANSWER",
    "answer.reasoning_effort": "ANSWER_EFFORT",
    "answer.verbosity": "ANSWER_VERBOSITY",
    "answer_detailed.model": "MODEL_DETAILED",
    "answer_quick.model": "MODEL_QUICK",
    "search.model": "MODEL_SEARCH",
}


def _profile_rows() -> list[Setting]:
    rows: list[Setting] = []
    for name in PROFILES:
        end = "" if name == PROFILES[0] else f"; without it, that of `{PROFILES[0]}`"
        at = f"model_profiles.{name}"
        effort_end = "" if f"{at}.reasoning_effort" in FALLBACKS else end
        env = _PROFILE_ENV.get
        tool = "chatgpt_o3_search" if name == "search" else name
        rows += [
            Setting(f"{at}.model", "text", f"Model id that the tool `{tool}` calls{end}.", env(f"{name}.model")),
            choice(
                f"{at}.reasoning_effort",
                EFFORTS,
                f"Reasoning effort{effort_end}. If the model refuses it, the nearest that the refusal lists is used.",
                env(f"{name}.reasoning_effort"),
            ),
            choice(
                f"{at}.verbosity",
                VERBOSITIES,
                f"Length of the answer, for models that know it{end}.",
                env(f"{name}.verbosity"),
            ),
            *_passed_on(at),
        ]
    return rows


def _passed_on(at: str) -> list[Setting]:
    """Return the rows of what a profile has beside model, effort and verbosity."""
    ids = "of the vector stores that are searched along with the web; without any there is no search of files."
    return [
        switch(
            f"{at}.background",
            "Answer in background mode, where the API has it and `store` is not `false`: a stream that breaks is taken "
            "up again, and a cancelled call is cancelled at the API too. Not for `search`.",
        ),
        Setting(
            f"{at}.blocked_domains", "domains", "Domains that are not searched, and never cited, subdomains included."
        ),
        Setting(f"{at}.file_search.vector_store_ids", "names", f"Ids {ids}"),
        integer(f"{at}.file_search.max_num_results", 1, 50, "Pieces of files that one search gives."),
        number(f"{at}.file_search.score_threshold", 1, "How well a piece of a file must fit; 1 is best."),
        Setting(f"{at}.file_search.filters", "json", "Filter over the attributes of files, as the API has it."),
        Setting(
            f"{at}.request",
            "request",
            "Members of the body of each request, as the API has them: `max_output_tokens`, `max_tool_calls`, "
            "`service_tier`, `store`, `prompt_cache_key`, `safety_identifier` and others. Not those that the server "
            f"writes itself: {', '.join(f'`{name}`' for name in OWN_MEMBERS)}.",
        ),
        Setting(
            f"{at}.web_search",
            "web_search",
            "Members of the tool that searches the web, as the API has them: `search_context_size`, "
            "`external_web_access`, `user_location`, `filters` and others.",
        ),
    ]


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "openai.api_key_env",
        "env_name",
        "Name of the environment variable that holds the API key. The key itself never goes into a file.",
    ),
    Setting(
        "openai.base_url",
        "url",
        "Where the Responses API is. Must be https unless the host is loopback or `openai.allow_http` is true.",
        "OPENAI_BASE_URL",
    ),
    switch("openai.allow_http", "Let `openai.base_url` be http on a host that is not loopback."),
    Setting(
        "openai.headers_env",
        "headers",
        "Extra request headers: header name to the name of the environment variable that holds its value.",
    ),
    integer(
        "request.timeout_ms",
        1,
        86_400_000,
        "Milliseconds that one call may take in all, retries and waits included.",
        "OPENAI_API_TIMEOUT",
    )._replace(default_below=True),
    integer(
        "request.handoff_ms",
        0,
        3_600_000,
        "Milliseconds after which a call of an answer tool becomes a run of research, whose id is its answer; 0 means "
        "never. Needs the toolset `research`.",
        "OPENAI_HANDOFF_MS",
    ),
    integer(
        "request.task_after_ms",
        0,
        3_600_000,
        "Milliseconds after which a call of an answer tool in background mode becomes a task of MCP, for clients that "
        "take tasks.",
        "OPENAI_TASK_AFTER_MS",
    ),
    integer(
        "request.max_retries",
        0,
        10,
        "Retries after the first request, for 429, 5xx and lost connections.",
        "OPENAI_MAX_RETRIES",
    ),
    integer(
        "request.max_connections",
        1,
        10_000,
        "Upstream connections at once; further calls wait their turn.",
        "OPENAI_MAX_CONNECTIONS",
    ),
    integer(
        "request.max_reply_bytes",
        64 * 1024,
        64 * 1024 * 1024,
        "Largest reply that is read, in bytes, behind its compression; of a stream, the largest event.",
    ),
    switch(
        "request.propagate_trace",
        "Send `traceparent`, `tracestate` and `baggage` of a request's `_meta` to the API as headers.",
    ),
    switch(
        "request.trust_env",
        "Follow `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and `SSL_CERT_DIR`. Without "
        "them there is no proxy, and the certificates of the package certifi are trusted.",
    ),
    *_profile_rows(),
    integer("policy.max_citations", 1, 10, "Citations in an answer at most.", "MAX_CITATIONS")._replace(strict=True),
    choice(
        "policy.system.source",
        ("builtin", "file"),
        "Where the model's instructions come from: the built-in policy, or `policy.system.path`.",
    ),
    Setting(
        "policy.system.path",
        "path",
        "Text file (UTF-8, at most 256 KiB) with instructions; relative to the folder of the YAML file.",
    ),
    choice(
        "policy.system.merge",
        ("replace", "prepend", "append"),
        "How the file meets the built-in policy: in its place, before it, or after it.",
    ),
    *section(
        "search.defaults",
        "SEARCH",
        integer("recency_days", 0, 36_500, "Hint sent when a call gives none: how many days back counts as recent."),
        integer("max_results", 1, 100, "Hint sent when a call gives none: how many results to look at."),
    ),
    Setting("search.defaults.domains", "domains", "Domains to prefer when a call gives none."),
    switch("search.strict_domains", "Search only the given domains instead of merely preferring them."),
    *section(
        "search",
        "SEARCH",
        integer("timeout_ms", 1, 86_400_000, "Milliseconds that one try of `chatgpt_o3_search` may take.")._replace(
            default_below=True
        ),
        integer(
            "max_attempts",
            1,
            10,
            "Tries of `chatgpt_o3_search` in all, for rate limits, lost connections and tries that took too long.",
        ),
    ),
    Setting(
        "locale.time_zone",
        "time_zone",
        "Time zone in which a day is today: in the hints, in what the model is told, and in dates of access.",
        "MCP_TIME_ZONE",
    ),
    *section(
        "manuals",
        "MANUALS",
        Setting(
            "root", "folder", "Folder that holds the manuals, one folder each; relative to the folder of the YAML file."
        ),
        Setting("exclude", "names", "Patterns of what to leave out, as in a `.gitignore`; `!` keeps some."),
        Setting("index_dir", "folder", "Folder for the index files; without it, one in the user's cache folder."),
        switch("in_memory", "Keep the index in memory and write no index file."),
        integer("max_file_bytes", 1, 2**30, "Largest file that is searched, in bytes."),
        switch("search_tool", "Offer the tool `manual_search`, which searches all manuals at once."),
    ),
    *section(
        "manuals.lexical",
        "LEXICAL",
        number("coverage_weight", 100, "Bonus for a section by the share of the question's words that it holds."),
        number("phrase_weight", 100, "Bonus for longer words of the question, as written."),
        number("number_context_bonus", 100, "Bonus for a number of the question beside a word such as 番号 or 別表."),
        number("proximity_bonus_near", 100, "Bonus for a number and a word of the question next to each other."),
        number("proximity_bonus_far", 100, "Bonus for a number and a word of the question some way from each other."),
        number("length_penalty_weight", 100, "Deduction for long sections."),
    ),
    *section(
        "manuals.find",
        "MANUAL_FIND",
        switch("exploration_enabled", "Keep places among the candidates for sections that would rank too low."),
        number("exploration_ratio", 1, "Share of the candidates that these places are."),
        integer("exploration_min_candidates", 0, 1_000, "How many places there are at least."),
        number("exploration_score_scale", 1, "What their scores are multiplied by."),
        switch("claim_graph_enabled", "Build the claim graph where it is asked for; otherwise it is empty."),
    ),
    *section(
        "manuals.cache",
        "SEM_CACHE",
        switch("enabled", "Answer a search that was made before from memory, unless its arguments say otherwise."),
        number(
            "sim_threshold",
            1,
            "How alike in meaning two questions must be to share a result, if a program that embeds the server "
            "compares them; 1 means equal.",
        ),
        integer(
            "max_summary_gap",
            -1,
            1_000_000,
            "A kept result with more gaps than this is searched again; -1 means never.",
        ),
        integer("max_summary_conflict", -1, 1_000_000, "No effect: a search counts no conflicts."),
    ),
    *section(
        "manuals.embeddings",
        "MANUALS_EMBEDDINGS",
        choice(
            "provider",
            ("none", "api", "wordllama"),
            "Who compares meanings in a search. `api` sends the questions, and the texts of the manuals once, to an "
            "`/embeddings` endpoint; `wordllama` works on this machine, for English, and needs the extra `semantic`.",
        ),
        Setting(
            "base_url",
            "url",
            "Where `/embeddings` is, if not at `openai.base_url`. It gets the same key and headers, and must be https "
            "by the same rules.",
        ),
        Setting("model", "text", "Model id that the provider `api` is asked for."),
        integer("dimensions", 0, 4096, "Length of the vectors that `api` is asked for; 0 means the model's own."),
    ),
    *section(
        "research",
        "RESEARCH",
        Setting(
            "state_dir",
            "folder",
            "Folder for what is kept: runs of research, the ledger. Without it, one in the user's state folder.",
        ),
        integer("keep_days", 1, 365, "Days for which a run can be asked for."),
        switch("keep_questions", "Keep the first words of each question with its run, for the list."),
        integer("max_running", 1, 1_000, "Runs of one server on their way at once; further ones wait their turn."),
        integer(
            "timeout_ms", 1, 604_800_000, "Milliseconds that a run may take once it is asked; then it is cancelled."
        )._replace(default_below=True),
        choice("on_exit", ("keep", "cancel"), "What becomes of runs on their way when the server ends."),
        Setting(
            "stores", "stores", "Vector stores that a question may have searched along with the web, each as `name=id`."
        ),
        switch("store", "Whether the API keeps runs. `false` ends a run with its server or connection."),
    ),
    *section(
        "privacy",
        "PRIVACY",
        choice(
            "outgoing_secrets",
            ("mask", "refuse", "allow"),
            "What becomes of keys, tokens and passwords in a question: they are masked, the call fails, or they are "
            "sent. In texts for embeddings they are masked, too, unless they are allowed.",
        ),
    ),
    *section(
        "usage",
        "USAGE",
        switch("ledger", "Write down what each call used and cost, without any text, in `research.state_dir`."),
    ),
    *section(
        "limits",
        "LIMITS",
        number("session_cost_usd", 1_000_000, "US dollars that one server may spend from its start to its end."),
        integer("session_tokens", 0, _LARGE, "Tokens that one server may use from its start to its end."),
        integer("session_calls", 0, _LARGE, "Calls with a request to the API that one server may make."),
        number(
            "day_cost_usd",
            1_000_000,
            "US dollars that all servers of this user may spend in a day (UTC). Needs `usage.ledger`.",
        ),
    ),
    Setting(
        "prices",
        "prices",
        "Model id to `input`, `output` and, if they differ from the usual, `cached_input` (US dollars per million "
        "tokens) and `web_search` (US dollars per search). They win over the table of the package.",
    ),
    Setting(
        "server.debug",
        "debug",
        "Debug log on stderr. `DEBUG` takes 1, true, yes, on; 0, false, no, off; or the path of a log file.",
        "DEBUG",
    ),
    Setting(
        "server.debug_file",
        "path",
        "File that receives the debug log too, while it is on; relative to the folder of the YAML file.",
    ),
    switch("server.show_config_on_start", "Print the effective configuration on stderr, then serve."),
    *section(
        "server",
        "MCP",
        switch("line_mode", "Answer in lines of JSON from the start. Only the value 1 of the variable switches it on."),
        Setting(
            "toolsets",
            "toolsets",
            "Toolsets to offer; `answer` is always among them, `manuals` needs `manuals.root`. Without a list, "
            "`manuals` come with a root. `search` and `research` are there only where they are listed. The variable "
            "takes names separated by commas.",
        ),
        choice(
            "tool_errors",
            ("auto", "error", "result"),
            "How clients of the older protocol learn of a failed tool: a JSON-RPC error, or a result with `isError`. "
            "`auto` is `result` for clients that are known to drop the details of errors, and `error` for all others.",
        ),
        switch(
            "instructions",
            "Tell the client's model, in the handshake, when to prefer these tools to a search of its own.",
        ),
        switch(
            "prompts",
            "Offer prompts, which clients show as slash commands. Not set, they are offered in revision 2026-07-28 of "
            "the protocol and not in 2025-06-18.",
        ),
        switch(
            "watch_parent",
            "End when the process that started the server is gone, no call is in flight and nothing is heard for some "
            "seconds, although another process holds the pipes open. Switch it off for a launcher that ends while the "
            "client goes on.",
        ),
        integer("max_message_bytes", 0, _LARGE, "Largest message that is read, in bytes; 0 means no limit.")._replace(
            least=4096  # below, hardly a call fits
        ),
        integer(
            "max_unsent_bytes",
            1,
            _LARGE,
            "Bytes of output that may wait for a client that does not read, before calls wait too.",
        ),
        integer("max_in_flight", 1, 1_000_000, "Tool calls accepted at once."),
        integer(
            "max_result_chars",
            1_000,
            500_000,
            "Characters of an answer that a tool returns. A longer one is cut at a sentence, is marked, and keeps its "
            "sources; longer `data` of `research` is left out.",
        ),
        integer(
            "drain_timeout_ms",
            0,
            3_600_000,
            "Milliseconds that running calls get to finish after the end of input. Not set, each has the time that it "
            "has anyway, while somebody reads stdout.",
        ),
    ),
)

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
        "openai.model",
        "policy.prefer_search_when_unsure",
        "policy.requery_attempts",
        "policy.require_dates_iso",
        "policy.search_triggers",
        "policy.style",
        "responses",
        "search.defaults.style",
        "server.transport",
        "style",
    }
)
"""Keys of v0.5 that v0.9 dropped; what lies below them went with them."""

DROPPED_ENV: Final = ("REQUERY_ATTEMPTS",)
"""Environment variables of v0.5 whose setting v0.9 dropped."""

KEY_IN_FILE: Final = frozenset(
    {
        "openai.api_key",
        "openai.apikey",
        "openai.apiKey",
        "openai.api-key",
        "openai.key",
        "api_key",
        "apiKey",
        "OPENAI_API_KEY",
    }
)
"""Places where people write the API key into a file, which spec 8 forbids."""
