"""`openai-responses-mcp install CLIENT`: the entry of this server in a client's file: shown, written, removed."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import textwrap
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, urlencode

from responses_mcp.commands.clients.entries import (
    ASKED,
    Entry,
    Unreadable,
    document_of,
    find_entries,
    from_the_root,
    plugin_in,
    read_by_server,
    secret_variables,
)
from responses_mcp.commands.clients.files import (
    Change,
    ClientFile,
    NotUnderstood,
    Unmergeable,
    as_table,
    as_variable,
    variables_in,
)
from responses_mcp.commands.clients.known import CLIENTS, ENTRY, Client, Machine, Server, this_machine
from responses_mcp.commands.doctor.configuration import SOURCE, TO_KEEP, check_manuals, is_thrown_away
from responses_mcp.commands.doctor.entries import judge, verdict
from responses_mcp.commands.example_profiles import offer_profiles
from responses_mcp.commands.parser import SERVER, Parser, not_blank
from responses_mcp.commands.terminal import (
    NAME,
    WRONG,
    Stop,
    configured,
    parser_of,
    remark,
    run_command,
    say,
    write,
)
from responses_mcp.errors import exhausted
from responses_mcp.secrets import Redactor, is_unfilled
from responses_mcp.settings import Settings
from responses_mcp.settings.schema import READ_BY_SERVER
from responses_mcp.settings.setting import names_in

# Some clients allow 60 characters for this name and a tool's; in JavaScript an object has a `__proto__` already.
_NAME: Final = re.compile(r"(?!__proto__$)[A-Za-z0-9_-]{1,40}")
_KNOWN: Final = ", ".join(CLIENTS)
_OPTION: Final = re.compile(r"--?[a-z][a-z-]{0,30}")
_TOLD: Final = ("--config", "--toolsets")  # options whose values are no secrets
_HOLDS_KEY: Final = "A key that stood in the entry is in it, too; delete it when you do not need it."
_OFFERING: Final = ("MANUALS_ROOT", "MCP_TOOLSETS")
_LIMITING: Final = ("OPENAI_API_TIMEOUT", "SEARCH_TIMEOUT_MS", "SEARCH_MAX_ATTEMPTS")
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
        width=20,
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
    if options.client is None and not (options.list or (options.profiles and not options.remove)):
        parser.error(f"CLIENT is missing; it is one of {_KNOWN}")
    work = _list if options.list else _remove if options.remove else _install
    return run_command(lambda: work(options, machine or this_machine()))


def _install(options: argparse.Namespace, machine: Machine) -> None:
    if options.profiles:
        config = None if options.config is None else _absolute(options.config, machine)
        offer_profiles(machine, config, writing=options.write, shown=options.client is None)
    if options.client is None:
        return
    client = CLIENTS[options.client]
    if options.trust and not client.trust:
        raise Stop(f"{client.title} has no setting for trust; leave --trust out.", code=WRONG)
    manuals = None if options.manuals is None else str(_absolute(options.manuals, machine))
    if manuals is not None and not os.path.isdir(manuals):  # noqa: PTH112  # raises nothing
        raise Stop(f"--manuals: there is no folder {manuals}; name the one in which your manuals are.", code=WRONG)
    if manuals is not None and options.toolsets is not None and "manuals" not in names_in(options.toolsets):
        options.toolsets += ",manuals"
    path = Path(_file(options, client, machine))
    there = _there(options, machine, path)
    if there is None and not _NAME.fullmatch(options.name):
        raise Stop(f"--name: a new entry needs 1 to 40 letters, digits, - or _, got {options.name!r}.", code=WRONG)
    kept = {} if there is None else {name: said for name, said in there.options_written.items() if name in SERVER}
    settings = _settings(options, machine, there, manuals)
    server = _server(options, machine, settings, manuals, kept)
    in_entry = () if client.writes_values or there is None else _keys_in(there.given, server.secrets)
    # A key in the entry works; a reference to a variable that is not set would not.
    working = [name for name in in_entry if not machine.environ.get(name)]
    if there is not None:  # a reference of another form that has a value works, too
        working += [name for name in server.secrets if there.fills_in(name)]
    if there is not None and client.fills_places:  # so would one that hides what the client itself knows
        working += [name for name in server.secrets if not machine.environ.get(name) and there.elsewhere(name)]
    entry = client.entry(replace(server, secrets=tuple(name for name in server.secrets if name not in working)))
    redact = Redactor(settings.openai.secrets)
    replaced = [name for name in in_entry if name not in working]
    if there is not None and client.members.names is not None:  # it fills in nothing, and these would win
        replaced += _unfilled_in(there.given, server.secrets)
    wanted = _Wanted(client, path, options.name, entry, replaced)
    if client.dialect is None:
        put = _show_for_goose(client, server, entry, path, server.command[len(machine.command) :])
        if options.write:
            raise Stop(f"{path} was left alone: it is YAML, which this program does not change.")
    elif options.write:
        put = _write(wanted, redact, old_secret=there is not None and there.holds_secret)
    else:
        put = _show(wanted, redact)
    if is_thrown_away(Path(machine.command[0]).resolve()):
        remark(f"{machine.command[0]} is in a folder that may be emptied at any time; {TO_KEEP}, and run this again.")
    for finding in () if manuals is None else check_manuals(manuals):
        if finding.fix is not None:
            remark(f"{finding.found}; {finding.fix}.")
    if options.client == "claude-code" and (plugin := plugin_in(machine)):
        remark(
            f"{client.title} has the plugin {plugin[0]} too, so tools appear twice. "
            f"To have one of them: claude plugin disable {plugin[0]}"
        )
    for other in _others(options, machine, path):
        first = ", which comes before this one" if other.scope == "local" and other.name == options.name else ""
        first += ", which starts the older program" if other.is_older else ""
        remark(f"{client.title} also has {other.place}{first}. To take it out: {other.removal}")
    _say_next_steps(options, machine, settings, path, put)


def _remove(options: argparse.Namespace, machine: Machine) -> None:
    client, name = CLIENTS[options.client], options.name
    path = Path(_file(options, client, machine))
    there = _there(options, machine, path)
    with _left_alone(path, f"If {client.title} reads that file, take the entry {name} out of it yourself."):
        file = ClientFile(path, mark=client.reads_mark)
        document = document_of(file.text, client, name)
        if document.entry is None:
            say(f"{name} is not in {path}; nothing was changed.")
        else:
            change = document.removed()
            kept = file.replace(change.text)
            say(f"{name} was removed from {path}.")
            _say_kept(change, kept, there is not None and there.holds_secret)
    for other in _others(options, machine, path):
        remark(f"{client.title} still has {other.place}. To take it out: {other.removal}")


def _others(options: argparse.Namespace, machine: Machine, path: Path) -> Iterator[Entry]:
    """Yield the entries of this server that a client has besides the one that the command is about."""
    for found in find_entries(machine):
        if isinstance(found, Entry) and found.client == options.client:
            here = os.path.realpath(found.file) == os.path.realpath(path)
            if not here or found.name != options.name or found.scope == "local":
                yield found


def _list(options: argparse.Namespace, machine: Machine) -> None:
    wanted = [options.client] if options.client else list(CLIENTS)
    having: set[str] = set()
    if "claude-code" in wanted and (plugin := plugin_in(machine)):
        having.add("claude-code")
        say(f"{'claude-code':<15} plugin {plugin[0]} is turned on in {plugin[1]}")
    for found in find_entries(machine):
        if found.client not in wanted:
            continue
        having.add(found.client)
        if isinstance(found, Unreadable):
            say(f"{found.client:<15} {found.file} was not read: {found.why}")
            continue
        _, _, told, fix = verdict(found)
        say(f"{found.client:<15} {told}{f'; {fix}' if fix else ''}")
    unread = [client for client in wanted if CLIENTS[client].dialect is None]
    without = [client for client in wanted if client not in (*having, *unread)]
    for told, clients in (("no entry", without), ("not read", unread)):
        if clients:
            say(f"{told:<15} {', '.join(clients)}")


def _there(options: argparse.Namespace, machine: Machine, path: Path) -> Entry | None:
    """Return the entry of that name that is in the file, None without one of ours, or where it cannot be read."""
    with suppress(Unmergeable, OSError):
        client = CLIENTS[options.client]
        entry = as_table(document_of(ClientFile(path, mark=client.reads_mark).text, client, options.name).entry)
        if entry is not None:
            return Entry(options.client, path, options.name, entry, machine, options.scope)
    return None


def _settings(options: argparse.Namespace, machine: Machine, there: Entry | None, manuals: str | None) -> Settings:
    """Load the settings that the server will have with this entry, which keeps what is `there` already."""
    client = CLIENTS[options.client]
    kept = {} if there is None else there.variables()
    if not client.inherits and client.members.names is None:  # the entry will have what is set here instead
        kept |= dict(read_by_server(machine.environ))
    # A client whose own limit is fixed gets one for the server, whatever stood there.
    names = _OFFERING if client.limit is None else (*_OFFERING, *_LIMITING)
    environ = dict(machine.environ) | {name: kept[name] for name in names if not is_unfilled(kept.get(name, "$x"))}
    if manuals is not None:
        environ["MANUALS_ROOT"] = manuals
    windows = machine.system == "windows"
    said = {} if there is None else there.options
    config = said.get("--config") if options.config is None else options.config
    toolsets = said.get("--toolsets") if options.toolsets is None else options.toolsets
    try:
        return configured(environ, config, toolsets=toolsets, home=machine.home, windows=windows)
    except Stop as stop:
        if any("manuals.root to be set" in sentence for sentence in stop.sentences):
            raise Stop(*stop.sentences, "Here --manuals DIR names that folder.", code=WRONG) from stop
        if there is not None and options.config is None and config is not None:
            told = [sentence.replace("(from --config)", f"(from {there.place})") for sentence in stop.sentences]
            raise Stop(*told, "To name another there, add --config PATH.", code=WRONG) from stop
        raise


def _server(
    options: argparse.Namespace,
    machine: Machine,
    settings: Settings,
    manuals: str | None,
    kept: Mapping[str, str | None],
) -> Server:
    given: dict[str, str | None] = {"--stdio": None}
    if options.config is not None:
        given["--config"] = str(_absolute(options.config, machine))
    if options.toolsets is not None:
        given["--toolsets"] = options.toolsets
    arguments = [word for pair in {**kept, **given}.items() for word in pair if word is not None]
    secrets = secret_variables(settings.openai)
    env = {} if manuals is None else {"MANUALS_ROOT": manuals}
    search = settings.search.timeout_ms * settings.search.max_attempts
    return Server(
        command=(*machine.command, *arguments),
        secrets=secrets,
        passed={
            name: from_the_root(name, value, machine)
            for name, value in read_by_server(machine.environ)
            if name not in (*secrets, *env)
        },
        trusted=options.trust,
        env=env,
        answer_ms=settings.request.timeout_ms,
        search_ms=search if "search" in settings.toolsets else 0,
        name=options.name,
    )


def _keys_in(variables: Mapping[str, Any], secrets: Iterable[str]) -> tuple[str, ...]:
    """Return the names of those secrets whose values stand in an entry, and no references to them."""
    values = {name: variables.get(name) for name in secrets}
    return tuple(
        name for name, value in values.items() if isinstance(value, str) and value.strip() and not is_unfilled(value)
    )


def _unfilled_in(variables: Mapping[str, Any], secrets: Collection[str]) -> Iterator[str]:
    """Yield those of the server's variables that an entry sets to a placeholder, and keys that it leaves empty."""
    for name in (*secrets, *READ_BY_SERVER):
        value = variables.get(name)
        if isinstance(value, str) and (is_unfilled(value) or (name in secrets and not value.strip())):
            yield name


