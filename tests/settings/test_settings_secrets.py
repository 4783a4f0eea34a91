"""Secrets stay in: whatever a person does with a key, no message and no document shows it (spec 8)."""

import json
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.settings import LoadedSettings, show_config
from responses_mcp.settings.findings import printable
from responses_mcp.settings.schema import SETTINGS

from .loading import CANARY, clean, load, problem

pytestmark = pytest.mark.rule("P11")

OPAQUE = "plum.otter-harbor_violet.lamp"
"""A secret that no form gives away: only knowing it helps."""


def silent(loaded: LoadedSettings, *secrets: str) -> None:
    """Assert that nothing that can be printed holds a secret, nor the first half of one."""
    told = [*loaded.problems, *loaded.warnings, show_config(loaded, "0.9.0")]
    told += [*loaded.sources, *loaded.sources.values()]
    for secret in secrets:
        assert not [text for text in told if secret in text or secret[: len(secret) // 2] in text]


def in_parts(names: list[str]) -> list[list[str]]:
    """Return the names in parts that are small enough for all that is wrong with them to be said."""
    parts = len(names) // 40 + 1
    return [names[part::parts] for part in range(parts)]


def test_a_key_in_its_place_is_kept_and_never_shown(tmp_path: Path) -> None:
    yaml = "openai: {api_key_env: TEAM, headers_env: {api-key: AZURE, authorization: GATE}}\n"
    environ = {"OPENAI_API_KEY": CANARY, "TEAM": OPAQUE, "AZURE": OPAQUE[::-1], "GATE": "Bearer hushhushhush"}
    loaded = clean(load(tmp_path, yaml, environ))
    assert loaded.settings.openai.api_key == OPAQUE
    silent(loaded, CANARY, OPAQUE, OPAQUE[::-1], "hushhushhush")


@pytest.mark.parametrize(
    "form", ["{}", "x{}", "{} y", "https://u:{}@h", "http://{}.h/?a@b", "https://h/?k={}", "http://{}.h", "/tmp/{}*"]
)
def test_a_key_in_the_wrong_variable_is_not_shown(form: str, tmp_path: Path) -> None:
    names = sorted({setting.env for setting in SETTINGS if setting.env} - {"OPENAI_API_KEY"})
    for key in (CANARY, OPAQUE):
        for wrong in (*in_parts(names), ["OPENAI_API_KEY"]):
            loaded = load(tmp_path, environ={"OPENAI_API_KEY": key, **dict.fromkeys(wrong, form.format(key))})
            silent(loaded, key)


def test_the_key_is_no_value_of_another_setting(tmp_path: Path) -> None:
    for name in ("MODEL_ANSWER", "DEBUG", "MANUALS_ROOT"):
        loaded = load(tmp_path, environ={"OPENAI_API_KEY": OPAQUE, name: OPAQUE})
        assert "looks like a key" in problem(loaded)


@pytest.mark.parametrize("form", ["{}", "'a {} b'", "[{}]", "{{a: {}}}", "{{{}: a}}", "!!int {}", "!{} x"])
def test_a_key_in_the_wrong_place_of_the_file_is_not_shown(form: str, tmp_path: Path) -> None:
    wrong = form.format(CANARY)
    for keys in in_parts([setting.key for setting in SETTINGS]):
        tree: dict[str, Any] = {}
        for *sections, name in (key.split(".") for key in keys):
            section = tree
            for each in sections:
                section = section.setdefault(each, {})
            section[name] = "WRONG"
        loaded = load(tmp_path, json.dumps(tree).replace('"WRONG"', wrong), {"OPENAI_API_KEY": CANARY})
        assert len(loaded.problems) == (1 if wrong.startswith("!") else len(keys))  # no file may have tags
        silent(loaded, CANARY)


@pytest.mark.parametrize(
    "yaml",
    [
        *("{}: a", "a: {}: b", "a: *{}", "a: &{0} b\nb: &{0} c", "a: '{}", "{0}: a\n{0}: b", "request: {{<<: {}}}"),
        *("%{}\n---", "- {}", "{}", "!{} a: b"),
    ],
)
def test_a_key_anywhere_in_a_broken_file_is_not_shown(yaml: str, tmp_path: Path) -> None:
    for key in (CANARY, OPAQUE):
        loaded = load(tmp_path, yaml.format(key) + "\n", {"OPENAI_API_KEY": key})
        silent(loaded, key)


@pytest.mark.rule("spec 5.3")
@pytest.mark.parametrize(
    "place", ["openai: {{api_key: {}}}", "openai: {{apiKey: {}}}", "api_key: {}", "OPENAI_API_KEY: {}"]
)
def test_a_key_in_the_file_is_a_problem_that_says_where_it_belongs(place: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, place.format(CANARY) + "\n")
    assert ": expected no API key in a file, got one (not shown) (from " in problem(loaded)
    assert "remove it and put the key into the environment variable that openai.api_key_env names" in problem(loaded)
    assert loaded.settings.openai.api_key is None
    silent(loaded, CANARY)
    silent(load(tmp_path, place.format(OPAQUE)), OPAQUE)


@pytest.mark.parametrize(
    "yaml",
    [
        "prices: {{{}: {{input: 1, output: 2}}}}",
        "openai: {{headers_env: {{{}: HOME}}}}",
        "model_profiles: {{answer: {{request: {{metadata: {{a: [{}]}}}}}}}}",
        "model_profiles: {{answer: {{web_search: {{{}: 1}}}}}}",
        "model_profiles: {{{}: {{}}}}",
    ],
)
def test_a_key_in_a_mapping_that_is_kept_is_a_finding_that_does_not_show_it(yaml: str, tmp_path: Path) -> None:
    for key in (CANARY, OPAQUE):
        loaded = load(tmp_path, yaml.format(key) + "\n", {"OPENAI_API_KEY": key, "HOME": "x"})
        silent(loaded, key)
        assert len(loaded.problems) + len(loaded.warnings) == 1 or key == OPAQUE


def test_the_key_of_either_variable_is_secret_and_a_header_without_its_scheme(tmp_path: Path) -> None:
    for yaml, environ in (
        ("openai: {api_key_env: TEAM}", {"OPENAI_API_KEY": OPAQUE, "TEAM": "another-key-of-us"}),
        ("openai: {api_key_env: TEAM}", {"OPENAI_API_KEY": "another-key-of-us", "TEAM": OPAQUE}),
        ("openai: {headers_env: {authorization: GATE}}", {"GATE": f"Bearer {OPAQUE}"}),
        ("", {"OPENAI_API_KEY": f"{OPAQUE}\n"}),
    ):
        loaded = load(tmp_path, f"{yaml}\n", {**environ, "MCP_TOOLSETS": f"x{OPAQUE}"})
        assert 'got "x[redacted]" in it' in problem(loaded)
        silent(loaded, OPAQUE)
        for retries in (f"{'x ' * 25}{OPAQUE}", f"{'x ' * 9}{OPAQUE}"):
            silent(load(tmp_path, f"{yaml}\n", {**environ, "OPENAI_MAX_RETRIES": retries}), OPAQUE)
        silent(load(tmp_path, f"{yaml}\n", environ, toolsets=f"answer,{OPAQUE}"), OPAQUE)
    silent(load(tmp_path, "", {"OPENAI_API_KEY": OPAQUE}, debug=OPAQUE), OPAQUE)


def test_a_short_key_or_one_that_was_not_filled_in_may_be_a_word_of_other_values(tmp_path: Path) -> None:
    yaml = "openai: {base_url: https://llm.acme.example/v1, headers_env: {OpenAI-Organization: ORG}}\n"
    environ = {"OPENAI_API_KEY": "lm-studio", "ORG": "acme", "MODEL_ANSWER": "lm-studio/acme-7b", "DEBUG": "/acme.log"}
    loaded = clean(load(tmp_path, yaml, environ))
    assert loaded.settings.openai.base_url == "https://llm.acme.example/v1"
    assert loaded.settings.model_profiles["answer"].model == "lm-studio/acme-7b"
    clean(load(tmp_path, "", {"OPENAI_API_KEY": "put your key here", "MODEL_ANSWER": "gpt-here", "DEBUG": "~/where"}))


def test_text_from_outside_stays_on_one_line() -> None:
    assert printable("a\nb\x1b[2Jc\u202ed\ud800é日") == "a\\nb\\x1b[2Jc\\u202ed\\ud800é日"
