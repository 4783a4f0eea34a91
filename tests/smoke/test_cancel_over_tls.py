"""A call that is cancelled amid its answer, over TLS: its socket and the process are gone, and nothing was answered.

Against the fake API always, against the real one with `nox -s smoke -- --real`, which costs money. Both are reached
through a tunnel of ours, which sees when the server hangs up; what goes through it is encrypted.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import trio
import trustme

from responses_mcp.testing import as_stream, bodies, open_fake_api
from responses_mcp.testing.client import McpClient
from tests.processes import server_process
from tests.responses_api.http.network import REMOTE, Stream, listening, pump, tls_front
from tests.smoke.test_smoke import COMMAND, WAIT, bare_environment

pytestmark = [pytest.mark.smoke, pytest.mark.rule("spec 17")]

QUESTION = "Compare the release processes of Python, Rust and Go over the last five years, with sources for each claim."
UNDER_WAY_IN = 60.0  # seconds that the real API is given to begin


@dataclass
class Tunnel:
    """A proxy for CONNECT that knows how many of its tunnels the client has opened, and hung up itself."""

    port: int = 0
    opened: int = 0
    hung_up: int = 0
    news: trio.Event = field(default_factory=trio.Event)

    async def serve(self, stream: Stream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some() or b"\r\n\r\n"
        host, port = head.split()[1].decode().rsplit(":", 1)
        host = "localhost" if host == REMOTE else host
        async with await trio.open_tcp_stream(host, int(port)) as upstream, trio.open_nursery() as nursery:
            await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self.opened += 1
            nursery.start_soon(pump, upstream, stream)
            try:
                async for data in stream:
                    await upstream.send_all(data)
            except trio.BrokenResourceError:  # a reset hangs up, too
                pass
            # When the API ends the connection, the pump closes the stream, and ClosedResourceError passes this by.
            self.hung_up += 1
            self.news.set()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def fake_over_tls(tmp_path: Path) -> AsyncGenerator[dict[str, str]]:
    """Give what the environment says of a fake API, whose answer stops in the middle and never goes on."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    whole = as_stream(bodies.echo({"input": QUESTION}))
    async with open_fake_api() as api, tls_front(api.base_url, ca, REMOTE) as url:
        api.default = replace(whole, events=whole.events[: len(whole.events) // 2], ending="hang")
        yield {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "sk-smoke-0123456789",
            "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
        }


@asynccontextmanager
async def the_real_one() -> AsyncGenerator[dict[str, str]]:
    certificates = {name: os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ}
    yield {"OPENAI_API_KEY": os.environ["OPENAI_API_KEY"], **certificates}


async def is_under_way(client: McpClient, call: str | int) -> None:
    """Wait until the API has said something of the answer: the first phase is only that it is asked."""
    while sum(message.get("method") == "notifications/progress" for message in client.heard) < 2:
        for message in client.heard:
            assert message.get("id") != call, f"the call ended before it was cancelled: {message}"
        await client.news()


@pytest.mark.parametrize("real", [False, True], ids=["fake", "real"])
async def test_a_cancelled_call_leaves_neither_socket_nor_process_nor_answer(
    tmp_path: Path, request: pytest.FixtureRequest, real: bool
) -> None:
    if real and not (request.config.getoption("--real", default=False) and os.environ.get("OPENAI_API_KEY")):
        pytest.skip("asks the real API only with --real and an OPENAI_API_KEY")
    tunnel = Tunnel()
    async with the_real_one() if real else fake_over_tls(tmp_path) as told, listening(tunnel.serve) as tunnel.port:
        env = {**bare_environment(tmp_path), "NO_PROXY": "", "HTTPS_PROXY": f"http://127.0.0.1:{tunnel.port}", **told}
        async with server_process(env, command=[str(COMMAND)]) as server:
            call = "cancelled"
            arguments = {"name": "answer_detailed", "arguments": {"query": QUESTION}, "_meta": {"progressToken": 1}}
            await server.client.request("tools/call", arguments, id=call)
            with trio.fail_after(UNDER_WAY_IN):
                await is_under_way(server.client, call)
            assert (tunnel.opened, tunnel.hung_up) == (1, 0)
            await server.client.cancel(call, "user")
            with trio.fail_after(WAIT):
                await tunnel.news.wait()
                assert (await server.client.ask("ping"))["result"] == {}
            # The window of the specification for a late answer, in real time since the process is real.
            with trio.move_on_after(2):
                await server.client.response(call)
                pytest.fail("a cancelled call was answered")
            assert (tunnel.opened, tunnel.hung_up) == (1, 1)
            await server.client.end_input()
            with trio.fail_after(WAIT):
                assert await server.process.wait() == 0