def _file(options: argparse.Namespace, client: Client, machine: Machine) -> PurePath:
    if options.file is not None:
        path = _absolute(options.file, machine)
        if not os.path.isdir(path.parent):  # noqa: PTH112  # raises nothing
            raise Stop(f"--file: there is no folder {path.parent}; correct the path.", code=WRONG)
        if not path.suffix and not os.path.lexists(path):
            ending = client.user_file(machine).suffix
            raise Stop(f"--file: there is no file {path}; a new one needs a name that ends in {ending}.", code=WRONG)
        return path
    if options.scope == "user":
        return client.user_file(machine)
    if client.project_file is None:
        raise Stop(f"{client.title} has no file for a project; leave --scope out.", code=WRONG)
    return machine.folder / client.project_file


def _absolute(path: str, machine: Machine) -> PurePath:
    """Return a path from the root; a shell leaves `~` alone in `--file=~/x`."""
    if path == "~" or path.startswith(("~/", "~\\")):
        return machine.home / path[2:]
    return machine.folder / path


# Showing and writing


class _Wanted(NamedTuple):
    """The entry that a client's file is to have; values of the variables that are `replaced` by names leave it."""

    client: Client
    path: Path
    name: str
    entry: Mapping[str, Any]
    replaced: Collection[str]

    @property
    def text(self) -> str:
        """A file with this entry alone."""
        return document_of("", self.client, self.name).changed(self.entry).text

    def plan(self) -> tuple[ClientFile, Any, dict[str, Any], Change | None]:
        """Return the file, its entry before and after, and the change; None for that if the entry is there already."""
        file = ClientFile(self.path, mark=self.client.reads_mark)
        document = document_of(file.text, self.client, self.name)
        new = _merged_entry(self.client, document.entry, self.entry, self.replaced)
        return file, document.entry, new, None if document.entry == new else document.changed(new)


