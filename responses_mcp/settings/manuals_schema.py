"""The settings of the manuals, one row each: see `schema` for what a row is there for.

The names of the variables are those of the contract, and where it is silent those that its tuning has always had.
"""

from __future__ import annotations

from typing import Final

from responses_mcp.settings.setting import Setting, integer

_YEAR: Final = 31_536_000
"""Seconds."""


def _number(key: str, high: int, doc: str, env: str) -> Setting:
    return Setting(key, "number", doc, env, 0, high)


MANUALS: Final[tuple[Setting, ...]] = (
    Setting(
        "manuals.root",
        "folder",
        "Folder that holds the manuals, one folder each; relative to the folder of the YAML file.",
        "MANUALS_ROOT",
    ),
    Setting(
        "manuals.index_dir",
        "folder",
        "Folder for the index files; without it, one in the user's cache folder.",
        "MANUALS_INDEX_DIR",
    ),
    Setting("manuals.in_memory", "boolean", "Keep the index in memory and write no index file.", "MANUALS_IN_MEMORY"),
    integer("manuals.max_file_bytes", 1, 2**30, "Largest file that is searched, in bytes.", "MANUALS_MAX_FILE_BYTES"),
    _number(
        "manuals.lexical.coverage_weight",
        100,
        "Bonus for a section by the share of the question's words that it holds.",
        "LEXICAL_COVERAGE_WEIGHT",
    ),
    _number(
        "manuals.lexical.sparse_coverage_weight",
        100,
        "A further bonus by that share.",
        "SPARSE_QUERY_COVERAGE_WEIGHT",
    ),
    _number(
        "manuals.lexical.phrase_weight",
        100,
        "Bonus for longer words of the question, as written.",
        "LEXICAL_PHRASE_WEIGHT",
    ),
    _number(
        "manuals.lexical.number_context_bonus",
        100,
        "Bonus for a number of the question beside a word such as 番号 or 別表.",
        "LEXICAL_NUMBER_CONTEXT_BONUS",
    ),
    _number(
        "manuals.lexical.proximity_bonus_near",
        100,
        "Bonus for a number and a word of the question next to each other.",
        "LEXICAL_PROXIMITY_BONUS_NEAR",
    ),
    _number(
        "manuals.lexical.proximity_bonus_far",
        100,
        "Bonus for a number and a word of the question some way from each other.",
        "LEXICAL_PROXIMITY_BONUS_FAR",
    ),
    _number(
        "manuals.lexical.length_penalty_weight", 100, "Deduction for long sections.", "LEXICAL_LENGTH_PENALTY_WEIGHT"
    ),
    Setting(
        "manuals.find.exploration_enabled",
        "boolean",
        "Keep places among the candidates for sections that would rank too low.",
        "MANUAL_FIND_EXPLORATION_ENABLED",
    ),
    _number(
        "manuals.find.exploration_ratio",
        1,
        "Share of the candidates that these places are.",
        "MANUAL_FIND_EXPLORATION_RATIO",
    ),
    integer(
        "manuals.find.exploration_min_candidates",
        0,
        1_000,
        "How many places there are at least.",
        "MANUAL_FIND_EXPLORATION_MIN_CANDIDATES",
    ),
    _number(
        "manuals.find.exploration_score_scale",
        1,
        "What their scores are multiplied by.",
        "MANUAL_FIND_EXPLORATION_SCORE_SCALE",
    ),
    Setting(
        "manuals.find.query_decomp_enabled",
        "boolean",
        "Search a question that compares things part by part too.",
        "MANUAL_FIND_QUERY_DECOMP_ENABLED",
    ),
    integer(
        "manuals.find.query_decomp_max_sub_queries",
        1,
        10,
        "Parts of a question at most, the whole question among them.",
        "MANUAL_FIND_QUERY_DECOMP_MAX_SUB_QUERIES",
    ),
    integer(
        "manuals.find.query_decomp_rrf_k",
        1,
        10_000,
        "Constant k of the reciprocal rank fusion of the parts: the larger, the less the first places count.",
        "MANUAL_FIND_QUERY_DECOMP_RRF_K",
    ),
    _number(
        "manuals.find.query_decomp_base_weight",
        1,
        "Share of a section's own score beside that of the fusion.",
        "MANUAL_FIND_QUERY_DECOMP_BASE_WEIGHT",
    ),
    Setting(
        "manuals.find.claim_graph_enabled",
        "boolean",
        "Build the claim graph where it is asked for; otherwise it is empty.",
        "MANUAL_FIND_CLAIM_GRAPH_ENABLED",
    ),
    integer(
        "manuals.find.scan_hard_cap",
        1,
        1_000_000,
        "Sections that one pass of a search scores at most.",
        "MANUAL_FIND_SCAN_HARD_CAP",
    ),
    integer(
        "manuals.find.per_file_candidate_cap",
        1,
        10_000,
        "Candidates from one file at most.",
        "MANUAL_FIND_PER_FILE_CANDIDATE_CAP",
    ),
    Setting(
        "manuals.find.file_prescan_enabled",
        "boolean",
        "Look first at files whose path or title has to do with the question.",
        "MANUAL_FIND_FILE_PRESCAN_ENABLED",
    ),
    Setting(
        "manuals.cache.enabled",
        "boolean",
        "Answer a search that was made before from memory, unless its arguments say otherwise.",
        "SEM_CACHE_ENABLED",
    ),
    integer("manuals.cache.ttl_sec", 1, _YEAR, "Seconds that a result is kept.", "SEM_CACHE_TTL_SEC"),
    integer("manuals.cache.max_keep", 1, 100_000, "Results kept at most.", "SEM_CACHE_MAX_KEEP"),
    _number(
        "manuals.cache.sim_threshold",
        1,
        "How alike two questions must be in meaning to share a result; 1 means equal.",
        "SEM_CACHE_SIM_THRESHOLD",
    ),
    Setting(
        "manuals.cache.embedding_provider",
        "choice",
        "What compares questions by meaning. With `none`, only equal questions share a result.",
        "SEM_CACHE_EMBEDDING_PROVIDER",
        choices=("none",),
        wording="none (a program that embeds the server can pass an object of its own instead)",
    ),
    integer(
        "manuals.cache.max_summary_gap",
        -1,
        1_000_000,
        "A kept result with more gaps than this is searched again; -1 means never.",
        "SEM_CACHE_MAX_SUMMARY_GAP",
    ),
    integer(
        "manuals.cache.max_summary_conflict",
        -1,
        1_000_000,
        "No effect: a search counts no conflicts.",
        "SEM_CACHE_MAX_SUMMARY_CONFLICT",
    ),
    integer("manuals.trace.max_keep", 1, 100_000, "Traces of searches kept at most.", "TRACE_MAX_KEEP"),
    integer("manuals.trace.ttl_sec", 1, _YEAR, "Seconds that a trace is kept.", "TRACE_TTL_SEC"),
)
"""Rows of the section `manuals`."""
