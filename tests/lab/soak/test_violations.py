"""The soak can fail: whatever the server must not say is a violation, and whatever of it grows."""

from typing import Any

import pytest

from tests.lab.soak.expected import answer_of, result_with
from tests.lab.soak.ledger import LATEST, Ledger, Message
from tests.lab.soak.plays import Step
from tests.lab.soak.samples import Sample, growth

IN_USE = {"code": -32600, "message": "Invalid Request: this id is already in flight; use a new one"}


def response(request: object, **more: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request, **(more or {"result": {}})}


def progress(value: float) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t", "progress": value}}


@pytest.fixture
def ledger() -> Ledger:
    """Return one in which a call was made, another was made and cancelled, and two pings were sent."""
    ledger = Ledger()
    ledger.asks(1, result_with("answer"), 0.5, token="t")
    line_of = ledger.cancels(ledger.asks(2, result_with("answer"), 0.0))
    ledger.asks_at_once("line", result_with("ping"), 0.0, line_of=line_of)
    ledger.asks_at_once("ping", result_with("ping"), 0.0)
    return ledger


GOOD = [response("line"), progress(1), response("ping"), progress(2), response(1)]


def test_what_is_owed_and_nothing_else_settles_it(ledger):
    for message in GOOD:
        assert not ledger.settled
        ledger.hears(message, 1.0)
    assert ledger.settled
    assert ledger.violations == []
    assert ledger.outcomes == {"cancelled": 1, "silent after its cancel": 1, "ping": 2, "answer": 1}


@pytest.mark.parametrize(
    ("heard", "now", "violation"),
    [
        ([response(1), response(1)], 1.0, "nothing is owed"),
        ([response("1")], 1.0, "nothing is owed"),
        ([response("line"), response(2)], 1.0, "nothing is owed"),
        ([response("ping")], 1.0, "it overtook"),
        ([response(1, error=IN_USE)], 1.0, "an id is refused that was not used twice"),
        ([response(1, error={"code": -1, "message": "no"})], 1.0, "answer failed"),
        ([progress(1), progress(1)], 1.0, "progress does not rise"),
        ([response(1), progress(1)], 1.0, "progress of nothing in flight"),
        ([response(1)], 1.0 + LATEST, "was answered after"),
        ([response(1, result={}, error={"code": 1, "message": ""})], 1.0, "has a result or an error"),
        ([{"jsonrpc": "2.0", "method": "notifications/progress"}], 1.0, "not the expected form"),
    ],
)
def test_whatever_else_is_said_is_a_violation(ledger, heard, now, violation):
    for message in heard:
        ledger.hears(message, now)
    [said] = ledger.violations
    assert violation in said


def test_the_answer_to_another_question_is_a_violation(ledger):
    ledger.asks(17, answer_of(17, (Step("ok"),), search=False, modern=False), 0.0)
    text = "The API failed (500): This is for #18."
    ledger.hears(response(17, result={"content": [{"type": "text", "text": text}], "isError": True}), 0.1)
    [said] = ledger.violations
    assert said.startswith("a failure of another call than #17")


@pytest.mark.parametrize(
    ("grown", "violation"),
    [
        ({}, None),
        ({"memory": 60.5}, "memory grew"),
        ({"sockets": 28, "descriptors": 39}, "sockets became"),
        ({"descriptors": 21}, "open files became"),
        ({"index": 13, "descriptors": 31}, "descriptors of the index"),
        ({"threads": 65}, "threads after"),
        ({"connections": 17}, "upstream connections after"),
    ],
)
def test_what_has_grown_at_the_end_of_a_run_is_a_violation(grown, violation):
    small = {"memory": 50.0, "descriptors": 20, "sockets": 10, "index": 2, "threads": 3, "connections": 8}
    moments = [
        Sample(at=calls / 100, calls=calls, cpu=1.0, **(small | (grown if calls >= 80_000 else {})))
        for calls in range(0, 100_001, 5_000)
    ]
    said = growth(moments)
    assert any(violation in each for each in said) if violation else said == []
