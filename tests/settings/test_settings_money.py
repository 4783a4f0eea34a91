"""Settings about money: what a profile passes on, what may be spent, what tokens cost, and where the ledger lies."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from responses_mcp.settings import OpenAISettings, Profile, load_settings
from responses_mcp.settings.files import user_folder
from responses_mcp.settings.model import ModelPrice
from responses_mcp.testing import as_stream, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.processes import WAIT

from .loading import clean, load, problem, usual_place


def test_what_is_passed_on_is_merged_with_that_of_answer_member_by_member(tmp_path: Path) -> None:
    yaml = """
model_profiles:
  answer:
    blocked_domains: [a.jp]
    request: {max_output_tokens: 900, store: false, reasoning: {summary: auto}, metadata: {a: {b: [1, x, null]}}}
    web_search: {user_location: {type: approximate, country: NO}}
  answer_quick: {}
  answer_detailed: {request: {store: null, metadata: {c: on}, new: 1:30}}
  search: {web_search: {user_location: null, search_context_size: low}, request: {}}
"""
    loaded = clean(load(tmp_path, yaml))
    found = loaded.settings.model_profiles
    kept = {"max_output_tokens": 900, "reasoning": {"summary": "auto"}}
    request = {**kept, "store": False, "metadata": {"a": {"b": [1, "x", None]}}}
    place = {"user_location": {"type": "approximate", "country": "NO"}}
    assert found["answer"] == Profile(blocked_domains=("a.jp",), request=request, web_search=place)
    assert found["answer_quick"] == found["answer"]
    assert found["answer_detailed"] == Profile(
        blocked_domains=("a.jp",),
        request={**kept, "metadata": {"c": "on"}, "new": "1:30"},
        web_search=place,
    )
    assert dict(found["search"].web_search) == {"search_context_size": "low"}
    assert loaded.sources["model_profiles.search.web_search"] == f"yaml:{usual_place(tmp_path)}"
    with pytest.raises(TypeError):
        found["answer"].request["store"] = True  # type: ignore[index]


def test_what_cannot_be_passed_on_is_a_problem(tmp_path: Path) -> None:
    wrong = {
        "file_search: [1]": "file_search: expected members of the tool that searches files, got a list (",
        "file_search: {filters: {a: 1.0e+400}}": "got one with a number that JSON does not have (",
        "file_search: {score_threshold: 0.3}": "got score_threshold among them (",
        "web_search: {filters: []}": "got a list for filters (",
        "request: {reasoning: high}": 'got "high" for reasoning (',
        "request: {text: 5}": "got 5 (a number) for text (",
        **{f"request: {{store: {text}}}": "for store (" for text in ("0", "'false'", "never")},
        "request: {max_output_tokens: '900'}": 'got "900" for max_output_tokens (',
        "request: {max_tool_calls: 0}": "got 0 (a number) for max_tool_calls (",
        "request: {service_tier: [flex]}": "got a list for service_tier (",
        "request: 5": "request: expected members of the body of a request, got 5 (a number) (",
        "web_search: [a]": "web_search: expected members of the tool that searches the web, got a list (",
        "web_search: {type: web_search}": "web_search: expected members of the tool that searches the web, got type among them (",
    }
    own = ("model", "input", "instructions", "tools", "stream", "background", "include", "previous_response_id")
    for name in own:
        told = f"request: expected members of the body of a request, got {name} among them ("
        wrong[f"request: {{{name}: null}}"] = told
    for yaml, told in wrong.items():
        assert told in problem(load(tmp_path, f"model_profiles: {{answer: {{{yaml}}}}}\n"))


async def test_an_answer_that_nobody_is_to_keep_is_kept_by_nobody_however_that_is_written(tmp_path: Path) -> None:
    # The API refuses `store: "no"`, and a refused parameter is left out of the next request.
    for word in ("no", "off", "No", "false"):
        loaded = clean(load(tmp_path, f"model_profiles: {{answer: {{request: {{store: {word}}}}}}}\n"))
        async with open_fake_api(as_stream(bodies.searched())) as api:
            openai = OpenAISettings(base_url=api.base_url, api_key="k")
            async with connected_client(replace(loaded.settings, openai=openai)) as client:
                with trio.fail_after(WAIT):
                    await client.call("answer", {"query": "q"})
            assert [request.json["store"] for request in api.requests] == [False]


def test_a_member_that_was_a_field_of_the_profile_is_a_problem_that_names_its_new_place(tmp_path: Path) -> None:
    of_request = "max_output_tokens max_tool_calls service_tier store prompt_cache_key safety_identifier"
    of_search = "search_context_size external_web_access user_location"
    moved = {"request": of_request.split(), "web_search": of_search.split()}
    for profile in ("answer", "answer_detailed", "answer_quick", "search"):
        fields = "".join(f"    {name}: {{country: JP}}\n" for names in moved.values() for name in names)
        loaded = load(tmp_path, f"model_profiles:\n  {profile}:\n    model: m\n{fields}")
        assert [text.partition(" (from ")[0] for text in loaded.problems] == [
            f"model_profiles.{profile}.{name}: expected it below model_profiles.{profile}.{place}, "
            "whose members go into the request as they are"
            for place, names in moved.items()
            for name in names
        ]
        assert loaded.problems[3].endswith(f"; write model_profiles.{profile}.request.store.")
        assert loaded.settings.model_profiles[profile].store


@pytest.mark.parametrize(
    ("yaml", "place"),
    [
        ("model_profiles: {answer_quick: {maxOutputTokens: 9}}", "answer_quick.request.max_output_tokens"),
        ("model_profiles: {search: {Search-Context-Size: low}}", "search.web_search.search_context_size"),
        *((f"{at}: {{store: false}}", "answer.request.store") for at in ("request", "model_profiles", "server")),
        *((f"openai: {{{name}: x}}", f"answer.request.{name}") for name in ("store", "service_tier")),
        ("store: false", "answer.request.store"),
    ],
)
def test_a_member_in_another_spelling_or_section_is_a_problem_too(yaml: str, place: str, tmp_path: Path) -> None:
    assert problem(load(tmp_path, f"{yaml}\n")).endswith(f"; write model_profiles.{place}.")


def test_prices_are_read_by_model(tmp_path: Path) -> None:
    yaml = (
        "prices: {gpt-5.5: {input: 5, output: 30, cached_input: null}, m: {input: 1, output: 2, web_search: 0}, n: ~}"
    )
    loaded = clean(load(tmp_path, yaml))
    assert dict(loaded.settings.prices) == {
        "gpt-5.5": ModelPrice(input=5.0, output=30.0),
        "m": ModelPrice(input=1.0, output=2.0, web_search=0.0),
    }
    assert loaded.sources["prices"] == f"yaml:{usual_place(tmp_path)}"


def test_a_wrong_price_is_a_problem_and_no_price_counts(tmp_path: Path) -> None:
    for price in (
        "[1]",
        "5",
        "{m: 5}",
        *(f"{{m: {{input: 1{more}}}}}" for more in ("", ", output: -1", ", output: .inf")),
    ):
        loaded = load(tmp_path, f"prices: {price}\n")
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
    folder = user_folder("state", {}, tmp_path, windows=False)
    assert kept == f"{folder}{os.sep}openai-responses-mcp"
    named = clean(load(tmp_path, "research: {state_dir: kept}\n")).settings.research.state_dir
    assert named == str(usual_place(tmp_path).parent / "kept")


def test_the_folder_of_a_relative_home_is_absolute() -> None:
    loaded = load_settings({"USAGE_LEDGER": "1", "HOME": "relative"}, windows=False)
    assert Path(str(loaded.settings.research.state_dir)).is_absolute()


def test_what_is_to_become_of_runs_at_the_end_of_a_server_is_a_problem_that_says_what_does(tmp_path: Path) -> None:
    said = problem(load(tmp_path, "research: {on_exit: cancel}\n"))
    assert "leaves its runs to the API" in said
    assert "research_cancel" in said
