"""The document of --show-config: version, sources, effective values, warnings; problems if there are any."""

import json
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from responses_mcp.secrets import MASK
from responses_mcp.settings import LoadedSettings, OpenAISettings, Profile, RequestSettings, Settings, show_config
from responses_mcp.settings.system_policy import SYSTEM_POLICY_REV

from .loading import CANARY, load, usual_place


def document(loaded: LoadedSettings) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(show_config(loaded, "1.2.3"))
    return found


@pytest.mark.rule("spec 5.5")
def test_the_document_is_indented_json_with_the_problems_if_there_are_any(tmp_path: Path) -> None:
    loaded = load(tmp_path, "zzzz: 1\n", {"MAX_CITATIONS": "many"})
    assert show_config(loaded, "1.2.3").startswith('{\n  "version": "1.2.3",\n  "sources": {\n')
    assert list(document(loaded)) == ["version", "sources", "effective", "warnings", "problems"]
    assert document(loaded)["problems"] == list(loaded.problems)
    assert document(loaded)["warnings"] == list(loaded.warnings)
    assert "problems" not in document(load(tmp_path, ""))


def test_every_setting_that_is_shown_has_a_source(tmp_path: Path) -> None:
    yaml = "model_profiles: {answer: {model: gpt-5.4}, answer_quick: null}\n"
    environ = {"MODEL_DETAILED": "gpt-5.5", "DEBUG": "1", "OPENAI_API_KEY": CANARY, "MAX_CITATIONS": "x"}
    found = document(load(tmp_path, yaml, environ))
    shown = {f"{section}.{name}" for section, tree in found["effective"].items() for name in tree}
    missing = {key for key in shown if not any(each.startswith(key) for each in found["sources"])}
    assert not missing
    assert found["sources"]["model_profiles.answer_quick"] == f"yaml:{usual_place(tmp_path)}"
    assert found["sources"]["openai.api_key_present"] == "env:OPENAI_API_KEY"
    assert found["sources"]["policy.max_citations"] == "default"


def test_of_the_instructions_the_revision_is_shown(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("規則 one", encoding="utf-8")
    for system, revision in (
        ("", SYSTEM_POLICY_REV),
        ("source: file, path: ~/p.md", None),
        ("source: file, path: ~/p.md, merge: append", SYSTEM_POLICY_REV),
    ):
        loaded = load(tmp_path, f"policy: {{system: {{{system}}}}}\n")
        assert document(loaded)["effective"]["policy"]["instructions"] == {"revision": revision}
        assert "規則" not in show_config(loaded, "1")


def test_effective_values_are_those_of_the_settings(tmp_path: Path) -> None:
    yaml = "search: {defaults: {domains: [a.jp]}}\nmodel_profiles: {answer_detailed: {verbosity: high}}\n"
    effective = document(load(tmp_path, yaml, {"OPENAI_MAX_RETRIES": "0"}))["effective"]
    assert effective["request"] == asdict(RequestSettings(max_retries=0))
    assert effective["search"]["defaults"] == {"recency_days": 60, "max_results": 5, "domains": ["a.jp"]}
    detailed = {"model": "gpt-5.2", "reasoning_effort": "medium", "verbosity": "high"}
    assert effective["model_profiles"]["answer_detailed"] == detailed
    assert "answer_quick" not in effective["model_profiles"]
    removed = document(load(tmp_path, "model_profiles: {answer: null}\n"))["effective"]
    assert removed["model_profiles"] == {"answer": None}
    yaml, environ = "openai: {headers_env: {api-key: AZURE}}\n", {"OPENAI_API_KEY": CANARY, "AZURE": "hushhush"}
    openai = document(load(tmp_path, yaml, environ))["effective"]["openai"]
    assert openai.keys() == {"api_key_env", "allow_http", "base_url", "headers_env", "api_key_present"}
    assert (openai["api_key_present"], effective["openai"]["api_key_present"]) == (True, False)
    assert openai["headers_env"] == {"api-key": "AZURE"}


def test_japanese_is_readable_and_odd_characters_are_escaped(tmp_path: Path) -> None:
    text = show_config(load(tmp_path, environ={"DEBUG": "/ログ/\udcff.log"}), "1")
    assert "ログ" in text
    assert "\\\\udcff.log" in text
    text.encode()


def test_a_secret_in_the_wrong_place_of_settings_made_by_hand_is_masked() -> None:
    secret = "plum.otter-harbor"
    settings = Settings(
        openai=OpenAISettings(api_key=secret, headers=MappingProxyType({"a": "violet-lamp"})),
        model_profiles=MappingProxyType({"answer": Profile(model=f"x{secret}", verbosity="violet-lamp")}),
    )
    text = show_config(LoadedSettings(settings=settings, sources={}, problems=(), warnings=(secret,)), "1")
    assert secret not in text
    assert "violet-lamp" not in text


@pytest.mark.parametrize("key", ["none", "lm-studio"])
def test_what_stands_for_no_key_hides_nothing_of_the_configuration(key: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, None, {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": "http://localhost:1234/v1"})
    assert MASK not in show_config(loaded, "1")
