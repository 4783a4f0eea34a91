"""Environment over file over defaults (contract 5.1), and the memory of where each value came from."""

from pathlib import Path

import pytest

from responses_mcp.settings import Settings, load_settings
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.settings.setting import value_of

from .loading import clean, load, problem, usual_place

INTEGERS = {
    "OPENAI_API_TIMEOUT": ("request.timeout_ms", 1, 86_400_000),
    "OPENAI_MAX_RETRIES": ("request.max_retries", 0, 10),
    "OPENAI_MAX_CONNECTIONS": ("request.max_connections", 1, 10_000),
    "SEARCH_RECENCY_DAYS": ("search.defaults.recency_days", 0, 36_500),
    "SEARCH_MAX_RESULTS": ("search.defaults.max_results", 1, 10),
    "SEARCH_TIMEOUT_MS": ("search.timeout_ms", 1, 86_400_000),
    "SEARCH_MAX_ATTEMPTS": ("search.max_attempts", 1, 10),
    "MAX_CITATIONS": ("policy.max_citations", 1, 10),
    "MCP_MAX_MESSAGE_BYTES": ("server.max_message_bytes", 0, 2**40),
    "MCP_MAX_UNSENT_BYTES": ("server.max_unsent_bytes", 1, 2**40),
    "MCP_MAX_IN_FLIGHT": ("server.max_in_flight", 1, 1_000_000),
    "MCP_DRAIN_TIMEOUT_MS": ("server.drain_timeout_ms", 0, 3_600_000),
    "MANUALS_MAX_FILE_BYTES": ("manuals.max_file_bytes", 1, 2**30),
    "MANUAL_FIND_EXPLORATION_MIN_CANDIDATES": ("manuals.find.exploration_min_candidates", 0, 1_000),
    "MANUAL_FIND_QUERY_DECOMP_MAX_SUB_QUERIES": ("manuals.find.query_decomp_max_sub_queries", 1, 10),
    "MANUAL_FIND_QUERY_DECOMP_RRF_K": ("manuals.find.query_decomp_rrf_k", 1, 10_000),
    "MANUAL_FIND_SCAN_HARD_CAP": ("manuals.find.scan_hard_cap", 1, 1_000_000),
    "MANUAL_FIND_PER_FILE_CANDIDATE_CAP": ("manuals.find.per_file_candidate_cap", 1, 10_000),
    "SEM_CACHE_TTL_SEC": ("manuals.cache.ttl_sec", 1, 31_536_000),
    "SEM_CACHE_MAX_KEEP": ("manuals.cache.max_keep", 1, 100_000),
    "SEM_CACHE_MAX_SUMMARY_GAP": ("manuals.cache.max_summary_gap", -1, 1_000_000),
    "SEM_CACHE_MAX_SUMMARY_CONFLICT": ("manuals.cache.max_summary_conflict", -1, 1_000_000),
    "TRACE_MAX_KEEP": ("manuals.trace.max_keep", 1, 100_000),
    "TRACE_TTL_SEC": ("manuals.trace.ttl_sec", 1, 31_536_000),
}
NUMBERS = {
    "LEXICAL_COVERAGE_WEIGHT": ("manuals.lexical.coverage_weight", 100),
    "SPARSE_QUERY_COVERAGE_WEIGHT": ("manuals.lexical.sparse_coverage_weight", 100),
    "LEXICAL_PHRASE_WEIGHT": ("manuals.lexical.phrase_weight", 100),
    "LEXICAL_NUMBER_CONTEXT_BONUS": ("manuals.lexical.number_context_bonus", 100),
    "LEXICAL_PROXIMITY_BONUS_NEAR": ("manuals.lexical.proximity_bonus_near", 100),
    "LEXICAL_PROXIMITY_BONUS_FAR": ("manuals.lexical.proximity_bonus_far", 100),
    "LEXICAL_LENGTH_PENALTY_WEIGHT": ("manuals.lexical.length_penalty_weight", 100),
    "MANUAL_FIND_EXPLORATION_RATIO": ("manuals.find.exploration_ratio", 1),
    "MANUAL_FIND_EXPLORATION_SCORE_SCALE": ("manuals.find.exploration_score_scale", 1),
    "MANUAL_FIND_QUERY_DECOMP_BASE_WEIGHT": ("manuals.find.query_decomp_base_weight", 1),
    "SEM_CACHE_SIM_THRESHOLD": ("manuals.cache.sim_threshold", 1),
}
BOOLEANS = {
    "MCP_INSTRUCTIONS": "server.instructions",
    "MANUALS_IN_MEMORY": "manuals.in_memory",
    "MANUAL_FIND_EXPLORATION_ENABLED": "manuals.find.exploration_enabled",
    "MANUAL_FIND_QUERY_DECOMP_ENABLED": "manuals.find.query_decomp_enabled",
    "MANUAL_FIND_CLAIM_GRAPH_ENABLED": "manuals.find.claim_graph_enabled",
    "MANUAL_FIND_FILE_PRESCAN_ENABLED": "manuals.find.file_prescan_enabled",
    "SEM_CACHE_ENABLED": "manuals.cache.enabled",
}
TEXTS = {
    "OPENAI_BASE_URL": ("openai.base_url", "https://gateway.example/v1"),
    "MODEL_ANSWER": ("model_profiles.answer.model", "gpt-5.4"),
    "ANSWER_EFFORT": ("model_profiles.answer.reasoning_effort", "xhigh"),
    "ANSWER_VERBOSITY": ("model_profiles.answer.verbosity", "low"),
    "MODEL_DETAILED": ("model_profiles.answer_detailed.model", "gpt-5.5"),
    "MODEL_QUICK": ("model_profiles.answer_quick.model", "gpt-5.4-mini"),
    "MODEL_SEARCH": ("model_profiles.search.model", "gpt-5.4-mini"),
    "MCP_TOOL_ERRORS": ("server.tool_errors", "result"),
    "SEM_CACHE_EMBEDDING_PROVIDER": ("manuals.cache.embedding_provider", "none"),
}
SPECIAL = ("DEBUG", "MANUALS_INDEX_DIR", "MANUALS_ROOT", "MCP_LINE_MODE", "MCP_TOOLSETS")
ALL = (*INTEGERS, *NUMBERS, *BOOLEANS, *TEXTS, *SPECIAL)


