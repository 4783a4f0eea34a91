"""What the tests of `ask` and `search` share: a bare environment, a run of the command line, a terminal to write to."""

import io
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp import cli
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import FakeApi, open_fake_api

KEY = "sk-canary-0123456789abcdef"
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation

Command = Callable[..., Awaitable[tuple[int, str, str]]]


@contextmanager
def at_stdin(monkeypatch: pytest.MonkeyPatch, file: str | Path | int) -> Generator[None]:
    """Put a file, or what a descriptor stands for, to stdin."""
    with open(file, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[FakeApi]:
    """Serve a fake API, which is all that the environment names; nothing is at stdin."""
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    monkeypatch.delenv("COLUMNS", raising=False)
    with at_stdin(monkeypatch, os.devnull):
        async with open_fake_api() as fake:
            monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
            yield fake


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs a command in a thread, because it has a run loop of its own.

    `stdin` is what comes through a pipe, or a file.
    """

    def run(arguments: tuple[str, ...]) -> int:
        try:
            return cli.run(arguments)
        except SystemExit as end:
            return int(end.code or 0)

    async def running(*arguments: str, stdin: bytes | Path | None = None) -> tuple[int, str, str]:
        with ExitStack() as stack, trio.fail_after(WAIT):
            if isinstance(stdin, bytes):
                reading, writing = os.pipe()
                os.write(writing, stdin)
                os.close(writing)
                stack.enter_context(at_stdin(monkeypatch, reading))
            elif stdin is not None:
                stack.enter_context(at_stdin(monkeypatch, stdin))
            code = await trio.to_thread.run_sync(run, arguments, abandon_on_cancel=True)
        shown = capsys.readouterr()
        assert KEY not in shown.out + shown.err
        return code, shown.out, shown.err

    return running


def output(done: tuple[int, str, str]) -> str:
    code, out, err = done
    assert (code, err) == (0, "")
    return out


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal: it has what was typed, or keeps what is written."""

    def __init__(self, typed: bytes = b"") -> None:
        super().__init__(io.BytesIO(typed), encoding="utf-8", newline="", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        buffer: Any = self.buffer
        return str(buffer.getvalue().decode())
