"""The 2026-07-28 revision, and both revisions interleaved on one stream."""

import json
from pathlib import Path

import pytest

from responses_mcp.protocol.exchange import Call, CallStarted
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.protocol.revisions import Crash, ToolFailure, ToolSuccess
from responses_mcp.protocol.session import Session
from tests.hostile.corpus import ENVELOPE, ILL_SHAPED_ENVELOPES, PREFIX
from tests.protocol import Listed
from tests.protocol.test_session import call, cancel, codes, hear, make, request, say

EXAMPLES = (Path(__file__).parent / "wire_examples.txt").read_text(encoding="utf-8").splitlines()
TOOL = {
    "name": "answer",
    "title": "Answer",
    "description": "Answer one question.",
    "inputSchema": {
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1}},
        "required": ["question"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": True, "openWorldHint": True},
}


def modern(id_: object, method: str, params: dict | None = None, **envelope: object) -> dict:
    meta = {key: value for key, value in {**ENVELOPE, **envelope}.items() if value is not ...}
    return request(id_, method, {**(params or {}), "_meta": meta})


def one(session: Session, message: object) -> dict:
    say(session, message)
    (answer,) = hear(session)
    return answer


def play(session: Session, call_: Call) -> list[dict]:
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
    session = Session({"answer": Listed(TOOL)}, version="1.2.3")
    heard: list[dict] = []
    checked = 0
    for line in EXAMPLES:
        if line.startswith("> "):
            assert heard == [], f"unexpected before {line}"
            text = line.split(" ", 3)[3]
            for event in say(session, text.encode() + b"\n"):
                if isinstance(event, CallStarted):
                    heard += play(session, event.call)
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
    session.finish(crashing.call, Crash())
    failed, crashed = hear(session)
    assert failed["result"]["isError"] is True
    assert failed["result"]["content"][0]["text"] == "why and what to do"
    assert crashed["error"] == {"code": -32603, "message": "Internal error"}


def test_one_modern_call_too_many_is_an_error_result() -> None:
    session = make(max_in_flight=1)
    say(session, call(1))
    assert one(session, modern(2, "tools/call", {"name": "answer"}))["result"]["isError"] is True


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


# Subscriptions


def listen(id_: object) -> dict:
    return modern(id_, "subscriptions/listen", {"notifications": {}})


def test_a_subscription_that_ends_before_its_acknowledgement_was_read_still_sends_it_first() -> None:
    session = make(initialized=False)
    say(session, listen("s"))
    session.close_subscriptions()
    ack, end = hear(session)
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    assert end["id"] == "s"


def test_calls_without_an_answer_are_those_in_flight_that_are_neither_finished_nor_cancelled() -> None:
    session = make()
    say(session, listen("s"))
    calls = [
        event.call for event in say(session, *(call(each) for each in (1, 2, 3))) if isinstance(event, CallStarted)
    ]
    session.finish(calls[0], ToolSuccess("x"))
    say(session, cancel(2))
    assert session.unanswered() == calls[2:]


def test_a_cancelled_subscription_says_no_more_and_starts_nothing() -> None:
    session = make()
    assert say(session, listen(1), cancel(1)) == []
    session.close_subscriptions()
    assert hear(session) == []


def test_subscriptions_count_as_requests_in_flight() -> None:
    session = make(max_in_flight=2)
    say(session, listen(1), listen(2))
    hear(session)
    assert codes([one(session, listen(3))]) == [(3, -32600)]
    assert codes([one(session, listen(2))]) == [(2, -32600)]


# Progress


def token(value: object) -> dict:
    return request(1, "tools/call", {"name": "answer", "_meta": {"progressToken": value}})


@pytest.mark.parametrize("value", [0, "", 7, -1, "p", 2**70, "日" * 1024, 10**1023], ids=range(8))
def test_a_progress_token_comes_back_as_it_was_sent(value) -> None:
    session = make()
    (event,) = say(session, token(value))
    session.report(event.call, 1, "searching")
    (progress,) = hear(session)
    assert progress["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": value, "progress": 1, "message": "searching"}
    assert type(progress["params"]["progressToken"]) is type(value)


@pytest.mark.parametrize("value", [None, True, False, 1.5, 1.0, [], {}, ["p"]])
def test_a_token_of_a_wrong_type_is_no_token(value) -> None:
    session = make()
    (event,) = say(session, token(value))
    session.report(event.call, 1, "searching")
    assert hear(session) == []


@pytest.mark.parametrize("value", ["p" * 1025, "日" * 1025, 10**1024], ids=range(3))
@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["legacy", "modern"])
def test_a_call_with_a_token_over_1024_characters_runs_without_progress(value, meta) -> None:
    session = make()
    (event,) = say(session, request(1, "tools/call", {"name": "answer", "_meta": {**meta, "progressToken": value}}))
    assert event.call.progress_token is None
    session.report(event.call, 1, "searching")
    session.finish(event.call, ToolSuccess("x"))
    assert codes(hear(session)) == [(1, "result")]


def test_progress_that_was_not_taken_is_dropped_when_its_answer_is_queued() -> None:
    session = make()
    (event,) = say(session, token("p"))
    session.report(event.call, 1, "searching")
    session.finish(event.call, ToolSuccess("x"))
    session.report(event.call, 2, "late")
    assert codes(hear(session)) == [(1, "result")]


@pytest.mark.rule("P7")
def test_there_is_no_progress_after_the_answer_or_the_cancel() -> None:
    session = make()
    (event,) = say(session, token("p"))
    session.report(event.call, 1, "searching")
    say(session, cancel(1))
    session.report(event.call, 2, "late")
    assert hear(session) == []
    (event,) = say(session, token("p"))
    session.finish(event.call, ToolSuccess("x"))
    hear(session)
    session.report(event.call, 3, "later still")
    assert hear(session) == []
