"""`openai-responses-mcp install CLIENT`: the entry of this server in a client's file: shown, written, removed."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import quote, urlencode

from responses_mcp.commands.clients.entries import (
    Entry,
    document_of,
    find_entries,
    from_the_root,
    judge,
    read_by_server,
    server_options,
    verdict,
)
from responses_mcp.commands.clients.files import ClientFile, Unmergeable, as_table, reason_of
from responses_mcp.commands.clients.known import CLIENTS, ENTRY, Machine, secret_variables, this_machine
from responses_mcp.commands.doctor.configuration import SOURCE, TO_KEEP, is_thrown_away
from responses_mcp.commands.example_profiles import offer_profiles
from responses_mcp.commands.parser import Parser, not_blank, parser_of
from responses_mcp.commands.terminal import (
    NAME,
    WRONG,
    Stop,
    configured,
    remark,
    run_command,
    say,
    write,
)
from responses_mcp.errors import exhausted
from responses_mcp.secrets import is_unfilled
from responses_mcp.settings import Settings
from responses_mcp.settings.forms import names_in

# Some clients allow 60 characters for this name and a tool's; in JavaScript an object has a `__proto__` already.
_NAME: Final = re.compile(r"(?!__proto__$)[A-Za-z0-9_-]{1,40}")
_KNOWN: Final = ", ".join(CLIENTS)
_EXAMPLES: Final = """\
examples:
  openai-responses-mcp install claude-code --write
  openai-responses-mcp install codex --write --manuals ~/manuals
