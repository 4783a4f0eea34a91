"""The life of a run as data: its states, what can happen to it, and what is done then.

`TRANSITIONS` is all that decides it, and `docs/research.md` shows it. A run is asked for once: only one transition
leads to the request that is paid for, and nothing leads back before it. A pair that is missing cannot happen.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class State(Enum):
    """Where a run is. The words are what the file of runs holds."""

    QUEUED = "queued"  # nothing was sent
    ASKING = "asking"  # the request was sent, or is about to be, and no id has come back
    FOLLOWING = "following"  # its events are read as they come
    CATCHING_UP = "catching up"  # its events are asked for again, from where they broke off
    POLLING = "polling"  # it is looked up from time to time
    WITHDRAWING = "withdrawing"  # it was cancelled while no id had come back
    CANCELLING = "cancelling"  # the API is told to stop
    ENDED = "ended"


class Trigger(Enum):
    """What can happen to a run."""

    TURN = "its turn comes"
    PLACED = "its id comes"
    UNFINISHED = "it goes on without a stream"
    FINISHED = "the response has ended"
    REFUSED = "it is refused, or was never carried"
    LOST = "the connection is lost"
    GONE = "the API does not know it any more"
    CANCEL = "it is cancelled, or takes too long"
    UNCONFIRMED = "no word on the cancel in time"
    FOUND = "its owner is gone"


class Action(Enum):
    """What is done about it."""

    ASK = "POST the request, the only one that is paid for"
    GO_ON = "go on"
    RESUME = "GET its events behind the last one"
    LOOK_UP = "GET the response"
    WAIT_FOR_ID = "wait for its id, for seconds"
    STOP = "POST its cancel"
    CLOSE = "end: what the response says"
    CLOSE_UNASKED = "end: it was not asked for"
    CLOSE_UNPAID = "end: why it was refused"
    CLOSE_UNKNOWN = "end: it may have been paid for, and its id is not known"
    CLOSE_UNREAD = "end: the API has the answer, and it cannot be read"
    CLOSE_GONE = "end: the answer is lost"
    CLOSE_UNCONFIRMED = "end: cancelled, which the API did not confirm"


class Transition(NamedTuple):
    """The state that a run comes to, and what is done."""

    state: State
    action: Action


_S, _T, _A = State, Trigger, Action

# What holds wherever the id is known and nobody has cancelled.
_WITH_ID: Final = {
    _T.PLACED: Transition(_S.FOLLOWING, _A.GO_ON),
    _T.UNFINISHED: Transition(_S.POLLING, _A.LOOK_UP),
    _T.FINISHED: Transition(_S.ENDED, _A.CLOSE),
    _T.GONE: Transition(_S.ENDED, _A.CLOSE_GONE),
    _T.CANCEL: Transition(_S.CANCELLING, _A.STOP),
    _T.FOUND: Transition(_S.CATCHING_UP, _A.RESUME),
}

TRANSITIONS: Final = {
    _S.QUEUED: {
        _T.TURN: Transition(_S.ASKING, _A.ASK),
        _T.CANCEL: Transition(_S.ENDED, _A.CLOSE_UNASKED),
        _T.FOUND: Transition(_S.ENDED, _A.CLOSE_UNASKED),
    },
    _S.ASKING: {
        _T.PLACED: Transition(_S.FOLLOWING, _A.GO_ON),
        _T.FINISHED: Transition(_S.ENDED, _A.CLOSE),
        _T.REFUSED: Transition(_S.ENDED, _A.CLOSE_UNPAID),
        _T.LOST: Transition(_S.ENDED, _A.CLOSE_UNKNOWN),
        _T.CANCEL: Transition(_S.WITHDRAWING, _A.WAIT_FOR_ID),
        _T.FOUND: Transition(_S.ENDED, _A.CLOSE_UNKNOWN),
    },
    _S.FOLLOWING: {**_WITH_ID, _T.LOST: Transition(_S.CATCHING_UP, _A.RESUME)},
    _S.CATCHING_UP: {**_WITH_ID, _T.LOST: Transition(_S.POLLING, _A.LOOK_UP)},
    _S.POLLING: {
        **_WITH_ID,
        _T.LOST: Transition(_S.POLLING, _A.LOOK_UP),
        _T.REFUSED: Transition(_S.ENDED, _A.CLOSE_UNREAD),
    },
    _S.WITHDRAWING: {
        _T.PLACED: Transition(_S.CANCELLING, _A.STOP),
        _T.FINISHED: Transition(_S.ENDED, _A.CLOSE),
        _T.REFUSED: Transition(_S.ENDED, _A.CLOSE_UNASKED),
        _T.LOST: Transition(_S.ENDED, _A.CLOSE_UNKNOWN),
        _T.CANCEL: Transition(_S.WITHDRAWING, _A.GO_ON),
        _T.FOUND: Transition(_S.ENDED, _A.CLOSE_UNKNOWN),
    },
    _S.CANCELLING: {
        _T.PLACED: Transition(_S.CANCELLING, _A.GO_ON),
        _T.UNFINISHED: Transition(_S.CANCELLING, _A.STOP),
        _T.FINISHED: Transition(_S.ENDED, _A.CLOSE),
        _T.LOST: Transition(_S.CANCELLING, _A.STOP),
        _T.GONE: Transition(_S.ENDED, _A.CLOSE_UNCONFIRMED),
        _T.CANCEL: Transition(_S.CANCELLING, _A.GO_ON),
        _T.UNCONFIRMED: Transition(_S.ENDED, _A.CLOSE_UNCONFIRMED),
        _T.FOUND: Transition(_S.CANCELLING, _A.STOP),
    },
    _S.ENDED: {
        _T.CANCEL: Transition(_S.ENDED, _A.GO_ON),
    },
}


class ImpossibleTrigger(Exception):
    """Something happened to a run that cannot happen in its state: a bug of ours."""


def transition(state: State, trigger: Trigger) -> Transition:
    """Look up what follows. Raises ImpossibleTrigger for what cannot happen."""
    try:
        return TRANSITIONS[state][trigger]
    except KeyError:
        raise ImpossibleTrigger(f"{trigger.value}: impossible for a run that is {state.value}") from None
