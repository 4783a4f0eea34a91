"""The session: every rule of the wire and every race, as plain method calls."""

import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_mcp.protocol.eras import PREFIX
from responses_mcp.protocol.exchange import Call, CallCancelled, CallStarted, Event, ListedTool
from responses_mcp.protocol.framing import encode_frame, encode_line
from responses_mcp.protocol.jsonrpc import RpcError, request_key
from responses_mcp.protocol.outcome import Crash, ToolFailure, ToolSuccess
from responses_mcp.protocol.session import Session

TOOL = ListedTool(
    {"name": "echo", "inputSchema": {"type": "object"}}, lambda text: ToolFailure(text, RpcError(-32001, "no"))
)
INITIALIZE = {"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
CHUNKS = [0, 1, 2, 7]


def make(*, initialized: bool = True, **options) -> Session:
    session = Session({"echo": TOOL}, version="1.2.3", **options)
    if initialized:
        say(session, INITIALIZE)
        hear(session)
    return session


def say(session: Session, *messages: object, chunk: int = 0) -> list[Event]:
    """Send messages as lines (bytes as they are), in pieces of `chunk` bytes."""
    data = b"".join(m if isinstance(m, bytes) else encode_line(json.dumps(m).encode()) for m in messages)
    step = chunk or len(data) or 1
    events: list[Event] = []
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
    return request(id_, "tools/call", {"name": "echo", "arguments": arguments})


def cancel(id_: object, **more: object) -> dict:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_, **more}}


def start(session: Session, id_: object) -> Call:
    (event,) = say(session, call(id_))
    assert isinstance(event, CallStarted)
    return event.call


def codes(messages: list[dict]) -> list[tuple[object, object]]:
    return [(m["id"], m.get("error", {}).get("code", "result")) for m in messages]


# Requests that are answered at once


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


@pytest.mark.parametrize(
    "params", [None, {}, {"protocolVersion": 5}, {"capabilities": []}, {"protocolVersion": "1999-01-01"}]
)
def test_initialize_is_answered_with_the_pinned_version_whatever_its_params(params) -> None:
    session = make(initialized=False)
    say(session, request(0, "initialize", params))
    (answer,) = hear(session)
    assert answer["result"]["protocolVersion"] == "2025-06-18"


def test_ping_is_answered_with_an_empty_object_at_any_time() -> None:
    session = make(initialized=False)
    say(session, request(99, "ping"), INITIALIZE, request("p", "ping", {"x": 1}))
    assert [m["result"] for m in hear(session) if m["id"] != "init"] == [{}, {}]


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
def test_tools_are_refused_before_initialize_with_the_cure(method: str) -> None:
    session = make(initialized=False)
    assert say(session, request(1, method, {"name": "echo"})) == []
    (answer,) = hear(session)
    assert answer["error"]["code"] == -32602
    assert "initialize" in answer["error"]["message"]


def test_requests_right_behind_initialize_are_served() -> None:
    session = make(initialized=False)
    events = say(session, INITIALIZE, request(1, "tools/list"), call(2, a=1))
    assert [type(event) for event in events] == [CallStarted]
    assert codes(hear(session)) == [("init", "result"), (1, "result")]


@pytest.mark.parametrize("id_", [0, -1, 10**30, "", "一", "\u2028", "\ud800", 'a"b\\', "x" * 1000])
def test_every_list_of_tools_is_the_same_but_for_its_id(id_: str | int) -> None:
    session = make()
    modern = {"_meta": {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}}
    for params in (None, modern, None, modern):
        say(session, request("first", "tools/list", params), request(id_, "tools/list", params))
        first, second = hear(session)
        assert second == {**first, "id": id_}
        assert [tool["name"] for tool in second["result"]["tools"]] == ["echo"]


def test_the_tool_list_is_one_page_of_the_definitions() -> None:
    session = make()
    say(session, request(1, "tools/list", {"cursor": "x"}))
    assert hear(session)[0]["result"] == {"tools": [TOOL.definition]}


@pytest.mark.parametrize("method", ["resources/list", "logging/setLevel", "", "tools/call ", "notifications/cancelled"])
def test_an_unknown_method_is_refused(method: str) -> None:
    session = make()
    say(session, request(1, method, {}))
    assert codes(hear(session)) == [(1, -32601)]


def test_an_unknown_tool_is_refused_as_the_contract_words_it() -> None:
    session = make()
    say(session, request(1, "tools/call", {"name": "nope"}))
    assert hear(session) == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Unknown tool"}}]