"""


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "install",
        usage="%(prog)s CLIENT [--write] [options] | --list",
        description="Show the entry of this server for a client's configuration, or put it there.\n"
        f"{textwrap.fill(f'CLIENT is one of {_KNOWN}.', 80)}\n"
        "Variables that are set are passed on; keys only by name, and never written.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("client", metavar="CLIENT", nargs="?", choices=tuple(CLIENTS), help=argparse.SUPPRESS)
    what = parser.add_mutually_exclusive_group()
    parser.add_argument("--write", action="store_true", help="change the file; all else in it stays, with a backup")
    what.add_argument("--remove", action="store_true", help="take the entry out of the file, with a backup")
    what.add_argument("--list", action="store_true", help="say which clients have an entry, and what it starts")
    parser.add_argument("--profiles", action="store_true", help="also write an example configuration, if there is none")
    parser.add_argument("--name", metavar="NAME", default=ENTRY, help=f"of the entry (default {ENTRY})")
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        choices=("user", "project"),
        default="user",
        help="user (default), or project: a file in this folder",
    )
    parser.add_argument("--toolsets", metavar="NAMES", type=not_blank, help="toolsets to offer, with commas between")
    parser.add_argument("--manuals", metavar="DIR", type=not_blank, help="folder of manuals to offer")
    parser.add_argument("--trust", action="store_true", help="let the client call without asking (gemini)")
    parser.add_argument(
        "--file", metavar="PATH", type=not_blank, help="the client's file, if it is not in the usual place"
    )
    parser.add_argument("--config", metavar="PATH", type=not_blank, help="YAML file that the server is to read")
    return parser


def run(argv: Sequence[str], *, machine: Machine | None = None) -> int:
    """Run the command and return the exit code."""
    parser = build_parser()
    options = parser.parse_options(argv)
    if options.client is None and not options.list:
        parser.error(f"CLIENT is missing; it is one of {_KNOWN}")
    work = _list if options.list else _remove if options.remove else _install
    return run_command(lambda: work(options, machine or this_machine()))


def _install(options: argparse.Namespace, machine: Machine) -> None:
    config = None if options.config is None else _absolute(options.config, machine)
    if options.profiles:
        offer_profiles(machine, config, writing=options.write)
    client, path = CLIENTS[options.client], _file(options, machine)
    if options.trust and options.client != "gemini":
        raise Stop(f"{client.title} has no setting for trust; leave --trust out.", code=WRONG)
    old = _existing(options, machine, path)
    if not old.said and not _NAME.fullmatch(options.name):
        raise Stop(f"--name: a new entry needs 1 to 40 letters, digits, - or _, got {options.name!r}.", code=WRONG)
    said = server_options(old.words) | {"--stdio": None} | ({} if config is None else {"--config": str(config)})
    manuals = _manuals(options, machine)
    if options.toolsets is not None:
        also = ",manuals" if manuals and "manuals" not in names_in(options.toolsets) else ""
        said["--toolsets"] = options.toolsets + also
    env = {} if manuals is None else {"MANUALS_ROOT": manuals}
    settings = _settings(said, old, env)
    secrets = secret_variables(settings.openai)
    command = (*machine.command, *(word for pair in said.items() for word in pair if word is not None))
    here = {name: value for name, value in read_by_server(machine.environ) if name not in (*secrets, *env)}
    passed = {name: from_the_root(name, value, machine) for name, value in here.items()}
    entry = client.entry(command, settings, passed, env) | ({"trust": True} if options.trust else {})
    alone = "" if client.dialect is None else document_of("", client, options.name).changed(entry)
    if client.command in old.said:
        entry = _merged(old, entry, env)
    if client.dialect is None:
        _show_for_goose(options.name, entry, path, secrets)
    elif not options.write:
        write(alone)  # without what its owner added, which may be a key
    if options.write or client.dialect is not None:
        _change(options, path, entry, alone)
    if is_thrown_away(Path(machine.command[0]).resolve()):
        remark(f"{machine.command[0]} is in a folder that may be emptied at any time; {TO_KEEP}, and run this again.")
    _say_next_steps(options, Entry(options.client, path, options.name, entry, machine, options.scope), settings)


def _remove(options: argparse.Namespace, machine: Machine) -> None:
    _change(options, _file(options, machine), None)


def _list(options: argparse.Namespace, machine: Machine) -> None:
    wanted = [options.client] if options.client else list(CLIENTS)
    having: set[str] = set()
    for found in find_entries(machine):
        if found.client in wanted:
            having.add(found.client)
            judged = verdict(found)
            say(f"{found.client:<15} {judged.found}{f'; {judged.fix}' if judged.fix else ''}", hanging=16)
    unread = [client for client in wanted if CLIENTS[client].dialect is None]
    without = [client for client in wanted if client not in (*having, *unread)]
    for told, clients in (("no entry", without), ("not read", unread)):
        if clients:
            say(f"{told:<15} {', '.join(clients)}", hanging=16)


# What the entry is to be


def _file(options: argparse.Namespace, machine: Machine) -> Path:
    client = CLIENTS[options.client]
    path: PurePath = client.user_file(machine)
    if options.file is not None:
        path = _absolute(options.file, machine)
        if not os.path.isdir(path.parent):  # noqa: PTH112  # raises nothing
            raise Stop(f"--file: there is no folder {path.parent}; correct the path.", code=WRONG)
    elif options.scope == "project":
        if client.project_file is None:
            raise Stop(f"{client.title} has no file for a project; leave --scope out.", code=WRONG)
        path = machine.folder / client.project_file
    return Path(path)


def _manuals(options: argparse.Namespace, machine: Machine) -> str | None:
    if options.manuals is None:
        return None
    folder = str(_absolute(options.manuals, machine))
    if not os.path.isdir(folder):  # noqa: PTH112  # raises nothing
        raise Stop(f"--manuals: there is no folder {folder}; pass the folder that has your manuals.", code=WRONG)
    return folder


def _absolute(path: str, machine: Machine) -> PurePath:
    """Return a path from the root; a shell leaves `~` alone in `--file=~/x`."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return machine.home / path[2:]
    return machine.folder / path


def _existing(options: argparse.Namespace, machine: Machine, path: Path) -> Entry:
    """Return the entry of that name in the file; one that says nothing without it, or where the file is not read."""
    said = None
    with suppress(Unmergeable):
        said = as_table(document_of(ClientFile(path).text, CLIENTS[options.client], options.name).entry)
    return Entry(options.client, path, options.name, said or {}, machine, options.scope)


def _settings(said: Mapping[str, str | None], old: Entry, env: Mapping[str, str]) -> Settings:
    """Load the settings that the server will have; the variables of the old entry stay."""
    machine = old.machine
    kept = {name: value for name, value in old.variables().items() if name in old.given and not is_unfilled(value)}
    config, toolsets = (value and old.filled(value) for value in (said.get("--config"), said.get("--toolsets")))
    windows = machine.system == "windows"
    environ = {**machine.environ, **kept, **env}
    try:
        return configured(environ, config, toolsets=toolsets, home=machine.home, windows=windows)
    except Stop as stop:
        also = [f"Variables of {old.place} count as well; correct them there."] if kept else []
        raise Stop(*stop.sentences, *also, code=stop.code) from stop


