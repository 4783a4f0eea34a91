"""Builds of an index that are killed: `python -m tests.manuals.index.killed ROOT INDEX` is the process that builds."""

import random
import subprocess
import sys
import time
from pathlib import Path

from responses_mcp.manuals.index.store import Store
from tests.manuals.indexed import Shelf, apply, compared, updated

BEGUN = b"begun\n"
LONGEST = 0.1  # seconds from the first write to the kill


def lay_out(root: Path, files: int) -> Shelf:
    """Write a manual whose index takes some tenths of a second to build."""
    shelf = Shelf(root)
    for number in range(files):
        text = f"# Title {number}\n\n" + "".join(
            f"## Part {part}\n\nword{part} 設定を行う {number}\n" for part in range(15)
        )
        shelf.write(f"{number % 10}/{number}.md", text)
    return shelf


def kill_builds(shelf: Shelf, index: Path, times: int, seed: int) -> int:
    """Build the index in processes until so many were killed at work, and change files in between.

    Sometimes a build is let finish. Returns how many processes that took.
    """
    dice = random.Random(seed)
    killed = number = 0
    while killed < times:
        number += 1
        if number > 10 * times:
            raise TimeoutError("the processes are done before they are killed")
        command = [sys.executable, "-m", __name__, str(shelf.place.parent), str(index)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == BEGUN
            time.sleep(dice.uniform(0, LONGEST))
            process.kill()
        killed += process.returncode != 0
        if dice.random() < 0.25:
            finished = Store(index)
            updated(finished, shelf)
            finished.close()
        files = sorted(shelf.place.rglob("*.md"))
        for file in dice.sample(files, len(files) // 3):
            file.write_text(
                file.read_text(encoding="utf-8") + f"\n## More {number}\n\nmore{number}\n", encoding="utf-8"
            )
    return number


def main() -> None:
    shelf, store = Shelf(Path(sys.argv[1])), Store(Path(sys.argv[2]))
    changes = compared(store, shelf)
    sys.stdout.buffer.write(BEGUN)
    sys.stdout.buffer.flush()
    apply(store, shelf, changes)


if __name__ == "__main__":
    main()
