"""Mutants: one small fault at a time in the package, and whether a test notices. `python -m tests.lab.mutants ROOM…`.

A room is one of `GUARDED`, or a module below it, such as `protocol` or `protocol.framing`; without one, all are taken.
Over each mutant only the tests of its room run, because they should be enough; it survives when they pass. Prints every
survivor with its line, and the score of the room. `--sample N` takes N mutants of each room, the same for the same
`--seed`. Exits with 1 when a room is under the score that is wanted of it.

Types, annotations, log lines and texts are left alone: type checkers and people read them.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SECONDS = 120.0  # for the tests over one mutant; a fault may well make them wait for ever
WANTED = 0.9

# For each room the tests that must notice a fault in it.
GUARDED = {
    "protocol": ["tests/protocol"],
    "responses_api.retry": ["tests/test_retries.py", "tests/responses_api/test_gate.py"],
    "responses_api.parameters": [
        "tests/responses_api/test_parameters.py",
        "tests/responses_api/test_parameter_fallback.py",
    ],
    "responses_api.response.sources": ["tests/responses_api/response"],
    "manuals.search.contract": ["tests/manuals/search", "tests/manuals/test_contract_table.py"],
    "manuals.search.ranking": ["tests/manuals/search", "tests/manuals/test_ranking_promises.py"],
}

# fmt: off
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
}
# fmt: on
SHAPES = {"annotation", "returns", "decorator_list"}  # which the type checkers hold

Replace = Callable[[ast.AST], None]


class Mutant(NamedTuple):
    """A module's source with one fault in it. `line` is where, in the source without it, and `fault` what."""

    module: Path
    line: int
    fault: str
    source: str

    def __str__(self) -> str:
        return f"{self.module.relative_to(ROOT).as_posix()}:{self.line}: {self.fault}"


def faults(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the faults that a node can have: what each is, and what stands in its place."""

    def changed(**fields: object) -> ast.AST:
        other = copy.deepcopy(node)
        for name, value in fields.items():
            setattr(other, name, value)
        return other

    match node:
        case ast.Compare(ops=[op]) if other := OTHER.get(type(op)):
            yield f"{type(op).__name__} -> {other.__name__}", changed(ops=[other()])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if (other := OTHER.get(type(op))) and not is_text(node):
            yield f"{type(op).__name__} -> {other.__name__}", changed(op=other())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", operand
        case ast.Constant(value=bool(value)):
            yield f"{value} -> {not value}", changed(value=not value)
        case ast.Constant(value=int(number)):
            yield f"{number} -> {number + 1}", changed(value=number + 1)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            yield "condition turned round", changed(test=ast.UnaryOp(ast.Not(), test))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield f"dropped: {ast.unparse(node).splitlines()[0][:60]}", ast.Pass()
        case ast.Continue() | ast.Break():
            yield f"{type(node).__name__.lower()} dropped", ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield f"returned: {ast.unparse(value)[:60]} -> None", changed(value=ast.Constant(None))
        case _:
            pass


def is_text(node: ast.AST) -> bool:
    """Tell whether texts are joined here, of which there is no difference."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def says_nothing(node: ast.AST) -> bool:
    """Tell whether no behaviour hangs on a node: a docstring, a log line, imports for the type checkers."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case _:
            return False


def places(parent: ast.AST) -> Iterator[tuple[ast.AST, Replace]]:
    """Yield every node below `parent` on which behaviour hangs, with a function that puts another in its place."""
    for name, value in ast.iter_fields(parent):
        if name in SHAPES:
            continue
        for number, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or says_nothing(node):
                continue

            def put(other: ast.AST, name: str = name, number: int = number, value: object = value) -> None:
                if isinstance(value, list):
                    value[number] = other
                else:
                    setattr(parent, name, other)

            yield node, put
            yield from places(node)


def mutants(module: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for node, put in list(places(tree)):
        for fault, other in faults(node):
            put(other)
            source = ast.unparse(tree)
            put(node)
            yield Mutant(module, getattr(node, "lineno", 0), fault, source)


def of_room(room: str) -> tuple[list[Path], list[str]]:
    """Return the modules of a room, or the one that was named in it, and the tests that are to notice their faults."""
    [tests] = [tests for name, tests in GUARDED.items() if f"{room}.".startswith(f"{name}.")]
    path = ROOT / "responses_mcp" / room.replace(".", "/")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")], tests


def survives(mutant: Mutant, folder: Path, tests: list[str]) -> bool:
    """Run the tests over the copy of the project in `folder` with the mutant in it."""
    place = folder / mutant.module.relative_to(ROOT)
    original = place.read_bytes()
    place.write_text(mutant.source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not smoke", *tests]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}  # the same examples
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    finally:
        place.write_bytes(original)
    return done.returncode == 0


def survivors(chosen: list[Mutant], tests: list[str], folders: SimpleQueue[Path], workers: int) -> Iterator[Mutant]:
    """Yield the mutants that no test notices, in their order."""

    def lives(mutant: Mutant) -> bool:
        folder = folders.get()
        try:
            return survives(mutant, folder, tests)
        finally:
            folders.put(folder)

    with ThreadPoolExecutor(workers) as pool:
        yield from (mutant for mutant, alive in zip(chosen, pool.map(lives, chosen), strict=True) if alive)


def main(argv: list[str]) -> int:
    """Measure the rooms that were named and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=list(GUARDED), metavar="ROOM")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(argv)
    code = 0
    with tempfile.TemporaryDirectory() as home:
        folders: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            folder = Path(home, str(number))
            shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "dist"))
            folders.put(folder)
        for room in options.rooms:
            modules, tests = of_room(room)
            unchanged = Mutant(modules[0], 0, "none", modules[0].read_text(encoding="utf-8"))
            if not list(survivors([unchanged], tests, folders, 1)):
                sys.exit(f"{room}: its tests fail without a fault")
            chosen = [mutant for module in modules for mutant in mutants(module)]
            if options.sample is not None and options.sample < len(chosen):
                chosen = random.Random(options.seed).sample(chosen, options.sample)
            left = 0
            for mutant in survivors(chosen, tests, folders, options.workers):
                left += 1
                print(f"  survived {mutant}", flush=True)
            score = 1 - left / max(1, len(chosen))
            print(f"{room}: {len(chosen) - left} of {len(chosen)} killed, {score:.0%}", flush=True)
            code |= score < WANTED
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