def _merged(old: Entry, entry: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the new entry with what its owner added to the old one: further members, variables, names of variables.

    Only references that the client does not fill in give way, and `env`, which was asked for, comes first.
    """
    client = old.of
    passed, names = entry.get(client.variables, {}), entry.get(client.names or "", [])
    given = {
        name: value
        for name, value in old.given.items()
        if name not in (*passed, *names) or old.is_asked(name) or (value.strip() and not is_unfilled(old.filled(value)))
    }
    merged = {**old.said, **entry}
    merged.pop(client.variables, None)
    if variables := {**passed, **given, **env}:
        merged[client.variables] = variables
    if client.names is not None and old.named:
        merged[client.names] = [*old.said[client.names], *(name for name in names if name not in old.named)]
    return merged


# Showing and writing


def _change(options: argparse.Namespace, path: Path, entry: Mapping[str, Any] | None, alone: str = "") -> None:
    """Put the entry into the file, None takes it out; without --write or --remove only say what would be done.

    `alone` is the entry without what is in the file, to be shown where that is left alone.
    """
    client, name = CLIENTS[options.client], options.name
    try:
        file = ClientFile(path)
        document = document_of(file.text, client, name)
        if document.entry == entry:
            is_there = "is not in" if entry is None else "is already in"
            (say if options.write or options.remove else remark)(f"{name} {is_there} {path}; nothing was changed.")
            return
        text = document.removed() if entry is None else document.changed(entry)
        done = "removed from" if entry is None else "added in" if document.entry is None else "changed in"
        if not (options.write or options.remove):
            remark(f"This is for {path}. With --write, {name} is {done} it.")
            return
        kept = file.replace(text, private=client.writes_values)
    except Unmergeable as problem:
        if not (options.write or options.remove):
            remark(f"This is for {path}: {problem}.")
            return
        write(alone)
        raise Stop(f"{path} was left alone: {problem}. If {client.title} reads it, change it by hand.") from problem
    except (ValueError, RecursionError) as error:  # half characters, numbers without end
        raise Stop(f"{path} was left alone: the entry has a value that cannot be written back; correct it.") from error
    except OSError as error:
        denied = isinstance(error, PermissionError)
        cure = f"; make it and {path.parent} readable and writable for you" if denied else ""
        raise Stop(exhausted(error) or f"{path} cannot be written ({reason_of(error)}){cure}.") from error
    say(f"{name} was {done} {path}.")
    if kept is not None:
        say(f"Backup: {kept}")


def _show_for_goose(name: str, entry: Mapping[str, Any], path: Path, secrets: Sequence[str]) -> None:
    """Write the entry to stdout, and to stderr where it belongs and a link. JSON values are YAML, too."""
    members = {**entry, "name": name}
    lines = "".join(f"    {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in members.items())
    write(f"extensions:\n  {name}:\n{lines}")
    remark(f"Put this into {path}. If the file already has extensions, leave out the first line.")
    env = {**dict.fromkeys(secrets, "a secret"), **entry.get("envs", {})}
    # The link of Goose starts no other programs than uvx, npx and docker.
    link = [
        *(("cmd", "uvx"), *(("arg", word) for word in ("--from", SOURCE, NAME, *entry["args"]))),
        *(("id", name), ("name", name), ("timeout", entry["timeout"])),
        *(("env", f"{variable}={value}") for variable, value in env.items()),
    ]
    remark(f"Or open this link, which needs uv: goose://extension?{urlencode(link, quote_via=quote)}")


def _say_next_steps(options: argparse.Namespace, entry: Entry, settings: Settings) -> None:
    """Say what this command cannot do about an entry that is, or would be, in the file."""
    client, machine = entry.of, entry.machine
    for found in judge(entry, settings):
        if found.fix is not None and client.dialect is not None:
            remark(f"{found.found}; {found.fix}.")
    reaches = entry.variables()
    for variable in () if client.writes_values else secret_variables(settings.openai):
        if entry.has_value(variable):
            out = "To keep it out of the file, delete it there and run this again."
            remark(f"The entry holds the key itself. {out}")
        elif (
            not machine.environ.get(variable)
            and not entry.is_asked(variable)
            and is_unfilled(reaches.get(variable, "$X"))
        ):
            alone = "; the manuals work without a key" if settings.manuals.root else ""
            remark(f"{variable} is not set here{alone}. Set it where {client.title} is started, then restart it.")
    if options.client == "gemini" and entry.said.get("trust") is not True:
        remark("'gemini -p' offers no tools of an untrusted server. To trust this server, add --trust.")
    if options.scope == "project" and options.file is None:
        remark("The file contains paths of this machine: do not commit it.")
        if options.client == "claude-code":
            remark('When Claude Code asks about this server, choose "Use this MCP server": Enter alone declines.')
    if options.write:
        quoted = subprocess.list2cmdline if machine.system == "windows" else shlex.join
        remark(client.check.format(program=quoted(machine.command)))
