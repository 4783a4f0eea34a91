"""What a run of the benchmarks found, on which machine; kept as a file of JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("trio", "httpx", "httpcore", "h11", "anyio", "pyyaml")


@dataclass(frozen=True)
class Sample:
    """The values of one case of a measure for one subject: one value a round, in order."""

    measure: str
    case: str
    subject: str
    unit: str
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"no values of {self.measure} {self.case} for {self.subject}")

    @property
    def median(self) -> float:
        return statistics.median(self.values)


@dataclass(frozen=True)
class Machine:
    """What the figures depend on, and nothing that tells whose machine it is."""

    processor: str
    cores: int
    memory_gib: float
    system: str  # name and release: "Linux 6.1"
    python: str
    packages: dict[str, str]  # name -> version
    node: str | None
    date: str  # ISO, UTC
    load: tuple[float, float]  # average of the last minute, at the start and at the end of the run

    @classmethod
    def here(cls, load_at_start: float) -> Machine:
        """Describe this machine; call it at the end of a run with what `load()` returned at its start."""
        return cls(
            processor=_processor(),
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            system=f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
            python=platform.python_version(),
            packages=_packages(),
            node=_node(),
            date=datetime.now(tz=UTC).date().isoformat(),
            load=(load_at_start, load()),
        )


def load() -> float:
    """Return how many processes wanted a processor in the last minute."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _packages() -> dict[str, str]:
    installed = {found.name.lower(): found.version for found in metadata.distributions()}
    return {name: installed[name] for name in PACKAGES if name in installed}


def _node() -> str | None:
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip().removeprefix("v")


def machine() -> str:
    """Return what the figures of a run depend on, in one line."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores, load {load:.2f}"


@dataclass(frozen=True)
class Results:
    """All samples of a run."""

    machine: Machine
    subjects: dict[str, str]  # key -> one line about it, with its version
    rounds: int
    samples: tuple[Sample, ...]

    def sample(self, measure: str, case: str, subject: str) -> Sample | None:
        """Return a sample, or None if this was not measured."""
        wanted = (measure, case, subject)
        return next((one for one in self.samples if (one.measure, one.case, one.subject) == wanted), None)

    def median(self, measure: str, case: str, subject: str) -> float | None:
        """Return the median over the rounds, or None if this was not measured."""
        found = self.sample(measure, case, subject)
        return found.median if found else None

    def write(self, path: Path) -> None:
        """Write a file that `read` reads; the medians in it are for people."""
        content = {
            "machine": asdict(self.machine),
            "subjects": self.subjects,
            "rounds": self.rounds,
            "samples": [
                {
                    **{key: getattr(one, key) for key in ("measure", "case", "subject", "unit", "median")},
                    "values": one.values,
                }
                for one in self.samples
            ],
        }
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what `write` wrote."""
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        machine: dict[str, Any] = content["machine"]
        return cls(
            machine=Machine(**{**machine, "load": tuple(machine["load"])}),
            subjects=content["subjects"],
            rounds=content["rounds"],
            samples=tuple(
                Sample(one["measure"], one["case"], one["subject"], one["unit"], tuple(map(float, one["values"])))
                for one in content["samples"]
            ),
        )
