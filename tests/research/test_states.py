"""The table of states: what it promises of money, and that the page shows it."""

from pathlib import Path

import pytest

from responses_mcp.research.states import TRANSITIONS, Action, ImpossibleTrigger, State, Transition, Trigger, transition

PAGE = Path(__file__).parent.parent.parent / "docs" / "research.md"
WITHOUT_ID = {State.QUEUED, State.ASKING, State.WITHDRAWING}
CLOSES = {action for action in Action if action.name.startswith("CLOSE")}


def rows() -> list[tuple[State, Trigger, Transition]]:
    return [(state, trigger, follows) for state, each in TRANSITIONS.items() for trigger, follows in each.items()]


def test_one_transition_asks_and_none_leads_back_before_it() -> None:
    asking = [(state, trigger) for state, trigger, follows in rows() if follows.action is Action.ASK]
    assert asking == [(State.QUEUED, Trigger.TURN)]
    assert [state for state, _, follows in rows() if follows.state is State.QUEUED] == []
    assert [state for state, _, follows in rows() if follows.state is State.ASKING] == [State.QUEUED]


def test_a_run_that_is_found_is_never_asked_for_again() -> None:
    for state in State:
        if state is not State.ENDED:
            follows = transition(state, Trigger.FOUND)
            assert (follows.state is State.ENDED) == (state in WITHOUT_ID)
            assert follows.action not in {Action.ASK, Action.GO_ON}


def test_every_run_can_be_cancelled_and_none_comes_back_from_that() -> None:
    cancelled = {State.WITHDRAWING, State.CANCELLING, State.ENDED}
    for state in State:
        assert transition(state, Trigger.CANCEL).state in cancelled
    for state, _, follows in rows():
        if state in cancelled:
            assert follows.state in cancelled


def test_a_run_ends_with_an_action_that_says_how_and_nothing_happens_afterwards() -> None:
    for state, _, follows in rows():
        assert (follows.state is State.ENDED and state is not State.ENDED) == (follows.action in CLOSES)
    assert list(TRANSITIONS[State.ENDED]) == [Trigger.CANCEL]


def test_every_state_can_be_reached_and_left() -> None:
    reached, new = set[State](), {State.QUEUED}
    while new:
        reached |= new
        new = {follows.state for state, _, follows in rows() if state in reached} - reached
    assert reached == set(State)
    for state in set(State) - {State.ENDED}:
        assert any(follows.state is not state for follows in TRANSITIONS[state].values())


def test_what_the_table_lacks_cannot_happen() -> None:
    with pytest.raises(ImpossibleTrigger, match="impossible for a run that is queued"):
        transition(State.QUEUED, Trigger.PLACED)


@pytest.mark.once
def test_the_page_shows_the_table() -> None:
    assert shown() in PAGE.read_text(encoding="utf-8"), shown()


def shown() -> str:
    states = [state for state in State if state is not State.ENDED]
    lines = [
        f"| what happens | {' | '.join(state.value for state in states)} |",
        f"| --- |{' --- |' * len(states)}",
    ]
    for trigger in Trigger:
        cells = []
        for state in states:
            follows = TRANSITIONS[state].get(trigger)
            if follows is None:
                cells.append("–")
            else:
                moved = "" if follows.state is state else f"**{follows.state.value}**: "
                cells.append(f"{moved}{follows.action.value.removeprefix('end: ')}")
        lines.append(f"| {trigger.value} | {' | '.join(cells)} |")
    return "\n".join(lines)
