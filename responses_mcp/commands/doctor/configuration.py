"""What runs and what it is told: the program, its configuration, the key, extra headers, address, folder of manuals."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from responses_mcp import __version__
from responses_mcp.commands.clients.entries import Entry, secret_variables
from responses_mcp.commands.clients.known import CLIENTS, this_executable
from responses_mcp.commands.doctor.findings import Finding, fail, of_sentence, ok, warn
from responses_mcp.commands.doctor.spending import can_be_written, check_spending
from responses_mcp.commands.example_profiles import has_profiles
from responses_mcp.commands.terminal import NAME
from responses_mcp.errors import KeyUnusable, installing, program
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.embeddings.provider import what_is_sent
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.unserved import (
    about_links,
    in_words,
    other_kinds,
)
from responses_mcp.manuals.requests.paths import name_of
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.request.payload import effort_and_verbosity
from responses_mcp.settings.address import is_loopback
from responses_mcp.settings.load import LoadedSettings
from responses_mcp.settings.model import ManualsSettings, OpenAISettings, Profile, Settings
from responses_mcp.settings.schema import READ_BY_SERVER, SETTINGS

_MISTYPED: Final = 0.9  # of the two names alike
_OF_OTHERS: Final = {
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_KEY": "OPENAI_API_KEY",
    "OPENAI_MODEL": "MODEL_ANSWER",
}
_FILLED_IN: Final = {"OPENAI_BASE_URL": "openai.base_url", "MANUALS_ROOT": "manuals.root"}
_SECTIONS: Final = {"openai.base_url": "base_url", "openai.headers_env": "headers", "manuals.": "manuals"}

SOURCE: Final = f"git+https://github.com/uchimanajet7/{NAME}"
"""What pip, pipx and uv install it from, until it is on the package index."""

TO_KEEP: Final = f'install it permanently, with "uv tool install {SOURCE}" or "pipx install {SOURCE}"'

# Environments that uvx, `uv run --with` and `pipx run` throw away when they like.
_THROWN_AWAY: Final = ("archive-v0", "builds-v0", ".cache", "Caches")


def check_configuration(
    loaded: LoadedSettings,
    client: str | None = None,
    entry: Entry | None = None,
    entries: Sequence[Entry] = (),
) -> Iterator[Finding]:
    """Say what was read and what is wrong with it, then check what needs no network, for one `client` or for all.

    `entry` is that of the client by which the settings were read, and `entries` are all that were found.
    """
    unknown = tuple(key for name, key in _FILLED_IN.items() if entry is not None and entry.elsewhere(name) is not None)
    findings = [
        *(
            of_sentence(_section(text), "warn" if text.startswith(unknown) else "FAIL", text)
            for text in loaded.problems
        ),
        *(of_sentence(_section(text), "warn", text) for text in loaded.warnings),
    ]
    files = sorted({source.removeprefix("yaml:") for source in loaded.sources.values() if source.startswith("yaml:")})
    variables = sorted({source.removeprefix("env:") for source in loaded.sources.values() if source.startswith("env:")})
    if not any(finding.check == "config" for finding in findings):
        yield ok("config", _sources(loaded.config_file, files, variables))
    yield from findings
    openai = loaded.settings.openai
    if entry is None:
        yield from _misnamed(os.environ, loaded)
    yield check_key(openai, client, entry, entries, manuals=loaded.settings.manuals.root is not None)
    if not has_profiles(loaded.settings):
        yield ok(
            "profiles",
            f"answer_quick and answer_detailed ask as answer does; '{program()} install --write --profiles' sets them "
            "apart",
        )
    if sent := [f"{name} {_sent(profile)}" for name, profile in loaded.settings.model_profiles.items()]:
        yield ok("sent", "; ".join(sent))
    if openai.headers:
        names = ", ".join(f"{header} (from {name})" for header, name in openai.headers_env.items())
        yield ok("headers", f"also sent: {names}; the values are not shown")
    if not any(finding.check == "base_url" for finding in findings):
        yield _address(openai, loaded.sources.get("openai.base_url", "default"))
    yield from check_spending(loaded.settings)
    root = loaded.settings.manuals.root
    if root is not None:
        if os.path.isdir(root):  # noqa: PTH112  # raises nothing; one that is missing is a warning of the configuration
            yield from check_manuals(root)
            if "manuals" not in loaded.settings.toolsets:
                yield warn("manuals", "the list of toolsets lacks them, so no client sees them", "add manuals to it")
            yield from _index(loaded.settings.manuals)
        yield from _embeddings(loaded.settings)


def _sent(profile: Profile) -> str:
    """Return the model of a profile, with the effort and verbosity that its requests hold."""
    effort, verbosity = effort_and_verbosity(profile)
    return f"asks {profile.model} with {_named('effort', effort)} and {_named('verbosity', verbosity)}"


def _named(name: str, value: object) -> str:
    return f"no {name}" if value is None else f"{name} {value}"


def _misnamed(environ: Mapping[str, str], loaded: LoadedSettings) -> Iterator[Finding]:
    """Tell of variables that are nearly called as one that is read and not set; or as others call it."""
    read = (*READ_BY_SERVER, *secret_variables(loaded.settings.openai))
    in_files = {each.env for each in SETTINGS if loaded.sources.get(each.key, "").startswith("yaml:")}
    for name in environ:
        as_others = _OF_OTHERS.get(name)
        near = as_others or next(iter(get_close_matches(name, read, 1, _MISTYPED)), None)
        if name in read or near not in read or not environ[name].strip() or environ.get(near, "").strip():
            continue
        if as_others is None or near not in in_files:  # else it is likely for those others
            yield warn("config", f"{name} is set, and not read", f"did you mean {near}?")


def _sources(file: str | None, files: Sequence[str], variables: Sequence[str]) -> str:
    """Say in words where settings come from; `file` is the one that was read or may be there."""
    named = f"{'these variables' if len(variables) > 1 else 'the variable'}: {', '.join(variables)}"
    if files:
        return f"settings come from {', '.join(files)}" + (f" and from {named}" if variables else "")
    instead = f"settings come from {named}" if variables else "all settings are defaults"
    if file is None:
        return f"no configuration file; {instead}"
    path = Path(file)
    if os.path.exists(path):  # noqa: PTH110  # raises nothing
        return f"{path} says nothing that counts; {instead}"
    if os.path.islink(path):  # noqa: PTH114  # raises nothing
        return f"{path} is a link that leads to no file; {instead}"
    other = path.with_suffix(".yml")
    unread = f", and {other} is not read" if os.path.exists(other) else ""  # noqa: PTH110  # raises nothing
    return f"no configuration file {path}{unread}; {instead}"


def address_is_wrong(loaded: LoadedSettings) -> bool:
    """Tell whether another address may have been meant, so that nothing may be sent to this one."""
    return any(text.startswith(("openai.", "config file")) for text in loaded.problems)


def _section(sentence: str) -> str:
    return next((check for start, check in _SECTIONS.items() if sentence.startswith(start)), "config")


def check_key(
    openai: OpenAISettings,
    client: str | None = None,
    entry: Entry | None = None,
    entries: Sequence[Entry] = (),
    *,
    manuals: bool = False,
) -> Finding:
    """Judge the form of the key, of which nothing is shown; where to set it depends on the client.

    Who has `manuals` may want nothing else, and do without a key; one that only `entries` have is theirs to use.
    """
    name = openai.api_key_env
    try:
        headers = credential_headers(openai)
    except KeyUnusable as error:
        found = f"{name} {error.cause.rstrip('.').rpartition(f'variable {name} ')[2]}"
        fix = error.remedy or f"Set it where your client is started (`{error.command}`), and restart the client."
        known = CLIENTS.get(client or "")
        elsewhere = None if entry is None else entry.elsewhere(name)
        if known is not None and elsewhere is not None and (openai.api_key is None or error.unfilled):
            fix = f"call a tool in {known.title} to see whether it is right"
            return warn("key", f"{name} is not set in this shell; {elsewhere}, which is not looked at", fix)
        others = entries if entry is None and openai.api_key is None else ()
        holder = next((each for each in others if _has_key(each, openai)), None)
        if holder is not None:
            fix = f'to judge that one, run "{program()} doctor --client {holder.client}"'
            has = f"{CLIENTS[holder.client].title} has it in its entry"
            return warn("key", f"{name} is not set in this shell; {has}", fix)
        if error.remedy is None and known is not None and known.writes_values:
            where = entry or next((each for each in entries if each.client == client), None)
            add = f'add "{name}" with its value to "env" of its entry' if where is None else where.by_hand([name])
            fix = f"{add}, and restart {known.title}."
        elif error.remedy is None and entry is not None:  # which may name no variable, or as another client has it
            fix += f" If it is set there, {entry.renewal}."
        fix = fix[0].lower() + fix[1:].rstrip(".")
        if manuals and (openai.api_key is None or error.unfilled):
            return warn("key", f"{found}; the manuals work without it", fix)
        return fail("key", found, fix)
    if "authorization" in headers and openai.api_key:
        return ok("key", f"{name} is set and well formed; it is not shown")
    why = "the headers of openai.headers_env stand in for it" if openai.headers else "base_url is on this machine"
    return ok("key", f"{name} is not set, and need not be: {why}")


def _has_key(entry: Entry, openai: OpenAISettings) -> bool:
    """Tell whether an entry itself gives the server a key, in the form of one."""
    key = entry.variables().get(openai.api_key_env, "").strip()
    with suppress(KeyUnusable):
        return bool(key and credential_headers(replace(openai, api_key=key)))
    return False


def _address(openai: OpenAISettings, source: str) -> Finding:
    url = openai.base_url
    whence = source.removeprefix("env:").removeprefix("yaml:")
    found = f"{url} ({'the default' if source == 'default' else f'from {whence}'})"
    if urlsplit(url).path.endswith("/responses"):
        return fail("base_url", found, "remove /responses from its end; the server adds it")
    if url == "https://api.openai.com":
        return fail("base_url", f"{found} lacks the version of the API", f"write {url}/v1")
    if url.startswith("http:") and not is_loopback(urlsplit(url).hostname or ""):
        return warn("base_url", f"{found} is not encrypted: anybody on the way can read the key", "use https")
    return ok("base_url", found)


def check_manuals(root: str) -> Iterator[Finding]:
    """Look at a folder of manuals, which is there."""
    folder = Folder(Path(root))
    try:
        names = folder.manuals()
    except ManualsError as error:
        yield fail("manuals", error.message.rstrip("."), f"make {root} readable for you")
        return
    if names:
        others = in_words(other_kinds(folder, names))
        many = f"{root} has {len(names):,} manual{'s' if len(names) > 1 else ''}"
        if folder.has_files(names, unchecked):
            yield ok("manuals", f"{many}; {others}" if others else many)
        else:
            lacking = f"{many}, but no file of a served format to search"
            yield warn("manuals", f"{lacking}; {others}" if others else lacking, "put the manuals there as such files")
    for name in names:
        try:
            folder.children(name, "", unchecked)
        except ManualsError as error:
            yield warn("manuals", error.message.partition(";")[0], f"make {Path(root, name_of(name))} readable for you")
    links = about_links(root)
    if links is not None:
        yield warn("manuals", *links)
    if not (names or links):
        yield warn("manuals", f"{root} has no manuals", "put them there, as files of a served format")


def _index(settings: ManualsSettings) -> Iterator[Finding]:
    """Say where the index is kept, and whether that can be."""
    if settings.in_memory or settings.index_dir is None:
        yield ok("index", "kept in memory only")
        return
    if can_be_written(Path(settings.index_dir)):
        yield ok("index", f"kept in {settings.index_dir}")
    else:
        yield warn(
            "index",
            f"{settings.index_dir} cannot be written to, so each server builds the index again",
            "make it a folder that you may write to, or set manuals.index_dir (MANUALS_INDEX_DIR)",
        )


def _embeddings(settings: Settings) -> Iterator[Finding]:
    """Say what leaves this machine for the sake of meaning, or whether it can be compared here."""
    provider = settings.manuals.embeddings.provider
    sent = what_is_sent(settings)
    if sent is not None:
        yield ok("embeddings", sent)
    elif provider == "wordllama" and find_spec("wordllama") is None:
        yield warn(
            "embeddings",
            "the package wordllama is not installed, so searches go by words only",
            f"{installing('semantic')}, or set manuals.embeddings.provider to none",
        )
    elif provider == "wordllama":
        yield ok("embeddings", "made by wordllama on this machine; nothing is sent")


def check_program() -> Iterator[Finding]:
    """Say which Python and which executable this is."""
    implementation, version = platform.python_implementation(), platform.python_version()
    yield ok("python", f"{implementation} {version} on {platform.platform()}")
    yield _executable(this_executable())


def _executable(path: Path | None) -> Finding:
    if path is None:
        return warn(
            "program",
            f"{NAME} {__version__}, which is not installed as a command",
            f'{TO_KEEP}, or give your client the command "{sys.executable}" with the arguments '
            "-m responses_mcp --stdio",
        )
    what = f"{NAME} {__version__}; the path for your client's configuration is {path}"
    if _is_temporary(path.resolve()):
        return warn("program", f"{what}, which is in a folder for temporary files", TO_KEEP)
    return ok("program", what)


def _is_temporary(path: Path) -> bool:
    return path.is_relative_to(Path(tempfile.gettempdir()).resolve()) or is_thrown_away(path)


def is_thrown_away(path: Path) -> bool:
    """Tell whether a program is in an environment that uv or pipx made for one use."""
    return any(name in path.parts for name in _THROWN_AWAY)
