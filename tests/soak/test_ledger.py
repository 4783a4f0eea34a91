"""The rules by which a soak judges what the server says."""

import pytest

from tests.soak.expected import error_with, result_with
from tests.soak.ledger import LATEST, Ledger, Message

pong = result_with("ping")
fine = result_with("answer")


def response(request: object, **more: object) -> Message:
    return {"jsonrpc": "2.0", "id": request, **(more or {"result": {}})}


def in_use(request: object) -> Message:
    error = {"code": -32600, "message": "Invalid Request: this id is already in flight; use a new one"}
    return response(request, error=error)


def progress(token: object, value: float) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": value}}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def hears(ledger: Ledger, *messages: Message, now: float = 1.0) -> list[str]:
    for message in messages:
        ledger.hears(message, now)
    return [violation.partition(":")[0] for violation in ledger.violations]


def test_an_answer_settles_what_was_asked(ledger):
    ledger.asks(1, fine, 0.0)
    assert not ledger.settled
    assert hears(ledger, response(1)) == []
    assert ledger.settled
    assert ledger.in_flight == 0
    assert ledger.outcomes["answer"] == 1


def test_a_second_answer_is_a_violation(ledger):
    ledger.asks(1, fine, 0.0)
    assert hears(ledger, response(1), response(1)) == ["nothing is owed for this id"]


def test_an_answer_to_nobody_is_a_violation(ledger):
    assert hears(ledger, response(7)) == ["nothing is owed for this id"]


def test_ids_of_two_types_are_two(ledger):
    ledger.asks(1, fine, 0.0)
    assert hears(ledger, response("1")) == ["nothing is owed for this id"]
    assert not ledger.settled


def test_what_is_not_answered_is_told(ledger):
    ledger.asks("late", fine, 2.0)
    ledger.asks_at_once("ping", pong, 3.0)
    assert ledger.overdue(1.0) == []
    assert len(ledger.overdue(2.5)) == 1
    assert len(ledger.overdue(3.5)) == 2


def test_an_answer_may_come_until_the_line_behind_its_cancel(ledger):
    use = ledger.asks(1, fine, 0.0)
    ledger.asks_at_once("line", pong, 0.0, line_of=ledger.cancels(use))
    assert ledger.in_flight == 0
    assert hears(ledger, response(1), response("line")) == []
    assert ledger.outcomes["answered before its cancel"] == 1
    assert ledger.in_flight == 0
    assert ledger.settled


def test_no_answer_may_come_after_it(ledger):
    use = ledger.asks(1, fine, 0.0)
    ledger.asks_at_once("line", pong, 0.0, line_of=ledger.cancels(use))
    assert hears(ledger, response("line"), response(1)) == ["nothing is owed for this id"]
    assert ledger.outcomes["silent after its cancel"] == 1


def test_no_progress_may_come_after_it(ledger):
    use = ledger.asks(1, fine, 0.0, token="t")
    ledger.asks_at_once("line", pong, 0.0, line_of=ledger.cancels(use))
    assert hears(ledger, progress("t", 1), response("line"), progress("t", 2)) == ["progress of nothing in flight"]


def test_a_cancelled_id_is_free_after_its_line_and_its_new_use_stays(ledger):
    use = ledger.asks(1, fine, 0.0)
    ledger.asks_at_once("line", pong, 0.0, line_of=ledger.cancels(use))
    hears(ledger, response(1))
    assert ledger.is_free(1)
    ledger.asks(1, fine, 0.0)
    assert hears(ledger, response("line"), response(1)) == []


def test_what_is_answered_while_reading_comes_in_its_order(ledger):
    ledger.asks_at_once("a", pong, 0.0)
    ledger.asks_at_once("b", pong, 0.0)
    assert hears(ledger, response("b")) == ["it overtook the answer about (<class 'str'>, 'a')"]


def test_errors_without_an_id_are_counted_too(ledger):
    ledger.asks_at_once(None, error_with("junk", -32700), 0.0)
    error = response(None, error={"code": -32700, "message": "Parse error"})
    assert hears(ledger, error, error) == ["nothing is owed for this id"]


def test_the_second_use_of_an_id_is_refused_and_the_first_is_answered(ledger):
    ledger.asks(1, fine, 0.0)
    ledger.asks(1, fine, 0.0, again=True)
    assert hears(ledger, in_use(1), response(1)) == []
    assert ledger.settled
    assert ledger.in_flight == 0


def test_a_refusal_of_an_id_that_was_used_once_is_a_violation(ledger):
    ledger.asks(1, fine, 0.0)
    assert hears(ledger, in_use(1)) == ["an id is refused that was not used twice"]


def test_progress_rises_and_ends_before_the_answer(ledger):
    ledger.asks(1, fine, 0.0, token=5)
    assert hears(ledger, progress(5, 1), progress(5, 2)) == []
    assert hears(ledger, progress(5, 2)) == ["progress does not rise from 2"]
    assert hears(ledger, response(1), progress(5, 3))[1:] == ["progress of nothing in flight"]


def test_progress_with_a_token_of_another_type_is_of_nobody(ledger):
    ledger.asks(1, fine, 0.0, token=5)
    assert hears(ledger, progress("5", 1)) == ["progress of nothing in flight"]


def test_a_subscription_is_acknowledged_once_and_lasts(ledger):
    ledger.asks(1, fine, 0.0, lasting=True)
    params = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}, "notifications": {}}
    acknowledged = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
    assert ledger.settled
    assert hears(ledger, acknowledged) == []
    assert hears(ledger, acknowledged) == ["nothing to acknowledge"]
    assert ledger.in_flight == 0


def test_a_wrong_answer_is_one_violation(ledger):
    ledger.asks(1, fine, 0.0)
    assert hears(ledger, response(1, error={"code": -1, "message": "no"})) == ["answer failed"]
    assert ledger.settled
    assert ledger.in_flight == 0


def test_an_answer_that_took_too_long_is_a_violation_unless_the_client_was_slow(ledger):
    ledger.asks(1, fine, 5.0)
    ledger.asks(2, fine, 5.0)
    assert len(hears(ledger, response(1), now=6.0 + LATEST)) == 1
    ledger.read_slowly_until = 5.5
    assert len(hears(ledger, response(2), now=6.0 + LATEST)) == 1


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": True, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/progress"},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
    ],
)
def test_what_is_no_message_is_a_violation_and_raises_nothing(ledger, message):
    ledger.asks(1, fine, 0.0)
    assert len(hears(ledger, message)) == 1
