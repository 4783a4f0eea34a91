"""Lessons from refusals: what is left out, what is moved, and what is never touched."""

import pytest

from responses_mcp.errors import RequestRefused
from responses_mcp.responses_api.accommodation import Accommodation

BODY = {
    "model": "gpt-5.2",
    "instructions": "…",
    "input": "…",
    "tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.jp"]}}],
    "include": ["web_search_call.action.sources"],
    "text": {"verbosity": "low"},
    "reasoning": {"effort": "minimal"},
    "stream": True,
}


def refusal(
    message: str = "no", *, param: str | None = None, status: int = 400, code: str | None = None
) -> RequestRefused:
    return RequestRefused(message, status=status, param=param, code=code)


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (refusal(param="include"), "include"),
        (refusal(param="include[0]"), "include"),
        (refusal("[{'type': 'literal_error', 'loc': ('body', 'include', 0)}]", status=422), "include"),
        (
            refusal(
                "Unsupported parameter: 'text.verbosity' is not supported with this model.", param="text.verbosity"
            ),
            "text",
        ),
        (refusal("Unsupported parameter: 'reasoning.effort'", param="reasoning.effort"), "reasoning"),
        (refusal("Unknown field reasoning"), "reasoning"),
        (refusal("Unknown parameter: include"), "include"),
        (refusal("Streaming is not supported"), "stream"),
    ],
)
def test_an_optional_parameter_that_a_refusal_names_is_left_out_from_then_on(error: RequestRefused, gone: str) -> None:
    lessons = Accommodation()
    assert lessons.learn(error, BODY)
    assert lessons.fit(BODY) == {key: value for key, value in BODY.items() if key != gone}


def test_filters_are_left_out_and_the_search_tool_stays() -> None:
    lessons = Accommodation()
    assert lessons.learn(refusal("Unknown parameter: 'tools[0].filters'.", param="tools[0].filters"), BODY)
    assert lessons.fit(BODY)["tools"] == [{"type": "web_search"}]


@pytest.mark.parametrize(
    "error",
    [
        refusal("Unknown tool type web_search", param="tools"),
        refusal("tools[0].type is not supported", param="tools[0].type"),
        refusal("The model does not exist", param="model"),
        refusal("Input is too long", param="input", code="context_length_exceeded"),
        refusal("something else"),
        refusal("The input must include a question"),
        refusal("The upstream of this stream broke"),
        refusal("include", status=500),
        refusal("include", status=401),
    ],
)
def test_nothing_is_learnt_where_nothing_optional_is_named(error: RequestRefused) -> None:
    lessons = Accommodation()
    assert lessons.learn(error, BODY) is None
    assert lessons.fit(BODY) == BODY


def test_a_lesson_is_learnt_once() -> None:
    lessons = Accommodation()
    assert lessons.learn(refusal(param="include"), BODY)
    assert lessons.learn(refusal(param="include"), lessons.fit(BODY)) is None
    assert lessons.learn(refusal(param="include"), BODY) == ""


@pytest.mark.parametrize(
    ("asked", "listed", "moved"),
    [
        ("minimal", "'none', 'low', 'medium', and 'high'", "low"),
        ("xhigh", "'low', 'medium', and 'high'", "high"),
        ("none", "'low', 'medium'", "low"),
        ("medium", "'high'", "high"),
        ("low", '"medium"', "medium"),
    ],
)
def test_an_effort_moves_to_the_nearest_that_the_refusal_lists(asked: str, listed: str, moved: str) -> None:
    body = {**BODY, "reasoning": {"effort": asked}}
    message = f"Unsupported value: '{asked}' is not supported with the 'x' model. Supported values are: {listed}."
    lessons = Accommodation()
    told = lessons.learn(refusal(message, param="reasoning.effort", code="unsupported_value"), body)
    assert told is not None
    assert moved in told
    assert lessons.fit(body)["reasoning"] == {"effort": moved}


def test_calls_refused_at_once_learn_the_same_lesson_once() -> None:
    lessons = Accommodation()
    effort = refusal("Unsupported value. Supported values are: 'low'.", param="reasoning.effort")
    include = refusal(param="include")
    assert lessons.learn(effort, BODY)
    assert lessons.learn(include, BODY)
    assert lessons.learn(effort, BODY) == ""
    assert lessons.learn(include, BODY) == ""
    assert lessons.fit(BODY)["reasoning"] == {"effort": "low"}


def test_an_effort_that_is_refused_again_is_left_out() -> None:
    lessons = Accommodation()
    error = refusal("Unsupported value. Supported values are: 'low'.", param="reasoning.effort")
    assert lessons.learn(error, BODY)
    assert lessons.learn(error, lessons.fit(BODY))
    assert "reasoning" not in lessons.fit(BODY)
