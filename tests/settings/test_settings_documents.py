"""The examples load, the reference page is the schema's, and the schema is the model's."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.settings import Profile, Settings, load_settings
from responses_mcp.settings.schema import BY_KEY, PROFILES, SECTIONS, SETTINGS
from tests.settings.reference_table import BEGIN, END, settings_table

from .loading import clean

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config" / "config.yaml.example"
REFERENCE = ROOT / "docs" / "reference" / "config-reference.md"
NOT_CONFIGURED = {"openai.api_key", "openai.headers", "policy.instructions", "problems", "model_profiles"}


def fields(tree: Any, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for field in dataclasses.fields(tree):
        key, value = f"{prefix}{field.name}", getattr(tree, field.name)
        found |= fields(value, f"{key}.") if dataclasses.is_dataclass(value) else {key}
    return found


def test_the_schema_has_a_row_for_every_field_of_the_model_and_no_other() -> None:
    profile = {f"model_profiles.{name}.{field}" for name in PROFILES for field in fields(Profile())}
    assert set(BY_KEY) == (fields(Settings()) - NOT_CONFIGURED) | profile
    assert len(BY_KEY) == len(SETTINGS)
    names = [setting.env for setting in SETTINGS if setting.env]
    assert len(names) == len(set(names))
    assert not set(SECTIONS) & set(BY_KEY)


def test_the_specification_names_every_setting_whose_default_has_an_effect() -> None:
    # Manuals and research are off without a word of the user, and have contracts of their own.
    specification = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    unnamed = [
        setting.key
        for setting in SETTINGS
        if not setting.key.startswith(("manuals.", "research.", "model_profiles.search."))
        and not setting.above
        and setting.default not in (None, False, 0, (), {})
        and not re.search(rf"`{re.escape(setting.key)}[`:]", specification)
    ]
    assert not unnamed


def test_the_example_loads_as_it_is_with_three_profiles() -> None:
    loaded = clean(load_settings({}, config_path=str(EXAMPLE), home=ROOT / "nowhere"))
    assert {name: profile.model for name, profile in loaded.settings.model_profiles.items()} == {
        "answer": "gpt-5.4",
        "answer_detailed": "gpt-5.5",
        "answer_quick": "gpt-5.4-mini",
    }
    plain = dataclasses.replace(loaded.settings, model_profiles=Settings().model_profiles)
    assert plain == Settings(), "apart from the models the example holds the defaults"


@pytest.mark.rule("spec 12")
def test_the_example_shows_every_key_and_each_loads(tmp_path: Path) -> None:
    (tmp_path / "manuals").mkdir()
    text = re.sub(r"^( *)#(?=[a-z])", r"\1", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE)
    text = text.replace("source: builtin", "source: file").replace("ledger: false", "ledger: true")
    (tmp_path / "config.yaml").write_text(text, "utf-8")
    (tmp_path / "policy.md").write_bytes((ROOT / "config" / "policy.md.example").read_bytes())
    environ = {"AZURE_OPENAI_KEY": "q7" * 4}
    loaded = clean(load_settings(environ, config_path=str(tmp_path / "config.yaml"), home=tmp_path))
    instructions = {key for key in loaded.sources if key.startswith("policy.instructions")}
    from_file = {key for key, source in loaded.sources.items() if source.startswith("yaml:")}
    assert from_file - instructions == set(BY_KEY)


def test_the_example_names_every_variable() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert [s.env for s in SETTINGS if s.env and not re.search(rf"\[[^\]]*\b{s.env}\b[^\]]*\]", text)] == []


@pytest.mark.rule("spec 12")
def test_the_reference_page_holds_the_table_of_the_schema() -> None:
    page = REFERENCE.read_text("utf-8")
    table = page.split(BEGIN)[1].split(END)[0].strip()
    assert table == settings_table(), "run: python -m tests.settings.reference_table, and put it between the markers"


def test_the_message_on_the_reference_page_is_the_one_that_is_given(tmp_path: Path) -> None:
    loaded = load_settings({"OPENAI_MAX_RETRIES": "many"}, home=tmp_path)
    assert f"\n{loaded.problems[0]}\n" in REFERENCE.read_text("utf-8")