def test_nothing_configured_gives_the_defaults_of_the_contract(tmp_path: Path) -> None:
    loaded = clean(load(tmp_path))
    assert loaded.settings == Settings()
    assert loaded.settings.openai.base_url == "https://api.openai.com/v1"
    assert (loaded.settings.request.timeout_ms, loaded.settings.request.max_retries) == (300_000, 3)
    assert dict(loaded.settings.model_profiles) == dict(Settings().model_profiles)
    assert set(loaded.sources.values()) == {"default"}


@pytest.mark.parametrize("name", INTEGERS)
def test_each_integer_variable_sets_its_key_from_its_lowest_to_its_highest_value(name: str, tmp_path: Path) -> None:
    key, low, high = INTEGERS[name]
    for number in (low, high):
        loaded = clean(load(tmp_path, environ={name: f" {number}\n"}))
        assert value_of(loaded.settings, key) == number
        assert loaded.sources[key] == f"env:{name}"
    for number in (low - 1, high + 1):
        loaded = load(tmp_path, environ={name: str(number)})
        assert problem(loaded) == (
            f'{key}: expected an integer from {low} to {high}, got "{number}" (from env {name}); '
            "set it to a number or unset it."
        )
        assert value_of(loaded.settings, key) == value_of(Settings(), key)
        assert loaded.sources[key] == "default"


@pytest.mark.parametrize("name", NUMBERS)
def test_each_number_variable_sets_its_key_from_0_to_its_highest_value(name: str, tmp_path: Path) -> None:
    key, high = NUMBERS[name]
    for text, number in (("0", 0.0), (" 0.25\n", 0.25), (str(high), float(high))):
        loaded = clean(load(tmp_path, environ={name: text}))
        value = value_of(loaded.settings, key)
        assert value == number
        assert type(value) is float
        assert loaded.sources[key] == f"env:{name}"
    for text in ("-0.01", f"{high}.01"):
        loaded = load(tmp_path, environ={name: text})
        assert problem(loaded) == (
            f'{key}: expected a number from 0 to {high}, got "{text}" (from env {name}); '
            "set it to a number or unset it."
        )
        assert value_of(loaded.settings, key) == value_of(Settings(), key)
        assert loaded.sources[key] == "default"


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_variable_sets_its_key_over_the_file(name: str, tmp_path: Path) -> None:
    key, text = TEXTS[name]
    loaded = clean(load(tmp_path, environ={name: f" {text} "}))
    assert value_of(loaded.settings, key) == text
    assert loaded.sources[key] == f"env:{name}"


def test_every_variable_of_the_table_is_one_of_those_tested_here() -> None:
    assert sorted(setting.env for setting in SETTINGS if setting.env) == sorted(ALL)


def test_the_environment_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    yaml = "request: {timeout_ms: 1000, max_retries: 1}\n"
    loaded = clean(load(tmp_path, yaml, {"OPENAI_MAX_RETRIES": "2"}))
    request = loaded.settings.request
    assert (request.timeout_ms, request.max_retries, request.max_connections) == (1000, 2, 512)
    assert loaded.sources["request.timeout_ms"] == f"yaml:{usual_place(tmp_path)}"
    assert loaded.sources["request.max_retries"] == "env:OPENAI_MAX_RETRIES"
    assert loaded.sources["request.max_connections"] == "default"


