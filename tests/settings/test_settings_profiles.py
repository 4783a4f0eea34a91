"""Model profiles: which exist, and what they take from `answer` (spec 3.0.1)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from responses_mcp.cli import configuration_shown
from responses_mcp.commands.doctor.configuration import check_configuration
from responses_mcp.settings import OpenAISettings, Profile
from responses_mcp.testing import as_stream, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.processes import WAIT

from .loading import clean, load, problem, usual_place


@pytest.mark.rule("spec 3.0")
def test_the_profiles_are_those_of_the_file_and_of_variables_and_lack_what_answer_has(tmp_path: Path) -> None:
    of_quick, named = {"answer_quick": Profile(model="mini")}, Profile(model="a")
    for yaml, environ, profiles in (
        ("", {}, {"answer": Profile(model="gpt-5.2", reasoning_effort="medium", verbosity="medium")}),
        ("answer_quick: {}, answer: {model: a}", {}, {"answer": named, "answer_quick": named}),
        ("answer_quick: {model: null}, answer: {model: a}", {}, {"answer": named, "answer_quick": named}),
        ("answer_quick: {verbosity: ~}", {"MODEL_QUICK": "mini"}, {"answer": Profile(), **of_quick}),
        ("answer: null, answer_quick: ~", {"MODEL_ANSWER": "a", "MODEL_QUICK": "mini"}, {"answer": named, **of_quick}),
        (
            "answer: {blocked_domains: [a.jp], background: true}, answer_quick: {blocked_domains: [], background: no}",
            {"MODEL_DETAILED": "b"},
            {
                "answer": Profile(blocked_domains=("a.jp",), background=True),
                "answer_detailed": Profile(model="b", blocked_domains=("a.jp",), background=True),
                "answer_quick": Profile(background=False),
            },
        ),
    ):
        found = clean(load(tmp_path, f"model_profiles: {{{yaml}}}\n", environ)).settings.model_profiles
        assert dict(found) == profiles
        with pytest.raises(TypeError):
            found["answer"] = Profile()  # type: ignore[index]


def test_a_wrong_field_counts_as_a_missing_one(tmp_path: Path) -> None:
    for yaml, environ, key, profile in (
        ("answer_quick: {reasoning_effort: fast}", {}, "reasoning_effort: expected one of none, ", Profile()),
        ("answer: {verbosity: low}", {"MODEL_QUICK": "two words"}, "model: expected text ", Profile(verbosity="low")),
    ):
        loaded = load(tmp_path, f"model_profiles: {{{yaml}}}\n", environ)
        assert problem(loaded).startswith(f"model_profiles.answer_quick.{key}")
        assert loaded.settings.model_profiles["answer_quick"] == profile


@pytest.mark.rule("spec 3.0")
def test_a_profile_takes_what_it_lacks_from_answer_with_its_source(tmp_path: Path) -> None:
    yaml = "model_profiles: {answer: {verbosity: low}, answer_detailed: {reasoning_effort: high}}\n"
    loaded = clean(load(tmp_path, yaml, {"MODEL_ANSWER": "gpt-5.4"}))
    assert loaded.settings.model_profiles["answer_detailed"] == Profile(
        model="gpt-5.4", reasoning_effort="high", verbosity="low"
    )
    file = f"yaml:{usual_place(tmp_path)}"
    assert loaded.sources["model_profiles.answer_detailed.model"] == "env:MODEL_ANSWER"
    assert loaded.sources["model_profiles.answer_detailed.reasoning_effort"] == file
    assert loaded.sources["model_profiles.answer_detailed.verbosity"] == file
    assert loaded.sources["model_profiles.answer.reasoning_effort"] == "default"


def test_the_profile_of_the_search_thinks_little_unless_it_says_otherwise(tmp_path: Path) -> None:
    environ = {"MODEL_SEARCH": "gpt-5.4-mini", "ANSWER_EFFORT": "high", "ANSWER_VERBOSITY": "high"}
    loaded = clean(load(tmp_path, environ=environ))
    assert loaded.settings.model_profiles["search"] == Profile(
        model="gpt-5.4-mini", reasoning_effort="low", verbosity="high"
    )
    assert loaded.sources["model_profiles.search.reasoning_effort"] == "default"
    yaml = "model_profiles: {search: {reasoning_effort: medium}}\n"
    assert clean(load(tmp_path, yaml)).settings.model_profiles["search"] == Profile()


@pytest.mark.rule("spec 3.0")
def test_null_removes_answer_which_is_the_only_problem(tmp_path: Path) -> None:
    loaded = load(tmp_path, "model_profiles:\n  answer: null\n")
    assert loaded.problems == (
        "model_profiles.answer: expected a profile, because tools without one of their own need it, got null "
        f"(from {usual_place(tmp_path)}); remove the null or set MODEL_ANSWER.",
    )
    assert (loaded.settings.problems, loaded.warnings) == ((), ())
    assert dict(loaded.settings.model_profiles) == {}
    assert loaded.sources["model_profiles.answer"] == f"yaml:{usual_place(tmp_path)}"
    assert "model_profiles.answer.model" not in loaded.sources
    yaml = "model_profiles: {answer: ~, answer_detailed: {model: gpt-5.5}}\n"
    loaded = load(tmp_path, yaml, {"ANSWER_EFFORT": "high"})  # which is that of `answer`
    assert [text.partition(": ")[0] for text in loaded.problems] == ["model_profiles.answer"]
    assert dict(loaded.settings.model_profiles) == {"answer_detailed": Profile(model="gpt-5.5")}


@pytest.mark.rule("spec 3.0")
async def test_without_answer_only_the_calls_that_need_it_fail(tmp_path: Path) -> None:
    loaded = load(tmp_path, "model_profiles: {answer: null, answer_detailed: {model: gpt-5.5}}\n", toolsets="research")
    async with open_fake_api(*[as_stream(bodies.searched())] * 2) as api:
        openai = OpenAISettings(base_url=api.base_url, api_key="k")
        async with connected_client(replace(loaded.settings, openai=openai)) as client:
            with trio.fail_after(WAIT):
                replies = {
                    name: json.dumps(await client.call(name, {"query": "q", **more}))
                    for name, more in (
                        *(("answer", {}), ("answer_quick", {}), ("answer_detailed", {})),
                        ("research", {"effort": "standard"}),
                    )
                }
    failed = {name for name, reply in replies.items() if "model_profiles.answer" in reply}
    assert failed == {"answer", "answer_quick", "research"}
    assert '"model": "gpt-5.5"' in replies["answer_detailed"]


def test_what_a_model_does_not_take_is_shown_as_not_sent(tmp_path: Path) -> None:
    yaml = "{answer: {model: gpt-4.1}, answer_quick: {model: o3, request: {reasoning: {effort: high}}}, search: {model: m-5}}"
    loaded = load(tmp_path, f"model_profiles: {yaml}\n", {"MODEL_DETAILED": "gpt-5.5"})
    assert json.loads(configuration_shown(loaded))["sent"] == {
        "answer": {"reasoning_effort": None, "verbosity": None},
        "answer_detailed": {"reasoning_effort": "medium", "verbosity": "medium"},
        "answer_quick": {"reasoning_effort": "high", "verbosity": None},
        "search": {"reasoning_effort": None, "verbosity": None},
    }
    (told,) = (each.found for each in check_configuration(loaded) if each.check == "sent")
    assert told.startswith(
        "answer asks gpt-4.1 with no effort and no verbosity; answer_detailed asks gpt-5.5 with effort "
    )
