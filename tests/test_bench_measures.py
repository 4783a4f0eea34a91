"""The parts of the benchmarks that could be wrong without anybody noticing. What they measure is not judged here."""

import asyncio
import json
import os
import subprocess
import sys
from functools import partial

import h11
import pytest
import trio
import trio.testing

from responses_mcp.redaction import Redactor
from responses_mcp.responses_api.reading import read_answer
from responses_mcp.responses_api.reply import ReplyBudget, ReplyReader
from responses_mcp.responses_api.streaming import MOST_VALUES
from tests.bench.__main__ import rotated, run
from tests.bench.figures import ROOT
from tests.bench.measures import bodies, calls, cancels, memory, messages, overhead, start
from tests.bench.measures.conversation import Conversation, unanswered
from tests.bench.results import Results
from tests.bench.subjects import Subject, original, own
from tests.bench.upstream import DELTAS, LARGE, NO_STREAM, Api, Connection, Replies, Requests

WAIT = 20  # seconds; a bound for a stuck machine, not an expectation

OURS, PYTHON, _, HTTPX = own()
processes = pytest.mark.skipif(sys.platform == "win32", reason="the benchmarks need os.wait4 and a shell")


@pytest.fixture(scope="module")
def replies() -> Replies:
    return Replies()


def post(question: str) -> bytes:
    body = json.dumps({"input": question}).encode()
    return b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def answered(number: int, text: str, **fields: object) -> bytes:
    result = {"content": [{"type": "text", "text": text}], **fields}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_the_upstream_reads_requests_in_pieces_and_several_in_one(step):
    requests = Requests()
    data = post("one") + post("two") + b"GET / HTTP/1.1\r\n\r\n" + post("three " * 500)
    heard = [whole for start in range(0, len(data), step) for whole in requests.feed(data[start : start + step])]
    assert [json.loads(body)["input"].split()[0] if body else head for head, body in heard] == [
        "one",
        "two",
        b"GET / HTTP/1.1",
        "three",
    ]


def body(reply: bytes) -> tuple[h11.Response, list[bytes]]:
    """Return the head of a reply, and its body as it was cut into chunks."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(reply)
    head = connection.next_event()
    assert isinstance(head, h11.Response)
    chunks: list[bytes] = []
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data)
        chunks.append(bytes(event.data))
    assert connection.trailing_data == (b"", False)
    return head, chunks


@pytest.mark.parametrize("what", [b"0", b"200", b"large", b"json", b"stream"])
def test_every_reply_repeats_its_number_and_is_one_that_the_server_reads(what, replies):
    head, chunks = body(replies.reply(what, b"00000042", streamed=True))
    headers = {name.decode(): value.decode() for name, value in head.headers}
    with ReplyReader(most_bytes=2 * LARGE, budget=ReplyBudget(), redact=Redactor([])) as reader:
        reader.begin(head.status_code, headers)
        reader.feed(b"".join(chunks))
        answer = read_answer(reader.finish(), model="a-model", max_citations=10, date="2026-01-01", redact=str)
    assert "bench 00000042" in answer.text
    assert answer.used_search
    assert headers["content-type"].startswith("text/event-stream" if what == b"stream" else "application/json")


def test_a_large_reply_has_a_short_answer_and_no_more_values_than_the_server_reads(replies):
    _, [data] = body(replies.reply(b"large", b"00000042", streamed=True))
    assert abs(len(data) - LARGE) < LARGE / 20
    assert data.count(b",") + data.count(b"[") + data.count(b"{") < MOST_VALUES
    output = json.loads(data)["output"]
    thoughts, searches = (
        sum(len(json.dumps(item)) for item in output if item["type"] == kind)
        for kind in ("reasoning", "web_search_call")
    )
    assert min(thoughts, searches) > 0.4 * LARGE
    assert len(output[-1]["content"][0]["text"]) < LARGE / 100


def test_a_stream_is_the_answer_of_the_json_reply_beside_it_a_word_a_delta_and_an_event_a_chunk(replies):
    _, chunks = body(replies.reply(b"stream", b"00000042", streamed=True))
    _, [data] = body(replies.reply(b"json", b"00000042", streamed=True))
    events = []
    for chunk in chunks:
        name, fields = chunk.removeprefix(b"event: ").split(b"\ndata: ")
        events.append(json.loads(fields))
        assert events[-1]["type"] == name.decode()
        assert fields.endswith(b"}\n\n")
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) == DELTAS
    assert events[-1]["response"] == json.loads(data)
    assert "".join(deltas) == events[-1]["response"]["output"][-1]["content"][0]["text"]


def test_who_asks_for_no_stream_is_refused_one(replies):
    head, _ = body(replies.reply(b"stream", b"00000042", streamed=False))
    assert head.status_code == 400


async def test_a_server_that_asks_for_no_stream_has_no_figure_for_one(autojump_clock):
    ours, theirs = trio.testing.memory_stream_pair()
    figures = []

    async def serve() -> None:
        async for line in theirs:
            for said in line.splitlines():
                asked = json.loads(said)
                number, query = asked["id"], asked["params"]["arguments"]["query"]
                refused = "bench stream" in query
                text = f"400: {NO_STREAM}" if refused else query.replace("json ", "")
                await theirs.send_all(answered(number, text, isError=refused) + b"\n")

    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            talk = Conversation(ours, ours, os.getpid())
            await overhead.in_both_forms(talk, lambda *figure: figures.append(figure[:2]))
            nursery.cancel_scope.cancel()
    assert figures == ([("overhead_cpu", "json")] if sys.platform == "linux" else [])


def test_the_upstream_tells_when_enough_requests_hang_or_were_hung_up_and_none_from_before_a_reset(capsys):
    api = Api()
    old, *new = [Connection(api) for _ in range(3)]
    for step, said in (
        (partial(api.obey, "1 open 1"), ""),
        (partial(old.data_received, post("bench hang 00000001")), "1"),
        (partial(api.obey, "2 reset 0"), "2"),
        (partial(api.obey, "3 open 2"), ""),
        (partial(new[0].data_received, post("bench hang 00000002")), ""),
        (partial(new[1].data_received, post("bench hang 00000003")), "3"),
        (partial(api.obey, "4 hung 2"), ""),
        (old.eof_received, ""),
        (new[0].eof_received, ""),
        (partial(new[0].connection_lost, None), ""),
        (partial(new[1].connection_lost, ConnectionResetError()), "4"),
        (partial(api.obey, "5 hung 2"), "5"),
    ):
        step()
        assert capsys.readouterr().out.partition(" ")[0] == said, step


class Sent(asyncio.Transport):
    """What a connection has sent, as pieces."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))


