"""The settings of the manuals, one row each: see `schema` for what a row is there for.

The names of the variables are those of the contract, and where it is silent those that its tuning has always had.
"""

from __future__ import annotations

from typing import Final

from responses_mcp.settings.setting import Setting, integer, number, section, switch

_YEAR: Final = 31_536_000
"""Seconds."""

MANUALS: Final[tuple[Setting, ...]] = (
    *section(
        "manuals",
        "MANUALS",
        Setting(
            "root", "folder", "Folder that holds the manuals, one folder each; relative to the folder of the YAML file."
        ),
        Setting("index_dir", "folder", "Folder for the index files; without it, one in the user's cache folder."),
        switch("in_memory", "Keep the index in memory and write no index file."),
        integer("max_file_bytes", 1, 2**30, "Largest file that is searched, in bytes."),
    ),
    *section(
        "manuals.lexical",
        "LEXICAL",
        number("coverage_weight", 100, "Bonus for a section by the share of the question's words that it holds."),
        number("sparse_coverage_weight", 100, "A further bonus by that share.")._replace(
            env="SPARSE_QUERY_COVERAGE_WEIGHT"
        ),
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
        switch("query_decomp_enabled", "Search a question that compares things part by part too."),
        integer("query_decomp_max_sub_queries", 1, 10, "Parts of a question at most, the whole question among them."),
        integer(
            "query_decomp_rrf_k",
            1,
            10_000,
            "Constant k of the reciprocal rank fusion of the parts: the larger, the less the first places count.",
        ),
        number("query_decomp_base_weight", 1, "Share of a section's own score beside that of the fusion."),
        switch("claim_graph_enabled", "Build the claim graph where it is asked for; otherwise it is empty."),
        integer("scan_hard_cap", 1, 1_000_000, "Sections that one pass of a search scores at most."),
        integer("per_file_candidate_cap", 1, 10_000, "Candidates from one file at most."),
        switch("file_prescan_enabled", "Look first at files whose path or title has to do with the question."),
    ),
    *section(
        "manuals.cache",
        "SEM_CACHE",
        switch("enabled", "Answer a search that was made before from memory, unless its arguments say otherwise."),
        integer("ttl_sec", 1, _YEAR, "Seconds that a result is kept."),
        integer("max_keep", 1, 100_000, "Results kept at most."),
        number("sim_threshold", 1, "How alike two questions must be in meaning to share a result; 1 means equal."),
        Setting(
            "embedding_provider",
            "choice",
            "What compares questions by meaning. With `none`, only equal questions share a result.",
            choices=("none",),
            wording="none (a program that embeds the server can pass an object of its own instead)",
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
        "manuals.trace",
        "TRACE",
        integer("max_keep", 1, 100_000, "Traces of searches kept at most."),
        integer("ttl_sec", 1, _YEAR, "Seconds that a trace is kept."),
    ),
)
"""Rows of the section `manuals`."""
