"""`serve` as a guest in a host's program: what it takes, what it leaves alone, and how it ends."""

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.asking import Asker
from responses_mcp.errors import ConfigError, ConnectionFailed
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import SearchRequest
from responses_mcp.manuals.service import open_manuals
from responses_mcp.research.runs import open_research
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.runtime.server import Server
from responses_mcp.serving import configured_toolsets, serve
from responses_mcp.settings import RequestSettings, Settings
from responses_mcp.settings.model import ManualsSettings, OpenAISettings, ResearchSettings, UsageSettings
from responses_mcp.testing import Hang, open_fake_api
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, Tool, ToolSuccess
from tests.both_ways import way
from tests.embedding.hosts import KINDS, Streams, memory, settings_for
from tests.one_tool import OneTool

__all__ = ["way"]

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'


@pytest.mark.rule("P6")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_any_trio_streams_do_and_the_end_of_input_ends_it(kind: Streams) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as api, kind() as (ours, theirs), trio.open_nursery() as nursery:
            server = await nursery.start(partial(serve, settings=settings_for(api)), *theirs)
            assert isinstance(server, Server)
            client = McpClient(*ours)
            nursery.start_soon(client.listen)
            await client.initialize()
            assert "Why?" in (await client.call("answer", {"query": "Why?"}))["result"]["structuredContent"]["answer"]
            assert server.in_flight == 0
            await client.end_input()
            await client.wait_end()
        # The nursery was left, so it has returned and raised nothing.
        assert api.open_connections == 0


@pytest.mark.parametrize("sent", [
    b"", b"\x00\xff not a message at all\n", b"Content-Length: 50\r\n\r\n{",
    HELLO + b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"answer","arguments":{"query":"Why?"}}}\n',
], ids=["nothing", "garbage", "half a frame", "a call that hangs"])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
async def test_a_peer_that_goes_away_amid_anything_raises_nothing(kind: Streams, sent: bytes) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Hang()) as api, kind() as (ours, theirs), trio.open_nursery() as nursery:
            server: Server = await nursery.start(partial(serve, settings=settings_for(api)), *theirs)
            if sent:
                await ours[1].send_all(sent)
            if b"tools/call" in sent:
                await api.wait_requests(1)
            for stream in ours:
                await trio.aclose_forcefully(stream)
            server.stop(grace=0)  # else a call that hangs has the time of server.drain_timeout_ms
    assert server.in_flight == (1 if b"tools/call" in sent else 0)  # what was left without an answer


def touched() -> dict[str, Any]:
    """Return all of the process's state that a guest has to leave alone."""
    loggers = [logging.getLogger(name) for name in (None, "responses_mcp", "httpx")]
    descriptors = sorted(os.listdir("/proc/self/fd")) if sys.platform == "linux" else []
    return {
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "loggers": [(one.level, one.propagate, one.disabled, [*one.handlers], [*one.filters]) for one in loggers],
        "environment": dict(os.environ),
        "standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.getswitchinterval()),
        "folder": os.getcwd(),
        "collector": (gc.isenabled(), gc.get_threshold()),
        "descriptors": [] if sys.platform == "win32" else [os.get_blocking(number) for number in (0, 1, 2)],
        "open files": descriptors,
    }


def forbid(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise AssertionError(f"a guest called one of {names}")

    for name in names:
        monkeypatch.setattr(owner, name, refuse)


async def test_it_starts_no_loop_and_leaves_signals_logging_descriptors_and_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_fake_api() as api:
        async with connected_client(settings_for(api)) as client:  # what is imported and opened once, is now
            await client.call("answer", {"query": "Why?"})
        await trio.testing.wait_all_tasks_blocked()
        before = touched()
        api.script(Hang())
        with trio.fail_after(WAIT), monkeypatch.context() as host:
            forbid(host, trio, "run", "open_signal_receiver")
            forbid(host, trio.lowlevel, "start_guest_run")
            forbid(host, signal, "signal", "set_wakeup_fd")
            forbid(host, logging, "basicConfig", "disable", "captureWarnings")
            forbid(host, logging.Logger, "setLevel", "addHandler", "removeHandler", "addFilter")
            forbid(host, type(os.environ), "__setitem__", "__delitem__")
            forbid(host, gc, "freeze", "disable", "set_threshold")
            forbid(host, os, "dup", "dup2", "set_blocking", "chdir", "umask")
            async with connected_client(settings_for(api)) as client:
                await client.start_call("answer", {"query": "Why?"})
                await api.wait_requests(2)
                during = touched()
    with trio.fail_after(WAIT):
        after = touched()
        while len(after["open files"]) > len(before["open files"]):  # the fake's end of a connection
            await trio.sleep(0.01)
            after = touched()
    differing = [name for name in before if name != "open files" and not before[name] == during[name] == after[name]]
    assert differing == []


@pytest.fixture
def misleading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an environment in which whoever follows it gets nowhere."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    monkeypatch.setenv("OPENAI_API_KEY", "the-wrong-key-0123456789")
    monkeypatch.setenv("MODEL_ANSWER", "the-wrong-model")


@pytest.mark.usefixtures("misleading")
async def test_settings_carry_everything_and_the_environment_is_not_asked() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as api, connected_client(settings_for(api)) as client:
            assert "result" in await client.call("answer", {"query": "Why?"})
            [request] = api.requests
    assert request.headers["authorization"] == "Bearer test-key-0123456789"
    assert request.json["model"] == "gpt-5.2"


@pytest.mark.usefixtures("misleading")
@pytest.mark.parametrize(
    ("unset", "complaint"), [("SSL_CERT_FILE", "cannot be reached"), ("HTTPS_PROXY", "CA certificates cannot be read")]
)
async def test_only_those_who_trust_the_environment_follow_its_proxy_and_certificates(
    unset: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(unset)
    async with open_fake_api() as api:
        for trust_env in (False, True):
            openai = settings_for(api).openai
            if trust_env:  # this machine is reached without a proxy
                openai = replace(openai, base_url="https://api.example/v1")
            upstream = ResponsesApi(openai, RequestSettings(max_retries=0, trust_env=trust_env))
            with (
                trio.fail_after(WAIT),
                pytest.raises(ConnectionFailed, match=complaint) if trust_env else contextlib.nullcontext(),
            ):
                await upstream.create({"model": "gpt-5.2", "input": "Why?"}, dict)
            await upstream.aclose()
        assert len(api.requests) == 1


async def test_a_host_that_cancels_closes_the_sockets_upstream() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Hang(), Hang()) as api, memory() as (ours, theirs):
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve, settings=settings_for(api)), *theirs)
                client = McpClient(*ours)
                nursery.start_soon(client.listen)
                await client.initialize()
                for query in ("Why?", "How?"):
                    await client.start_call("answer", {"query": query})
                await api.wait_requests(2)
                nursery.cancel_scope.cancel()
            await api.wait_hang_ups(2)
            with pytest.raises(trio.BrokenResourceError):  # our end is closed as well
                await ours[1].send_all(b"more")


