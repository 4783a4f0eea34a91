"""`openai-responses-mcp demo`: one whole exchange, on the screen, against a built-in fake API.

The server runs as a process of its own on pipes, as an MCP client would run it; the fake Responses API listens on a
loopback socket. Only the answers are invented.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from responses_mcp.commands.parser import Parser, parser_of
from responses_mcp.commands.terminal import FAILED, Stop, run_command, say
from responses_mcp.settings.schema import READ_BY_SERVER
from responses_mcp.testing import FakeApi, Hang, Json, bodies, open_fake_api
from responses_mcp.testing.client import McpClient, started_client

BOUND = 30.0  # seconds for each wait; a demo must not hang on a broken machine
QUESTION = "When was Python 3.13 released, and what is new in it?"

# As the API sends it, with the tracking parameter that the server takes out.
_PAGE = "https://docs.python.org/3/whatsnew/3.13.html?utm_source=openai"
_ANSWER = (
    "Python 3.13 was released on 2024-10-07. It brings a new interactive shell, an experimental build without the "
    f"global interpreter lock and an experimental JIT compiler ([docs.python.org]({_PAGE}))."
)


def build_parser() -> Parser:
    """Return the parser of this command."""
    return parser_of(
        "demo",
        description="Show a whole exchange with the server, against a built-in fake API.\nNeeds no key and no network.",
        epilog="example:\n  openai-responses-mcp demo\n",
    )


def run(argv: Sequence[str]) -> int:
    """Run the demo and return the exit code."""
    build_parser().parse_options(argv)
    return run_command(lambda: trio.run(_demo))


async def _demo() -> None:
    say("openai-responses-mcp demo: a real server process, a FAKE Responses API; the answers are made up.")
    command = [sys.executable, "-m", "responses_mcp", "--stdio"]
    try:
        async with (
            open_fake_api() as api,
            # Ctrl-C is for this process, which then ends the server.
            started_client(command, env=_environment(api.base_url), start_new_session=True) as (process, client),
        ):
            with trio.fail_after(BOUND):
                await _handshake(client)
                api.script(Json(searched_answer(), latency=0.2), Hang())
                await _ask(client)
                unanswered = await _cancel(client, api)
                await client.end_input()
                code = await process.wait()
                say(f"5. End of input: the server exits with code {code}.")
    except (EOFError, trio.BrokenResourceError) as error:
        raise Stop("the server ended early; 'openai-responses-mcp doctor' says why.") from error
    except trio.TooSlowError as error:
        raise Stop(f"the server wrote nothing for {BOUND:.0f} s; try again on a less busy machine.") from error
    if code or not unanswered:
        raise Stop(code=FAILED)


async def _handshake(client: McpClient) -> None:
    began = trio.current_time()
    info = (await client.initialize())["result"]
    say(
        f"1. Handshake: {info['serverInfo']['name']} {info['serverInfo']['version']} speaks MCP "
        f"{info['protocolVersion']} ({1000 * (trio.current_time() - began):.0f} ms after its start)"
    )
    tools = (await client.ask("tools/list"))["result"]["tools"]
    say("2. Tools:")
    for tool in tools:
        say(f"   {tool['name']:<16} {tool['description'].partition('. ')[0].rstrip('.')}.", hanging=20)


async def _ask(client: McpClient) -> None:
    say(f"3. Question: {QUESTION}")
    answer: Mapping[str, Any] = (await client.call("answer", {"query": QUESTION, "max_results": 3}))["result"][
        "structuredContent"
    ]
    for line in str(answer["answer"]).splitlines():
        say(f"   | {line}")
    say(f"   used_search: {str(answer['used_search']).lower()}, model: {answer['model']}, citations:")
    for citation in answer["citations"]:
        say(f"   - {citation.get('title', '')} <{citation['url']}> {citation['published_at']}")


async def _cancel(client: McpClient, api: FakeApi) -> bool:
    """Cancel a call that hangs; tell whether nothing was said about it."""
    call = await client.start_call("answer", {"query": "Tell me everything."})
    await api.wait_requests(2)
    began = trio.current_time()
    await client.cancel(call, "the user pressed Escape")
    await api.wait_hang_ups(1)
    milliseconds = 1000 * (trio.current_time() - began)
    await client.ask("ping")  # whatever was to be said about the call would come before this answer
    unanswered = not any(message.get("id") == call for message in client.heard)
    say("4. A question that takes too long is cancelled:")
    wrote = "nothing about the call." if unanswered else "SOMETHING about the call, which is a bug."
    say(f"   the API saw its connection close {milliseconds:.1f} ms after the cancel, and the server wrote {wrote}")
    return unanswered


def searched_answer() -> dict[str, Any]:
    """Return the reply of the fake API to `QUESTION`."""
    return bodies.answer(
        _ANSWER,
        annotations=[bodies.cite(_ANSWER, _PAGE, "What's New In Python 3.13")],
        searches=[bodies.web_search_call(["Python 3.13 release date"], [_PAGE])],
    )


def _environment(base_url: str) -> dict[str, str]:
    """Return our environment without what would change the demo: settings, proxies, certificates and the real key."""
    others = {name: value for name, value in os.environ.items() if name not in READ_BY_SERVER}
    kept = {name: value for name, value in others.items() if not name.startswith(("OPENAI_", "MCP_"))}
    folder = {"HOME": os.devnull, "APPDATA": os.devnull}  # no configuration file is found there
    return {**kept, **folder, "NO_PROXY": "127.0.0.1", "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "demo-key"}
