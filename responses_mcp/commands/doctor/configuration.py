"""What runs and what it reads: the program, its configuration, the key, headers, address, folder of manuals."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from responses_mcp import __version__
from responses_mcp.commands.clients.entries import Entry
from responses_mcp.commands.clients.known import this_executable
from responses_mcp.commands.findings import Finding, fail, of_sentence, ok, warn
from responses_mcp.commands.terminal import NAME, counted
from responses_mcp.errors import KeyUnusable, installing, program
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.embeddings.provider import what_is_sent
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.research.runs_file import RunsFile
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.request.payload import effort_and_verbosity
from responses_mcp.settings.address import is_loopback
from responses_mcp.settings.load import LoadedSettings
from responses_mcp.settings.model import OpenAISettings, Profile, Settings

_SECTIONS: Final = {"openai.base_url": "base_url", "openai.headers_env": "headers", "manuals.": "manuals"}

SOURCE: Final = f"git+https://github.com/uchimanajet7/{NAME}"
"""What pip, pipx and uv install it from, until it is on the package index."""

TO_KEEP: Final = f'install it permanently, with "uv tool install {SOURCE}" or "pipx install {SOURCE}"'

# Environments that uvx, `uv run --with` and `pipx run` throw away when they like.
_THROWN_AWAY: Final = ("archive-v0", "builds-v0", ".cache", "Caches")


def check_program() -> Iterator[Finding]:
    """Say which Python and which executable this is."""
    implementation, version = platform.python_implementation(), platform.python_version()
    yield ok("python", f"{implementation} {version} on {platform.platform()}")
    path = this_executable()
    what = f"{NAME} {__version__}; the path for your client's configuration is {path}"
    if path is None:
        by_hand = f'"{sys.executable}" with the arguments -m responses_mcp --stdio'
        told = f"{NAME} {__version__}, which is not installed as a command"
        yield warn("program", told, f"{TO_KEEP}, or give your client the command {by_hand}")
    elif path.resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()) or is_thrown_away(path.resolve()):
        yield warn("program", f"{what}, which is in a folder for temporary files", TO_KEEP)
    else:
        yield ok("program", what)


def is_thrown_away(path: Path) -> bool:
    """Tell whether a program is in an environment that uv or pipx made for one use."""
    return any(name in path.parts for name in _THROWN_AWAY)


def check_configuration(
    loaded: LoadedSettings, entry: Entry | None = None, entries: Sequence[Entry] = ()
) -> Iterator[Finding]:
    """Say what was read and what is wrong with it, then check what needs no network.

    `entry` is that by which the settings were read, if they are those of a client; `entries` are all that were found.
    """
    findings = [of_sentence(_section(text), "FAIL", text) for text in loaded.problems]
    findings += [of_sentence(_section(text), "warn", text) for text in loaded.warnings]
    if not any(finding.check == "config" for finding in findings):
        yield ok("config", _sources(loaded))
    yield from findings
    settings = loaded.settings
    openai, root = settings.openai, settings.manuals.root
    yield _key(openai, entry, entries, manuals=root is not None)
    if sent := [f"{name} {_sent(profile)}" for name, profile in settings.model_profiles.items()]:
        yield ok("sent", "; ".join(sent))
    if openai.headers:
        names = ", ".join(f"{header} (from {name})" for header, name in openai.headers_env.items())
        yield ok("headers", f"also sent: {names}; the values are not shown")
    if not any(finding.check == "base_url" for finding in findings):
        yield _address(openai, loaded.sources.get("openai.base_url", "default"))
    yield from _state(settings)
    if root is not None:
        if os.path.isdir(root):  # noqa: PTH112  # raises nothing; one that is missing is a warning of the configuration
            yield from _manuals(root)
            if "manuals" not in settings.toolsets:
                yield warn("manuals", "server.toolsets lacks manuals, so no client sees them", "add manuals to it")
        yield from _embeddings(settings)


def address_is_wrong(loaded: LoadedSettings) -> bool:
    """Tell whether another address may have been meant, so that nothing may be sent to this one."""
    return any(text.startswith(("openai.", "config file")) for text in loaded.problems)


def _section(sentence: str) -> str:
    return next((check for start, check in _SECTIONS.items() if sentence.startswith(start)), "config")


def _sources(loaded: LoadedSettings) -> str:
    """Say in words where settings come from."""
    sources = sorted({each for each in loaded.sources.values() if each != "default"})
    named = ", ".join(each.partition(":")[2] for each in sources)
    where = f"settings come from {named}" if named else "all settings are defaults"
    read = loaded.config_file is None or any(each.startswith("yaml:") for each in sources)
    return where if read else f"{where}, and none from {loaded.config_file}"


def _sent(profile: Profile) -> str:
    """Return the model of a profile, with the effort and verbosity that its requests hold."""
    sent = zip(("effort", "verbosity"), effort_and_verbosity(profile), strict=True)
    return f"asks {profile.model} with " + " and ".join(
        f"no {name}" if value is None else f"{name} {value}" for name, value in sent
    )


def _key(openai: OpenAISettings, entry: Entry | None, entries: Sequence[Entry], *, manuals: bool) -> Finding:
    """Judge the form of the key, of which nothing is shown; manuals work without one."""
    name = openai.api_key_env
    try:
        headers = credential_headers(openai)
    except KeyUnusable as error:
        found = f"{name} {error.cause.rstrip('.').rpartition(f'variable {name} ')[2]}"
        if entry is not None and entry.is_asked(name):
            title = entry.of.title
            return warn("key", f"{title} asks for {name}", f"call a tool in {title} to see whether it is right")
        having = next((each for each in entries if each.has_value(name)), None)
        fix = error.remedy or f"Set it where your client is started (`{error.command}`), and restart the client."
        if entry is not None and error.remedy is None:
            by_hand = f"{entry.add_by_hand([name])}, and restart {entry.of.title}"
            fix = by_hand if entry.of.writes_values else f"{fix} If it is set there, {entry.renewal}."
        elif entry is None and having is not None and openai.api_key is None:
            fix = f'{having.of.title} has one in its entry: run "{program()} doctor --client {having.client}"'
            return warn("key", f"{name} is not set in this shell", fix)
        fix = fix[0].lower() + fix[1:].rstrip(".")
        if manuals and (openai.api_key is None or error.unfilled):
            return warn("key", f"{found}; the manuals work without a key", fix)
        return fail("key", found, fix)
    if "authorization" in headers and openai.api_key:
        return ok("key", f"{name} is set and well formed; it is not shown")
    why = "openai.headers_env sends other headers" if openai.headers else "base_url is on this machine"
    return ok("key", f"{name} is not set and not needed, because {why}")


def _address(openai: OpenAISettings, source: str) -> Finding:
    url = openai.base_url
    whence = "the default" if source == "default" else f"from {source.partition(':')[2]}"
    found = f"{url} ({whence})"
    if urlsplit(url).path.endswith("/responses"):
        return fail("base_url", found, "remove /responses from its end; the server adds it")
    if url == "https://api.openai.com":
        return fail("base_url", f"{found} lacks the version of the API", f"write {url}/v1")
    if url.startswith("http:") and not is_loopback(urlsplit(url).hostname or ""):
        return warn("base_url", f"{found} is not encrypted: anybody on the way can read the key", "use https")
    return ok("base_url", found)


def _state(settings: Settings) -> Iterator[Finding]:
    """Look at the folder of runs and ledger, if one of them, or a limit of the day, is in use."""
    if not ("research" in settings.toolsets or settings.usage.ledger or settings.limits.day_cost_usd is not None):
        return
    folder = settings.research.state_dir
    fix = "set research.state_dir (RESEARCH_STATE_DIR) to a folder that you may write to"
    if folder is None:
        yield fail("state", "no folder is set for runs and the ledger", fix)
    elif _can_be_written(Path(folder)):
        going_on = RunsFile(Path(folder)).count_going_on()
        told = f"; {counted(going_on, 'run')} going on at the API" if going_on else ""
        yield ok("state", f"runs and the ledger are kept in {folder}{told}")
    else:
        yield fail("state", f"{folder} cannot be written to, so no run starts and no call is recorded", fix)


def _can_be_written(folder: Path) -> bool:
    """Tell whether there can be files in a folder, which need not be there yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _manuals(root: str) -> Iterator[Finding]:
    """Look at a folder of manuals, which exists."""
    folder = Folder(Path(root))
    try:
        names = folder.manuals()
    except ManualsError as error:
        yield fail("manuals", error.message.rstrip("."), f"make {root} readable for you")
        return
    told = f"{root} has {counted(len(names), 'manual')}"
    if folder.has_files(names, unchecked):
        yield ok("manuals", told)
    else:
        yield warn("manuals", f"{told}, and no file of a served format", "put manuals there, such as .md files")


def _embeddings(settings: Settings) -> Iterator[Finding]:
    """Say what leaves this machine for the sake of meaning, or whether it can be compared here."""
    is_local = settings.manuals.embeddings.provider == "wordllama"
    if (sent := what_is_sent(settings)) is not None:
        yield ok("embeddings", sent)
    elif is_local and find_spec("wordllama") is None:
        fix = f"{installing('semantic')}, or set manuals.embeddings.provider to none"
        yield warn("embeddings", "the package wordllama is not installed, so searches go by words only", fix)
    elif is_local:
        yield ok("embeddings", "made by wordllama on this machine; nothing is sent")