@pytest.mark.parametrize(
    "params",
    [None, {}, {"name": 5}, {"name": None}, {"name": ["echo"]}, {"name": "echo", "arguments": [1]}]
    + [{"name": "echo", "arguments": bad} for bad in ("x", 5, True)],
)
def test_a_malformed_tools_call_is_refused_and_starts_nothing(params) -> None:
    session = make()
    assert say(session, request(1, "tools/call", params)) == []
    assert codes(hear(session)) == [(1, -32602)]
    assert session.in_flight == 0


def test_arguments_may_be_absent_or_null() -> None:
    session = make()
    events = say(
        session,
        request(1, "tools/call", {"name": "echo"}),
        request(2, "tools/call", {"name": "echo", "arguments": None}),
    )
    assert [event.call.arguments for event in events] == [{}, {}]


# What is not answered, and what gets an error without an id


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "tools/list"},
        {"jsonrpc": "1.0", "method": "tools/call", "params": [5]},
        {"method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/unknown", "params": "x"},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "result": {}},
    ],
)
def test_notifications_and_responses_are_never_answered(message: dict) -> None:
    session = make()
    assert say(session, message) == []
    assert hear(session) == []


@pytest.mark.parametrize(
    "line",
    [
        b"{oops",
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"id":NaN,"method":"ping"}',
        b'{"id":1,"x":Infinity}',
        b'{"id":' + b"9" * 5000 + b',"jsonrpc":"2.0","method":"ping"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"a":"\x01"}',
        b"{\0}",
        b"{'a':1}",
    ],
)
def test_what_is_not_json_gets_a_parse_error_and_the_stream_goes_on(line: bytes) -> None:
    session = make()
    assert say(session, line + b"\n", request(2, "ping")) == []
    assert codes(hear(session)) == [(None, -32700), (2, "result")]


@pytest.mark.parametrize(
    ("message", "id_"),
    [
        ([], None),
        ([request(16, "ping")], None),
        (5, None),
        ("ping", None),
        (None, None),
        (True, None),
        ({}, None),
        ({"jsonrpc": "2.0"}, None),
        (request(None, "ping"), None),
        (request(True, "ping"), None),
        (request(1.0, "ping"), None),
        (request(1.5, "ping"), None),
        (request([1], "ping"), None),
        (request({}, "ping"), None),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1),
        ({"jsonrpc": "2.0", "id": 1, "method": None}, 1),
        ({"jsonrpc": "2.0", "id": 1}, 1),
        ({"jsonrpc": "2.0", "method": 5}, None),
        ({"id": 1, "method": "ping"}, 1),
        ({"jsonrpc": "1.0", "id": "a", "method": "ping"}, "a"),
        ({"jsonrpc": 2.0, "id": 0, "method": "ping"}, 0),
        (request("", "ping", [1]), ""),
        (request(1, "ping", "x"), 1),
        (request(-1, "ping", 0), -1),
    ],
)
def test_what_is_not_a_request_gets_invalid_request_with_the_id_only_if_it_can_be_trusted(message, id_) -> None:
    session = make()
    assert say(session, message, request(2, "ping")) == []
    answers = hear(session)
    assert codes(answers) == [(id_, -32600), (2, "result")]
    assert type(answers[0]["id"]) is type(id_)


@pytest.mark.parametrize("id_", [0, -1, 1, 2**70, "", "1", "二", "\u2028", "a" * 10_000, "\ud800"])
def test_ids_come_back_as_they_were_sent(id_) -> None:
    session = make()
    say(session, request(id_, "ping"))
    data = session.take_output()
    assert data.count(b"\n") == 1
    (answer,) = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    assert answer["id"] == id_
    assert type(answer["id"]) is type(id_)


def test_an_over_long_message_gets_invalid_request_and_the_stream_goes_on() -> None:
    session = make(max_message_bytes=1000)
    assert say(session, call(1, x="y" * 2000), request(2, "ping")) == []
    assert codes(hear(session)) == [(None, -32600), (2, "result")]


# Output framing


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


def test_line_mode_from_the_start_answers_frames_in_lines() -> None:
    session = make(initialized=False, line_mode=True)
    say(session, encode_frame(json.dumps(request(1, "ping")).encode()))
    assert session.take_output().startswith(b'{"jsonrpc"')


def test_a_malformed_line_switches_to_lines_but_stray_bytes_between_frames_do_not() -> None:
    session = make(initialized=False)
    say(session, b"stray\n")
    assert session.take_output().startswith(b"Content-Length")
    say(session, b"{oops\n")
    assert session.take_output().startswith(b"{")


def test_an_answer_finished_after_the_switch_comes_as_a_line() -> None:
    session = make(initialized=False)
    (event,) = say(session, encode_frame(json.dumps(INITIALIZE).encode()), encode_frame(json.dumps(call(1)).encode()))
    session.take_output()
    say(session, request(2, "ping"))
    session.finish(event.call, ToolSuccess("x"))
    assert [m["id"] for m in hear(session)] == [2, 1]


