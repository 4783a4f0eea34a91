"""The fake API as a process: what it prints, what it records, and how it ends."""

import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import responses_mcp
from tests.processes import WAIT, program

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(responses_mcp.__file__).parent.parent)}


@asynccontextmanager
async def process(*options: str) -> AsyncGenerator[tuple[trio.Process, str], None]:
    """Start the fake; yield it with its base URL."""
    command = [sys.executable, "-m", "responses_mcp.testing", *options]
    with trio.fail_after(WAIT):
        async with program(command, env=ENVIRONMENT) as (child, _, stdout):
            line = b""
            while not line.endswith(b"\n"):
                data = await stdout.receive_some()
                assert data, "it ended before it listened"
                line += data
            word, _, url = line.decode().strip().partition(" ")
            assert word == "listening"
            yield child, url


def ask(url: str) -> tuple[int, Any]:
    data = json.dumps({"model": "gpt-5.2", "input": "over the process border"}).encode()
    return fetch(urllib.request.Request(f"{url}/responses", data))


def fetch(request: urllib.request.Request) -> tuple[int, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="a signal ends a child there at once")


@SIGNALS
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
async def test_it_answers_and_records_until_a_signal_and_exits_with_0(name: str, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    async with process("--record", str(record)) as (child, url):
        status, body = await trio.to_thread.run_sync(ask, url)
        assert status == 200
        assert "over the process border" in body["output"][1]["content"][0]["text"]
        # The client can be done before the fake has written its line, but a fake that ends has written it.
        child.send_signal(getattr(signal, name))
        assert await child.wait() == 0
    first, second = (json.loads(line) for line in record.read_text(encoding="utf-8").splitlines())
    assert [(line["event"], line["index"]) for line in (first, second)] == [("request", 0), ("answered", 0)]
    assert first["at"] <= second["at"]


async def test_it_answers_with_the_status_that_was_asked_for() -> None:
    async with process("--status", "503", "--latency", "0.01") as (_, url):
        status, body = await trio.to_thread.run_sync(ask, url)
        assert (status, body["error"]["type"]) == (503, "server_error")


@SIGNALS
async def test_a_hanging_fake_records_the_hang_up_and_still_ends_on_a_signal(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    async with process("--hang", "--record", str(record)) as (child, url):
        port = int(url.split(":")[2].split("/")[0])
        request = b"POST /v1/responses HTTP/1.1\r\nHost: fake\r\nContent-Length: 2\r\n\r\n{}"
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(request)
            await stream.send_eof()
            # The fake closes its side when it has noticed; only then is the line in the file.
            assert await stream.receive_some() == b""
        events = [json.loads(line)["event"] for line in record.read_text(encoding="utf-8").splitlines()]
        assert events == ["request", "hung_up"]
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(request)
            child.send_signal(signal.SIGTERM)
            assert await child.wait() == 0