def _show(wanted: _Wanted, redact: Redactor) -> Mapping[str, Any]:
    """Write the entry to stdout, and to stderr what --write would do; return what would then be there."""
    path = wanted.path
    write(wanted.text)
    try:
        _, old, new, change = wanted.plan()
    except Unmergeable as problem:
        remark(f"This is for {path}, but {problem}.")
        return wanted.entry
    except OSError as error:
        remark(f"This is for {path}, which cannot be read ({_reason(error)}).")
        return wanted.entry
    if old is None:
        remark(f"This is for {path}. With --write, this command puts it there.")
    elif change is None:
        remark(f"{path} has this entry already.")
    else:
        remark(f"{path} has another entry of this name. With --write, this command changes it:")
        for line in _difference(wanted.client, old, new, wanted.entry):
            remark(redact(line))
        if change.drops_comments:
            remark("The comments inside it would be left out; a copy keeps them.")
    return new


def _show_for_goose(
    client: Client, server: Server, entry: Mapping[str, Any], path: Path, arguments: Sequence[str]
) -> Mapping[str, Any]:
    """Write the entry to stdout, and to stderr where it belongs and a link; return it. JSON values are YAML, too."""
    members = "".join(f"    {name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in entry.items())
    write(f"{client.container}:\n  {server.name}:\n{members}")
    remark(f"Put this into {path}; if {client.container} is there already, only the lines below the first.")
    # The link of Goose starts no other programs than uvx, npx and docker.
    link = [
        *(("cmd", "uvx"), *(("arg", word) for word in ("--from", SOURCE, NAME, *arguments))),
        *(("id", server.name), ("name", server.name), ("timeout", server.client_limit)),
        *(("env", f"{name}={server.env.get(name, 'a secret')}") for name in (*server.secrets, *server.env)),
    ]
    remark(f"Or open this link, which needs uv: goose://extension?{urlencode(link, quote_via=quote)}")
    return entry


def _write(wanted: _Wanted, redact: Redactor, *, old_secret: bool) -> Mapping[str, Any]:
    """Put the entry into the file, say what was changed, and return what is there now."""
    client, path, name, entry, _ = wanted
    with _left_alone(path, f"If {client.title} reads that file, put the entry above into it yourself."):
        try:
            file, old, new, change = wanted.plan()
        except NotUnderstood:
            write(wanted.text)
            raise
        if change is None:
            say(f"{name} is in {path} already; nothing was changed.")
            return new
        kept = file.replace(change.text, private=client.writes_values)
        if old is not None:
            for line in _difference(client, old, new, entry):
                say(redact(line))
        say(f"{name} was {'changed' if old is not None else 'added'} in {path}.")
        _say_kept(change, kept, old_secret)
    return new


def _say_kept(change: Change, kept: Path | None, old_secret: bool) -> None:
    if kept is not None:
        comments = "The comments that were inside it are only in the" if change.drops_comments else "The"
        say(f"{comments} file as it was: {kept}")
        if old_secret:
            say(_HOLDS_KEY)


@contextmanager
def _left_alone(path: Path, by_hand: str) -> Generator[None]:
    """Say of a file that cannot be changed why not; `by_hand` is what to do about one that its client may read."""
    try:
        yield
    except NotUnderstood as problem:
        raise Stop(f"{path} was left alone: {problem}.", f"{by_hand} Otherwise correct it.") from problem
    except Unmergeable as problem:
        raise Stop(f"{path} was left alone: {problem}.") from problem
    except UnicodeEncodeError as error:
        raise Stop(f"{path} was left alone: the entry would hold a path that is not UTF-8.") from error
    except OSError as error:
        denied = isinstance(error, PermissionError)
        cure = f"; make it and {path.parent} readable and writable for you" if denied else ""
        raise Stop(exhausted(error) or f"{path} cannot be read or written ({_reason(error)}){cure}.") from error


def _merged_entry(client: Client, old: Any, entry: Mapping[str, Any], replaced: Collection[str]) -> dict[str, Any]:
    """Return the entry with what its owner added to the old one: further members, variables, names of variables.

    Values of the variables that are `replaced` by names or references are left out.
    """
    before, variables, names = as_table(old), client.members.variables, client.members.names
    if before is None or client.members.command not in before:
        return dict(entry)
    # For variables that are no table the client refuses the entry, and for a value that is no text.
    before = {name: value for name, value in before.items() if name != variables or as_table(value) is not None}
    merged = {**before, **entry}
    if (given := as_table(before.get(variables))) is not None:
        texts = {name: as_variable(value) for name, value in given.items() if name not in replaced}
        stays = {name: value for name, value in texts.items() if isinstance(value, str)}
        asked = {name: value for name, value in stays.items() if ASKED in value}
        merged[variables] = {**stays, **entry.get(variables, {}), **asked}
        if given and not merged[variables]:
            del merged[variables]
    if names is not None and isinstance(before.get(names), list):
        there = variables_in(before[names])
        merged[names] = [*before[names], *(each for each in entry[names] if each not in there)]
    limit, _ = client.limit or ("", 1)
    waits = before.get(limit)
    if isinstance(waits, int | float) and waits > entry.get(limit, waits):
        merged[limit] = waits  # what makes the server take longer may not be set here, and an answer would be lost
    return merged


def _difference(client: Client, old: Any, new: Any, ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield what changes, a line each, without what may be a key: variables, headers, URLs, arguments of others."""
    before, after, shown = (dict(_leaves(each)) for each in (old, new, ours))
    for path in {**before, **after}:
        if path in before and path in after and before[path] == after[path]:
            continue
        for mark, side in (("-", before), ("+", after)):
            if path in side:
                program = path == client.members.command
                folder = path == f"{client.members.variables}.MANUALS_ROOT"
                known = side[path] if folder else shown.get(path)
                if path == client.members.names:
                    known = [*variables_in(known), *READ_BY_SERVER]
                yield f"  {mark} {path or 'all of it'}: {_shown(side[path], known, program=program)}"


def _shown(value: Any, ours: Any, *, program: bool = False) -> str:
    """Return a value as JSON; of one that is not ours only what cannot be a key: a program, a number, an option."""
    if isinstance(value, list) and isinstance(ours, list):
        pairs = pairwise([None, *cast(Iterable[Any], value)])
        shown = (
            _shown(each, each if each in ours or before in _TOLD else None, program=program and before is None)
            for before, each in pairs
        )
        return f"[{', '.join(shown)}]"
    harmless = isinstance(value, int | float) and ours is not None
    if isinstance(value, str):
        harmless = "=" not in value if program else _OPTION.fullmatch(value) is not None
    if value == ours or harmless:
        return json.dumps(value, ensure_ascii=False)
    return "(not shown)"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    table = as_table(value)
    if table:
        for key, each in table.items():
            yield from _leaves(each, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _say_next_steps(
    options: argparse.Namespace, machine: Machine, settings: Settings, path: Path, put: Mapping[str, Any]
) -> None:
    """Say what this command cannot do; `put` is the entry that is or would be there."""
    client = CLIENTS[options.client]
    secrets = () if client.writes_values else secret_variables(settings.openai)
    written = Entry(options.client, path, options.name, put, machine, options.scope)
    for found in judge(written, settings):
        if found.fix is not None:
            remark(f"{found.found}; {found.fix}.")
    in_entry = _keys_in(written.given, secrets)
    for variable in secrets:
        if variable in in_entry:
            remark(
                f"The key stands in the entry itself. To keep it out of the file, set {variable} here, "
                "and run this again."
            )
        elif not (machine.environ.get(variable) or written.fills_in(variable) or written.elsewhere(variable)):
            alone = "; the manuals work without it" if settings.manuals.root else ""
            remark(f"{variable} is not set here{alone}. Set it where {client.title} is started, then restart it.")
    if gone := [name for name in READ_BY_SERVER if name in _named_in(put, client) and not machine.environ.get(name)]:
        remark(
            f"In the entry but not set here: {', '.join(sorted(gone))}. That is fine if the client sets it. "
            f'To drop it: "{written.removal}", then "{written.install("--write")}".'
        )
    if client.untrusted and not put.items() >= client.trust.items():
        remark(client.untrusted)
    if machine.command[1:] and not _is_installed():
        remark("This package is not installed, so the entry works only where it can be imported; install it first.")
    if options.scope == "project" and options.file is None:
        remark(
            f"The path in it is that of this machine. {'' if written.refusal else client.project_note or ''}".strip()
        )
    if options.write:
        quoted = subprocess.list2cmdline if machine.system == "windows" else shlex.join
        remark(client.check.format(program=quoted(machine.command)))


def _named_in(entry: Mapping[str, Any], client: Client) -> set[str]:
    """Return the names of the variables that an entry passes on without their values."""
    variables = as_table(entry.get(client.members.variables)) or {}
    reference = client.reference or ""
    named = {name for name, value in variables.items() if value == reference.replace("NAME", name)}
    return {*named, *variables_in(entry.get(client.members.names or ""))}


def _is_installed() -> bool:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # slow, and seldom needed

    try:
        version(NAME)
    except PackageNotFoundError:
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
