"""The laboratory: `python -m tests.lab` runs all its parts, `python -m tests.lab PART OPTIONS` one, with its options.

A part is a module of this folder that can be run, such as `soak` or `bench.ends`; `tools` are the tests of the parts
themselves. `interop` needs an environment for each client, which nox makes, and `retrieval` a corpus.
"""

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = (
    *("tools", "simulation", "hostile", "kill_runs", "mutants", "models"),
    *("soak", "bench", "bench.ends", "bench.kills"),
)
TOOLS = ["pytest", str(HERE), f"--ignore={HERE / 'interop'}"]


def run(part: str, *options: str) -> int:
    command = TOOLS if part == "tools" else [f"tests.lab.{part}"]
    return subprocess.call([sys.executable, "-m", *command, *options], cwd=HERE.parents[1])


def main(argv: list[str]) -> int:
    """Run what was asked for and return the exit code."""
    if argv:
        return run(*argv)
    codes = {}
    for part in PARTS:
        print(f"\n==> {part}", flush=True)
        began = time.monotonic()
        codes[part] = run(part)
        print(f"==> {part}: exit code {codes[part]} after {time.monotonic() - began:.0f} s", flush=True)
    failed = [part for part, code in codes.items() if code]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall is well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
