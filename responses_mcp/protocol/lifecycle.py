"""The life of a request as data: its states, what can happen to it, and what is done then.

`TRANSITIONS` is all that the session knows of this, and `docs/architecture.md` shows it. A pair that is missing cannot
happen unless we have a bug: an answer is given once and taken once, and what names an id finds only requests in flight.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """What has become of a request. In the first two it is in flight and its id is used up."""

    ACCEPTED = "accepted"  # it was read, and its answer is not known
    FINISHED = "finished"  # its answer waits for the writer
    TAKEN = "taken"  # the writer has its answer
    CANCELLED = "cancelled"


class Trigger(Enum):
    """What can happen to a request."""

    ANSWER = "answer"
    PROGRESS = "progress"
    NEWS = "news of a task, for a subscription"
    CANCEL = "cancel"
    REFUSAL = "another message with its id, which is refused"
    TAKEN = "taken by the writer"


class Action(Enum):
    """What the session does about it."""

    REPLACE = "queue it in place of progress that waits"
    ADD = "queue it beside the answer"
    WITHDRAW = "withdraw all that waits, refusals too; free the id"
    RELEASE = "free the id"
    IGNORE = "ignore"


class Transition(NamedTuple):
    """The state that a request comes to, and what is done."""

    state: State
    action: Action


TRANSITIONS = {
    State.ACCEPTED: {
        Trigger.ANSWER: Transition(State.FINISHED, Action.REPLACE),
        Trigger.PROGRESS: Transition(State.ACCEPTED, Action.REPLACE),
        Trigger.NEWS: Transition(State.ACCEPTED, Action.ADD),
        Trigger.CANCEL: Transition(State.CANCELLED, Action.WITHDRAW),
        Trigger.REFUSAL: Transition(State.ACCEPTED, Action.ADD),
    },
    State.FINISHED: {
        Trigger.PROGRESS: Transition(State.FINISHED, Action.IGNORE),
        Trigger.NEWS: Transition(State.FINISHED, Action.IGNORE),
        Trigger.CANCEL: Transition(State.CANCELLED, Action.WITHDRAW),
        Trigger.REFUSAL: Transition(State.FINISHED, Action.ADD),
        Trigger.TAKEN: Transition(State.TAKEN, Action.RELEASE),
    },
    State.TAKEN: {
        Trigger.PROGRESS: Transition(State.TAKEN, Action.IGNORE),
        Trigger.NEWS: Transition(State.TAKEN, Action.IGNORE),
    },
    State.CANCELLED: {
        Trigger.ANSWER: Transition(State.CANCELLED, Action.IGNORE),
        Trigger.PROGRESS: Transition(State.CANCELLED, Action.IGNORE),
        Trigger.NEWS: Transition(State.CANCELLED, Action.IGNORE),
    },
}


class LocalError(Exception):
    """We, not the peer, did with a request what cannot be done in its state: a bug of ours."""


def transition(state: State, trigger: Trigger) -> Transition:
    """Look up what follows. Raises LocalError for what cannot happen."""
    try:
        return TRANSITIONS[state][trigger]
    except KeyError:
        raise LocalError(f"{trigger.value}: impossible for a request that is {state.value}") from None
