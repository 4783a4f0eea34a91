"""A fake API for clients that live in other event loops or languages: a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fake_url() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "responses_mcp.testing"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


@pytest.fixture
def server_env(fake_url: str, tmp_path: Path) -> dict[str, str]:
    """Return what a client must hand to the server: the SDKs pass on next to nothing of their own environment."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path),
        "NO_PROXY": "127.0.0.1",
        "OPENAI_BASE_URL": fake_url,
        "OPENAI_API_KEY": "sk-interop-0123456789",
    }
