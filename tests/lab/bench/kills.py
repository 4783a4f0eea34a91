"""Kill a process that builds an index, again and again: `python -m tests.lab.bench.kills`.

After every kill the next build goes on with what is there. At the end the index must be as one made anew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from responses_mcp.manuals.index.store import Store
from tests.manuals.index.killed import kill_builds, lay_out
from tests.manuals.indexed import seen, updated

ROUND = 5  # kills between two looks at the index


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--files", type=int, default=200)
    options = parser.parse_args()
    began, builds, wrong = time.monotonic(), 0, 0
    for first in range(0, options.kills, ROUND):
        with tempfile.TemporaryDirectory() as folder:
            shelf = lay_out(Path(folder, "root"), options.files)
            index = Path(folder, "index", "a.sqlite3")
            builds += kill_builds(shelf, index, min(ROUND, options.kills - first), seed=first)
            kept, anew = Store(index), Store(None)
            updated(kept, shelf)
            updated(anew, shelf)
            wrong += seen(kept) != seen(anew)
            kept.close()
            anew.close()
    print(f"{builds} builds, {options.kills} of them killed at work: {wrong} indexes differ from one made anew", end="")
    print(f" ({time.monotonic() - began:.1f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
