"""The shape of the package: which part may know which, kept by reading the sources."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "responses_mcp"
MAX_LINES = 400


def name_of(file: Path) -> str:
    """Return the dotted name of a module, without the package's own name: `protocol.session`."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


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


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def ours(*modules: str) -> tuple[str, ...]:
    return tuple(f"responses_mcp.{module}" for module in modules)


def is_stdlib(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def modules_in(*packages: str) -> list[str]:
    """Return the modules of the package that are in `packages`."""
    return [module for module in FILES if within(module, *packages)]


def importers_of(*packages: str) -> set[str]:
    return {module for module in FILES if any(within(name, *packages) for name in imported_by(module))}


def breaches(modules: list[str], *forbidden: str) -> list[str]:
    """Return every import of `modules` that lies in `forbidden`."""
    imports = [(module, name) for module in modules for name in imported_by(module)]
    return [f"{module} imports {name}" for module, name in imports if within(name, *forbidden)]


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_every_import_of_our_own_is_of_a_module_that_exists() -> None:
    # Otherwise a rule below could pass because it no longer names anything.
    unknown = [
        f"{module} imports {name}"
        for module in FILES
        for name in imported_by(module)
        if within(name, "responses_mcp") and name.removeprefix("responses_mcp").removeprefix(".") not in FILES
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "package", ["protocol", "runtime", "toolsets", "responses_api", "manuals", "settings", "commands", "testing"]
)
def test_the_rules_speak_of_packages_that_exist(package: str) -> None:
    assert len(modules_in(package)) > 1


def test_the_protocol_imports_only_the_standard_library_and_itself() -> None:
    strangers = [
        f"{module} imports {name}"
        for module in modules_in("protocol")
        for name in imported_by(module)
        if not is_stdlib(name) and not within(name, *ours("protocol"))
    ]
    assert strangers == []


def test_the_protocol_never_awaits() -> None:
    # Everything of asyncio and trio needs one of these, so the protocol stays testable by plain calls.
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    found = [m for m in modules_in("protocol") if any(isinstance(node, kinds) for node in ast.walk(tree(m)))]
    assert found == []
    assert breaches(modules_in("protocol"), "asyncio", "socket", "threading", "selectors", "subprocess") == []


def test_the_protocol_reads_neither_clock_nor_environment() -> None:
    assert breaches(modules_in("protocol"), "time", "datetime", "os", "random", "pathlib") == []


def test_exactly_one_module_knows_httpx() -> None:
    assert importers_of("httpx") == {"responses_api.client"}
    # What httpx is made of, for the sockets: a backend of ours is put in where it is meant to be.
    assert importers_of("httpcore") == {"responses_api.client", "responses_api.network"}
    # And for the fake, at the other end: what h11 itself misreads, no test between the two can find.
    assert importers_of("h11") == {"testing.fake_api"}


def test_exactly_one_module_knows_yaml() -> None:
    assert importers_of("yaml") == {"settings.yaml_nodes"}


def test_the_runtime_dependencies_are_all_that_the_package_imports() -> None:
    names = {name.partition(".")[0] for module in FILES for name in imported_by(module) if not is_stdlib(name)}
    assert names == {"responses_mcp", "trio", "httpx", "httpcore", "h11", "yaml"}


def test_settings_know_neither_trio_nor_httpx_nor_what_uses_them() -> None:
    rest = {f"responses_mcp.{module}" for module in FILES if module and not within(module, "settings", "errors")}
    assert breaches(modules_in("settings"), "trio", "httpx", *rest) == []


def test_trio_is_known_only_where_tasks_live() -> None:
    tasks = {
        *(
            "cli",
            "daemon",
            "demo",
            "room",
            "runtime",
            "answers",
            "responses_api.api",
            "responses_api.client",
            "responses_api.network",
            "responses_api.pool",
            "manuals.manuals",
            "commands.asking",
            "commands.manuals",
            "commands.doctor",
        ),
        "testing",
    }
    assert [module for module in sorted(importers_of("trio", "outcome")) if not within(module, *tasks)] == []


def test_toolsets_know_neither_the_runtime_nor_framing_nor_eras() -> None:
    words = ours("protocol.jsonrpc", "protocol.outcome")  # the shapes that a tool takes and gives
    assert breaches(modules_in("toolsets"), *ours("runtime", "daemon", "cli")) == []
    wire = [
        f"{module} imports {name}"
        for module in modules_in("toolsets")
        for name in imported_by(module)
        if within(name, *ours("protocol")) and name not in words
    ]
    assert wire == []


def test_the_runtime_knows_of_toolsets_only_what_a_tool_is() -> None:
    imports = {name for module in modules_in("runtime") for name in imported_by(module)}
    assert {name for name in imports if within(name, *ours("toolsets"))} == set(ours("toolsets.base"))


def test_the_runtime_knows_neither_the_responses_api_nor_where_settings_come_from() -> None:
    assert breaches(modules_in("runtime"), *ours("responses_api", "answers", "websearch", "daemon", "cli")) == []
    imports = {name for module in modules_in("runtime") for name in imported_by(module)}
    assert {name for name in imports if within(name, *ours("settings"))} == set(ours("settings.model"))


def test_the_responses_api_knows_neither_runtime_nor_toolsets() -> None:
    assert (
        breaches(modules_in("responses_api"), *ours("runtime", "toolsets", "answers", "websearch", "daemon", "cli"))
        == []
    )


def test_the_manuals_know_the_standard_library_their_settings_and_the_errors() -> None:
    may = ours("manuals", "errors", "settings.model")
    strangers = [
        f"{module} imports {name}"
        for module in modules_in("manuals")
        for name in imported_by(module)
        if not is_stdlib(name) and not within(name, *may) and (module, name) != ("manuals.manuals", "trio")
    ]
    assert strangers == []


def test_the_work_on_manuals_never_awaits() -> None:
    # It runs in threads, where a coroutine has no loop. One module hands it to them.
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    awaiting = {m for m in modules_in("manuals") if any(isinstance(node, kinds) for node in ast.walk(tree(m)))}
    assert awaiting == {"manuals.manuals"}


def test_manuals_are_known_to_their_tools_and_the_command_line() -> None:
    users = {module for module in importers_of(*ours("manuals")) if not within(module, "manuals")}
    assert {user for user in users if not within(user, "toolsets", "commands")} == set()


def test_commands_are_known_to_nothing_and_know_no_protocol() -> None:
    # Only the command line names them, in a table, and imports the one that is asked for.
    users = {module for module in importers_of(*ours("commands")) if not within(module, "commands")}
    assert users == set()
    assert breaches(modules_in("commands"), *ours("protocol", "runtime", "toolsets", "daemon", "cli")) == []


def test_imports_form_no_circle() -> None:
    # Imports in functions and for types count as well: who reads two such modules reads one that is too long.
    graph = {module: {name.removeprefix("responses_mcp.") for name in imported_by(module)} for module in FILES}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_only_the_demo_uses_the_fake_api() -> None:
    users = {module for module in importers_of(*ours("testing")) if not within(module, "testing", "demo")}
    assert users == set()


def test_the_fake_api_uses_nothing_of_the_server_that_it_tests() -> None:
    # Sharing code with the server, it would share its mistakes and find none of them.
    reached, new = set[str](), {"testing.fake_api"}
    while new:
        reached |= new
        names = {name for module in new for name in imported_by(module) if within(name, "responses_mcp")}
        new = {name.removeprefix("responses_mcp").removeprefix(".") for name in names} - reached
    assert [module for module in sorted(reached) if not within(module, "testing")] == []


@pytest.mark.parametrize("module", sorted(FILES))
def test_a_module_is_short_enough_to_read_in_one_sitting(module: str) -> None:
    lines = len(FILES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{lines} lines: split it by what its parts are for"


def test_no_module_is_named_after_nothing() -> None:
    vague = re.compile(r"(^|_)(helpers?|managers?|utils?|utilities|misc|common)(_|$)")
    assert [module for module in FILES if vague.search(module.rpartition(".")[2])] == []


def test_only_commands_for_people_print() -> None:
    generators = ("settings.reference", "testing.__main__")
    # stdout belongs to the wire while serving; a stray print would be a broken message.
    printing = {
        module
        for module in FILES
        for node in ast.walk(tree(module))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout.write")
    }
    assert {m for m in printing if not within(m, "cli", "demo", "commands.terminal", *generators)} == set()


def test_importing_the_package_loads_no_dependency() -> None:
    assert loaded_after("import responses_mcp").isdisjoint({"trio", "httpx", "yaml"})


def test_reading_settings_without_a_file_loads_no_dependency() -> None:
    statement = "from responses_mcp.settings import load_settings\nload_settings({'HOME': '/nowhere'})"
    assert loaded_after(statement).isdisjoint({"trio", "httpx", "yaml"})


def test_the_server_is_ready_before_httpx_and_yaml_are_loaded() -> None:
    statement = (
        "from responses_mcp.daemon import configured_toolsets\n"
        "from responses_mcp.settings import Settings\n"
        "configured_toolsets(Settings())"
    )
    loaded = loaded_after(statement)
    assert "trio" in loaded
    assert loaded.isdisjoint({"httpx", "yaml"})


def test_a_conversation_about_all_tools_begins_without_any_dependency() -> None:
    statement = (
        "from responses_mcp.configured import configured_conversation\n"
        "from responses_mcp.runtime import descriptors, prologue\n"
        "from responses_mcp.settings import ManualsSettings, ServerSettings, Settings\n"
        "server = ServerSettings(toolsets=('answer', 'search', 'manuals'))\n"
        "settings = Settings(server=server, manuals=ManualsSettings(root='/nowhere'))\n"
        "names = {name.partition('_')[0] for name in configured_conversation(settings).tools}\n"
        "assert names == {'answer', 'manual', 'chatgpt'}"
    )
    assert loaded_after(statement).isdisjoint({"trio", "httpx", "yaml", "sqlite3", "asyncio"})


def test_the_server_is_ready_before_sqlite_is_loaded() -> None:
    statement = (
        "from responses_mcp.daemon import configured_toolsets\n"
        "from responses_mcp.settings import ManualsSettings, Settings\n"
        "sets = configured_toolsets(Settings(manuals=ManualsSettings(root='/nowhere')))\n"
        "assert 'manual_ls' in [tool.name for toolset in sets for tool in toolset.tools]"
    )
    assert loaded_after(statement).isdisjoint({"httpx", "yaml", "sqlite3", "_sqlite3"})


def test_listing_the_manual_tools_loads_nothing_of_the_search() -> None:
    statement = (
        "from responses_mcp.daemon import configured_toolsets\n"
        "from responses_mcp.settings import ManualsSettings, Settings\n"
        "[set.tools for set in configured_toolsets(Settings(manuals=ManualsSettings(root='/nowhere')))]\n"
        "import sys\n"
        "names = [name.rpartition('.')[2] for name in sys.modules if name.startswith('responses_mcp.manuals.')]\n"
        "assert names == ['errors'], names"
    )
    assert "sqlite3" not in loaded_after(statement)


def files_of_the_checkout() -> list[Path]:
    """Return the files that are, or could next be, under version control."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout has files that were not meant to be shipped")
def test_no_file_names_a_place_on_the_machine_where_it_was_written() -> None:
    # In pieces, so that this file does not name one either. Absolute paths only: a URL or a home folder may hold the word.
    places = ["/" + "work/", "/" + "root/", "/" + "opt/pypi", "/" + "opt/wheels", "/" + "tmp/venvs"]
    pattern = re.compile(rf"(?<![\w.~$}}-])({'|'.join(map(re.escape, places))})")
    found = []
    for file in files_of_the_checkout():
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
