"""The table of a request's life: what the page shows is what the session does."""

import re
from pathlib import Path

import pytest

from responses_mcp.protocol.lifecycle import TRANSITIONS, Action, LocalError, State, Transition, Trigger, transition
from responses_mcp.protocol.revisions import ToolSuccess
from tests.protocol.test_session import hear, make, start

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
IMPOSSIBLE = "–"


def cell(state: State, trigger: Trigger) -> str:
    """Return what the page should say of `trigger` in `state`."""
    if (found := TRANSITIONS[state].get(trigger)) is None:
        return IMPOSSIBLE
    return found.action.value if found.state is state else f"**{found.state.value}**: {found.action.value}"


def test_the_page_shows_the_table_of_the_code() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The life of a request\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    head, _, *body = ([each.strip() for each in row.split("|")] for row in rows)
    assert head == ["what happens", *(state.value for state in State)]
    assert body == [[trigger.value, *(cell(state, trigger) for state in State)] for trigger in Trigger]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("trigger", Trigger)
def test_what_the_table_does_not_name_raises(state: State, trigger: Trigger) -> None:
    if trigger in TRANSITIONS[state]:
        assert transition(state, trigger) == TRANSITIONS[state][trigger]
    else:
        with pytest.raises(LocalError, match=f"{trigger.value}: impossible for a request that is {state.value}"):
            transition(state, trigger)


def test_nothing_leaves_the_end_of_a_life_and_every_action_is_used() -> None:
    for state in (State.TAKEN, State.CANCELLED):
        assert set(TRANSITIONS[state].values()) == {Transition(state, Action.IGNORE)}
    assert {each.action for row in TRANSITIONS.values() for each in row.values()} == set(Action)


def test_a_second_answer_is_a_bug_of_ours_that_is_told() -> None:
    session = make()
    call = start(session, 1)
    session.finish(call, ToolSuccess("a"))
    for _ in range(2):  # before and after the writer has taken the first
        with pytest.raises(LocalError):
            session.finish(call, ToolSuccess("b"))
        assert len(hear(session)) <= 1
    assert session.in_flight == 0


def test_an_answer_that_is_no_json_leaves_the_call_as_it_was() -> None:
    session = make()
    call = start(session, 1)
    with pytest.raises(TypeError):
        session.finish(call, ToolSuccess("x", {"not": object()}))
    assert (call.state, session.unsent_bytes) == (State.ACCEPTED, 0)
    session.finish(call, ToolSuccess("x"))
    assert [message["id"] for message in hear(session)] == [1]
