"""The package as rooms: what lies where, which room may import which, and how long everything is.

`python -m tests.house` prints the rooms with their files, lines and imports, every breach and every circle, and
`python -m tests.house --write` writes the tree in docs/architecture.md. `tests/test_layers.py` holds the rules.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "responses_mcp"
PAGE = ROOT / "docs/architecture.md"
BASE = {"", "errors", "json_types", "secrets", "room", "sanitization"}  # "" is the package itself, for its version

# For each room the other rooms and modules of ours that it may import. A room may always import what lies directly in
# the room around it only if that is named. The order is the one in which to read.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "json_types": set(),
    "secrets": {"errors"},
    "sanitization": {"json_types", "secrets"},
    "room": set(),
    "trace_context": {"json_types"},
    "state_file": set(),
    "under_trio": {"errors"},
    "logs": {"errors", "secrets"},
    "settings": {"errors", "secrets"},
    "protocol": {"json_types", "trace_context"},
    "usage": {"errors", "json_types", "sanitization", "settings.model", "state_file"},
    "toolsets": {
        *("errors", "json_types", "room", "sanitization", "settings.model"),
        *("protocol.exchange", "protocol.jsonrpc", "protocol.revisions"),
        *("asking", "manuals", "research", "responses_api.api", "responses_api.request", "responses_api.watcher"),
    },
    "runtime": {
        *("errors", "json_types", "room", "sanitization", "protocol", "settings.model", "toolsets.base"),
        "trace_context",
    },
    "responses_api.http": {"errors", "settings.address", "responses_api.watcher"},
    "responses_api.request": {
        *("errors", "json_types", "secrets", "responses_api.parameters", "responses_api.response.web_pages"),
        *("settings.model", "settings.address", "settings.time_zone"),
    },
    "responses_api.response": {
        "errors",
        "json_types",
        "secrets",
        "sanitization",
        "responses_api.failures",
        "responses_api.watcher",
        "usage.models",
    },
    "responses_api": {
        *(*BASE, "settings.model", "trace_context", "under_trio", "usage.bill", "usage.models", "room"),
        *("responses_api.http", "responses_api.request", "responses_api.response"),
    },
    "asking": {
        *("under_trio", "errors", "json_types", "secrets", "responses_api", "settings.model"),
        *("settings.system_policy", "settings.time_zone", "usage.bill", "usage.meter"),
    },
    "manuals.requests": {"json_types", "sanitization", "settings.model", "manuals.errors", "manuals.words"},
    "manuals.formats": {"manuals.cancellation"},
    "manuals.files": {
        *("errors", "json_types", "manuals.errors", "manuals.cancellation", "manuals.requests", "manuals.words"),
        *("manuals.formats", "settings.model"),
    },
    "manuals.index": {
        "errors",
        "manuals.errors",
        "manuals.cancellation",
        "manuals.words",
        "manuals.files",
        "manuals.formats",
        "manuals.requests.paths",
    },
    "manuals.embeddings": {
        *("errors", "json_types", "secrets", "responses_api.api", "settings.model"),
        *("manuals.cancellation", "manuals.index"),
    },
    "manuals.results": {
        "json_types",
        "manuals.files",
        "manuals.embeddings.vectors",
        "manuals.errors",
        "manuals.cancellation",
        "manuals.words",
        "manuals.requests",
        "settings.model",
    },
    "manuals.search": {
        *("manuals.errors", "manuals.cancellation", "manuals.words", "manuals.requests", "settings.model"),
        *("errors", "json_types", "manuals.embeddings", "manuals.index", "manuals.results"),
        "manuals.files",
    },
    "manuals": {
        *(
            "under_trio",
            "errors",
            "json_types",
            "settings.model",
            "manuals.requests",
            "manuals.files",
            "manuals.formats",
            "manuals.index",
            "manuals.embeddings",
            "manuals.search",
        ),
        "manuals.results",
    },
    "research": {
        *("under_trio", "errors", "json_types", "secrets", "sanitization", "trace_context"),
        *("settings.model", "settings.system_policy", "settings.time_zone", "responses_api", "state_file", "usage"),
    },
    "configured": {
        "",
        "asking",
        "research",
        "responses_api.api",
        "runtime.conversation",
        "settings.model",
        "toolsets",
        "usage.meter",
    },
    "serving": {"under_trio", "asking", "configured", "runtime", "settings.model", "toolsets.base"},
    "testing": {
        "under_trio",
        "json_types",
        "protocol.framing",
        "protocol.jsonrpc",
        "runtime.server",
        "serving",
        "settings",
        "toolsets.base",
    },
    "commands": {
        *(*BASE, "asking", "manuals", "research", "settings", "logs", "usage", "secrets", "under_trio"),
        *("responses_api.http", "responses_api.request", "responses_api.response", "testing.client"),
    },
    "commands.demo": {"testing", "commands.parser", "commands.terminal", "settings.schema"},
    "cli": {
        "commands.parser",
        *(*BASE, "configured", "logs", "serving", "settings", "runtime.descriptors", "runtime.prologue"),
        "responses_api.request.credentials",
        "responses_api.request.payload",
    },
    "__main__": {"cli", "errors"},
}


def name_of(file: Path) -> str:
    """Return the dotted name of a module, without the package's own name: `protocol.session`."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def source(module: str) -> str:
    return FILES[module].read_text(encoding="utf-8")


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


