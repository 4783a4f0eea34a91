"""Which parameters go to which model, by its id (contract 5.6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.models import clamp_effort, model_traits
from responses_mcp.settings.model import EFFORTS

O_SERIES = ("low", "medium", "high")
XHIGH = ("low", "medium", "high", "xhigh")


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("gpt-5", O_SERIES),
        ("gpt-5-mini", O_SERIES),
        ("gpt-5-nano-2025-08-07", O_SERIES),
        ("gpt-5.1", ("none", *O_SERIES)),
        ("gpt-5.2", ("none", *XHIGH)),
        ("gpt-5.2-2025-12-11", ("none", *XHIGH)),
        ("gpt-5.4", ("none", *XHIGH)),
        ("gpt-5.4-mini", ("none", *XHIGH)),
        ("gpt-5.4-nano", ("none", *XHIGH)),
        ("gpt-5.5", ("none", *XHIGH)),
        ("gpt-5.6", ("none", *XHIGH, "max")),
        ("gpt-5.6-terra", ("none", *XHIGH, "max")),
        ("gpt-6-astra", (*XHIGH, "max")),
        ("gpt-6.2-astra", (*XHIGH, "max")),
        ("gpt-6-luna", (*XHIGH, "max")),
        ("gpt-5-pro", ("high",)),
        ("gpt-5-pro-2025-10-06", ("high",)),
        ("gpt-5.2-pro", ("medium", "high", "xhigh")),
        ("gpt-5.5-pro", ("medium", "high", "xhigh")),
        ("gpt-5-codex", O_SERIES),
        ("gpt-5.1-codex", O_SERIES),
        ("gpt-5.1-codex-mini", O_SERIES),
        ("gpt-5.1-codex-max", XHIGH),
        ("gpt-5.2-codex", XHIGH),
        ("gpt-5.3-codex", XHIGH),
    ],
)
def test_gpt_5_and_later_take_verbosity_and_the_efforts_of_their_family(model: str, efforts: tuple[str, ...]) -> None:
    traits = model_traits(model)
    assert (traits.verbosity, traits.reasoning, traits.efforts) == (True, True, efforts)


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("o1", O_SERIES),
        ("o3", O_SERIES),
        ("o3-2025-04-16", O_SERIES),
        ("o3-pro", O_SERIES),
        ("o3-mini", O_SERIES),
        ("o4-mini", O_SERIES),
        ("o3-deep-research", ("medium",)),
        ("o4-mini-deep-research-2025-06-26", ("medium",)),
    ],
)
def test_the_o_series_takes_an_effort_and_no_verbosity(model: str, efforts: tuple[str, ...]) -> None:
    traits = model_traits(model)
    assert (traits.verbosity, traits.reasoning, traits.efforts) == (False, True, efforts)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4.1",
        "gpt-4.1-mini",
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-3.5-turbo",
        "gpt-5-chat-latest",
        "gpt-5.1-chat-latest",
        "gpt-5.2-chat-latest",
        "gpt-5-chat",
        "gpt-5.3-chat-2026-03-01",
        "codex-mini-latest",
        "gpt-oss-120b",
        "gpt-image-1",
        "llama3.3",
        "olmo-2",
        "claude-5",
        "my-deployment",
        "gpt-",
        "gpt-5o",
        "",
        "gpt-" + "5" * 5000,
    ],
)
def test_every_other_model_takes_neither(model: str) -> None:
    traits = model_traits(model)
    assert (traits.verbosity, traits.reasoning) == (False, False)


@pytest.mark.parametrize(
    ("decorated", "plain"),
    [
        ("openai/gpt-5.2", "gpt-5.2"),
        ("openrouter/openai/gpt-5.2", "gpt-5.2"),
        ("openai/gpt-5:online", "gpt-5"),
        ("openai/o4-mini:free", "o4-mini"),
        ("openai/gpt-4.1", "gpt-4.1"),
        ("openai/gpt-5.2-chat-latest", "gpt-5.2-chat-latest"),
        ("ft:gpt-5-mini:my-org:support:AbC123", "gpt-5-mini"),
        ("ft:gpt-5-mini-2025-08-07:my-org/team::AbC123", "gpt-5-mini"),
        ("ft:gpt-4.1-mini-2025-04-14:my-org::AbC123", "gpt-4.1-mini"),
        ("ft:o4-mini-2025-04-16:my-org::AbC123", "o4-mini"),
        ("openai/ft:gpt-5.1:my-org::AbC123", "gpt-5.1"),
        ("GPT-5.2", "gpt-5.2"),
    ],
)
def test_vendor_prefixes_fine_tunes_variants_and_letter_case_do_not_matter(decorated: str, plain: str) -> None:
    assert model_traits(decorated) == model_traits(plain)


@pytest.mark.parametrize("model", ["gpt-5.3", "gpt-5.9", "gpt-7", "gpt-8.1-nova", "gpt-10"])
def test_an_unknown_model_of_a_known_family_is_trusted_with_every_effort_but_minimal(model: str) -> None:
    traits = model_traits(model)
    assert traits.verbosity
    assert traits.reasoning
    assert traits.efforts == ("none", "low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize(
    ("effort", "allowed", "sent"),
    [
        ("medium", XHIGH, "medium"),
        ("xhigh", O_SERIES, "high"),
        ("max", O_SERIES, "high"),
        ("max", ("none", *XHIGH), "xhigh"),
        ("none", O_SERIES, "low"),
        ("none", (*XHIGH, "max"), "low"),
        ("minimal", O_SERIES, "low"),
        ("minimal", ("none", *O_SERIES), "low"),  # as near to none as to low: the one that thinks more
        ("low", ("high",), "high"),
        ("low", ("medium", "high", "xhigh"), "medium"),
        ("high", ("medium",), "medium"),
        ("unheard-of", O_SERIES, "unheard-of"),
    ],
)
def test_an_effort_that_a_model_does_not_know_becomes_the_nearest_one(
    effort: str, allowed: tuple[str, ...], sent: str
) -> None:
    assert clamp_effort(effort, allowed) == sent


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.2", "gpt-5.3", "gpt-6-astra", "gpt-9", "o3", "gpt-5-pro"])
@pytest.mark.parametrize("effort", EFFORTS)
def test_no_model_is_asked_for_minimal_because_it_excludes_web_search(model: str, effort: str) -> None:
    sent = clamp_effort(effort, model_traits(model).efforts)
    assert sent in EFFORTS
    assert sent != "minimal"


@given(st.text())
def test_any_text_is_a_model_id_that_can_be_looked_at(model: str) -> None:
    model_traits(model)
    model_traits(f"gpt-{model}")
