"""Which parameters go to which model, by its id (spec 5.6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.parameters import model_traits

pytestmark = pytest.mark.rule("spec 5.6")

BOTH = (
    "gpt-5 gpt-5-mini gpt-5-nano-2025-08-07 gpt-5.1-codex gpt-5.2 gpt-5.2-2025-12-11 gpt-5.6-terra gpt-5.5-pro "
    "gpt-5-chat-latest gpt-6-astra gpt-8.1-nova gpt-10 o5 o5-mini"
)
EFFORT_ALONE = "o3 o3-2025-04-16 o3-pro o3-mini o4-mini o3-deep-research o4-mini-deep-research-2025-06-26"
NEITHER = (
    "gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini gpt-3.5-turbo o1 o1-pro codex-mini-latest gpt-oss-120b gpt-image-1 "
    "llama3.3 olmo-2 claude-5 my-deployment gpt-"
)


@pytest.mark.parametrize(("models", "takes"), [
    (BOTH.split(), (True, True)), (EFFORT_ALONE.split(), (False, True)),
    ([*NEITHER.split(), "", "gpt-" + "5" * 5000], (False, False)),
])  # fmt: skip
def test_gpt_5_and_later_take_both_o3_and_o4_an_effort_and_all_others_neither(
    models: list[str], takes: tuple[bool, bool]
) -> None:
    assert {model: model_traits(model) for model in models} == dict.fromkeys(models, takes)


@pytest.mark.parametrize(("decorated", "plain"), [
    ("openai/gpt-5.2", "gpt-5.2"), ("openrouter/openai/gpt-5.2", "gpt-5.2"), ("openai/gpt-5:online", "gpt-5"),
    ("openai/o4-mini:free", "o4-mini"), ("openai/gpt-4.1", "gpt-4.1"),
    ("ft:gpt-5-mini:my-org:support:AbC123", "gpt-5-mini"),
    ("ft:gpt-5-mini-2025-08-07:my-org/team::AbC123", "gpt-5-mini"),
    ("ft:gpt-4.1-mini-2025-04-14:my-org::AbC123", "gpt-4.1-mini"), ("ft:o4-mini-2025-04-16:my-org::AbC123", "o4-mini"),
    ("openai/ft:gpt-5.1:my-org::AbC123", "gpt-5.1"), ("GPT-5.2", "gpt-5.2"),
])  # fmt: skip
def test_vendor_prefixes_fine_tunes_variants_and_letter_case_do_not_matter(decorated: str, plain: str) -> None:
    assert model_traits(decorated) == model_traits(plain)


@given(st.text())
def test_any_text_is_a_model_id_that_can_be_looked_at(model: str) -> None:
    model_traits(model)
    model_traits(f"gpt-{model}")
