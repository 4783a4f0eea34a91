"""What a single value may be, and the sentence that says what was wrong with it."""

from pathlib import Path

import pytest

from responses_mcp.settings import Settings
from tests.settings.loading import value_of

from .loading import clean, load, problem, usual_place, warning


def test_an_integer_in_the_file_may_be_written_with_an_empty_fraction(tmp_path: Path) -> None:
    for yaml, number in {"4": 4, "4.0": 4, "0": 0, "-0": 0, "1e1": 10}.items():
        retries = clean(load(tmp_path, f"request: {{max_retries: {yaml}}}\n")).settings.request.max_retries
        assert (retries, type(retries)) == (number, int)


@pytest.mark.parametrize(
    ("yaml", "got"),
    [
        *((text, f'"{text}"') for text in ("NO", "+3", "1_0", "many", ".inf", "0x3", "010", "1:30", "2026-01-01")),
        *(("true", "true (a boolean)"), ("3.5", "3.5 (a number)"), ("1.0e+400", "inf (a number)"), ('"3"', '"3"')),
        *(("[3]", "a list"), ("{a: 3}", "a mapping"), ('""', '""')),
        ('"a\\nb\\u202e\\ud800"', '"a\\nb\\u202e\\ud800"'),
    ],
)
def test_a_wrong_integer_in_the_file_is_named_with_type_place_and_cure(yaml: str, got: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, f"request:\n  max_retries: {yaml}\n")
    assert problem(loaded) == (
        f"request.max_retries: expected an integer from 0 to 10, got {got} (from {usual_place(tmp_path)}); "
        "correct or remove it."
    )
    assert loaded.settings == Settings(problems=loaded.problems)
    assert set(loaded.sources.values()) == {"default"}


@pytest.mark.parametrize("key", ["openai.allow_http", "search.strict_domains", "server.debug", "server.line_mode"])
def test_a_boolean_is_true_or_false_or_one_of_yamls_words_and_nothing_like_it(key: str, tmp_path: Path) -> None:
    section, name = key.split(".")
    for yaml in ("1", "0", '"true"', "on line", "[true]", "1.0"):
        found = problem(load(tmp_path, f"{section}: {{{name}: {yaml}}}\n"))
        assert found.startswith(f"{key}: expected true or false, got ")
    for yaml, value in {"yes": True, "on": True, "True": True, "off": False}.items():
        assert value_of(clean(load(tmp_path, f"{section}: {{{name}: {yaml}}}\n")).settings, key) is value


def test_a_model_id_is_one_printable_word_without_quotation_marks(tmp_path: Path) -> None:
    for text in ('"gpt-5"', "'gpt-5'", "gpt 5", "gpt\n5", "gpt-5\x00", "\udcff", "m" * 257, "${MODEL}"):
        loaded = load(tmp_path, environ={"MODEL_ANSWER": text})
        assert problem(loaded).startswith("model_profiles.answer.model: expected text without blanks, got ")
        assert problem(loaded).isprintable()
        assert len(problem(loaded)) < 250
        assert ("a placeholder left unfilled" in problem(loaded)) is ("$" in text)
        assert ("got a text of 257 characters" in problem(loaded)) is (len(text) == 257)
        assert loaded.settings.model_profiles["answer"].model == "gpt-5.2"


@pytest.mark.parametrize("form", ["${{{}}}", "${}", "${{env:{}}}", "{{env:{}}}", "%{}%", "$env:{}"])
def test_a_variable_that_a_client_left_as_a_placeholder_is_told_with_where_to_set_it(form: str, tmp_path: Path) -> None:
    for name in ("OPENAI_BASE_URL", "MODEL_ANSWER", "OPENAI_API_TIMEOUT", "MANUALS_ROOT", "MCP_TOOLSETS", "DEBUG"):
        found = problem(load(tmp_path, environ={name: form.format(name)}))
        assert f"got a placeholder left unfilled (not shown) (from env {name}); set {name} where " in found
        assert found.endswith("where the client is started, or take it out of the client's entry.")


def test_domains_are_a_list_of_names(tmp_path: Path) -> None:
    for yaml, got in {
        "[a.jp, 5]": "5 (a number) in it",
        "[a.jp, [b.jp]]": "a list in it",
        "['a b']": '"a b" in it',
        "['a,b']": '"a,b" in it',
        "['']": '"" in it',
        "[~]": "nothing in it",
        **{f"['{text}']": f'"{text}" in it' for text in ("${DOMAIN}", "$DOMAIN", "%DOMAIN%", "<domain>", '"a.jp"')},
        f"[{', '.join(['a.jp'] * 101)}]": "101 of them",
        "{a: b}": "a mapping",
    }.items():
        found = problem(load(tmp_path, f"search: {{defaults: {{domains: {yaml}}}}}\n"))
        assert found.startswith(
            f"search.defaults.domains: expected a list of at most 100 domain names, got {got} (from "
        )


@pytest.mark.rule("spec 5.3")
def test_every_problem_is_told_in_one_go(tmp_path: Path) -> None:
    yaml = "request: {timeout_ms: x}\npolicy: {max_citations: 11}\nserver: 5\n"
    loaded = load(tmp_path, yaml, {"MAX_CITATIONS": "", "MCP_TOOL_ERRORS": "x", "SEARCH_MAX_RESULTS": "few"})
    assert {text.partition(":")[0] for text in loaded.problems} == {
        *("request.timeout_ms", "policy.max_citations", "server", "server.tool_errors", "search.defaults.max_results")
    }
    assert all(text.endswith(".") and text.isprintable() for text in loaded.problems)


