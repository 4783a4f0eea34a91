"""What every benchmark here needs: a server process, and figures in a readable form."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from responses_mcp.testing.client import McpClient

ROOT = Path(__file__).parents[2]


def machine() -> str:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores, load {load:.2f}"


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Return median, 99th percentile and maximum."""
    ordered = sorted(values)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"median {statistics.median(ordered):.2f} {unit}, p99 {p99:.2f} {unit}, max {ordered[-1]:.2f} {unit}"


def server_environment(home: str, base_url: str, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": home,
        "PYTHONPATH": str(ROOT),
        "NO_PROXY": "127.0.0.1",
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "sk-bench-0123456789",
        **more,
    }


@asynccontextmanager
async def server(base_url: str, **env: str) -> AsyncGenerator[McpClient]:
    """Run the server as a process with a client connected to it; the handshake has been made."""
    with tempfile.TemporaryDirectory() as home:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "responses_mcp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=server_environment(home, base_url, **env),
        )
        assert process.stdin
        assert process.stdout
        client = McpClient(process.stdout, process.stdin)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.listen)
            await client.initialize()
            yield client
            await client.end_input()
            with trio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
            nursery.cancel_scope.cancel()