def test_large_replies_wait_until_they_are_let_go_all_together(capsys):
    api = Api()
    sent = [Sent(), Sent()]
    for number, transport in enumerate(sent):
        connection = Connection(api)
        connection.connection_made(transport)
        connection.data_received(post(f"bench large {number:08d}"))
    api.obey("1 open 2")
    assert capsys.readouterr().out.startswith("1 ")
    assert [transport.pieces for transport in sent] == [[], []]
    for _ in range(2):
        api.obey("2 release 0")
        assert capsys.readouterr().out.startswith("2 ")
        assert [[b"bench %08d" % number in piece for piece in sent[number].pieces] for number in (0, 1)] == [[True]] * 2


async def test_lines_are_put_together_and_what_a_server_says_unasked_is_left_out(autojump_clock):
    send, receive = trio.testing.memory_stream_one_way_pair()
    talk = Conversation(receive, send, 0)
    for piece, lines in (
        (b'{"id":1,"res', []),
        (b'ult":', []),
        (b'{}}\n{"method":"notifications/message"}\n{"id', [b'{"id":1,"result":{}}']),
        (b'":2,"result":{}}\n', [b'{"id":2,"result":{}}']),
    ):
        await send.send_all(piece)
        assert await talk.lines() == lines
    await send.aclose()
    with pytest.raises(EOFError):
        await talk.lines()


async def test_answers_are_read_while_requests_are_written(autojump_clock):
    ours, theirs = trio.testing.lockstep_stream_pair()

    async def serve() -> None:
        while line := await theirs.receive_some(2):
            await theirs.send_all(line)  # nothing more is read until somebody reads this

    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            assert await Conversation(ours, ours, 0).answers(b"1\n2\n3\n", 3) == [b"1", b"2", b"3"]
            nursery.cancel_scope.cancel()


def test_a_call_counts_as_failed_without_an_answer_with_that_of_another_and_with_an_error():
    lines = [
        answered(1, "The answer to: bench 00000001"),
        answered(2, "The answer to: bench 00000003"),
        answered(4, "bench 00000004 failed", isError=True),
        b'{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"bench 00000005"}}',
    ]
    assert unanswered(lines, [1, 2, 4, 5, 6]) == {2, 4, 5, 6}


