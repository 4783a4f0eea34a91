"""`openai-responses-mcp install CLIENT`: the entry of this server for a client's file, shown or merged into it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, cast

from responses_mcp.commands.client_files import Change, ClientFile, Unmergeable, as_table
from responses_mcp.commands.clients import CLIENTS, Client, Machine, Server, command_of, this_executable
from responses_mcp.commands.json_merge import JsonDocument
from responses_mcp.commands.terminal import NAME, WRONG, Stop, configured, parser_of, remark, run_command, say, write
from responses_mcp.commands.toml_merge import TomlDocument
from responses_mcp.errors import exhausted
from responses_mcp.redaction import Redactor
from responses_mcp.settings import Settings
from responses_mcp.settings.files import absolute

_ENTRY: Final = "openai-responses"
# Some clients allow 60 characters for this name and a tool's; in JavaScript an object has a `__proto__` already.
_NAME: Final = re.compile(r"(?!__proto__$)[A-Za-z0-9_-]{1,40}")
_OPTION: Final = re.compile(r"--?[a-z][a-z-]{0,30}")
_EXAMPLES: Final = """\
examples:
  openai-responses-mcp install claude-code
  openai-responses-mcp install claude-code --write
  openai-responses-mcp install codex --write --manuals-root ~/manuals
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    parser = parser_of(
        "install",
        usage="%(prog)s CLIENT [--write] [options]",
        description="Show the entry of this server for a client's configuration, or put it there.\n"
        f"CLIENT is one of {', '.join(CLIENTS)}.\n"
        "Keys are passed on by name, and never written.",
        epilog=_EXAMPLES,
        width=22,
    )
    parser.add_argument("client", metavar="CLIENT", choices=tuple(CLIENTS), help="whose file")
    parser.add_argument("--write", action="store_true", help="change the file; all else in it stays, with a backup")
    parser.add_argument("--name", metavar="NAME", type=_name, default=_ENTRY, help=f"of the entry (default {_ENTRY})")
    parser.add_argument(
        "--scope",
        metavar="SCOPE",
        choices=("user", "project"),
        default="user",
        help="user (default), or project: a file in this folder",
    )
    parser.add_argument("--toolsets", metavar="NAMES", help="toolsets to offer, with commas between")
    parser.add_argument("--manuals-root", metavar="DIR", help="folder of manuals to offer")
    parser.add_argument("--file", metavar="PATH", help="the client's file, if it is not in the usual place")
    parser.add_argument("--config", metavar="PATH", help="YAML file that the server is to read")
    return parser


def run(argv: Sequence[str], *, machine: Machine | None = None) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_args(argv)
    return run_command(lambda: _install(options, machine or this_machine()))


def this_machine() -> Machine:
    """Return where this program runs."""
    windows = os.name == "nt"
    variable = "USERPROFILE" if windows else "HOME"
    try:
        home = Path(os.environ.get(variable) or Path.home())
    except RuntimeError as error:
        raise Stop(f"There is no home folder; set {variable}.") from error
    return Machine(
        system="windows" if windows else "mac" if sys.platform == "darwin" else "linux",
        home=home,
        folder=absolute(Path()),
        environ=os.environ,
        command=command_of(this_executable()),
    )


def _install(options: argparse.Namespace, machine: Machine) -> None:
    client = CLIENTS[options.client]
    settings = _settings(options, machine)
    entry = client.entry(_server(options, machine, settings))
    path = Path(_file(options, client, machine))
    redact = Redactor([settings.openai.api_key, *settings.openai.headers.values()])
    if options.write:
        _write(client, options.name, entry, path, redact)
    else:
        _show(client, options.name, entry, path, redact)
    _say_next_steps(options, client, machine, settings, path)


def _settings(options: argparse.Namespace, machine: Machine) -> Settings:
    """Load the settings that the server will have with this entry."""
    environ = dict(machine.environ)
    if options.manuals_root is not None:
        environ["MANUALS_ROOT"] = options.manuals_root
    windows = machine.system == "windows"
    return configured(environ, options.config, toolsets=options.toolsets, home=machine.home, windows=windows)


def _server(options: argparse.Namespace, machine: Machine, settings: Settings) -> Server:
    arguments = ["--stdio"]
    if options.config is not None:
        arguments += ["--config", str(_absolute(options.config, machine))]
    if options.toolsets is not None:
        arguments += ["--toolsets", options.toolsets]
    root = settings.manuals.root if options.manuals_root is not None else None
    search = settings.search.timeout_ms * settings.search.max_attempts
    return Server(
        command=(*machine.command, *arguments),
        secrets=_secrets(settings),
        env={} if root is None else {"MANUALS_ROOT": root},
        answer_ms=settings.request.timeout_ms,
        search_ms=search if "search" in settings.toolsets else 0,
    )


def _secrets(settings: Settings) -> tuple[str, ...]:
    """Return the names of the variables that hold secrets."""
    return (settings.openai.api_key_env, *settings.openai.headers_env.values())


def _file(options: argparse.Namespace, client: Client, machine: Machine) -> PurePath:
    if options.file is not None:
        return _absolute(options.file, machine)
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


