"""The 2026-07-28 revision, and both revisions interleaved on one stream."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.exchange import CallCancelled, CallStarted, Feature, Method
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.protocol.revisions import BUG, TASKS, Fetched, Task, ToolFailure, ToolSuccess
from responses_mcp.protocol.session import Session
from tests.hostile.corpus import ENVELOPE, ILL_SHAPED_ENVELOPES, PREFIX
from tests.protocol import a_tool, never
from tests.protocol.test_session import TOOL as ANSWER
from tests.protocol.test_session import begun, call, cancel, codes, hear, make, request, say

EXAMPLES = (Path(__file__).parent / "wire_examples.txt").read_text(encoding="utf-8").splitlines()
QUESTION = {"question": {"type": "string", "minLength": 1}}
TOOL = a_tool(
    "answer",
    title="Answer",
    description="Answer one question.",
    input_schema={"type": "object", "properties": QUESTION, "required": ["question"], "additionalProperties": False},
    output_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    annotations={"readOnlyHint": True, "openWorldHint": True},
)


def modern(id_: object, method: str, params: dict | None = None, **envelope: object) -> dict:
    meta = {key: value for key, value in {**ENVELOPE, **envelope}.items() if value is not ...}
    return request(id_, method, {**(params or {}), "_meta": meta})


def one(session: Session, message: object) -> dict:
    say(session, message)
    (answer,) = hear(session)
    return answer


def play(session: Session, call_: Any) -> list[dict]:
    """Do what the tool of the examples does, taking the output after each step as a writer would."""
    question = call_.arguments.get("question")
    if question == "slow":
        return []
    if not isinstance(question, str):
        text = "Invalid arguments: question (non-empty string) is required and nothing else is accepted"
        session.finish(call_, ToolFailure(text))
        return hear(session)
    session.report(call_, 1, "thinking")
    heard = hear(session)
    result = {"text": f"echo {question}"}
    session.finish(call_, ToolSuccess(json.dumps(result), result))
    return heard + hear(session)


def loosened(message: dict) -> dict:
    """Keep of an error's words only how they begin: the examples settle codes and shapes, and ours say more."""
    error = message.get("error")
    return message if error is None else {**message, "error": {**error, "message": error["message"].partition(":")[0]}}


@pytest.mark.rule("spec 2.3")
def test_the_conversation_of_examples_is_held_line_by_line() -> None:
    session = Session({"answer": TOOL}, version="1.2.3")
    heard: list[dict] = []
    checked = 0
    for line in EXAMPLES:
        if line.startswith("> "):
            assert heard == [], f"unexpected before {line}"
            text = line.split(" ", 3)[3]
            for event in say(session, text.encode() + b"\n"):
                heard += play(session, event.call) if type(event) is CallStarted else []
            heard += hear(session)
        elif line == "# at EOF":
            session.receive_eof()
            session.close_subscriptions()
            heard += hear(session)
        elif line.startswith("< "):
            expected = json.loads(line.split(" ", 3)[3])
            got = heard.pop(0)
            assert loosened(got) == loosened(expected)
            if "error" in expected:
                assert got["error"]["message"].startswith(expected["error"]["message"])
            checked += 1
    assert heard == []
    assert checked == 23


# The envelope


@pytest.mark.parametrize(
    "method", ["server/discover", "tools/list", "tools/call", "subscriptions/listen", "nope", "ping"]
)
@pytest.mark.parametrize("envelope", ILL_SHAPED_ENVELOPES.values(), ids=ILL_SHAPED_ENVELOPES)
def test_an_ill_shaped_envelope_is_invalid_params_whatever_the_method(method: str, envelope: dict) -> None:
    answer = one(make(), modern(1, method, **envelope))
    assert codes([answer]) == [(1, -32602)]
    assert "params._meta" in answer["error"]["message"]


@pytest.mark.rule("spec 11")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "nope"])
def test_an_unsupported_version_is_told_with_those_supported_whatever_the_method(method: str) -> None:
    answer = one(make(), modern(1, method, None, **{PREFIX + "protocolVersion": "2025-06-18"}))
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-06-18"}


@pytest.mark.parametrize(
    "extra",
    [
        {PREFIX + "clientInfo": {"name": "x", "version": "1", "title": "X"}},
        {PREFIX + "logLevel": "debug"},
        {"progressToken": 0, "traceparent": "00-x", "unknown": {"deep": [1]}},
    ],
)
def test_optional_and_unknown_members_of_the_envelope_are_accepted(extra: dict) -> None:
    assert one(make(), modern(1, "tools/list", **extra))["result"]["resultType"] == "complete"


