"""What a run of the benchmarks found, on which machine; kept as a file of JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

PACKAGES = {
    "trio": "Trio",
    "httpx": "httpx",
    "httpcore": "httpcore",
    "h11": "h11",
    "anyio": "anyio",
    "pyyaml": "PyYAML",
}


@dataclass(frozen=True)
class Sample:
    """The values of one case of a measure for one subject: one value a round, in order."""

    measure: str
    case: str
    subject: str
    unit: str
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)


@dataclass(frozen=True)
class Results:
    """All samples of a run, what it depends on, and a line about each subject with its version."""

    machine: dict[str, str]
    subjects: dict[str, str]
    rounds: int
    samples: list[Sample]

    def sample(self, measure: str, case: str, subject: str) -> Sample | None:
        """Return a sample, or None if this was not measured."""
        wanted = (measure, case, subject)
        return next((one for one in self.samples if (one.measure, one.case, one.subject) == wanted), None)

    def median(self, measure: str, case: str, subject: str) -> float | None:
        """Return the median over the rounds, or None if this was not measured."""
        found = self.sample(measure, case, subject)
        return found.median if found else None

    def write(self, path: Path) -> None:
        """Write a file that `read` reads."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what `write` wrote."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(**content | {"samples": [Sample(**one) for one in content["samples"]]})


def load() -> str:
    """Return how many processes wanted a processor in the last minute, where the system tells."""
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def machine() -> dict[str, str]:
    """Return what the figures of a run depend on, and nothing that says whose machine it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    versions = [f"{name} {metadata.version(package)}" for package, name in PACKAGES.items()]
    return {
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {memory:.1f} GiB, {system}",
        "Versions": ", ".join([f"Python {platform.python_version()}", *versions]),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
