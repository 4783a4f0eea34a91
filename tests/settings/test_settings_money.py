"""Settings about money: what a profile passes on, what may be spent, what tokens cost, and where the ledger lies."""

import os
import sys
from pathlib import Path

import pytest

from responses_mcp.settings import FileSearch, ModelPrice, Profile, UserLocation, load_settings
from responses_mcp.settings.files import state_folder

from .loading import clean, load, problem, usual_place, warning

FILTERS = {"type": "and", "filters": [{"type": "gte", "key": "year", "value": 2025}]}


def profiles(home: Path, yaml: str) -> dict[str, Profile]:
    return dict(clean(load(home, f"model_profiles: {yaml}\n")).settings.model_profiles)


def test_a_profile_says_what_is_passed_on_and_the_others_take_it_from_answer(tmp_path: Path) -> None:
    yaml = "{answer: {max_output_tokens: 900, store: false, blocked_domains: [a.jp]}, search: {store: true}}"
    found = profiles(tmp_path, yaml)
    assert found["answer"] == Profile(max_output_tokens=900, store=False, blocked_domains=("a.jp",))
    assert found["search"] == Profile(
        reasoning_effort="low", max_output_tokens=900, store=True, blocked_domains=("a.jp",)
    )


def test_a_place_and_a_search_of_files_are_taken_from_answer_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    yaml = (
        "{answer: {user_location: {country: JP, city: Minato}, file_search: {vector_store_ids: [a], "
        f"max_num_results: 3, filters: {FILTERS}}}}}, "
        "answer_quick: {}, answer_detailed: {user_location: {country: US}, file_search: {vector_store_ids: [b]}}}"
    )
    found = profiles(tmp_path, yaml)
    assert found["answer_quick"] == found["answer"]
    assert found["answer"].user_location == UserLocation(country="JP", city="Minato")
    assert found["answer"].file_search == FileSearch(vector_store_ids=("a",), max_num_results=3, filters=FILTERS)
    assert found["answer_detailed"].user_location == UserLocation(country="US")
    assert found["answer_detailed"].file_search == FileSearch(vector_store_ids=("b",))


@pytest.mark.parametrize(
    ("yaml", "named"),
    [
        ("service_tier: cheap", "service_tier: expected one of auto, default, flex"),
        ("user_location: {country: Japan}", 'country: expected two capital letters such as JP, got "Japan"'),
        ('user_location: {city: "a\\nb"}', "city: expected text in one line"),
        ("file_search: {filters: [1]}", "filters: expected a mapping, got a list"),
        ("file_search: {filters: {a: 1.0e+400}}", "filters: expected a mapping, got a mapping"),
        ("file_search: {vector_store_ids: x}", "vector_store_ids: expected a list of at most 100 names"),
    ],
)
def test_what_cannot_be_passed_on_is_a_problem(tmp_path: Path, yaml: str, named: str) -> None:
    assert named in problem(load(tmp_path, f"model_profiles: {{answer: {{{yaml}}}}}\n"))


def test_prices_are_read_by_model_and_their_source_is_kept(tmp_path: Path) -> None:
    loaded = clean(
        load(tmp_path, "prices: {gpt-5.5: {input: 5, output: 30}, m: {input: 1, output: 2, web_search: 0}}\n")
    )
    assert dict(loaded.settings.prices) == {
        "gpt-5.5": ModelPrice(input=5.0, output=30.0),
        "m": ModelPrice(input=1.0, output=2.0, web_search=0.0),
    }
    assert loaded.sources["prices.gpt-5.5"] == f"yaml:{usual_place(tmp_path)}"


@pytest.mark.parametrize(
    "yaml", ["[1]", "5", "{m: 5}", "{m: {input: 1}}", "{m: {input: 1, output: -1}}", "{m: {input: 1, output: .inf}}"]
)
def test_a_wrong_price_is_a_problem_and_no_price_counts(tmp_path: Path, yaml: str) -> None:
    loaded = load(tmp_path, f"prices: {yaml}\n")
    assert problem(loaded).startswith("prices: expected a mapping of model ids to mappings with input, output")
    assert dict(loaded.settings.prices) == {}


def test_a_limit_for_a_day_needs_the_ledger_that_knows_the_day(tmp_path: Path) -> None:
    told = problem(load(tmp_path, "limits: {day_cost_usd: 2}\n"))
    assert told.startswith("limits.day_cost_usd: expected usage.ledger to be true, ")
    limits = clean(load(tmp_path, "limits: {day_cost_usd: 2}\nusage: {ledger: true}\n")).settings.limits
    assert (limits.day_cost_usd, limits.session_cost_usd, limits.session_calls) == (2.0, None, None)


def test_the_state_folder_is_named_only_where_something_is_kept(tmp_path: Path) -> None:
    assert clean(load(tmp_path)).settings.research.state_dir is None
    kept = clean(load(tmp_path, "usage: {ledger: true}\n")).settings.research.state_dir
    folder = state_folder({}, tmp_path, windows=False, mac=sys.platform == "darwin")
    assert kept == f"{folder}{os.sep}openai-responses-mcp"
    named = clean(load(tmp_path, "research: {state_dir: kept}\n")).settings.research.state_dir
    assert named == str(usual_place(tmp_path).parent / "kept")


def test_the_state_folder_is_the_one_of_the_system() -> None:
    home, state, local = Path("/home/me"), Path("/state").absolute(), Path("/local").absolute()
    for environ, windows, mac, folder in (
        ({}, False, False, home / ".local" / "state"),
        ({"XDG_STATE_HOME": str(state)}, False, False, state),
        ({"XDG_STATE_HOME": "state"}, False, False, home / ".local" / "state"),
        ({}, False, True, home / "Library" / "Application Support"),
        ({"LOCALAPPDATA": str(local)}, True, False, local),
    ):
        assert state_folder(environ, home, windows=windows, mac=mac) == folder
    assert state_folder({}, None, windows=False, mac=False) is None


def test_the_folder_of_a_relative_home_is_absolute() -> None:
    loaded = load_settings({"USAGE_LEDGER": "1", "HOME": "relative"}, windows=False)
    assert Path(str(loaded.settings.research.state_dir)).is_absolute()


def test_a_hand_off_without_the_toolset_that_takes_it_is_warned_of(tmp_path: Path) -> None:
    lonely = "request: {handoff_ms: 5000}\n"
    assert warning(load(tmp_path, lonely)).startswith("request.handoff_ms: no call is handed off without the toolset")
    clean(load(tmp_path, f"{lonely}server: {{toolsets: [answer, research]}}\n"))
