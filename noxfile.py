"""Sessions of the project: what a change must pass, and how a release is built. `nox -l` lists them.

Versions of Python and dependencies live in pyproject.toml; this file reads them there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import nox

nox.needs_version = ">=2026.10.20"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
# Machines differ, and each tests the Pythons that it has: by default, nox fails without the others where CI is set, and
# fetches them elsewhere.
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


def locked() -> str:
    """Write what uv.lock says for pip and uv alike, and return where."""
    lines: list[str] = []
    for package in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]:
        if "registry" in package["source"]:
            only = " or ".join(f"({marker})" for marker in package.get("resolution-markers", []))
            lines.append(f"{package['name']}=={package['version']}{f' ; {only}' if only else ''}\n")
    constraints = ROOT / ".nox" / "locked.txt"
    constraints.parent.mkdir(exist_ok=True)
    if not constraints.exists() or constraints.read_text(encoding="utf-8") != "".join(lines):  # another nox may read it
        constraints.write_text("".join(lines), encoding="utf-8")
    return constraints.as_uri()  # where a space is no space


# Everything is installed as the lock file has it, also what builds are made with; with NEWEST=1, the newest. No lock
# file is in an unpacked sdist.
LOCKED = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_BUILD_CONSTRAINT")
if (ROOT / "uv.lock").exists() and not os.environ.get("NEWEST"):
    os.environ.update(dict.fromkeys(LOCKED, locked()))

# Off, because each asks for what would not make the code better:
NO_FLAKE8_ASYNC = [
    "ASYNC91",  # a checkpoint on every path through every async function; where one matters it is tested
    "ASYNC114",  # a list of all functions for nursery.start(), to find calls of them in __aenter__; here are none
    "ASYNC127",  # something other than httpx, which was chosen and which one module imports
    "ASYNC300",  # what RUF006 of ruff says; each rule of its kind is one more walk through every file
    "ASYNC128",  # a call of started() in the function itself, although it hands task_status on to one that calls it
]

# Succeeds where Trio's own types are seen; the stubs of trio-typing would hide them from every checker.
NO_TRIO_STUBS = """\
import pathlib, sys
found = [stubs for entry in sys.path for stubs in pathlib.Path(entry).glob("trio*-stubs")]
sys.exit(f"these stubs hide the types of Trio itself: {found}" if found else 0)
"""

NOT_THE_CHECKOUT = """\
import pathlib, sys, responses_mcp
where = pathlib.Path(responses_mcp.__file__).resolve()
sys.exit(0 if pathlib.Path(sys.prefix).resolve() in where.parents else f"the wheel is not what is imported: {where}")
"""


def group(*names: str) -> list[str]:
    """Return the requirements of dependency groups of pyproject.toml."""
    return list(nox.project.dependency_groups(PYPROJECT, *names))


def starts(*command: str) -> bool:
    """Return whether a Python can be started; a shim of pyenv may exist for one that is not switched on."""
    executable = shutil.which(command[0])
    return executable is not None and not subprocess.call(
        [executable, *command[1:], "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def installed_pythons() -> list[str] | None:
    """Return the Pythons of the classifiers that are here, or None for the one running nox."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [
        version
        for version in nox.project.python_versions(PYPROJECT)
        if version == running or starts(f"python{version}") or starts("py", f"-{version}")
    ] or None


PYTHONS = installed_pythons()


# What starts threads, tasks, sockets and processes: enough for a Python between the oldest and the newest.
BETWEEN = [
    *("tests/embedding", "tests/protocol", "tests/runtime", "tests/testing", "tests/responses_api"),
    *("tests/test_cancellation.py", "tests/test_shutdown.py"),
]


@nox.session(python=PYTHONS, allow_parallel=True)
def tests(session: nox.Session) -> None:
    """Run the tests on every supported Python that is installed; with `nox -j 3`, three of them at a time."""
    session.install("-e", ".", *group("test"))
    others = session.parallel and PYTHONS and session.python != PYTHONS[0] and not session.posargs
    if not session.posargs:
        session.log(f"All of it takes {how_long()}, for each Python.")
    # The oldest has most to do, and takes all cores; the others, a process each, have them when it leaves them.
    way = ["nice", "-n", "15"] if others and shutil.which("nice") else []
    workers = str((os.cpu_count() or 1) + 1)  # one more than cores: many tests wait for a process
    chosen = ["-m", "not smoke and not once"] if others else ["-m", "not smoke", "-n", workers, "--dist", "worksteal"]
    if others and PYTHONS and session.python != PYTHONS[-1]:
        chosen += BETWEEN
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # pytest tidies up what several of it would share
        session.run(*way, "pytest", *chosen, f"--basetemp={folder}", *session.posargs, external=bool(way))


