"""The hostile corpus against a real server process, as tables: `python -m tests.lab.hostile`.

First the input, then the upstreams that misbehave; `python -m tests.lab.hostile upstream [WORDS]` takes only the second,
those with WORDS in their names.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import trio

from responses_mcp.testing import open_fake_api
from tests.hostile.attack import Gate, attack
from tests.hostile.corpus import CASES
from tests.lab.hostile import upstream_table
from tests.processes import environment, memory, server_process


async def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        async with open_fake_api() as api, server_process(environment(Path(home), api.base_url)) as server:
            gate = Gate(api)
            await attack(server.client, gate, CASES[0])
            before, _ = memory(server.process.pid) or (0.0, 0.0)
            survived: Counter[str] = Counter()
            for case in CASES:
                problem = await attack(server.client, gate, case)
                survived[case.group] += problem is None
                print(f"{'FAIL' if problem else 'ok  '}  {case.group:<15} {case.name:<50} {problem or ''}")
            after, _ = memory(server.process.pid) or (0.0, 0.0)
    print()
    for group, total in Counter(case.group for case in CASES).items():
        print(f"{group:<16} {survived[group]:>3} of {total}")
    print(f"{'all':<16} {survived.total():>3} of {len(CASES)}")
    print(f"resident memory  {before:.1f} MiB before, {after:.1f} MiB after; stderr: {len(server.stderr)} bytes")
    return 0 if survived.total() == len(CASES) and not server.stderr else 1


if __name__ == "__main__":
    code = 0 if sys.argv[1:] else trio.run(main)
    sys.exit(code | trio.run(upstream_table.main, " ".join(sys.argv[2:])))