@pytest.mark.rule("spec 5.3")
@pytest.mark.parametrize(
    ("yaml", "key", "near"),
    [
        ("request: {timeout: 5}", "request.timeout", "request.timeout_ms"),
        ("request: {timeout-ms: 5}", "request.timeout-ms", "request.timeout_ms"),
        ("policy: {max_citation: 5}", "policy.max_citation", "policy.max_citations"),
        ("polcy: {max_citations: 5}", "polcy", "policy"),
        ("timeout_ms: 5", "timeout_ms", ""),
        ("model_profiles: {turbo: {model: x}}", "model_profiles.turbo", ""),
        *(
            (f"model_profiles: {{answer: {{{name}: 1}}}}", f"model_profiles.answer.{name}", near)
            for name, near in {
                **dict.fromkeys(("temperature", "tool_choice", "metadata", "top_p", "truncation"), ""),
                "Model": "model_profiles.answer.model",
            }.items()
        ),
        ("model_profiles: {answer_quik: {}}", "model_profiles.answer_quik", "model_profiles.answer_quick"),
        ("OpenAI: {base_url: https://gateway.example/v1}", "OpenAI", "openai"),
        ("REQUEST: {timeout_ms: 5}", "REQUEST", "request"),
        ("manuals: {embeddings: {baseurl: a}}", "manuals.embeddings.baseurl", "manuals.embeddings.base_url"),
        *((f"{key}: see https://wiki.example", key, "") for key in ("zzzz", "notes", "$schema", "NO")),
        ("<<: {request: {max_retries: 1}}", "<<", ""),
        ("request.max_retries: 5", "request.max_retries", ""),
    ],
)
def test_an_unknown_key_is_a_warning_with_the_nearest_known_name(
    yaml: str, key: str, near: str, tmp_path: Path
) -> None:
    loaded = load(tmp_path, f"# a comment\n{yaml}\n")
    cure = f"did you mean {near}?" if near else "remove it."
    assert warning(loaded) == f"{key}: unknown key, so it does nothing (from {usual_place(tmp_path)}); {cure}"
    assert loaded.settings == Settings()


def test_an_unknown_key_below_openai_is_a_problem_because_a_misspelled_address_sends_the_key_elsewhere(
    tmp_path: Path,
) -> None:
    cures = {
        "base_ulr: https://gateway.example/v1": "did you mean openai.base_url?",
        "baseUrl: https://gateway.example/v1": "did you mean openai.base_url?",
        "headers: {a: b}": "did you mean openai.headers_env?",
        **dict.fromkeys(("url: gateway", "project: p", "ca_file: /etc/ssl/corp.pem", "host:"), "remove it."),
    }
    for text, cure in cures.items():
        told = problem(load(tmp_path, f"openai: {{{text}}}\n"))
        key = f"openai.{text.partition(':')[0]}"
        assert told.startswith(f"{key}: unknown key, where a misspelled one may send the API key elsewhere (from ")
        assert told.endswith(f"; {cure}")


def test_the_older_example_loads_with_warnings_only(tmp_path: Path) -> None:
    yaml = """
openai: {api_key_env: OPENAI_API_KEY, base_url: https://api.openai.com/v1}
request: { timeout_ms: 120000, max_retries: 3 }
responses: { stream: false, json_mode: false }
model_profiles:
  answer: {model: gpt-5-mini, reasoning_effort: medium, verbosity: medium}
  answer_quick: {model: gpt-5-nano, reasoning_effort: minimal, verbosity: low}
policy:
  search_triggers: ["today","now"]
  prefer_search_when_unsure: true
  max_citations: 3
  requery_attempts: 1
  require_dates_iso: true
search: {defaults: { recency_days: 60, max_results: 5, domains: [] }}
server: { transport: stdio, debug: false, debug_file: null, show_config_on_start: false }
"""
    loaded = load(tmp_path, yaml)
    assert loaded.problems == ()
    assert len(loaded.warnings) == 6
    assert loaded.settings.request.timeout_ms == 120_000
    assert value_of(loaded.settings, "model_profiles.answer_quick.reasoning_effort") == "minimal"


def test_a_number_in_the_file_that_is_out_of_range_is_brought_into_it(tmp_path: Path) -> None:
    for yaml, value, got in (("20", 10, "20"), ("-1", 0, "-1"), ("11.0", 10, "11"), (f"{10**29}", 10, f"{10**29}")):
        loaded = load(tmp_path, f"request:\n  max_retries: {yaml}\n")
        assert loaded.settings.request.max_retries == value
        assert warning(loaded) == (
            f"request.max_retries: expected an integer from 0 to 10, got {got} (a number), so {value} is used "
            f"(from {usual_place(tmp_path)}); correct or remove it."
        )


def test_a_time_zone_that_nobody_knows_is_a_problem(tmp_path: Path) -> None:
    expected = "locale.time_zone: expected the name of a time zone, such as Europe/Berlin or UTC, got "
    for zone in ("Tokio", "GMT+9", "UTC+9", "etc/gmt+9", "Europe", "+09:00", "a b", "x" * 300):
        loaded = load(tmp_path, environ={"MCP_TIME_ZONE": zone})
        assert problem(loaded).startswith(expected)
        assert loaded.settings.locale.time_zone == "Asia/Tokyo"
