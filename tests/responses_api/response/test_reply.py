"""One reader for every reply: fed in any chunks, without sockets, it gives the Response object or says what is wrong."""

import gzip
import json
import tracemalloc
from contextlib import closing
from typing import Any

import pytest

from responses_mcp.errors import UnusableReply
from responses_mcp.responses_api.response.reply import ReplyBudget
from responses_mcp.responses_api.response.streaming import MOST_VALUES
from responses_mcp.testing import bodies, stream_events
from tests.responses_api.response.replies import fed, reader

EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
ANSWER = bodies.searched()
CHUNKS = [0, 1, 2, 3, 7, 1000]


def as_events(*events: Any, line_end: str = "\n", named: bool = True) -> bytes:
    lines: list[str] = []
    for event in events:
        name = f"event: {event['type']}{line_end}" if named and isinstance(event, dict) else ""
        lines.append(f"{name}data: {json.dumps(event)}{line_end}{line_end}" if isinstance(event, dict) else event)
    return "".join(lines).encode()


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


WHOLE = {
    "JSON": (as_json(ANSWER), {"content-type": "application/json"}),
    "JSON without a name": (as_json(ANSWER), {}),
    "JSON behind blanks and a mark": (b" \n\t" * 50 + b"\xef\xbb\xbf" + as_json(ANSWER), {}),
    "events": (as_events(*stream_events(ANSWER)), EVENTS),
    "events by CR": (as_events(*stream_events(ANSWER), line_end="\r"), EVENTS),
    "events by CRLF": (as_events(*stream_events(ANSWER), line_end="\r\n"), EVENTS),
    "events without names": (as_events(*stream_events(ANSWER), named=False), EVENTS),
    "events under another name": (as_events(*stream_events(ANSWER)), {"content-type": "application/json"}),
    "events behind a comment": (b": ping\n\n" + as_events(*stream_events(ANSWER)), {}),
    "events behind a mark": (b"\xef\xbb\xbf" + as_events(*stream_events(ANSWER), named=False), {}),
    "events with an empty end": (as_events(*stream_events(ANSWER, empty_terminal=True)), EVENTS),
    "JSON under the name of events": (as_json(ANSWER), EVENTS),
}


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_response_is_the_same_in_every_form_and_every_chunking(name: str, chunk: int, packed: bool) -> None:
    data, headers = WHOLE[name]
    if packed:
        data, headers = gzip.compress(data) + b"what is no part of it", {**headers, "content-encoding": " X-GZIP "}
    response = fed(data, chunk, headers=headers).finish()
    assert response["output"] == ANSWER["output"]
    assert response["status"] == "completed"


def test_a_stream_is_over_with_its_last_event_and_what_follows_is_not_judged() -> None:
    *before, last = stream_events(ANSWER)
    stream = reader()
    stream.begin(200, EVENTS)
    assert not stream.feed(as_events(*before))
    assert stream.feed(as_events(last, {"type": "error", "message": "late"}) + b"data: [DONE]\n\n")
    assert stream.finish() == ANSWER


def test_the_type_that_the_data_names_counts_and_not_the_name_of_the_event() -> None:
    data = b"".join(
        b"event: response.output_text.delta\ndata: " + as_json(event) + b"\n\n" for event in stream_events(ANSWER)
    )
    assert fed(data, headers=EVENTS).finish() == ANSWER


@pytest.mark.parametrize("named", [True, False])
def test_a_type_may_stand_anywhere_in_an_event(named: bool) -> None:
    events = [{"sequence_number": 1, **{key: event[key] for key in reversed(event)}} for event in stream_events(ANSWER)]
    assert fed(as_events(*events, named=named), headers=EVENTS).finish() == ANSWER


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_deltas_spell_the_text_where_nothing_else_was_finished(chunk: int) -> None:
    pieces = ["It is \\u65e5", "\\ud83d", '\\udc0d \\"so', "\\\\", "."]
    deltas = "".join(
        f'data: {{"type":"response.output_text.delta","item_id":"m","delta":"{piece}","obfuscation":"x"}}\n\n'
        for piece in pieces
    )
    annotation = {"type": "url_citation", "url": "https://a.jp/"}
    cited = {"type": "response.output_text.annotation.added", "output_index": 4, "annotation": annotation}
    end = {"type": "response.incomplete", "response": {"status": "incomplete", "output": []}}
    response = fed(as_events(deltas, cited, end), chunk, headers=EVENTS).finish()
    assert response["output"][0]["content"] == [
        {"type": "output_text", "text": 'It is 日🐍 "so\\.', "annotations": [annotation]}
    ]


def test_a_last_event_that_cannot_be_read_is_completed_from_the_events_before() -> None:
    *before, _ = stream_events(ANSWER)
    end = 'data: {"type":"response.completed", oops\n\n'
    assert fed(as_events(*before, end), headers=EVENTS).finish()["output"] == ANSWER["output"]


# The bound