@pytest.mark.parametrize("struck", [KeyboardInterrupt, SystemExit])
async def test_ctrl_c_while_a_toolset_closes_comes_out_when_the_rest_is_closed(struck: type[BaseException]) -> None:
    class Struck(AnswerToolset):
        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()
            raise struck

    class Closing(AnswerToolset):
        closed = False

        async def aclose(self) -> None:
            await trio.lowlevel.checkpoint()
            self.closed = True

    first, other = Struck(lambda: Asker(Settings())), Closing(lambda: Asker(Settings()))
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_eof()
    with trio.fail_after(WAIT):
        with pytest.raises(struck):
            await serve(theirs, theirs, settings=Settings(), toolsets=[first, other])
        assert other.closed
        assert await ours.receive_some() == b""


async def test_an_empty_text_as_a_folder_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guide").mkdir()
    settings = Settings(
        openai=OpenAISettings(api_key="test-key-0123456789"),
        manuals=ManualsSettings(root=""),
        research=ResearchSettings(state_dir=""),
        usage=UsageSettings(ledger=True),
    )
    assert settings.toolsets == ("answer",)
    with pytest.raises(ManualsError, match="There is no folder of manuals"):
        async with open_manuals(settings.manuals) as manuals:
            await manuals.search(SearchRequest("why"))
    async with open_research(settings) as research:
        with pytest.raises(ConfigError, match="state_dir is not set"):
            await research.start("why?")
    assert os.listdir(tmp_path) == ["guide"]


class Sleeper(OneTool):
    """One tool that sleeps until it is cancelled, and keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(self.sleep, "sleep")
        self.contexts: list[CallContext] = []
        self.deadlines: list[float] = []

    async def sleep(self, context: CallContext, arguments: object) -> ToolSuccess:
        self.contexts.append(context)
        while True:
            self.deadlines.append(context.deadline())
            await trio.sleep(1)


@pytest.mark.clock("virtual")
async def test_a_call_knows_its_id_and_the_deadline_that_stopping_sets() -> None:
    sleeper = Sleeper()
    async with connected_client(Settings(), toolsets=[sleeper]) as client:
        await client.start_call("sleep", id="seven")
        await trio.sleep(2.5)
        assert client.server.in_flight == 1
        client.server.stop(grace=4)
        stopped = trio.current_time()
        await client.wait_end()
        assert trio.current_time() == stopped + 4
    [context] = sleeper.contexts
    assert context.request_id == "seven"
    assert context.report is None
    assert set(sleeper.deadlines) == {float("inf"), stopped + 4}
    assert sleeper.closed == 1


@pytest.mark.parametrize("failure", [ZeroDivisionError, KeyboardInterrupt])
async def test_a_toolset_that_cannot_name_its_tools_is_heard_at_the_start_and_all_is_closed(
    failure: type[BaseException],
) -> None:
    class Broken(AnswerToolset):
        closed = False

        @property
        def tools(self) -> list[Tool]:
            raise failure

        async def aclose(self) -> None:
            self.closed = True

    broken = Broken(lambda: Asker(Settings()))
    ours, theirs = trio.testing.memory_stream_pair()
    with trio.fail_after(WAIT):
        with pytest.raises(failure):
            await serve(theirs, theirs, settings=Settings(), toolsets=[broken])
        assert await ours.receive_some() == b""
    assert broken.closed


async def test_answers_that_a_host_asks_itself_serve_its_clients_too() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            settings = settings_for(api)
            answers = Asker(settings)
            async with connected_client(settings, toolsets=[AnswerToolset(lambda: answers)]) as client:
                asked = await answers.answer("Why?")
                called = (await client.call("answer", {"query": "Why?"}))["result"]["structuredContent"]
                assert called == asked.as_json()
                assert api.connections == 1  # the same connection carried both


@pytest.mark.rule("P15")
def test_toolsets_are_made_without_opening_anything() -> None:
    before = touched()["open files"]
    assert [type(toolset).__name__ for toolset in configured_toolsets(Settings())] == [
        "AnswerToolset",
        "PromptsToolset",
    ]
    assert set(touched()["open files"]) <= set(before)  # what other tests left may be closed just now
