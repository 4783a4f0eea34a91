"""Environment over file over defaults (spec 5.1), and the memory of where each value came from."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from responses_mcp.settings import Settings, load_settings
from responses_mcp.settings.forms import Number, Switch, Text, Url
from responses_mcp.settings.forms import Path as PathForm
from responses_mcp.settings.schema import SETTINGS, Setting
from tests.settings.loading import value_of

from .loading import clean, load, problem, usual_place, warning

VARIABLES = [setting for setting in SETTINGS if setting.env]  # names and ranges are those of the reference page
_BESIDE = {  # what these settings are nothing without
    "limits.day_cost_usd": "usage: {ledger: true}\n",
}
_SPECIAL: dict[str, tuple[dict[str, object], str | None]] = {  # texts with their values, and one that is none
    **dict.fromkeys(("server.debug", "server.line_mode", "server.toolsets"), ({}, None)),
    "manuals.formats": ({" md , json,": ("md", "json")}, "md,doc"),
    "research.stores": ({"a=b, c=d": ("a=b", "c=d")}, "a"),
    "manuals.exclude": ({" a.jp , b=c,": ("a.jp", "b=c")}, ",".join(f"a{n}" for n in range(101))),
    "locale.time_zone": ({"UTC": "UTC"}, "Tokio"),
}


def examples(setting: Setting) -> tuple[dict[str, object], str | None]:
    """Return texts that a variable may have with their values, and one that it may not have."""
    form = setting.form
    if isinstance(form, Number):
        return {f" {bound}\n": (int if form.whole else float)(bound) for bound in (form.low, form.high)}, "many"
    if isinstance(form, Switch):
        return {"1": True, "0": False, "true": True, "OFF": False, "yes": True}, "maybe"
    if isinstance(form, Url):
        return {"https://gateway.example/v1": "https://gateway.example/v1"}, "gateway"
    if isinstance(form, PathForm) or not isinstance(form, Text):
        return {}, "a\0b"
    return {f" {word} ": word for word in form.choices or ("gpt-5.4",)}, "gpt 5"


@pytest.mark.rule("spec 5.3")
def test_nothing_configured_gives_the_defaults_of_the_specification(tmp_path: Path) -> None:
    loaded = clean(load(tmp_path))
    assert loaded.settings == Settings()
    assert loaded.settings.openai.base_url == "https://api.openai.com/v1"
    assert (loaded.settings.request.timeout_ms, loaded.settings.request.max_retries) == (300_000, 3)
    assert set(loaded.sources.values()) == {"default"}


@pytest.mark.rule("spec 5.3", "M4.3")
@pytest.mark.parametrize("setting", VARIABLES, ids=lambda setting: setting.env)
def test_each_variable_sets_its_key_and_refuses_what_it_cannot_be(setting: Setting, tmp_path: Path) -> None:
    key, name, beside = setting.key, str(setting.env), _BESIDE.get(setting.key)
    good, bad = _SPECIAL.get(key) or examples(setting)
    for text, value in good.items():
        loaded = clean(load(tmp_path, beside, {name: text}))
        assert (value_of(loaded.settings, key), loaded.sources[key]) == (value, f"env:{name}")
        assert type(value_of(loaded.settings, key)) is type(value)
    if bad is not None:
        loaded = load(tmp_path, beside, {name: bad})
        assert problem(loaded).startswith(f"{key}: expected {setting.form.expected}, got ")
        assert f"(from env {name}); " in problem(loaded)
        assert loaded.sources[key] == "default"


@pytest.mark.rule("spec 5.3")
@pytest.mark.parametrize(
    "setting", [each for each in VARIABLES if isinstance(each.form, Number)], ids=lambda setting: setting.env
)
def test_a_number_out_of_its_range_is_brought_into_it_unless_the_range_is_of_the_contract(
    setting: Setting, tmp_path: Path
) -> None:
    form = setting.form
    assert isinstance(form, Number)
    step, is_strict = (1 if form.whole else 0.01), form.strict
    below = form.low if form.below is None else setting.default
    for text, bound in {str(form.low - step): below, str(form.high + step): form.high}.items():
        loaded = load(tmp_path, _BESIDE.get(setting.key), {str(setting.env): text})
        said = problem(loaded) if is_strict else warning(loaded)
        assert said.startswith(f"{setting.key}: expected {setting.form.expected}, got ")
        if not is_strict:
            assert value_of(loaded.settings, setting.key) == bound
            assert f" (a number), so {bound} is used (from env {setting.env}); " in said
            assert loaded.sources[setting.key] == f"env:{setting.env}"


@pytest.mark.rule("spec 5.1")
def test_the_environment_wins_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    yaml = "request: {timeout_ms: 1000, max_retries: 1}\n"
    loaded = clean(load(tmp_path, yaml, {"OPENAI_MAX_RETRIES": "2"}))
    request = loaded.settings.request
    assert (request.timeout_ms, request.max_retries, request.max_connections) == (1000, 2, 256)
    assert loaded.sources["request.timeout_ms"] == f"yaml:{usual_place(tmp_path)}"
    assert loaded.sources["request.max_retries"] == "env:OPENAI_MAX_RETRIES"
    assert loaded.sources["request.max_connections"] == "default"


@pytest.mark.rule("spec 5.1")
def test_mappings_merge_and_lists_are_replaced(tmp_path: Path) -> None:
    loaded = clean(load(tmp_path, "search: {defaults: {domains: [a.jp, b.jp]}}\n"))
    assert loaded.settings.search.defaults.domains == ("a.jp", "b.jp")
    assert loaded.settings.search.defaults.recency_days == 60
    assert clean(load(tmp_path, "search: {defaults: {domains: []}}\n")).settings.search.defaults.domains == ()


def test_empty_variables_and_null_in_the_file_count_as_unset_wherever_no_profile_is_named(tmp_path: Path) -> None:
    for text in ("", " ", "\t\n"):
        environ = {str(setting.env): text for setting in VARIABLES} | {"OPENAI_API_KEY": ""}
        assert clean(load(tmp_path, environ=environ)).settings == Settings()
    yaml = (
        "request: {timeout_ms: null}\nserver:\nmodel_profiles: ~\npolicy: {system: {path: }}\nopenai: {headers_env: }\n"
    )
    loaded = clean(load(tmp_path, yaml))
    assert loaded.settings == Settings()
    assert set(loaded.sources.values()) == {"default"}


def test_integers_from_the_environment_are_strict_decimal(tmp_path: Path) -> None:
    for text in ("1.5", "1e3", "0x10", "1_000", "٣", "３", "3 4", "true", "--1", "9" * 31, "${RETRIES}"):
        loaded = load(tmp_path, environ={"OPENAI_API_TIMEOUT": text})
        assert problem(loaded).startswith("request.timeout_ms: expected an integer from 1 to 86400000, got ")
        assert loaded.settings.request.timeout_ms == 300_000


def test_a_wrong_variable_falls_back_to_the_default_and_hides_what_the_file_says(tmp_path: Path) -> None:
    loaded = load(tmp_path, "request: {max_retries: 7}\n", {"OPENAI_MAX_RETRIES": "many"})
    assert problem(loaded).startswith("request.max_retries:")
    assert loaded.settings.request.max_retries == 3
    assert loaded.sources["request.max_retries"] == "default"
    loaded = clean(load(tmp_path, "request: {max_retries: many}\n", {"OPENAI_MAX_RETRIES": "4"}))
    assert loaded.settings.request.max_retries == 4


def test_only_the_value_1_switches_line_mode_on(tmp_path: Path) -> None:
    for text, source in {"1": "env:MCP_LINE_MODE", **dict.fromkeys(("0", "true", "yes"), "default")}.items():
        loaded = clean(load(tmp_path, "", {"MCP_LINE_MODE": text}))
        assert (loaded.settings.server.line_mode, loaded.sources["server.line_mode"]) == (text == "1", source)
        assert clean(load(tmp_path, "server: {line_mode: true}\n", {"MCP_LINE_MODE": text})).settings.server.line_mode


def test_the_environment_of_the_process_is_never_read_unless_it_is_what_is_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("one", "two", "three")):
        load(tmp_path / name, f"request: {{max_retries: {number}}}\n")
    for name in (*(str(each.env) for each in VARIABLES), "OPENAI_API_KEY", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(tmp_path / "three"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "three")

    def retries(environ: Mapping[str, str]) -> int:
        return load_settings(environ, windows=False).settings.request.max_retries

    assert clean(load_settings({"HOME": str(tmp_path)}, windows=False)).settings == Settings()
    assert retries({"HOME": str(tmp_path / "one"), "USERPROFILE": str(tmp_path / "two")}) == 0
    assert retries({"HOME": "", "USERPROFILE": str(tmp_path / "two")}) == 1
    alone = clean(load_settings({"USAGE_LEDGER": "1"}, toolsets="answer,research", windows=False)).settings
    assert (alone.request.max_retries, alone.research.state_dir) == (3, None), "without a home of its own"
    monkeypatch.delenv("OPENAI_MAX_RETRIES")
    assert retries(os.environ) == 2
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert retries(os.environ) == 2, "from the system"