@pytest.mark.parametrize("meta", [None, [], "x", {}, {PREFIX + "clientCapabilities": {}}, {"progressToken": 1}])
def test_a_request_without_a_version_in_its_meta_is_a_legacy_one(meta) -> None:
    session = make(initialized=False)
    assert one(session, request(1, "tools/call", {"name": "answer", "_meta": meta}))["error"]["code"] == -32602
    assert one(session, request(2, "ping", {"_meta": meta}))["result"] == {}
    say(session, request(3, "initialize"))
    hear(session)
    assert one(session, request(4, "tools/list", {"_meta": meta}))["result"].keys() == {"tools"}


# Methods and results


def test_initialize_with_an_envelope_and_a_version_of_its_own_is_the_legacy_handshake() -> None:
    answer = one(make(initialized=False), modern(1, "initialize", {"protocolVersion": "2025-11-25"}))
    assert answer["result"]["protocolVersion"] == "2025-06-18"


def test_instructions_reach_clients_of_both_revisions() -> None:
    session = Session({}, version="1", instructions="Use it.")
    assert one(session, request(1, "initialize"))["result"]["instructions"] == "Use it."
    assert one(session, modern(2, "server/discover"))["result"]["instructions"] == "Use it."


def test_a_modern_failure_is_a_result_and_a_crash_an_error() -> None:
    session = make(initialized=False)
    (failing, crashing) = say(session, *(modern(id_, "tools/call", {"name": "answer"}) for id_ in (1, 2)))
    session.finish(failing.call, ToolFailure("why and what to do", RpcError(-32001, "answer failed")))
    session.finish(crashing.call, BUG)
    failed, crashed = hear(session)
    assert failed["result"]["isError"] is True
    assert failed["result"]["content"][0]["text"] == "why and what to do"
    assert crashed["error"] == {"code": -32603, "message": "Internal error"}


# Both revisions at once


@pytest.mark.rule("spec 2.2")
def test_both_revisions_interleave_and_legacy_results_carry_nothing_modern() -> None:
    session = make(initialized=False)
    events = say(
        session,
        modern(1, "tools/call", {"name": "answer"}),
        request(2, "initialize"),
        modern(3, "server/discover"),
        call(4),
        modern(5, "tools/list"),
        request(6, "tools/list"),
        request(7, "ping"),
    )
    for event in events:
        session.finish(event.call, ToolSuccess("x", {"x": 1}))
    results = {message["id"]: message["result"] for message in hear(session)}
    assert {id_ for id_, result in results.items() if "resultType" in result} == {1, 3, 5}
    for id_ in (2, 4, 6, 7):
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & results[id_].keys()


