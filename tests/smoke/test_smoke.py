"""The installed command, spoken to as a client does: `nox -s smoke`."""

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from responses_mcp import __version__
from responses_mcp.testing import Hang, open_fake_api
from tests.processes import server_process

pytestmark = pytest.mark.smoke

COMMAND = Path(sys.executable).with_name(
    "openai-responses-mcp.exe" if sys.platform == "win32" else "openai-responses-mcp"
)
WAIT = 30.0  # seconds; a bound for a stuck machine, more than the 4 s that a client waits at least (spec 10)
installed_server = partial(server_process, initialize=False, command=[str(COMMAND)])
framings = pytest.mark.parametrize("framed", [False, True], ids=["lines", "content-length"])


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1", **more}


def fake_environment(home: Path, base_url: str) -> dict[str, str]:
    return bare_environment(home, OPENAI_BASE_URL=base_url, OPENAI_API_KEY="sk-smoke-0123456789")


def test_the_package_under_test_is_the_installed_one() -> None:
    import responses_mcp

    assert "site-packages" in responses_mcp.__file__
    assert COMMAND.exists()
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == f"{__version__}\n"


@pytest.mark.rule("spec 10")
@framings
async def test_initialize_list_and_call_give_three_responses(tmp_path: Path, framed: bool) -> None:
    async with (
        open_fake_api() as api,
        installed_server(fake_environment(tmp_path, api.base_url), framed=framed) as server,
    ):
        with trio.fail_after(WAIT):
            hello = await server.client.initialize()
            tools = await server.client.ask("tools/list")
            called = await server.client.call("answer", {"query": "HTTP 404 の意味は？"})
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert hello["result"]["serverInfo"] == {"name": "openai-responses-mcp", "version": __version__}
    assert [tool["name"] for tool in tools["result"]["tools"]] == ["answer", "answer_detailed", "answer_quick"]
    assert all(
        tool["description"] and tool["inputSchema"]["required"] == ["query"] for tool in tools["result"]["tools"]
    )
    answer = json.loads(called["result"]["content"][0]["text"])
    assert answer["used_search"] is False
    assert answer["citations"] == []
    assert len(server.client.heard) == 3


@pytest.mark.rule("spec 10")
async def test_the_bodies_of_all_three_answer_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_fake_api() as api, installed_server(fake_environment(tmp_path, api.base_url)) as server:
        await server.client.initialize()
        names = ["answer", "answer_detailed", "answer_quick"]
        calls = {name: await server.client.start_call(name, {"query": f"{name}: 東京の天気は？"}) for name in names}
        with trio.fail_after(WAIT):
            answers = {}
            for name, call in calls.items():
                answers[name] = (await server.client.response(call))["result"]["structuredContent"]
    with capsys.disabled():
        print()
        for name, answer in answers.items():
            print(f"{name}: {json.dumps(answer, ensure_ascii=False)}")
    for name, answer in answers.items():
        assert set(answer) == {"answer", "used_search", "citations", "model"}
        assert f"{name}: 東京の天気は？" in answer["answer"]
        assert answer["used_search"]
        assert re.search(r"Sources:\n- https://\S+ \(\d{4}-\d{2}-\d{2}\)", answer["answer"])


@pytest.mark.rule("P2")
@framings
async def test_a_cancel_during_a_call_closes_the_upstream_and_gets_no_response(tmp_path: Path, framed: bool) -> None:
    async with (
        open_fake_api() as api,
        installed_server(fake_environment(tmp_path, api.base_url), framed=framed) as server,
    ):
        api.default = Hang()
        await server.client.initialize()
        call = await server.client.start_call("answer", {"query": "slow"})
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            await server.client.cancel(call, "user")
            await api.wait_hang_ups(1)
        # The window of the specification for a late answer, in real time since the process is real.
        with trio.move_on_after(2):
            await server.client.response(call)
            pytest.fail("a cancelled call was answered")
        assert (await server.client.ask("ping"))["result"] == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
async def test_sigterm_ends_the_process_with_a_call_in_flight(tmp_path: Path) -> None:
    async with open_fake_api() as api, installed_server(fake_environment(tmp_path, api.base_url)) as server:
        api.default = Hang()
        with trio.fail_after(WAIT):
            await server.client.initialize()
            await server.client.start_call("answer", {"query": "slow"})
            await api.wait_requests(1)
            server.process.send_signal(signal.SIGTERM)
            assert await server.process.wait() == 0
            await api.wait_hang_ups(1)


def test_the_demo_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "demo"],
        env=bare_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "FAKE" in done.stdout
    assert "Sources:" in done.stdout


@pytest.mark.rule("spec 10")
@pytest.mark.parametrize(
    ("question", "searched"),
    [("HTTP 404 の意味を一文で", False), ("本日の東京の天気は？", True)],
    ids=["no search needed", "search needed"],
)
async def test_the_real_api_answers_the_contract_s_questions(
    tmp_path: Path, request: pytest.FixtureRequest, question: str, searched: bool
) -> None:
    key = os.environ.get("OPENAI_API_KEY")
    if not request.config.getoption("--real", default=False) or not key:
        pytest.skip("asks the real API only with --real and an OPENAI_API_KEY")
    env = {**bare_environment(tmp_path), "OPENAI_API_KEY": key}
    env |= {
        name: value
        for name, value in os.environ.items()
        if name.upper().endswith("_PROXY") or name.startswith("SSL_CERT")
    }
    async with installed_server(env) as server:
        with trio.fail_after(300):
            await server.client.initialize()
            called = await server.client.call("answer", {"query": question})
    answer = called["result"]["structuredContent"]
    print(json.dumps(answer, ensure_ascii=False))
    assert answer["used_search"] is searched
    if searched:
        assert answer["citations"]
        assert re.search(r"Sources:[\s\S]*\d{4}-\d{2}-\d{2}", answer["answer"])
    else:
        assert answer["citations"] == []
