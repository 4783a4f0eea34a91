"""What every benchmark here needs: the environment of a server, its memory, and the machine in words."""

from __future__ import annotations

import os
import platform
from pathlib import Path

ROOT = Path(__file__).parents[2]


def machine() -> str:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores, load {load:.2f}"


def memory(pid: int) -> tuple[float, float] | None:
    """Return the resident memory of a process and its peak in MiB, where the system tells."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024


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