@processes
async def test_all_measures_of_the_contract_are_taken(monkeypatch):
    for module, name, value in (
        (start, "STARTS", 1),
        (memory, "CALLS", 200),
        (messages, "FIRST", 5),
        (messages, "SECONDS", 0.001),
        (calls, "LATENCY", "5"),
        (calls, "CASES", (1, 20)),
        (overhead, "CALLS", 5),
        (overhead, "WARM_UP", 1),
        (cancels, "ONE_BY_ONE", 3),
        (cancels, "AT_ONCE", 20),
        (overhead, "ANSWERS", 5),
        (bodies, "CALLS", 5),
    ):
        monkeypatch.setattr(module, name, value)
    with trio.fail_after(6 * WAIT):
        measures = ["start", "memory", "messages", "calls", "overhead", "cancels", "bodies"]
        samples = await run([OURS, PYTHON, HTTPX], measures, 1)
    assert all(value >= 0 for sample in samples for value in sample.values)
    assert not any(value for sample in samples if sample.measure == "calls_failed" for value in sample.values)
    named = {(sample.measure, sample.case, sample.unit) for sample in samples if sample.subject == "ours"}
    on_linux = {
        ("memory", "idle", "MiB"),
        ("memory", "100", "MiB"),
        ("memory", "200", "MiB"),
        ("message_cpu", "ping", "µs"),
        ("message_cpu", "tools/list", "µs"),
        ("overhead_cpu", "call", "ms"),
        ("overhead_cpu", "json", "ms"),
        ("overhead_cpu", "stream", "ms"),
        ("call_cpu", "one by one", "ms"),
        ("call_cpu", "20 at once", "ms"),
    }
    assert named - on_linux == {
        ("start", "initialize", "ms"),
        ("start", "tools/list", "ms"),
        ("start_cpu", "initialize", "ms"),
        ("start_cpu", "tools/list", "ms"),
        ("messages", "ping", "1/s"),
        ("messages", "tools/list", "1/s"),
        ("calls", "1", "s"),
        ("calls", "20", "s"),
        ("calls", "20/1024 files", "s"),
        ("calls_failed", "1", "calls"),
        ("calls_failed", "20", "calls"),
        ("calls_failed", "20/1024 files", "calls"),
        ("overhead", "call", "ms"),
        ("cancel", "one", "ms"),
        ("cancel", "20 at once", "ms"),
        ("body_ping", "5 of 1 MB", "ms"),
        ("query", "1 MB", "ms"),
    }
    if sys.platform == "linux":
        assert on_linux <= named
    bare = {(sample.subject, sample.measure, sample.case) for sample in samples if sample.subject != "ours"}
    assert bare == {("python", "start", "exit"), ("httpx", "overhead", "call"), ("httpx", "overhead_cpu", "call")}


@processes
async def test_a_subject_that_fails_is_told_of_once_and_the_others_are_measured(monkeypatch, capsys):
    monkeypatch.setattr(start, "STARTS", 1)
    broken = Subject("broken", "ends at once", [sys.executable, "-I", "-c", "import sys; sys.exit('no luck')"])
    with trio.fail_after(WAIT):
        samples = await run([broken, PYTHON], ["start", "memory"], 2)
    assert [(sample.subject, len(sample.values)) for sample in samples] == [("python", 2)]
    said = capsys.readouterr().err
    assert said.count("start of broken is given up") == 1
    assert said.count("memory of broken is given up") == 1
    assert "stderr: no luck" in said


def test_each_subject_comes_first_in_some_round():
    subjects = [OURS, PYTHON, HTTPX]
    orders = [rotated(subjects, by) for by in range(4)]
    assert [order[0] for order in orders] == [OURS, PYTHON, HTTPX, OURS]
    assert all(sorted(order, key=subjects.index) == subjects for order in orders)


@pytest.mark.parametrize(
    ("commands", "file"),
    [({"a-command": "build/main.js"}, "build/main.js"), ("main.js", "main.js"), ({}, "dist/index.js")],
)
def test_the_original_is_found_where_its_package_says_or_where_it_is_usually_built(tmp_path, commands, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    (tmp_path / "package.json").write_text(json.dumps({"name": "a-server", "version": "1.2.3", "bin": commands}))
    subject = original(tmp_path)
    assert subject.command == ["node", str(tmp_path / file), "--stdio"]
    assert "a-server 1.2.3" in subject.description


@processes
def test_a_run_prints_a_table_and_writes_what_it_found(tmp_path):
    file = tmp_path / "results.json"
    options = ["--rounds", "1", "--only", "start", "--subjects", "python", "--json", str(file)]
    command = [sys.executable, "-m", "tests.bench", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT, check=True)
    results = Results.read(file)
    assert "Python" in ran.stdout
    assert list(results.subjects) == ["python"]
    assert [(one.measure, one.case, len(one.values)) for one in results.samples] == [("start", "exit", 1)]