def how_long() -> str:
    """Return how long the tests take, as the README says it."""
    [said] = re.findall(r"about \d+ minutes on two cores", (ROOT / "README.md").read_text(encoding="utf-8"))
    return str(said)


@nox.session(python=False, default=False)
def windows(session: nox.Session) -> None:
    """Run tests with the Python of Windows that WINDOWS_PYTHON names, under Wine elsewhere; `-- tests/runtime` some."""
    command = os.environ.get("WINDOWS_PYTHON")
    if not command:
        session.error("set WINDOWS_PYTHON to what starts a Python of Windows that has the packages of the group test")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    if sys.platform != "win32":  # Wine's drive Z is the root here
        env |= {"PYTHONPATH": f"Z:{ROOT}".replace("/", "\\"), "UNDER_WINE": "1"}
    failed: list[str] = []
    for path in session.posargs or sorted(
        {str(path.parent) for path in Path("tests").glob("*/test_*.py") if path.parent.name != "lab"} | {"tests"}
    ):
        chosen = [str(each) for each in sorted(Path(path).glob("test_*.py"))] if path == "tests" else [path]
        tests = [command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not smoke", *chosen]
        with subprocess.Popen(tests, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as running:
            for line in running.stdout or ():  # a console, or a file, is not what Wine can write to
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
        if running.returncode not in {0, 5}:  # 5: nothing there to run
            failed.append(path)
    if failed:
        session.error(f"failed: {', '.join(failed)}")


@nox.session(reuse_venv=False)
def smoke(session: nox.Session) -> None:
    """Check the protocol with real processes of an installed wheel; `-- --real` also asks the real API."""
    session.install(*PYPROJECT["build-system"]["requires"])
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session.run("python", "-m", "hatchling", "build", "-t", "wheel", "-d", folder, silent=True)
        session.install(*map(str, Path(folder).glob("*.whl")), *group("smoke"))
        # Tests are copied without the package, so that what they import and start can only be the wheel.
        shutil.copytree("tests", Path(folder, "tests"), ignore=shutil.ignore_patterns("__pycache__", "lab"))
        shutil.copy("pyproject.toml", folder)
        session.env["PYTHONPATH"] = None
        with session.chdir(folder):
            session.run("python", "-c", NOT_THE_CHECKOUT, log=False)
            session.run("pytest", "-m", "smoke", "tests/smoke", *session.posargs)


def programs(session: nox.Session) -> list[str]:
    """Write the programs of the pages as files, for what checks files, and return where."""
    folder = Path(session.create_tmp())
    for old in folder.glob("*.py"):
        old.unlink()
    for page in Path("docs").rglob("*.md"):
        found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for number, text in enumerate(found, 1):
            (folder / f"{page.stem}_{number}.py").write_text(text, encoding="utf-8")
    return sorted(map(str, folder.glob("*.py")))


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of the package, its tests and this file with mypy, of the package and the pages with both."""
    session.install("-e", ".", *group("types"))
    session.run("python", "-c", NO_TRIO_STUBS, log=False)
    tool, shown = PYPROJECT["tool"], programs(session)
    session.run("mypy", *tool["mypy"]["files"], *shown)
    quiet = {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # it would announce new versions
    session.run("pyright", *tool["pyright"]["include"], *shown, env=quiet)


@nox.session(reuse_venv=False)
def typing_compat(session: nox.Session) -> None:
    """Run and type-check, without mypy's plugin, an embedder that still uses trio-typing."""
    session.install(".", *group("typing-compat"))
    embedder = "embedder_trio_typing.py"
    # Elsewhere and without our settings of mypy, so that the installed package is used as any embedder uses it.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shutil.copy(Path("tests", "typing", embedder), folder)
        session.env["PYTHONPATH"] = None
        with session.chdir(folder):
            session.run("python", "-c", NOT_THE_CHECKOUT, log=False)
            session.run("python", "-W", "error", embedder)
            session.run("mypy", "--strict", "--config-file=", embedder)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the use of Trio, also of the programs on the pages."""
    session.install(*group("lint"))
    shown = programs(session)
    session.run("ruff", "check")
    session.run("ruff", "check", "--config=pyproject.toml", "--extend-ignore=D,INP,S,T20", *shown)
    session.run("ruff", "format", "--check", "--config=pyproject.toml", ".", *shown)
    # It needs half a second a file, so what ruff knows of its rules must do for the tests, and it has nothing to say
    # about files without a coroutine.
    folders = ("responses_mcp", "tests/embedding")
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
    of_interest = [str(file) for file in files if "async " in file.read_text(encoding="utf-8")]
    session.run("flake8-async", "--disable", ",".join(NO_FLAKE8_ASYNC), *of_interest, *shown, log=False)


@nox.session
def build(session: nox.Session) -> None:
    """Build the sdist and, from it, the wheel into dist/; list and check what is in them."""
    session.install(*group("build"))
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", silent=True)
    wheels, sdists = map(str, Path("dist").glob("*.whl")), map(str, Path("dist").glob("*.tar.gz"))
    for wheel in wheels:
        session.run("python", "-m", "zipfile", "-l", wheel)
    for sdist in sdists:
        session.run("python", "-m", "tarfile", "-l", sdist)
    session.run("twine", "check", "--strict", *map(str, Path("dist").iterdir()))
    session.run("pytest", "--noconftest", "tests/test_distribution.py", env={"DISTRIBUTIONS": str(ROOT / "dist")})


MCPB = "@anthropic-ai/mcpb@2.1.2"  # the makers' own validator of bundles


@nox.session(default=False)
def bundle(session: nox.Session) -> None:
    """Pack the bundle (.mcpb) into dist/, check it, and start it as a client would; needs the network."""
    session.install("-e", ".", *group("test"))
    for old in Path("dist").glob("*.mcpb"):
        old.unlink()
    session.run("python", "-m", "tests.bundle", "dist")
    [packed] = Path("dist").glob("*.mcpb")
    session.run("pytest", "tests/test_bundle.py", env={"BUNDLE": str(packed.resolve())})
    if shutil.which("npx") is None:
        session.warn("npx not found: the manifest was not checked with the validator of its makers")
        return
    session.run("npx", "--yes", MCPB, "validate", "config/manifest.json", external=True)
    session.run("npx", "--yes", MCPB, "info", str(packed), external=True)


# Clients that cannot share an environment, and servers that are asked in place of OpenAI's. What was found is about
# these releases; a newer one is a finding of its own.
# Those that run on Node stand in tests/lab/interop/js/package.json.
CLIENTS = {"mcp-1": ["mcp==1.30.*"], "mcp-2": ["mcp==2.3.*"], "fastmcp": ["fastmcp==4.1.*"], "node": [], "servers": []}
ON_NODE = {"node": ["test_clients.py", "test_inspector.py", "test_claude_code.py"], "servers": ["test_servers.py"]}


@nox.session(default=False)
def lab(session: nox.Session) -> None:
    """Run all of the laboratory, or the part behind `--` with its options: `-- soak --minutes 5`."""
    part, *options = session.posargs or ["all"]
    failed: list[str] = []
    if part != "interop":
        package = ".[semantic]" if any(option.endswith(("wordllama", "api-fake")) for option in options) else "."
        session.install("-e", package, *group("test"))
        try:
            session.run("python", "-m", "tests.lab", *session.posargs)
        except nox.command.CommandFailed:
            failed.append(part)
    if part in ("all", "interop"):
        failed += [clients for clients in options or CLIENTS if not with_clients(session, clients)]
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def with_clients(session: nox.Session, clients: str) -> bool:
    """Run the tests against real MCP clients in an environment of theirs, and print what each of them did."""
    files = ON_NODE.get(clients, ["test_clients.py", "test_mixed_folder.py"])
    if clients in ON_NODE and (missing := [name for name in ("node", "npm") if shutil.which(name) is None]):
        session.warn(f"{clients}: {' and '.join(missing)} not found; install Node.js with npm to try what needs it")
        return True
    home = session.cache_dir.resolve() / "interop"  # clients start in folders of their own
    results, folder = home / f"{clients}.xml", home / f"{clients}-venv"
    home.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    session.run("python", "-m", "venv", str(folder))
    python = str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    wanted = [".[documents]", *group("smoke", "interop"), *CLIENTS[clients]]
    session.run(python, "-m", "pip", "install", "--quiet", *wanted, external=True, env=dict.fromkeys(LOCKED))
    env = {"INTEROP_NODE": str(home / "node")}
    tests = [f"tests/lab/interop/{file}" for file in files]
    try:
        report = ["-o", "junit_family=xunit1", f"--junitxml={results}"]
        session.run(python, "-m", "pytest", *report, *tests, env=env, external=True)
    except nox.command.CommandFailed:
        return False
    finally:
        session.run(python, "-m", "tests.lab.interop.table", str(home), log=False, success_codes=[0, 1], external=True)
    return True
