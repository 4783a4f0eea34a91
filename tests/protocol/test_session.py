"""The session: every rule of the wire and every race, as plain method calls."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.protocol.exchange import Call, CallCancelled, CallStarted, Feature, Method, Subscription
from responses_mcp.protocol.framing import encode_frame, encode_line
from responses_mcp.protocol.jsonrpc import RpcError, request_key
from responses_mcp.protocol.revisions import BUG, PREFIX, TASKS, Outcome, Task, ToolFailure, ToolSuccess
from responses_mcp.protocol.session import Session
from tests.hostile.corpus import CASES, FAILED, IN_FLIGHT, OK, Case
from tests.protocol import a_tool, never

TOOL = a_tool("answer", lambda text: ToolFailure(text, RpcError(-32001, "no")))
INITIALIZE = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
CHUNKS = [0, 1, 2, 7]


def make(*, initialized: bool = True, **options) -> Session:
    session = Session({"answer": TOOL}, version="1.2.3", **options)
    if initialized:
        say(session, INITIALIZE)
        hear(session)
    return session


def say(session: Session, *messages: object, chunk: int = 0) -> list[Any]:
    """Send messages as lines (bytes as they are), in pieces of `chunk` bytes."""
    data = b"".join(m if isinstance(m, bytes) else encode_line(json.dumps(m).encode()) for m in messages)
    step = chunk or len(data) or 1
    events: list[Any] = []
    for start in range(0, len(data), step):
        events += session.receive_data(data[start : start + step])
    return events


def hear(session: Session) -> list[dict]:
    """Take and write all output, and return its messages (line mode)."""
    out = b""
    while data := session.take_output():
        out += data
        session.output_written()
    return [json.loads(line) for line in out.splitlines()]


def request(id_: object, method: str, params: object = None) -> dict:
    message = {"jsonrpc": "2.0", "id": id_, "method": method}
    return message if params is None else {**message, "params": params}


def call(id_: object, **arguments: object) -> dict:
    return request(id_, "tools/call", {"name": "answer", "arguments": arguments})


def cancel(id_: object, **more: object) -> dict:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, **more}}


def start(session: Session, id_: object) -> Call:
    return begun(say(session, call(id_)))


def begun(events: list[Any]) -> Any:
    """Return the one request that began."""
    assert [type(event) for event in events] == [CallStarted]
    return events[0].call


def codes(messages: list[dict]) -> list[tuple[object, object]]:
    return [(m["id"], m.get("error", {}).get("code", OK)) for m in messages]


# Requests that are answered at once


@pytest.mark.rule("spec 1")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_the_contract_s_example_of_initialize_is_answered_word_for_word(chunk: int) -> None:
    session = make(initialized=False)
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}'
    say(session, encode_frame(body), chunk=chunk)
    answer = (
        b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
        b'"serverInfo":{"name":"openai-responses-mcp","version":"1.2.3"}}}'
    )
    assert session.take_output() == b"Content-Length: %d\r\n\r\n" % len(answer) + answer


@pytest.mark.rule("spec 2.3", "spec 11")
@pytest.mark.parametrize(
    "params", [None, {}, {"protocolVersion": 5}, {"capabilities": []}, {"protocolVersion": "1999-01-01"}]
)
def test_initialize_is_answered_with_the_pinned_version_whatever_its_params(params) -> None:
    session = make(initialized=False)
    say(session, request(0, "initialize", params))
    (answer,) = hear(session)
    assert answer["result"]["protocolVersion"] == "2025-06-18"


@pytest.mark.rule("spec 2.2")
def test_before_initialize_tools_are_listed_and_a_call_is_refused_with_the_cure() -> None:
    session = make(initialized=False)
    assert say(session, request(1, "tools/list"), call(2, a=1)) == []
    listed, refused = hear(session)
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["answer"]
    assert refused["error"]["code"] == -32602
    assert "initialize" in refused["error"]["message"]


@pytest.mark.parametrize("id_", [0, -1, 10**30, "", "一", "\u2028", "\ud800", 'a"b\\', "x" * 1000])
def test_every_list_of_tools_is_the_same_but_for_its_id(id_: str | int) -> None:
    session = make()
    modern = {"_meta": {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}}
    for params in (None, modern, None, modern):
        say(session, request("first", "tools/list", params), request(id_, "tools/list", params))
        first, second = hear(session)
        assert second == {**first, "id": id_}
        assert [tool["name"] for tool in second["result"]["tools"]] == ["answer"]


@pytest.mark.rule("spec B")
def test_an_unknown_tool_is_refused_as_the_contract_words_it() -> None:
    session = make()
    say(session, request(1, "tools/call", {"name": "nope"}))
    assert hear(session) == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Unknown tool"}}]


def test_arguments_may_be_absent_or_null() -> None:
    session = make()
    events = say(
        session,
        request(1, "tools/call", {"name": "answer"}),
        request(2, "tools/call", {"name": "answer", "arguments": None}),
    )
    assert [event.call.arguments for event in events] == [{}, {}]


# What no client should send: the corpus, without a process


def typed(pair: tuple[object, object]) -> str:
    return repr((request_key(pair[0]), pair[1]))


@pytest.mark.rule("spec 2.2", "spec 6.1")
@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group}: {case.name}")
def test_hostile_input_gets_what_it_is_owed_and_leaves_the_call_in_flight_alone(case: Case, chunk: int) -> None:
    session = make(max_message_bytes=16 << 20)
    running = start(session, IN_FLIGHT)
    for event in say(session, case.data, chunk=chunk and max(1, len(case.data) // 5000)):
        session.finish(begun([event]), ToolFailure("bad arguments", RpcError(FAILED, "answer failed")))
    assert sorted(map(typed, codes(hear(session)))) == sorted(map(typed, case.owed))
    assert session.in_flight == 1
    session.finish(running, ToolSuccess("x"))
    assert codes(hear(session)) == [(IN_FLIGHT, OK)]


# Output framing


@pytest.mark.rule("spec 2.1")
def test_output_is_framed_until_the_first_line_and_in_lines_ever_after() -> None:
    session = make(initialized=False)
    ping = json.dumps(request(1, "ping")).encode()
    pong = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    say(session, encode_frame(ping))
    assert session.take_output() == encode_frame(pong)
    say(session, encode_line(ping))
    assert session.take_output() == encode_line(pong)
    say(session, encode_frame(ping))
    assert session.take_output() == encode_line(pong)


@pytest.mark.rule("spec 2.1")
def test_line_mode_from_the_start_answers_frames_in_lines() -> None:
    session = make(initialized=False, line_mode=True)
    say(session, encode_frame(json.dumps(request(1, "ping")).encode()))
    assert session.take_output().startswith(b'{"jsonrpc"')


def test_a_malformed_line_switches_to_lines_but_stray_bytes_between_frames_do_not() -> None:
    session = make(initialized=False)
    say(session, encode_frame(json.dumps(request(1, "ping")).encode()))
    assert session.take_output().startswith(b"Content-Length")
    say(session, b"stray\n")
    assert session.take_output().startswith(b"Content-Length")
    say(session, b"{oops\n")
    assert session.take_output().startswith(b"{")


@pytest.mark.rule("spec 2.1")
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"\n\nhello\r\n", -32700),
        (b"\xff\n", -32700),
        (b"5\n", -32600),
        (b"x" * 101 + b"\n", -32600),
        (b"{" * 101 + b"\n", -32600),
    ],
)
def test_the_error_of_a_first_line_that_begins_no_header_comes_as_a_line(first: bytes, code: int, chunk: int) -> None:
    session = make(initialized=False, max_message_bytes=100)
    say(session, first, first, chunk=chunk)
    answers = session.take_output().split(b"\n")
    assert [json.loads(answer)["error"]["code"] for answer in answers[:-1]] == [code, code]
    if b"{" not in first[:1]:  # what is no JSON says nothing about those that follow
        say(session, encode_frame(json.dumps(request(1, "ping")).encode()))
        assert session.take_output().startswith(b"Content-Length")


@pytest.mark.parametrize(
    "first",
    [b"Content-Lenght: 5\r\n", b"Content-Length: 500\r\n\r\n", b"{oops Content-Length: 3\r\n\r\nabc"],
)
def test_the_error_of_a_first_line_that_begins_a_header_comes_in_a_frame(first: bytes) -> None:
    session = make(initialized=False, max_message_bytes=100)
    say(session, first)
    assert session.take_output().startswith(b"Content-Length")


@pytest.mark.rule("spec 2.1")
@pytest.mark.parametrize("text", ["1.5", "1.0", "-0.25", "1e+300"])
def test_an_id_that_is_a_number_with_a_fraction_is_echoed(text: str) -> None:
    session = make()
    say(session, f'{{"jsonrpc":"2.0","id":{text},"method":"ping"}}\n'.encode())
    assert session.take_output() == f'{{"jsonrpc":"2.0","id":{text},"result":{{}}}}\n'.encode()
    first = start(session, float(text))
    say(session, request(float(text), "ping"))
    assert codes(hear(session)) == [(float(text), -32600)]
    (event,) = say(session, cancel(float(text)))
    assert isinstance(event, CallCancelled)
    assert event.call is first


def test_an_answer_finished_after_the_switch_comes_as_a_line() -> None:
    session = make(initialized=False)
    (event,) = say(session, encode_frame(json.dumps(INITIALIZE).encode()), encode_frame(json.dumps(call(1)).encode()))
    session.take_output()
    say(session, request(2, "ping"))
    session.finish(event.call, ToolSuccess("x"))
    assert [m["id"] for m in hear(session)] == [2, 1]


# Outcomes

WHY = RpcError(-32001, "answer failed", {"message": "why"})
TEXT = [{"type": "text", "text": "why"}]


@pytest.mark.rule("spec 2.3", "spec B")
@pytest.mark.parametrize(
    ("as_results", "outcome", "answer"),
    [
        (
            False,
            ToolSuccess("あ", {"a": "あ"}),
            {"content": [{"type": "text", "text": "あ"}], "structuredContent": {"a": "あ"}, "isError": False},
        ),
        (False, ToolFailure("why", WHY), {"code": -32001, "message": "answer failed", "data": {"message": "why"}}),
        (True, ToolFailure("why", WHY), {"content": TEXT, "isError": True}),
        (False, ToolFailure("why"), {"content": TEXT, "isError": True}),
        (True, BUG, {"code": -32603, "message": "Internal error"}),
    ],
    ids=["a success", "the contract's error", "the settings want a result", "the contract wants a result", "a crash"],
)
def test_an_outcome_is_worded_as_the_contract_wants(as_results: bool, outcome: Outcome, answer: dict) -> None:
    session = make(errors_as_results=as_results)
    session.finish(start(session, 1), outcome)
    (message,) = hear(session)
    assert message.get("result", message.get("error")) == answer


# Calls in flight


def test_a_call_is_in_flight_until_its_answer_is_taken() -> None:
    session = make()
    call_ = start(session, 1)
    session.finish(call_, ToolSuccess("x"))
    assert session.in_flight == 1
    session.take_output()
    assert session.in_flight == 0


@pytest.mark.rule("spec 6.1")
@pytest.mark.parametrize("method", ["tools/call", "ping", "tools/list", "initialize", "nope"])
def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_goes_on(method: str) -> None:
    session = make()
    first = start(session, 1)
    assert say(session, request(1, method, {"name": "answer"})) == []
    assert codes(hear(session)) == [(1, -32600)]
    session.finish(first, ToolSuccess("x"))
    assert codes(hear(session)) == [(1, "result")]


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("id_", [1, "1"])
@pytest.mark.parametrize("order", sorted(set(permutations("mdr"))) + [("m",), ("m", "m"), ("m", "d", "m", "r")])
def test_whatever_refuses_another_message_with_the_id_of_a_call_goes_with_its_cancel(order, id_, chunk: int) -> None:
    session = make()
    malformed, duplicate = {"jsonrpc": "1.0", "id": id_, "method": "ping"}, call(id_)
    between = [{"m": malformed, "d": duplicate, "r": {"jsonrpc": "2.0", "id": id_}}[each] for each in order]
    say(session, call(id_), *between, cancel(id_), chunk=chunk)
    assert hear(session) == []
    assert session.unsent_bytes == 0


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_malformed_message_is_refused_at_its_place_while_no_call_has_its_id(chunk: int) -> None:
    session = make()
    malformed = {"jsonrpc": "1.0", "id": 1, "method": "ping"}
    # Before the call, after its cancel, with an id of another type, and beside a call that is not cancelled.
    of_text, of_2 = {**malformed, "id": "1"}, {**malformed, "id": 2}
    say(session, malformed, call(1), of_text, cancel(1), malformed, call(2), of_2, chunk=chunk)
    assert codes(hear(session)) == [(1, -32600), ("1", -32600), (1, -32600), (2, -32600)]
    assert session.in_flight == 1


def test_refusals_that_were_read_are_not_remembered() -> None:
    session = make()
    call_ = start(session, 1)
    for _ in range(10):
        say(session, call(1), {"jsonrpc": "1.0", "id": 1})
        assert len(hear(session)) == 2
    assert call_.beside == set()


def test_requests_in_flight_hold_bounded_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.protocol.session.MAX_HELD_BYTES", 5000)
    session = make()
    small = start(session, 1)
    for id_ in (2, 3, 4):  # whose bytes are given back by a cancel and by an answer
        (event,) = say(session, call(id_, x="y" * 4000))
        assert say(session, call("more", x="y" * 4000)) == []
        assert codes(hear(session)) == [("more", -32001)]
        if id_ == 2:
            say(session, cancel(id_))
        else:
            session.finish(event.call, ToolSuccess("x"))
            hear(session)
    session.finish(small, ToolSuccess("x"))
    hear(session)
    assert isinstance(say(session, call(5, x="y" * 9000))[0], CallStarted)  # alone, any size that can be read


@pytest.mark.rule("spec 6.1")
def test_one_call_too_many_is_a_failed_call_that_says_so() -> None:
    session = make(max_in_flight=2)
    calls = [start(session, 1), start(session, 2)]
    assert say(session, call(3)) == []
    (answer,) = hear(session)
    assert answer["error"]["code"] == -32001
    session.finish(calls[0], ToolSuccess("x"))
    hear(session)
    assert isinstance(say(session, call(3))[0], CallStarted)


# Cancels


@pytest.mark.rule("spec 6.1")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_cancel_stops_its_call_and_nothing_more_is_said_about_it(chunk: int) -> None:
    session = make()
    started, cancelled = say(session, call(1), cancel(1, reason="user"), chunk=chunk)
    assert cancelled == CallCancelled(started.call, "user")
    session.finish(started.call, ToolSuccess("late"))
    assert hear(session) == []
    assert session.in_flight == 0


@pytest.mark.rule("P7", "spec 6.1")
def test_a_cancel_takes_back_an_answer_that_the_writer_has_not_taken() -> None:
    session = make()
    session.finish(start(session, 1), ToolSuccess("x"))
    assert session.unsent_bytes > 0
    (event,) = say(session, cancel(1))
    assert isinstance(event, CallCancelled)
    assert session.unsent_bytes == 0
    assert hear(session) == []


@pytest.mark.rule("spec 6.1")
def test_a_cancel_after_the_answer_was_taken_is_ignored() -> None:
    session = make()
    session.finish(start(session, 1), ToolSuccess("x"))
    taken = session.take_output()
    assert say(session, cancel(1)) == []
    assert json.loads(taken)["id"] == 1


def test_a_cancelled_id_can_be_used_again_and_the_old_call_cannot_answer_for_the_new() -> None:
    session = make()
    old = start(session, 1)
    say(session, cancel(1))
    new = start(session, 1)
    session.finish(old, ToolSuccess("old"))
    assert hear(session) == []
    session.finish(new, ToolSuccess("new"))
    assert hear(session)[0]["result"]["content"][0]["text"] == "new"


def test_a_cancel_s_reason_may_be_anything() -> None:
    session = make()
    for reason in (5, None, ["x"], {"a": 1}):
        call_ = start(session, 1)
        assert say(session, cancel(1, reason=reason)) == [CallCancelled(call_, None)]


@pytest.mark.rule("spec 6.1")
def test_initialize_cannot_be_cancelled() -> None:
    session = make(initialized=False)
    assert say(session, INITIALIZE, cancel("init")) == []
    assert codes(hear(session)) == [("init", "result")]


# Output accounting


def test_unsent_bytes_count_what_waits_and_what_is_in_hand() -> None:
    session = make()
    assert session.unsent_bytes == 0
    say(session, request(1, "ping"))
    waiting = session.unsent_bytes
    taken = session.take_output()
    assert session.unsent_bytes == len(taken) < waiting  # what waits costs more than its bytes
    say(session, request(2, "ping"))
    assert session.unsent_bytes == len(taken) + waiting
    session.output_written()
    assert session.unsent_bytes == waiting


def test_small_messages_are_taken_together_and_big_ones_alone() -> None:
    session = make()
    for id_ in (1, 2):
        say(session, request(id_, "ping"))
    session.finish(start(session, 3), ToolSuccess("x" * 100_000))
    say(session, request(4, "ping"))
    batches = []
    while data := session.take_output():
        batches.append([json.loads(line)["id"] for line in data.splitlines()])
        session.output_written()
    assert batches == [[1, 2], [3], [4]]


# Arbitrary scripts

IDS = st.sampled_from([0, 1, 2, "1", "", True, None, 1.0])
TAKES_TASKS = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientCapabilities": {"extensions": {TASKS: {}}},
}
OF_TASKS = ("tasks/get", "tasks/cancel", "tasks/update")
TASK = Task(id="t", status="working", message="", created="", updated="", ttl_ms=1, poll_ms=1)
MODERN = st.builds(
    lambda id_, method, more: request(id_, method, {"name": "answer", "taskId": "t", **more, "_meta": TAKES_TASKS}),
    IDS,
    st.sampled_from(["tools/call", "subscriptions/listen", *OF_TASKS]),
    st.sampled_from([{}, {"taskId": 5}, {"notifications": {}}, {"notifications": {"taskIds": ["t", "u"]}}]),
)
LEGAL = st.one_of(
    st.builds(call, IDS),
    st.builds(cancel, IDS),
    st.builds(request, IDS, st.sampled_from(["ping", "tools/list", "initialize", "nope", *OF_TASKS])),
    MODERN,
)
ODD = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"{oops\n", b"Content-Length: 3\r\n\r\n", b"[]\n", b'{"id":1,"result":{}}\n']),
)
STEP = st.one_of(LEGAL, ODD, st.tuples(st.just("finish"), st.integers(0, 5)), st.just("write"))


@pytest.mark.rule("P2")
@given(st.lists(STEP, max_size=40))
def test_any_script_gets_at_most_one_answer_a_request_and_none_after_a_cancel(steps: list) -> None:
    methods = dict.fromkeys(OF_TASKS, Method(handler=never))
    feature = Feature(capability=TASKS, methods=methods, legacy=False, extension=True)
    session = make(features=[feature])
    running: list[Any] = []
    asked: dict[object, int] = {}
    answered: dict[object, int] = {}
    cancelled: set[Call] = set()
    finished: set[Call] = set()
    given_for: dict[object, int] = {}

    def note_output() -> None:
        for message in hear(session):
            if message.get("id") is not None and ("result" in message or message["error"]["code"] != -32600):
                key = request_key(message["id"])
                answered[key] = answered.get(key, 0) + 1

    for step in steps:
        if step == "write":
            note_output()
        elif isinstance(step, tuple):
            if step[1] < len(running) and (call_ := running[step[1]]) not in finished:
                if isinstance(call_, Subscription):
                    session.acknowledge(call_, ["t"])
                    session.tell(call_, TASK)
                    continue
                finished.add(call_)
                session.finish(call_, TASK if call_.takes_tasks else ToolSuccess("x"))
        else:
            if isinstance(step, dict) and request_key(step.get("id")):
                asked[request_key(step["id"])] = asked.get(request_key(step["id"]), 0) + 1
            for event in say(session, step):
                if isinstance(event, CallStarted):
                    running.append(event.call)
                else:
                    cancelled.add(event.call)
                    given_for[event.call.key] = given_for.get(event.call.key, 0) + 1
    note_output()
    for key, count in answered.items():
        assert count <= asked.get(key, 0) - given_for.get(key, 0)
    assert session.in_flight == len([c for c in running if c not in cancelled and c not in finished])
    assert session.unsent_bytes == 0