def test_mappings_merge_and_lists_are_replaced(tmp_path: Path) -> None:
    loaded = clean(load(tmp_path, "search: {defaults: {domains: [a.jp, b.jp]}}\n"))
    assert loaded.settings.search.defaults.domains == ("a.jp", "b.jp")
    assert loaded.settings.search.defaults.recency_days == 60
    assert clean(load(tmp_path, "search: {defaults: {domains: []}}\n")).settings.search.defaults.domains == ()


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
@pytest.mark.parametrize("name", [*ALL, "OPENAI_API_KEY"])
def test_an_empty_variable_counts_as_unset(name: str, text: str, tmp_path: Path) -> None:
    loaded = clean(load(tmp_path, environ={name: text if name != "OPENAI_API_KEY" else ""}))
    assert loaded.settings == Settings()


def test_yaml_null_means_not_set_wherever_no_profile_is_named(tmp_path: Path) -> None:
    yaml = (
        "request: {timeout_ms: null}\nserver:\nmodel_profiles: ~\npolicy: {system: {path: }}\nopenai: {headers_env: }\n"
    )
    loaded = clean(load(tmp_path, yaml))
    assert loaded.settings == Settings()
    assert set(loaded.sources.values()) == {"default"}


@pytest.mark.parametrize(
    "text", ["1.5", "1e3", "0x10", "1_000", "٣", "３", "3 4", "true", "--1", "9" * 31, "${RETRIES}"]
)
def test_integers_from_the_environment_are_strict_decimal(text: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, environ={"OPENAI_API_TIMEOUT": text})
    assert problem(loaded).startswith("request.timeout_ms: expected an integer from 1 to 86400000, got ")
    assert loaded.settings.request.timeout_ms == 300_000


def test_a_wrong_variable_falls_back_to_the_default_and_not_to_the_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, "request: {max_retries: 7}\n", {"OPENAI_MAX_RETRIES": "many"})
    assert problem(loaded).startswith("request.max_retries:")
    assert loaded.settings.request.max_retries == 3
    assert loaded.sources["request.max_retries"] == "default"


def test_a_wrong_value_in_the_file_does_not_matter_where_the_environment_wins(tmp_path: Path) -> None:
    loaded = clean(load(tmp_path, "request: {max_retries: many}\n", {"OPENAI_MAX_RETRIES": "4"}))
    assert loaded.settings.request.max_retries == 4


@pytest.mark.parametrize(("text", "on"), [("1", True), ("0", False), ("true", True), ("OFF", False), ("yes", True)])
def test_a_boolean_variable_takes_the_usual_words_over_the_file(text: str, on: bool, tmp_path: Path) -> None:
    for yaml in ("server: {instructions: true}\n", "server: {instructions: false}\n"):
        loaded = clean(load(tmp_path, yaml, {"MCP_INSTRUCTIONS": text}))
        assert loaded.settings.server.instructions is on
        assert loaded.sources["server.instructions"] == "env:MCP_INSTRUCTIONS"


@pytest.mark.parametrize("name", BOOLEANS)
def test_each_boolean_variable_sets_its_key_and_refuses_other_words(name: str, tmp_path: Path) -> None:
    key = BOOLEANS[name]
    for text, on in (("on", True), ("no", False)):
        loaded = clean(load(tmp_path, environ={name: text}))
        assert value_of(loaded.settings, key) is on
        assert loaded.sources[key] == f"env:{name}"
    assert problem(load(tmp_path, environ={name: "maybe"})) == (
        f'{key}: expected true or false, got "maybe" (from env {name}); correct it or unset it.'
    )


@pytest.mark.parametrize(("text", "on"), [("1", True), ("0", False), ("true", False), ("yes", False)])
def test_only_the_value_1_switches_line_mode_on(text: str, on: bool, tmp_path: Path) -> None:
    loaded = clean(load(tmp_path, environ={"MCP_LINE_MODE": text}))
    assert loaded.settings.server.line_mode is on
    assert loaded.sources["server.line_mode"] == ("env:MCP_LINE_MODE" if on else "default")
    assert clean(load(tmp_path, "server: {line_mode: true}\n", {"MCP_LINE_MODE": text})).settings.server.line_mode


def test_the_environment_of_the_process_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ALL, "OPENAI_API_KEY", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    load(tmp_path / "elsewhere", "request: {max_retries: 9}\n")
    assert clean(load_settings({"HOME": str(tmp_path)}, windows=False)).settings == Settings()


def test_home_comes_from_home_then_userprofile_then_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("one", "two", "three")):
        load(tmp_path / name, f"request: {{max_retries: {number}}}\n")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "three")

    def retries(**environ: str) -> int:
        return clean(load_settings(environ, windows=False)).settings.request.max_retries

    assert retries(HOME=str(tmp_path / "one"), USERPROFILE=str(tmp_path / "two")) == 0
    assert retries(HOME="", USERPROFILE=str(tmp_path / "two")) == 1
    assert retries() == 2


def test_a_user_without_a_home_gets_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    assert clean(load_settings({}, windows=False)).settings == Settings()
