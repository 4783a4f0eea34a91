"""An interactive Claude Code in a terminal of its own, whose model follows a script."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "sk-ant-api03-" + "x" * 40 + "abcdefghij0123456789"
SIZE = (40, 120)  # lines and columns
WAIT = 90.0  # seconds; a bound for a stuck machine, not an expectation

Blocks = list[dict[str, Any]]
Script = Callable[[list[dict[str, Any]]], Blocks]  # from the conversation so far to what the model says


def says(text: str) -> Blocks:
    return [{"type": "text", "text": text}]


def calls(tool: str, **arguments: Any) -> Blocks:
    return [{"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": arguments}]


def told_last(conversation: list[dict[str, Any]]) -> str:
    """Return what the user, or the client on behalf of a tool, said last, as JSON."""
    return json.dumps([each for each in conversation if each["role"] == "user"][-1]["content"])


@dataclass
class Model:
    """A Messages API whose model does what `script` says; `asked` has the conversation of each question to it."""

    script: Script
    url: str = ""
    asked: list[tuple[float, list[dict[str, Any]]]] = field(default_factory=list)

    def answer(self, request: dict[str, Any]) -> Blocks:
        if not request.get("tools"):
            return says("A title")
        self.asked.append((time.monotonic(), request["messages"]))
        return self.script(request["messages"])

    def wait(self, words: str) -> float:
        """Wait until the model is asked with these words from the user's side, and return when that was."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            for moment, conversation in list(self.asked):
                if words in told_last(conversation):
                    return moment
            time.sleep(0.05)
        raise AssertionError(f"the model was never told {words!r}")


def _events(blocks: Blocks) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed message."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    ends = "tool_use" if any(each["type"] == "tool_use" for each in blocks) else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": ends, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


@contextmanager
def running_model(script: Script) -> Iterator[Model]:
    """Serve a scripted model for as long as the block runs."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            if self.path.startswith("/v1/messages") and request.get("stream"):
                events = _events(model.answer(request))
                data = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
                self._send("text/event-stream", data)
            else:
                self._send("application/json", '{"input_tokens":10}')

        def _send(self, kind: str, data: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Terminal:
    """The terminal of a program; `shown` has all that was written to it."""

    leader: int
    shown: bytes = b""

    def type(self, line: str) -> None:
        os.write(self.leader, line.encode())
        time.sleep(1)  # what comes with the text is a pasted line break
        os.write(self.leader, b"\r")

    def read(self) -> None:
        """Read until the program has gone."""
        try:
            while data := os.read(self.leader, 65536):
                self.shown += data
        except OSError:
            return

    def wait(self, words: str) -> None:
        """Wait until the words have been shown; blanks between words are often moves of the cursor, so name one."""
        end = time.monotonic() + WAIT
        while words.encode() not in self.shown:
            assert time.monotonic() < end, f"{words!r} was never shown"
            time.sleep(0.05)


@contextmanager
def running_claude(program: str, model: Model, entry: dict[str, Any], folder: Path, *tools: str) -> Iterator[Terminal]:
    """Run Claude Code in a terminal, with one MCP server, called `web`, whose `tools` need no approval."""
    import fcntl
    import pty
    import struct
    import termios

    work = folder / "work"
    work.mkdir()
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {"approved": [KEY[-20:]], "rejected": []}
    state = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": known}
    (folder / ".claude.json").write_text(json.dumps({**state, "projects": {str(work): trusted}}), encoding="utf-8")
    (work / "mcp.json").write_text(json.dumps({"mcpServers": {"web": entry}}), encoding="utf-8")
    env = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_TIMEOUT": "60000",  # a probe that is answered too late makes it fall back to `initialize`
    }
    allowed = ",".join(f"mcp__web__{tool}" for tool in tools)
    command = [program, "--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", allowed]
    child, leader = pty.fork()
    if child == 0:
        os.chdir(work)
        os.execve(program, command, env)
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
    terminal = Terminal(leader)
    thread = threading.Thread(target=terminal.read, daemon=True)
    thread.start()
    try:
        yield terminal
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.kill(child, number)
            thread.join(3)
            if not thread.is_alive():
                break
        os.waitpid(child, 0)
        thread.join()
        os.close(leader)
        sys.stdout.write(terminal.shown.decode("utf-8", "replace"))