def absolute(module: str, node: ast.ImportFrom) -> str:
    """Return the full name of the module that a `from … import` names."""
    if not node.level:
        return node.module or ""
    package = ["responses_mcp", *module.split(".")] if module else ["responses_mcp"]
    if FILES[module].name != "__init__.py":
        package.pop()
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def imported_by(module: str) -> Iterator[str]:
    """Yield the full names of all modules that `module` imports anywhere, in functions and for types only included."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(module, node)
            full_names = [f"{source}.{alias.name}" for alias in node.names]
            submodules = [name for name in full_names if name.removeprefix("responses_mcp.") in FILES]
            yield from submodules
            if len(submodules) < len(full_names):
                yield source


def imports_of_ours(module: str) -> set[str]:
    """Return the modules of the package that `module` imports, without the package's own name."""
    return {
        name.removeprefix("responses_mcp").removeprefix(".")
        for name in imported_by(module)
        if within(name, "responses_mcp")
    }


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def room_of(module: str) -> str:
    """Return the innermost room that a module lies in."""
    return max((room for room in MAY_IMPORT if within(module, room)), key=len, default=module)


def breaches() -> list[str]:
    """Return every import that the room of its module may not make."""
    found = []
    for module in FILES:
        room = room_of(module)
        inner = {other for other in MAY_IMPORT if other != room and within(other, room)}
        for name in sorted(imports_of_ours(module)):
            at_home = within(name, room) and not within(name, *inner)
            around = name and within(room, name)  # a package above, which Python imports anyway
            if not (at_home or around or name in MAY_IMPORT[room] or within(name, *MAY_IMPORT[room] - {""})):
                found.append(f"{module} imports {name}")
    return found


def circle() -> list[str]:
    """Return modules that import each other, those in functions and for types included; none if there is no circle."""
    try:
        tuple(TopologicalSorter({module: imports_of_ours(module) for module in FILES}).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def files_of_the_checkout(folder: str) -> list[Path]:
    """Return the files below a folder that are, or could next be, under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder or "."]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def files_of_tests() -> list[Path]:
    """Return the Python files of the tests."""
    return [file for file in files_of_the_checkout("tests") if file.suffix == ".py"]


def drawn() -> str:
    """Return the folders of the package, each with the first sentence of its docstring and the names of its modules."""
    rows: list[str] = []
    for folder in sorted({file.parent for file in FILES.values()}):
        said = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or "").partition(
            "\n"
        )[0]
        names = ", ".join(
            sorted(each.stem for each in FILES.values() if each.parent == folder and each.stem != "__init__")
        )
        rows += [
            f"{folder.relative_to(PACKAGE.parent).as_posix()}/",
            *textwrap.wrap(said, 112),
            *textwrap.wrap(names, 112),
        ]
    return "".join(row + "\n" if row.endswith("/") and " " not in row else f"    {row}\n" for row in rows)


def between(text: str, mark: str, what: str) -> str:
    """Return the text of a page with `what` between its marks. Raises ValueError if it lacks one."""
    before, begin, rest = text.partition(f"<!-- {mark}: begin -->\n")
    return f"{before}{begin}{what}{rest[rest.index(f'<!-- {mark}: end -->') :]}"


def page() -> str:
    """Return the page on the architecture with the tree as it is."""
    return between(PAGE.read_text(encoding="utf-8"), "tree", f"```text\n{drawn()}```\n")


def main() -> int:
    print(f"{'room':<26}{'files':>6}{'lines':>7}  imports")
    for room in MAY_IMPORT:
        modules = [module for module in FILES if room_of(module) == room]
        others = {room_of(name) for module in modules for name in imports_of_ours(module)} - {room}
        total = sum(lines(FILES[module]) for module in modules)
        print(f"{room:<26}{len(modules):>6}{total:>7}  {' '.join(sorted(others))}")
    for what, files in (("package", list(FILES.values())), ("tests", files_of_tests())):
        counts = [lines(file) for file in files]
        print(f"{what:<26}{len(counts):>6}{sum(counts):>7}  longest {max(counts)}")
    wrong = breaches() + [f"a circle: {' > '.join(found)}" for found in [circle()] if found]
    print(*wrong or ["no import goes where it may not, and none in a circle"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    sys.exit(main())