# Outcomes


def test_a_success_carries_the_text_and_the_same_facts_structured() -> None:
    session = make()
    session.finish(start(session, 1), ToolSuccess('{"a": "あ"}', {"a": "あ"}))
    assert hear(session)[0]["result"] == {
        "content": [{"type": "text", "text": '{"a": "あ"}'}],
        "structuredContent": {"a": "あ"},
        "isError": False,
    }


def test_a_failure_is_the_error_that_the_contract_words() -> None:
    session = make()
    session.finish(start(session, 1), ToolFailure("why", RpcError(-32001, "answer failed", {"message": "why"})))
    assert hear(session)[0]["error"] == {"code": -32001, "message": "answer failed", "data": {"message": "why"}}


def test_a_failure_without_an_error_is_a_result_that_says_so() -> None:
    session = make()
    session.finish(start(session, 1), ToolFailure("why"))
    assert hear(session)[0]["result"] == {"content": [{"type": "text", "text": "why"}], "isError": True}


def test_failures_are_results_when_the_settings_say_so() -> None:
    session = make(errors_as_results=True)
    session.finish(start(session, 1), ToolFailure("why", RpcError(-32001, "answer failed")))
    assert hear(session)[0]["result"]["isError"] is True


def test_a_crash_says_nothing_about_itself() -> None:
    session = make(errors_as_results=True)
    session.finish(start(session, 1), Crash())
    assert hear(session)[0]["error"] == {"code": -32603, "message": "Internal error"}


# Calls in flight


def test_a_call_is_in_flight_until_its_answer_is_taken() -> None:
    session = make()
    call_ = start(session, 1)
    session.finish(call_, ToolSuccess("x"))
    assert session.in_flight == 1
    session.take_output()
    assert session.in_flight == 0


def test_answers_come_in_the_order_in_which_calls_finish() -> None:
    session = make()
    first, second = start(session, 1), start(session, 2)
    session.finish(second, ToolSuccess("b"))
    session.finish(first, ToolSuccess("a"))
    assert [m["id"] for m in hear(session)] == [2, 1]


@pytest.mark.parametrize("method", ["tools/call", "ping", "tools/list", "initialize", "nope"])
def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_goes_on(method: str) -> None:
    session = make()
    first = start(session, 1)
    assert say(session, request(1, method, {"name": "echo"})) == []
    assert codes(hear(session)) == [(1, -32600)]
    session.finish(first, ToolSuccess("x"))
    assert codes(hear(session)) == [(1, "result")]


def test_the_refusal_of_a_second_request_goes_with_the_cancel_of_the_first() -> None:
    session = make()
    say(session, call(1), call(1), request(1, "ping"), cancel(1))
    assert hear(session) == []
    assert session.unsent_bytes == 0


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
    say(
        session,
        malformed,
        call(1),
        {**malformed, "id": "1"},
        cancel(1),
        malformed,
        call(2),
        {**malformed, "id": 2},
        chunk=chunk,
    )
    assert codes(hear(session)) == [(1, -32600), ("1", -32600), (1, -32600), (2, -32600)]
    assert session.in_flight == 1


def test_refusals_that_were_read_are_not_remembered() -> None:
    session = make()
    call_ = start(session, 1)
    for _ in range(10):
        say(session, call(1), {"jsonrpc": "1.0", "id": 1})
        assert len(hear(session)) == 2
    assert call_.refusals == set()


def test_requests_in_flight_hold_bounded_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.protocol.session.MAX_HELD_BYTES", 5000)
    session = make()
    calls = [start(session, 1)]
    say(session, call(2, x="y" * 4000), call(3, x="y" * 4000))
    assert codes(hear(session)) == [(3, -32001)]
    say(session, cancel(2))
    (event,) = say(session, call(4, x="y" * 4000))
    session.finish(event.call, ToolSuccess("x"))
    session.finish(calls[0], ToolSuccess("x"))
    hear(session)
    assert session._held_bytes == 0
    assert isinstance(say(session, call(5, x="y" * 9000))[0], CallStarted)  # alone, any size that can be read


def test_ids_of_different_types_are_different_ids() -> None:
    session = make()
    calls = [start(session, id_) for id_ in (1, "1", 0, "", "0")]
    for call_ in calls:
        session.finish(call_, ToolSuccess(repr(call_.id)))
    assert [m["result"]["content"][0]["text"] for m in hear(session)] == ["1", "'1'", "0", "''", "'0'"]