ROOM = 100_000


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("chunk", [0, 1000])
@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b'{"a": "' + b"x" * ROOM + b'"}', {}),
        (b" " * 17 * ROOM, {}),
        (gzip.compress(b'{"a": "' + b"x" * ROOM + b'"}'), {"content-encoding": "gzip"}),
        (gzip.compress(b"[" * 50_000_000), {"content-encoding": "gzip"}),
        (b"data: " + b"x" * (ROOM + 1) + b"\n\n", EVENTS),
        (b"data: " + b"x" * ROOM, EVENTS),
        (b"data: xxx\n" * (ROOM // 3), EVENTS),
        (b"x" * (ROOM + 1), EVENTS),
    ],
    ids=["JSON", "blanks", "packed", "bomb", "event", "open event", "lines", "no lines"],
)
def test_a_reply_above_the_bound_is_given_up(data: bytes, headers: dict[str, str], chunk: int) -> None:
    with pytest.raises(UnusableReply, match=r"longer than 100000 bytes.*request\.max_reply_bytes") as caught:
        fed(data, chunk, headers=headers, most_bytes=ROOM)
    assert not caught.value.retryable


def test_of_comments_without_an_empty_line_nothing_is_kept() -> None:
    stream = fed(b": ping\r\n" * (ROOM // 4) + b": pi", 999, headers=EVENTS, most_bytes=ROOM)
    assert stream.held_bytes < 1_000
    stream.feed(b"ng\n\n" + as_events(*stream_events(ANSWER)))
    assert stream.finish() == ANSWER


def test_a_reply_of_exactly_the_bound_is_read() -> None:
    data = b'{"a": "' + b"x" * (ROOM - 9) + b'"}'
    assert len(data) == ROOM
    for packed in (False, True):
        headers = {"content-encoding": "gzip"} if packed else {}
        got = fed(gzip.compress(data) if packed else data, headers=headers, most_bytes=ROOM)
        assert got.finish() == json.loads(data)


def test_a_stream_may_be_longer_than_the_bound_of_its_events() -> None:
    *before, last = stream_events(ANSWER)
    deltas = [event for event in before if event["type"].endswith("delta")] * (ROOM // 200)
    data = as_events(*before, *deltas, last)
    assert len(data) > 5 * ROOM
    assert fed(data, 10_000, headers=EVENTS, most_bytes=ROOM).finish() == ANSWER


def test_of_an_error_page_no_more_is_read_than_can_be_of_use() -> None:
    page = reader()
    page.begin(502, {"content-type": "text/html"})
    assert not page.feed(b"<html>" * 10_000)
    assert page.feed(b"<html>" * 10_000)
    assert page.feed(b"<html>" * 1_000_000)
    assert page.held_bytes < 130_000


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("value", [b"[],", b"{},", b"1,", b'"a":', b'{"":[]},', b'"",'])
def test_more_values_than_any_reply_has_are_not_decoded(value: bytes) -> None:
    close = b'1,"' if value == b'"a":' else b""
    data = b'{"output":[' + (value + close[:2]) * MOST_VALUES + b"1]}"
    with pytest.raises(UnusableReply, match="not a JSON object"):
        fed(data).finish()
    end = b'data: {"type":"response.completed","response":' + data + b"}\n\n"
    assert fed(end, headers=EVENTS).finish() == {"status": "completed", "output": []}


# What all replies hold together


@pytest.mark.rule("spec 6")
def test_all_replies_being_read_share_a_budget_and_the_one_that_exceeds_it_fails() -> None:
    budget = ReplyBudget(250_000)
    others = [fed(b"{" + b" " * 99_999, budget=budget) for _ in range(2)]
    late = reader(budget=budget)
    late.begin(200, {})
    with pytest.raises(UnusableReply, match="fewer questions at once") as caught, closing(late):
        late.feed(b"{" + b" " * 99_999)
    assert caught.value.maybe_paid
    assert budget.held_bytes == 200_000
    with closing(reader(budget=budget)) as small:
        small.begin(200, {})
        small.feed(b"{}")
        assert small.finish() == {}
    for other in others:
        other.close()
    assert budget.held_bytes == 0


def test_a_reply_that_is_given_up_leaves_its_room_to_the_others_before_its_connection_is_closed() -> None:
    budget = ReplyBudget(250_000)
    with closing(fed(b"{" + b" " * 99_999, budget=budget)) as other, closing(reader(budget=budget)) as late:
        late.begin(200, {})
        with pytest.raises(UnusableReply, match="fewer questions at once"):
            late.feed(b"{" + b" " * 199_999)
        other.feed(b" " * 100_000)
        assert budget.held_bytes == 200_000


def test_a_reader_holds_nothing_behind_its_block_though_an_error_still_refers_to_it() -> None:
    errors: list[BaseException] = []
    tracemalloc.start()
    try:
        for _ in range(20):
            try:
                with closing(reader()) as one:
                    one.begin(200, {})
                    for _ in range(300):
                        one.feed(b"x" * 30_000)
            except UnusableReply as error:
                errors.append(error)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(errors) == 20
    assert kept < 1_000_000


def test_an_event_of_very_many_lines_is_not_kept_line_by_line() -> None:
    data = b"data:12\n" * 50_000 + b"\n"
    stream = reader()
    stream.begin(200, EVENTS)
    tracemalloc.start()
    try:
        for at in range(0, len(data), 8192):
            stream.feed(data[at : at + 8192])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * len(data)


def test_of_events_that_may_be_needed_later_no_more_is_kept_than_a_reply_may_have() -> None:
    item = {"type": "response.output_item.done", "output_index": 0, "item": {"type": "x", "pad": "y" * 5_000}}
    *_, last = stream_events(ANSWER)
    stream = fed(as_events(*[item] * 100), 1000, headers=EVENTS, most_bytes=ROOM)
    assert stream.held_bytes <= ROOM + 6_000
    stream.feed(as_events(last))
    assert stream.finish() == ANSWER
