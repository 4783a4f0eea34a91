"""The shape of the package: which room may know which, and what a start loads. `tests.house` has the table.

It promises: imports go down the rooms and never in a circle; the protocol does no I/O; httpx, yaml, h11 and Trio are
each known where they are meant to be; only commands for people print; a start loads no dependency that it could do
without; a file has a name that says what it is for, and is worth one; the tests lie as the package lies.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import ONCE
from tests.house import (
    FILES,
    MAY_IMPORT,
    PAGE,
    ROOT,
    breaches,
    circle,
    files_of_tests,
    files_of_the_checkout,
    imported_by,
    imports_of_ours,
    lines,
    page,
    room_of,
    tree,
    within,
)

LEAST_LINES = 40
SHORT = {
    "manuals.cancellation": "all rooms of the manuals stop by it, and a start needs it without the rest",
    "manuals.errors": "hosts import ManualsError from it, and a start needs it without the rest",
    "room": "the runtime and the API both wait in it, and neither knows the other",
}


def importers_of(*packages: str) -> set[str]:
    return {module for module in FILES if any(within(name, *packages) for name in imported_by(module))}


def awaiting(room: str) -> set[str]:
    """Return the modules within `room` that have a coroutine."""
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return {m for m in FILES if within(m, room) and any(isinstance(node, kinds) for node in ast.walk(tree(m)))}


def is_stdlib(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_every_import_of_our_own_is_of_a_module_that_exists() -> None:
    # Otherwise a rule below could pass because it no longer names anything.
    assert {name for module in FILES for name in imports_of_ours(module)} <= FILES.keys()
    named = {name for may in MAY_IMPORT.values() for name in may}
    assert named <= FILES.keys()
    assert [module for module in FILES if module and room_of(module) not in MAY_IMPORT] == []


def test_imports_go_only_where_the_table_of_rooms_allows() -> None:
    assert breaches() == []


def test_imports_form_no_circle() -> None:
    # Imports in functions and for types count as well: who reads two such modules reads one that is too long.
    assert circle() == []


def test_the_protocol_does_no_io_and_reads_neither_clock_nor_environment() -> None:
    # Everything of asyncio and trio needs a coroutine, so the protocol stays testable by plain calls.
    assert awaiting("protocol") == set()
    io = ("asyncio", "socket", "threading", "selectors", "subprocess", "time", "datetime", "os", "random", "pathlib")
    strangers = {name for module in FILES if within(module, "protocol") for name in imported_by(module)}
    assert {
        name for name in strangers if within(name, *io) or not (is_stdlib(name) or within(name, "responses_mcp"))
    } == set()


def test_exactly_one_module_knows_httpx() -> None:
    assert importers_of("httpx") == {"responses_api.http.network"}
    # h11, at both ends: what it misreads, no test between the two can find.
    assert importers_of("h11") == {"responses_api.http.network", "testing.fake_api"}


def test_exactly_one_module_knows_yaml() -> None:
    assert importers_of("yaml") == {"settings.yaml_file"}


@pytest.mark.rule("P6", "spec 13")
def test_the_runtime_dependencies_are_all_that_the_package_imports() -> None:
    names = {name.partition(".")[0] for module in FILES for name in imported_by(module) if not is_stdlib(name)}
    # h11 and certifi come with httpx.
    assert names == {"responses_mcp", "trio", "httpx", "h11", "certifi", "yaml"}


def test_trio_is_known_only_where_tasks_live() -> None:
    users = importers_of("trio", "outcome")
    assert {room_of(module) for module in users} == {
        *("cli", "commands", "commands.demo", "manuals", "manuals.embeddings", "research", "responses_api"),
        *("responses_api.http", "room", "runtime", "serving", "testing", "toolsets", "under_trio", "usage"),
    }


def test_the_work_on_manuals_never_awaits() -> None:
    # It runs in threads, where a coroutine has no loop. A few modules hand it to them, and one room asks for vectors.
    others = {module for module in FILES if within(module, "manuals") and not within(module, "manuals.embeddings")}
    async_ones = {f"manuals.{name}" for name in ("service", "threads", "updating", "comparing")}
    assert awaiting("manuals") & others == async_ones == importers_of("trio") & others


def test_the_fake_api_uses_nothing_of_the_server_that_it_tests() -> None:
    # Sharing code with the server, it would share its mistakes and find none of them.
    reached, new = set[str](), {"testing.fake_api"}
    while new:
        reached |= new
        new = {name for module in new for name in imports_of_ours(module)} - reached
    assert [module for module in sorted(reached) if not within(module, "testing")] == []


def test_what_is_run_once_is_there() -> None:
    assert [place for place in ONCE if not (ROOT / "tests" / place).exists()] == []


def test_a_file_is_worth_opening() -> None:
    short = {
        module
        for module, file in FILES.items()
        if lines(file) < LEAST_LINES and file.name not in {"__init__.py", "__main__.py"}
    }
    assert short == SHORT.keys()


def test_the_page_on_the_architecture_shows_the_tree() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.house --write`"


def test_no_two_test_files_share_a_name() -> None:
    names = Counter(file.name for file in files_of_tests() if file.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_laboratory_imports_from_the_tests_and_never_the_other_way() -> None:
    pattern = re.compile(
        r"^\s*(?:from|import) tests\.lab\b|^from tests import .*\blab\b|[\"']tests\.lab\b", re.MULTILINE
    )
    tests = [file for file in files_of_tests() if "lab" not in file.relative_to(ROOT).parts and file != Path(__file__)]
    assert [file.relative_to(ROOT) for file in tests if pattern.search(file.read_text(encoding="utf-8"))] == []


def test_the_tests_of_a_module_lie_where_the_module_lies() -> None:
    # What lies directly in `tests` crosses rooms, and is named after a behaviour or a module at the top.
    folders: dict[str, set[str]] = {}
    for module in FILES:
        room, _, name = module.rpartition(".")
        folders.setdefault(f"test_{name}.py", set()).add(room.replace(".", "/") or ".")
    lying = {file: file.parent.relative_to(ROOT / "tests").as_posix() for file in files_of_tests()}
    astray = {file for file, folder in lying.items() if folder not in {".", *folders.get(file.name, {folder})}}
    rooms = {folder for folder in lying.values() if folder.replace("/", ".") in FILES}
    assert [file.relative_to(ROOT).as_posix() for file in astray if lying[file] in rooms] == []


@pytest.mark.rule("P5")
def test_only_commands_for_people_print() -> None:
    generators = ("testing.__main__",)
    # stdout belongs to the wire while serving; a stray print would be a broken message.
    printing = {
        module
        for module in FILES
        for node in ast.walk(tree(module))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout.write")
    }
    assert {m for m in printing if not within(m, "cli", "commands.demo", "commands.terminal", *generators)} == set()


ALL_TOOLS = (
    "from responses_mcp.settings import ManualsSettings, ServerSettings, Settings\n"
    "server = ServerSettings(toolsets=('answer', 'search', 'manuals', 'research'))\n"
    "settings = Settings(server=server, manuals=ManualsSettings(root='/nowhere'))\n"
)
LISTED = (
    "names = {tool.name.partition('_')[0] for each in toolsets for tool in each.tools}\n"
    "assert names == {'answer', 'manual', 'chatgpt', 'research'}\n"
    "import sys\n"
    "search = [name for name in sys.modules if name.startswith('responses_mcp.manuals.')]\n"
    "assert search == ['responses_mcp.manuals.errors'], search"
)


@pytest.mark.rule("spec 13")
@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import responses_mcp", "trio httpx yaml"),
        (
            "from responses_mcp.settings import load_settings\nload_settings({'HOME': '/nowhere'})",
            "trio httpx yaml",
        ),
        (
            f"{ALL_TOOLS}from responses_mcp.runtime import descriptors, prologue\n"
            "from responses_mcp.configured import configured_conversation\n"
            f"toolsets = configured_conversation(settings).toolsets\n{LISTED}",
            "trio httpx yaml sqlite3 _sqlite3 asyncio",
        ),
        (
            f"{ALL_TOOLS}from responses_mcp.serving import configured_toolsets\n"
            f"toolsets = configured_toolsets(settings)\n{LISTED}",
            "httpx yaml sqlite3 _sqlite3",
        ),
    ],
    ids=["the package", "settings without a file", "a conversation about all tools", "the server"],
)
def test_a_start_loads_no_dependency_before_it_is_needed(statement: str, absent: str) -> None:
    assert loaded_after(statement).isdisjoint(absent.split())


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout has files that were not meant to be shipped")
def test_no_file_names_a_place_on_the_machine_where_it_was_written() -> None:
    # In pieces, so that this file does not name one either. Absolute paths only: a URL or a home folder may hold the word.
    places = ["/" + "work/", "/" + "root/", "/" + "opt/pypi", "/" + "opt/wheels", "/" + "tmp/venvs"]
    pattern = re.compile(rf"(?<![\w.~$}}-])({'|'.join(map(re.escape, places))})")
    found = []
    for file in files_of_the_checkout(""):
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text
        found += [
            f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), 1)
            if pattern.search(line)
        ]
    assert found == []


def test_text_of_files_is_read_and_written_in_an_encoding_that_is_named() -> None:
    """Without one it is that of the system, which is not UTF-8 on Windows."""
    for path in [*ROOT.glob("responses_mcp/**/*.py"), *ROOT.glob("tests/**/*.py"), ROOT / "noxfile.py"]:
        text = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text if "_text(" in text else "")):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                texts = {"read_text": 0, "write_text": 1}.get(call.func.attr, -1)
                named = any(each.arg in ("encoding", None) for each in call.keywords)
                assert len(call.args) != texts or named, f"{path.relative_to(ROOT)}:{call.lineno}"
