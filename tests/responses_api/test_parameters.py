"""Which parameters go to which model, by its id (spec 5.6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.parameters import ModelTraits, clamp_effort, model_traits
from responses_mcp.settings.model import EFFORTS

pytestmark = pytest.mark.rule("spec 5.6")

LOW, XHIGH = ("low", "medium", "high"), ("low", "medium", "high", "xhigh")
# The models that take verbosity, by the efforts that they take.
GPT_5_AND_LATER = {
    LOW: "gpt-5 gpt-5-mini gpt-5-nano-2025-08-07 gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini",
    ("none", *LOW): "gpt-5.1",
    ("none", *XHIGH): "gpt-5.2 gpt-5.2-2025-12-11 gpt-5.4 gpt-5.4-mini gpt-5.4-nano gpt-5.5",
    ("none", *XHIGH, "max"): "gpt-5.6 gpt-5.6-terra",
    (*XHIGH, "max"): "gpt-6-astra gpt-6.2-astra gpt-6-luna",
    ("high",): "gpt-5-pro gpt-5-pro-2025-10-06",
    ("medium", "high", "xhigh"): "gpt-5.2-pro gpt-5.5-pro",
    XHIGH: "gpt-5.1-codex-max gpt-5.2-codex gpt-5.3-codex",
}
UNKNOWN = "gpt-5.3 gpt-5.9 gpt-7 gpt-8.1-nova gpt-10"
O_SERIES = {
    LOW: "o1 o3 o3-2025-04-16 o3-pro o3-mini o4-mini",
    ("medium",): "o3-deep-research o4-mini-deep-research-2025-06-26",
}
OTHERS = (
    "gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini gpt-3.5-turbo gpt-5-chat-latest gpt-5.1-chat-latest gpt-5.2-chat-latest "
    "gpt-5-chat gpt-5.3-chat-2026-03-01 codex-mini-latest gpt-oss-120b gpt-image-1 llama3.3 olmo-2 claude-5 "
    "my-deployment gpt- gpt-5o"
)


def each(families: dict[tuple[str, ...], str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(model, efforts) for efforts, models in families.items() for model in models.split()]


@pytest.mark.parametrize(("model", "efforts"), each(GPT_5_AND_LATER))
def test_gpt_5_and_later_take_verbosity_and_the_efforts_of_their_family(model: str, efforts: tuple[str, ...]) -> None:
    assert model_traits(model) == ModelTraits(verbosity=True, reasoning=True, efforts=efforts)


@pytest.mark.parametrize("model", UNKNOWN.split())
def test_an_unknown_model_of_a_known_family_is_trusted_with_every_effort_but_minimal(model: str) -> None:
    assert model_traits(model) == ModelTraits(verbosity=True, reasoning=True, efforts=("none", *XHIGH, "max"))


@pytest.mark.parametrize(("model", "efforts"), each(O_SERIES))
def test_the_o_series_takes_an_effort_and_no_verbosity(model: str, efforts: tuple[str, ...]) -> None:
    assert model_traits(model) == ModelTraits(verbosity=False, reasoning=True, efforts=efforts)


@pytest.mark.parametrize("model", [*OTHERS.split(), "", "gpt-" + "5" * 5000])
def test_every_other_model_takes_neither(model: str) -> None:
    assert model_traits(model) == ModelTraits(verbosity=False, reasoning=False)


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


@pytest.mark.parametrize(
    ("effort", "allowed", "sent"),
    [
        ("medium", XHIGH, "medium"),
        ("xhigh", LOW, "high"),
        ("max", LOW, "high"),
        ("max", ("none", *XHIGH), "xhigh"),
        ("none", LOW, "low"),
        ("none", (*XHIGH, "max"), "low"),
        ("minimal", LOW, "low"),
        ("minimal", ("none", *LOW), "low"),  # as near to none as to low: the one that thinks more
        ("low", ("high",), "high"),
        ("low", ("medium", "high", "xhigh"), "medium"),
        ("high", ("medium",), "medium"),
        ("unheard-of", LOW, "unheard-of"),
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