def _show(client: Client, name: str, entry: Mapping[str, Any], path: Path, redact: Redactor) -> None:
    write(_document("", client, name).changed(entry).text)
    try:
        _, old, new, change = _planned(client, name, entry, path)
    except Unmergeable as problem:
        remark(f"This is for {path}, but {problem}.")
    except OSError as error:
        remark(f"This is for {path}, which cannot be read ({_reason(error)}).")
    else:
        if old is None:
            remark(f"This is for {path}. With --write, this command puts it there.")
        elif change is None:
            remark(f"{path} has this entry already.")
        else:
            remark(f"{path} has another entry of this name. With --write, this command changes it:")
            for line in _difference(old, new, entry):
                remark(redact(line))
            if change.drops_comments:
                remark("The comments inside it would be left out; a copy keeps them.")


def _write(client: Client, name: str, entry: Mapping[str, Any], path: Path, redact: Redactor) -> None:
    try:
        file, old, new, change = _planned(client, name, entry, path)
        if change is None:
            say(f"{name} is in {path} already; nothing was changed.")
            return
        kept = file.replace(change.text)
    except Unmergeable as problem:
        raise Stop(f"{path} was left alone: {problem}.") from problem
    except UnicodeEncodeError as error:
        raise Stop(f"{path} was left alone: the entry would hold a path that is not UTF-8.") from error
    except OSError as error:
        raise Stop(exhausted(error) or f"{path} cannot be read or written ({_reason(error)}).") from error
    if old is not None:
        for line in _difference(old, new, entry):
            say(redact(line))
    say(f"{name} was {'changed' if old is not None else 'added'} in {path}.")
    if kept is not None:
        comments = "The comments that were inside it are only in the" if change.drops_comments else "The"
        say(f"{comments} file as it was: {kept}")


def _planned(
    client: Client, name: str, entry: Mapping[str, Any], path: Path
) -> tuple[ClientFile, Any, dict[str, Any], Change | None]:
    """Return the file, its entry before and after, and the change; None for that if the entry is there already."""
    file = ClientFile(path)
    document = _document(file.text, client, name)
    new = _merged_entry(document.entry, entry)
    return file, document.entry, new, None if document.entry == new else document.changed(new)


def _document(text: str, client: Client, name: str) -> JsonDocument | TomlDocument:
    if client.dialect == "toml":
        return TomlDocument(text, container=client.container, name=name)
    return JsonDocument(text, container=client.container, name=name, dialect=client.dialect)


def _merged_entry(old: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with what its owner added to the old one: further members, variables, names of variables."""
    before = as_table(old)
    if before is None or "command" not in before:
        return dict(entry)
    merged = {**before, **entry}
    if "env" in before and "env" in entry:
        merged["env"] = {**(as_table(before["env"]) or {}), **entry["env"]}
    names = before.get("env_vars")
    if isinstance(names, list) and "env_vars" in entry:
        merged["env_vars"] = list(entry["env_vars"])
        merged["env_vars"] += [each for each in cast(Iterable[Any], names) if each not in entry["env_vars"]]
    return merged


def _difference(old: Any, new: Any, ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield what changes, a line each, without what may be a key: variables, headers, URLs, arguments of others."""
    before, after, shown = (dict(_leaves(each)) for each in (old, new, ours))
    for path in {**before, **after}:
        if path in before and path in after and before[path] == after[path]:
            continue
        for mark, side in (("-", before), ("+", after)):
            if path in side:
                yield f"  {mark} {path or 'all of it'}: {_shown(path, side[path], shown.get(path))}"


def _shown(path: str, value: Any, ours: Any) -> str:
    """Return a value as JSON; of one that is not ours only what cannot be a key: a program, a number, an option."""
    if isinstance(value, list) and isinstance(ours, list):
        items = cast(Iterable[Any], value)
        return f"[{', '.join(_shown(path, each, each if each in ours else None) for each in items)}]"
    harmless = isinstance(value, int | float) and ours is not None
    if isinstance(value, str):
        harmless = "=" not in value if path == "command" else _OPTION.fullmatch(value) is not None
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
    options: argparse.Namespace, client: Client, machine: Machine, settings: Settings, path: Path
) -> None:
    """Say what this command cannot do."""
    for variable in _secrets(settings):
        if client.reference is None and client.dialect != "toml":
            remark(
                f'{client.title} fills in no variables: add "{variable}" with its value to "env" of this entry '
                f"in {path} yourself, and let nobody else read that file."
            )
        elif not machine.environ.get(variable):
            remark(f"{variable} is not set here; set it where {client.title} is started.")
    if machine.command[1:] and not _is_installed():
        remark("This package is not installed, so the entry works only where it can be imported; install it first.")
    if options.scope == "project" and options.file is None:
        remark(f"The path in it is that of this machine. {client.project_note or ''}".strip())
    if options.write:
        remark(client.next_step)


def _is_installed() -> bool:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # slow, and seldom needed

    try:
        version(NAME)
    except PackageNotFoundError:
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be 1 to 40 letters, digits, - or _, got {text!r}")
    return text