def test_an_id_may_be_used_again_once_its_answer_is_taken() -> None:
    session = make()
    session.finish(start(session, 1), ToolSuccess("a"))
    hear(session)
    session.finish(start(session, 1), ToolSuccess("b"))
    assert hear(session)[0]["result"]["content"][0]["text"] == "b"


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


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_cancel_stops_its_call_and_nothing_more_is_said_about_it(chunk: int) -> None:
    session = make()
    started, cancelled = say(session, call(1), cancel(1, reason="user"), chunk=chunk)
    assert cancelled == CallCancelled(started.call, "user")
    session.finish(started.call, ToolSuccess("late"))
    assert hear(session) == []
    assert session.in_flight == 0


def test_a_cancel_takes_back_an_answer_that_the_writer_has_not_taken() -> None:
    session = make()
    session.finish(start(session, 1), ToolSuccess("x"))
    assert session.unsent_bytes > 0
    (event,) = say(session, cancel(1))
    assert isinstance(event, CallCancelled)
    assert session.unsent_bytes == 0
    assert hear(session) == []


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


def test_other_calls_go_on_when_one_is_cancelled() -> None:
    session = make()
    calls = {id_: start(session, id_) for id_ in (1, "1", 2)}
    say(session, cancel("1"))
    for call_ in calls.values():
        session.finish(call_, ToolSuccess("x"))
    assert [m["id"] for m in hear(session)] == [1, 2]


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        "x",
        {},
        {"requestId": None},
        {"requestId": True},
        {"requestId": 1.0},
        {"requestId": "1"},
        {"requestId": [1]},
    ]
    + [{"requestId": {}}, {"requestId": 2}, {"requestId": "init"}, {"reason": "x"}, {"request_id": 1}],
)
def test_a_cancel_that_names_no_call_in_flight_is_ignored(params) -> None:
    session = make()
    call_ = start(session, 1)
    assert say(session, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) == []
    session.finish(call_, ToolSuccess("x"))
    assert codes(hear(session)) == [(1, "result")]


def test_a_cancel_s_reason_may_be_anything() -> None:
    session = make()
    for reason in (5, None, ["x"], {"a": 1}):
        call_ = start(session, 1)
        assert say(session, cancel(1, reason=reason)) == [CallCancelled(call_, None)]


def test_initialize_cannot_be_cancelled() -> None:
    session = make(initialized=False)
    assert say(session, INITIALIZE, cancel("init")) == []
    assert codes(hear(session)) == [("init", "result")]


def test_a_cancel_sent_as_a_request_is_only_an_unknown_method() -> None:
    session = make()
    call_ = start(session, 1)
    say(session, {**cancel(1), "id": 5})
    assert codes(hear(session)) == [(5, -32601)]
    assert session.in_flight == 1
    session.finish(call_, ToolSuccess("x"))


# Output accounting


def test_unsent_bytes_count_what_waits_and_what_is_in_hand() -> None:
    session = make()
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


def test_the_end_of_input_completes_a_last_line() -> None:
    session = make()
    say(session, json.dumps(request(1, "ping")).encode())
    assert hear(session) == []
    assert session.receive_eof() == []
    assert codes(hear(session)) == [(1, "result")]


# Arbitrary scripts

IDS = st.sampled_from([0, 1, 2, "1", "", True, None, 1.0])
LEGAL = st.one_of(
    st.builds(call, IDS),
    st.builds(cancel, IDS),
    st.builds(request, IDS, st.sampled_from(["ping", "tools/list", "initialize", "nope"])),
)
ODD = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"{oops\n", b"Content-Length: 3\r\n\r\n", b"[]\n", b'{"id":1,"result":{}}\n']),
)
STEP = st.one_of(LEGAL, ODD, st.tuples(st.just("finish"), st.integers(0, 5)), st.just("write"))


@settings(max_examples=300)
@given(st.lists(STEP, max_size=40))
def test_any_script_gets_at_most_one_answer_a_request_and_none_after_a_cancel(steps: list) -> None:
    session = make()
    running: list[Call] = []
    asked: dict[object, int] = {}
    answered: dict[object, int] = {}
    cancelled: set[Call] = set()
    finished: set[Call] = set()
    given_for: dict[object, int] = {}

    def note_output() -> None:
        for message in hear(session):
            if message["id"] is not None and ("result" in message or message["error"]["code"] != -32600):
                key = request_key(message["id"])
                answered[key] = answered.get(key, 0) + 1

    for step in steps:
        if step == "write":
            note_output()
        elif isinstance(step, tuple):
            if step[1] < len(running):
                call_ = running[step[1]]
                finished.add(call_)
                session.finish(call_, ToolSuccess("x"))
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


@given(st.binary(max_size=300), st.integers(1, 20))
def test_arbitrary_bytes_never_break_the_session(data: bytes, chunk: int) -> None:
    session = make(max_message_bytes=200)
    say(session, data, chunk=chunk)
    session.receive_eof()
    session.take_output()