def test_the_revisions_share_one_id_space_and_a_cancel_hits_either() -> None:
    session = make()
    say(session, modern(1, "tools/call", {"name": "answer"}))
    assert codes([one(session, call(1))]) == [(1, -32600)]
    say(session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": ENVELOPE}})
    assert session.in_flight == 0


# Progress


def test_a_progress_token_comes_back_as_it_was_sent_and_what_is_none_gets_no_progress() -> None:
    tokens: list[object] = [0, "", 7, -1, "p", 2**70, "日" * 1024, 10**1023]
    others: list[object] = [None, True, False, 1.5, 1.0, [], {}, ["p"], "p" * 1025, "日" * 1025, 10**1024]
    session = make()
    values = [*((value, True) for value in tokens), *((value, False) for value in others)]
    for meta, (value, comes_back) in product(({}, ENVELOPE), values):
        params = {"name": "answer", "_meta": {**meta, "progressToken": value}}
        call_ = begun(say(session, request(1, "tools/call", params)))
        session.report(call_, 1, "searching")
        heard = [message["params"] for message in hear(session)]
        assert heard == [{"progressToken": value, "progress": 1, "message": "searching"}] * comes_back
        assert all(type(each["progressToken"]) is type(value) for each in heard)
        session.finish(call_, ToolSuccess("x"))
        assert codes(hear(session)) == [(1, "result")]


@pytest.mark.rule("P7")
def test_there_is_no_progress_beside_or_after_the_answer_nor_after_the_cancel() -> None:
    session = make()
    params = {"name": "answer", "_meta": {"progressToken": "p"}}
    for over in ("answered", "cancelled"):
        call_ = begun(say(session, request(1, "tools/call", params)))
        session.report(call_, 1, "searching")
        if over == "answered":
            session.finish(call_, ToolSuccess("x"))
        else:
            say(session, cancel(1))
        session.report(call_, 2, "late")
        assert codes(hear(session)) == ([(1, "result")] if over == "answered" else [])
        session.report(call_, 3, "later still")
        assert hear(session) == []


# Tasks

METHODS = ("tasks/get", "tasks/cancel", "tasks/update")
CREATED, UPDATED = "2026-11-29T06:00:00Z", "2026-11-29T06:00:01Z"
TASK = Task(id="t", status="working", message="asking", created=CREATED, updated=UPDATED, ttl_ms=9000, poll_ms=1000)
DECLARED: JsonObject = {PREFIX + "clientCapabilities": {"extensions": {TASKS: {}}}}
NEEDED: JsonObject = {"requiredCapabilities": {"extensions": {TASKS: {}}}}


def with_tasks() -> Session:
    methods = dict.fromkeys(METHODS, Method(handler=never))
    feature = Feature(capability=TASKS, methods=methods, legacy=False, extension=True)
    return Session({"answer": ANSWER}, version="1", features=[feature])


def declaring(id_: object, method: str, params: dict | None = None) -> dict:
    return modern(id_, method, params, **DECLARED)


def test_tasks_are_declared_to_the_newer_revision_where_they_are_offered() -> None:
    session = with_tasks()
    assert one(session, modern(1, "server/discover"))["result"]["capabilities"] == {
        "tools": {},
        "extensions": {TASKS: {}},
    }
    assert one(session, request(2, "initialize"))["result"]["capabilities"] == {"tools": {}}
    assert one(make(), modern(1, "server/discover"))["result"]["capabilities"] == {"tools": {}}


@pytest.mark.parametrize("method", METHODS)
def test_requests_for_tasks_want_the_extension_declared_in_each(method: str) -> None:
    session = with_tasks()
    begun(say(session, declaring(1, method, {"taskId": "t"})))
    wrong: list[JsonObject] = [{}, {"extensions": []}, {"extensions": {"other": {}}}, {TASKS: {}}]
    for capabilities in wrong:
        answer = one(session, modern(2, method, {"taskId": "t"}, **{PREFIX + "clientCapabilities": capabilities}))
        assert (answer["error"]["code"], answer["error"]["data"]) == (-32021, NEEDED)


@pytest.mark.parametrize("method", METHODS)
def test_without_tasks_and_in_the_older_revision_their_methods_do_not_exist(method: str) -> None:
    assert codes([one(make(), declaring(1, method))]) == [(1, -32601)]
    assert codes([one(make(), request(1, method, {"taskId": "t"}))]) == [(1, -32601)]
    session = with_tasks()
    say(session, request(0, "initialize"))
    hear(session)
    assert codes([one(session, request(1, method, {"taskId": "t"}))]) == [(1, -32601)]


def test_a_call_of_a_client_that_takes_tasks_may_be_answered_with_one_and_no_other_call() -> None:
    session = with_tasks()
    call_ = begun(say(session, declaring(1, "tools/call", {"name": "answer"})))
    session.finish(call_, TASK)
    (answer,) = hear(session)
    del answer["result"]["_meta"]
    assert answer["result"] == {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "statusMessage": "asking",
        "createdAt": CREATED,
        "lastUpdatedAt": UPDATED,
        "ttlMs": 9000,
        "pollIntervalMs": 1000,
    }
    say(session, request(0, "initialize"))
    hear(session)
    for message in (modern(1, "tools/call", {"name": "answer"}), request(1, "tools/call", {"name": "answer"})):
        call_ = begun(say(session, message))
        with pytest.raises(TypeError):
            session.finish(call_, TASK)
        session.finish(call_, ToolSuccess("x"))
        assert len(hear(session)) == 1


@pytest.mark.parametrize(
    ("outcome", "status", "member"),
    [(ToolSuccess("x", {"x": 1}), "completed", "result"), (ToolFailure("why"), "completed", "result"), (BUG, "failed", "error")],
)  # fmt: skip
def test_the_end_of_a_task_has_the_whole_result_and_fails_only_with_an_error(outcome, status: str, member: str) -> None:
    session = with_tasks()
    call_ = begun(say(session, declaring(1, "tasks/get", {"taskId": "t"})))
    plain = begun(say(session, declaring(2, "tools/call", {"name": "answer"})))
    session.finish(call_, TASK._replace(status="completed", outcome=outcome))
    session.finish(plain, outcome)
    told, same = hear(session)
    assert (told["result"]["resultType"], told["result"]["status"]) == ("complete", status)
    assert told["result"][member] == same[member]


def test_requests_for_tasks_are_in_flight_and_cancelled_as_calls_are() -> None:
    session = with_tasks()
    call_ = begun(say(session, declaring(1, "tasks/get", {"taskId": "t"})))
    assert session.in_flight == 1
    assert say(session, cancel(1)) == [CallCancelled(call_, None)]
    session.finish(call_, TASK)
    assert (session.in_flight, hear(session)) == (0, [])
    session.finish(begun(say(session, declaring(1, "tasks/cancel", {"taskId": "t"}))), Fetched({}))
    assert codes(hear(session)) == [(1, "result")]


# Subscriptions


def watch(id_: object, task_ids: object = ()) -> dict:
    return declaring(id_, "subscriptions/listen", {"notifications": {"taskIds": task_ids}})


def test_calls_without_an_answer_are_those_in_flight_that_are_neither_finished_nor_cancelled() -> None:
    session = make()
    say(session, watch("s"))
    calls = [begun(say(session, call(each))) for each in (1, 2, 3)]
    session.finish(calls[0], ToolSuccess("x"))
    say(session, cancel(2))
    assert session.unanswered() == calls[2:]


def test_a_cancelled_subscription_says_no_more_and_starts_nothing() -> None:
    session = make()
    assert say(session, watch(1), cancel(1)) == []
    session.close_subscriptions()
    assert hear(session) == []


def test_subscriptions_count_as_requests_in_flight() -> None:
    session = make(max_in_flight=2)
    say(session, watch(1), watch(2))
    hear(session)
    assert codes([one(session, watch(3))]) == [(3, -32600)]
    assert codes([one(session, watch(2))]) == [(2, -32600)]


def test_a_subscription_to_tasks_is_acknowledged_by_who_knows_them_and_told_until_it_ends() -> None:
    session = with_tasks()
    subscription = begun(say(session, watch("s", ["a", "b", "a"])))
    assert (list(subscription.task_ids), hear(session)) == (["a", "b"], [])
    session.acknowledge(subscription, ["a"])
    session.tell(subscription, TASK._replace(id="a"))
    session.tell(subscription, TASK._replace(id="a", status="cancelled"))
    ack, *news = hear(session)
    assert ack["params"] == {"_meta": {PREFIX + "subscriptionId": "s"}, "notifications": {"taskIds": ["a"]}}
    assert [each["method"] for each in news] == ["notifications/tasks"] * 2
    assert [each["params"]["status"] for each in news] == ["working", "cancelled"]
    assert news[0]["params"]["_meta"] == {PREFIX + "subscriptionId": "s"}
    assert (subscription.tickets, subscription.beside) == ([], set())  # what was read is not remembered
    assert say(session, cancel("s")) == [CallCancelled(subscription, None)]
    session.tell(subscription, TASK)
    assert (hear(session), session.in_flight) == ([], 0)


@pytest.mark.parametrize("task_ids", [[], ["a"]])
def test_a_subscription_that_ends_with_the_input_is_acknowledged_first(task_ids: list[str]) -> None:
    session = with_tasks()
    events = say(session, watch("s", task_ids))
    session.close_subscriptions()
    if task_ids:
        subscription = begun(events)
        session.acknowledge(subscription, task_ids)  # too late
        session.tell(subscription, TASK)
    ack, end = hear(session)
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    assert (ack["params"]["notifications"], end["id"]) == ({}, "s")


@pytest.mark.parametrize("named", [5, "t", {}, [1], [None, "t"], [["t"]]])
def test_ids_that_are_none_are_refused(named: object) -> None:
    assert codes([one(with_tasks(), watch(1, named))]) == [(1, -32602)]
    session = make()  # which does not know of tasks
    assert one(session, watch(1, named))["method"] == "notifications/subscriptions/acknowledged"


def test_a_subscription_watches_a_hundred_tasks_at_most_and_wants_the_extension_for_each() -> None:
    session = with_tasks()
    subscription = begun(say(session, watch(1, [str(number) for number in range(1000)])))
    assert len(subscription.task_ids) == 100
    for task_ids, refused in ((["t"], True), ([], False)):
        answer = one(session, modern(2, "subscriptions/listen", {"notifications": {"taskIds": task_ids}}))
        assert answer.get("error", {}).get("data") == (NEEDED if refused else None)
        assert refused or answer["params"]["notifications"] == {}
