"""What a soak sends, and how it reads what comes back."""

import json
import random

import pytest

from tests.soak.expected import COLLISION, answer_of
from tests.soak.ledger import Ledger, Wrong
from tests.soak.library import Library
from tests.soak.mix import JUNK, Mix
from tests.soak.plays import Step
from tests.soak.wire import Incoming, Torn, frame, line

MESSAGES = [{"id": number, "text": "é\n" * number} for number in range(30)]


def encoded(rng: random.Random) -> bytes:
    bodies = [json.dumps(message, ensure_ascii=False).encode() for message in MESSAGES]
    return b"".join(rng.choice((line(body), b"Content-Length: %d\r\n\r\n%b" % (len(body), body))) for body in bodies)


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_both_framings_are_read_in_any_chunks(size):
    data = encoded(random.Random(size))
    incoming = Incoming()
    heard = [message for start in range(0, len(data), size) for message in incoming.feed(data[start : start + size])]
    assert heard == MESSAGES
    assert incoming.rest == b""
    assert incoming.framed + incoming.lines == len(MESSAGES)


@pytest.mark.parametrize("data", [b"hello\n" * 10, b"Content-Length: x\r\n\r\n{}", b"{]\n", b"\n{}\n" + b" " * 40])
def test_what_is_neither_a_line_nor_a_frame_is_torn(data):
    with pytest.raises(Torn):
        Incoming().feed(data)


def test_a_message_that_is_not_complete_is_the_rest():
    incoming = Incoming()
    assert incoming.feed(b'{"id": 1') == []
    assert incoming.rest == b'{"id": 1'


def mixed(seed: int, turns: int = 600) -> tuple[Mix, bytes]:
    mix = Mix(seed, Ledger(), Library())
    data = mix.hello(0.0)
    for turn in range(turns):
        data += mix.turn(turn / 100) + mix.cancels(turn / 100)
    return mix, data


def test_the_same_seed_says_the_same():
    assert mixed(5)[1] == mixed(5)[1] != mixed(6)[1]


def test_a_mix_has_something_of_everything():
    mix, data = mixed(1)
    assert mix.calls > 300
    assert mix.ledger.outcomes["cancelled"] > 10
    for part in (
        b"2026-07-28",
        b"Content-Length",
        b"progressToken",
        b"chatgpt_o3_search",
        b"manual_find",
        b"tools/list",
    ):
        assert part in data
    assert not mix.ledger.violations


def test_whatever_is_asked_is_owed():
    mix, _ = mixed(2, turns=100)
    owed = len(mix.ledger.overdue(float("inf")))
    assert owed > 90
    mix.cancel_everything(1.0)
    assert mix.ledger.in_flight == 0
    assert mix.ledger.open_uses() == []


def test_what_is_cancelled_has_a_ping_behind_it():
    mix, _ = mixed(3, turns=1)
    use = mix.ledger.asks("a call", answer_of(1, (Step("ok"),), search=False, modern=False), 0.0)
    data = mix.cancel(use, 1.0)
    assert data.index(b"notifications/cancelled") < data.index(b'"ping"')


@pytest.mark.parametrize("body", [body for body, _ in JUNK], ids=range(len(JUNK)))
def test_junk_keeps_to_one_line(body):
    assert b"\n" not in body
    assert frame(body, random.Random(1)).endswith(body)


def answer(number: int, text: str | None = None) -> dict:
    url = f"https://example.com/{number}"
    found = {"answer": f"The answer to #{number}: so", "used_search": True, "citations": [{"url": url}], "model": "m"}
    content = [{"type": "text", "text": json.dumps(found) if text is None else text}]
    result = {"content": content, "isError": text is not None}
    return {"jsonrpc": "2.0", "id": 1, "result": result if text is not None else {**result, "structuredContent": found}}


def test_an_answer_must_belong_to_its_question():
    judge = answer_of(17, (Step("ok"),), search=False, modern=False)
    assert judge(answer(17), 0.1) == "answer: answer"
    with pytest.raises(Wrong, match="not the answer to #17"):
        judge(answer(18), 0.1)


def test_a_failure_must_belong_to_its_question_and_be_the_one_that_was_played():
    judge = answer_of(17, (Step("failed"),), search=False, modern=False)
    assert judge(answer(0, "The API failed (500): This is for #17."), 0.1) == "answer: failed"
    with pytest.raises(Wrong, match="another call"):
        judge(answer(0, "The API failed (500): This is for #18."), 0.1)
    with pytest.raises(Wrong, match="cannot end so"):
        judge(answer(0, "The API limits the rate of requests (429): This is for #17."), 0.1)


def test_a_broken_connection_that_was_not_played_is_a_collision():
    broken = answer(0, "The connection broke before the answer was complete (ReadError); ask again.")
    assert answer_of(17, (Step("ok"),), search=False, modern=False)(broken, 0.1) == COLLISION
    assert answer_of(17, (Step("reset"),), search=False, modern=False)(broken, 0.1) == "answer: broken"


def test_a_result_of_the_other_revision_is_wrong():
    with pytest.raises(Wrong, match="revision"):
        answer_of(17, (Step("ok"),), search=False, modern=True)(answer(17), 0.1)
