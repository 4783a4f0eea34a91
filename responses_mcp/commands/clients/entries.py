"""The entries of this server in the files of clients: found there, with what each of them starts and passes on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from responses_mcp.commands.clients.codex_table import CodexTable
from responses_mcp.commands.clients.files import ClientFile, Unmergeable, as_table, as_variable, texts_in, variables_in
from responses_mcp.commands.clients.json_merge import JsonDocument
from responses_mcp.commands.clients.known import CLIENTS, ENTRY, Client, Machine, claude_code_settings
from responses_mcp.commands.parser import OF_SECRET, OF_SERVER, SERVER
from responses_mcp.errors import program
from responses_mcp.secrets import Redactor, is_unfilled
from responses_mcp.settings.load import LoadedSettings, load_settings
from responses_mcp.settings.model import OpenAISettings
from responses_mcp.settings.schema import PATHS, READ_BY_SERVER

_OURS: Final = re.compile(r"(?i)openai[-_]responses[-_]mcp(?:\.(?:exe|cmd|git))?(?:\[[^]]*\])?(?:[@=<>!~].*)?")
_LINE: Final = re.compile(r"[^/\\~.$:\s]+\s|[^\s]+\s+[-/\\~.$]")  # begins several words, for a shell
_NODE: Final = re.compile(r"(?:npx|bunx|node)(?:\.exe|\.cmd)?")
_RUNNER: Final = re.compile(r"(?:uvx?|pipx|env|cmd|pyw?|python[\d.]*|npx|bunx|node)(?:\.exe|\.cmd)?")
_BETWEEN: Final = frozenset({"run", "tool", "/c", "/C", "--", "-y", "--yes", "-q", "--quiet", "-I", "-u", "--no-cache"})
_WITH_VALUE: Final = frozenset({"--from", "--with", "--python", "-p", "--directory", "--project", "--spec"})
_SETS: Final = re.compile(r"--?[a-z-]+=|[A-Za-z_]\w*=")
_VALUE: Final = re.compile(r'"?[ \t]{0,9}[=:][ \t]{0,9}"?[^\s",]')  # behind a variable's name, in a file of them
_WORKSPACE: Final = "${workspaceFolder"  # } or :NAME}
_WITH_LOCAL: Final = "claude-code"
_REFUSED: Final = "disabledMcpjsonServers"
_OF_OTHERS_TOO: Final = frozenset({"DEBUG"})  # set for many programs, and the log would hold questions and answers
# What a client that passes little on gives to every server.
_ALWAYS: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_ON_WINDOWS: Final = ("APPDATA", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE")

ASKED: Final = "${input:"
"""Begins what VS Code asks its user for."""


def starting_words(words: Sequence[str]) -> int | None:
    """Return how many words of a command start this program: 4 for `uvx --from X openai-responses-mcp --stdio`.

    None if the command is not known to start it. Servers of others may have folders and addresses of this name among
    their arguments, so every word before the program has to be known.
    """
    at = 0
    while at < len(words):
        word = words[at]
        path = re.sub(r"[/\\]dist[/\\]index\.js$", "", word).rstrip("/\\")
        name = re.split(r"[/\\]", path)[-1]
        if at and word == "-m":
            return at + 2 if words[at + 1 : at + 2] == ["responses_mcp"] else None
        if at and word in _WITH_VALUE:
            at += 2
        elif (at and (word in _BETWEEN or _SETS.match(word))) or _RUNNER.fullmatch(name):
            at += 1
        else:
            is_ours = _OURS.fullmatch(name) and not (word.startswith(("@", "-")) or _LINE.match(word))
            return at + 1 if is_ours else None
    return None


class Entry(NamedTuple):
    """An entry of this server: whose it is, the file that it stands in, its name, what it says, and where that is.

    `scope` is project for a file of the working directory, which somebody else may have written, and local for what
    Claude Code keeps in the user's file for this project alone; that hides others of its name, which are `hidden`.
    """

    client: str
    file: Path
    name: str
    said: Mapping[str, Any]
    machine: Machine
    scope: Literal["user", "project", "local"]
    hidden: bool = False

    @property
    def place(self) -> str:
        """Its name and where it stands, in words."""
        return f"{self.name} in {self.file}{', for this project alone' if self.scope == 'local' else ''}"

    def install(self, *words: str) -> str:
        """Return the command of `install` that is about this entry and no other."""
        scope = ("--scope", "project") if self.scope == "project" else ()
        name = () if self.name == ENTRY else ("--name", self.name)
        return program("install", self.client, *scope, *name, *words)

    @property
    def removal(self) -> str:
        """The command that takes it out."""
        if self.scope == "local":
            return f"claude mcp remove {shlex.quote(self.name)} -s local"
        return self.install("--remove")

    @property
    def renewal(self) -> str:
        """What puts it right, in words; a local one is not written, so that of the user takes its place."""
        again = self.install("--write")
        return f'run "{self.removal}", then "{again}"' if self.scope == "local" else f'run "{again}" again'

    @property
    def _written(self) -> list[str]:
        return CLIENTS[self.client].command_in(self.said)

    @property
    def command(self) -> list[str]:
        """What the entry starts, with its arguments, as the client fills them in."""
        return [self._filled(word) for word in self._written]

    @property
    def is_ours(self) -> bool:
        """Whether it starts this server, or has its name and something to start."""
        is_remote = not self.command and any(name in self.said for name in ("url", "httpUrl", "serverUrl"))
        return starting_words(self.command) is not None or (self.name == ENTRY and not is_remote)

    @property
    def is_older(self) -> bool:
        """Whether it starts the older program of this name, which runs on Node."""
        before = self.command[: starting_words(self.command)]
        by_node = any(_NODE.fullmatch(re.split(r"[/\\]", word)[-1]) for word in before)
        # What npm installed has our name, too, and leads to a file of JavaScript.
        return starting_words(self.command) is not None and (
            by_node or os.path.realpath(self.program() or "").endswith(".js")
        )

    @property
    def fault(self) -> str | None:
        """Why its client does not accept it, in words; None if it does."""
        members = CLIENTS[self.client].members
        command, arguments = self.said.get(members.command), self.said.get(members.arguments or "", [])
        if not command:
            return f"it has no {members.command}"
        if members.arguments is None and command != texts_in(command):
            return f"its {members.command} is no list of texts"
        if members.arguments is not None and not isinstance(command, str):
            return f"its {members.command} is no text"
        if arguments != texts_in(arguments):
            return f"its {members.arguments} is no list of texts"
        if self.said.get(members.variables, self.given) != self.given:
            return f"its {members.variables} is no table of variables"
        return next(
            (f"its {name} is no text" for name, value in self.given.items() if not isinstance(value, str)), None
        )

    def _options(self, words: Sequence[str]) -> dict[str, str | None]:
        before = starting_words(self.command)
        if before is None:  # ours by its name alone: behind a container, or mistyped
            before = next((at for at, word in enumerate(words) if word.partition("=")[0] in OF_SERVER), len(words))
        found: dict[str, str | None] = {}
        last = ""
        for word in words[before:]:
            if word.startswith("-"):
                last, equals, value = word.partition("=")
                found[last] = value if equals else None
            elif found.get(last, "") is None:
                found[last] = word
            else:
                found[word] = None
        return found

    @property
    def options(self) -> dict[str, str | None]:
        """What it says to this server: options with their values, None for one without, in order; also other words."""
        return self._options(self.command)

    @property
    def options_written(self) -> dict[str, str | None]:
        """The same as the entry has it, with nothing filled in, which may be a secret."""
        return self._options(self._written)

    @property
    def unknown(self) -> list[str]:
        """Which of `options_written` the server does not have, so that it does not start, or does something else."""
        known = starting_words(self.command) is not None
        return [option for option in self.options_written if option not in SERVER] if known else []

    @property
    def may_ask(self) -> bool:
        """Whether starting it may ask a question, which costs, in place of serving."""
        serves = any("--stdio" in word.split() for word in self.command)
        return bool(self.unknown) or (starting_words(self.command) is None and not serves)

    @property
    def given(self) -> Mapping[str, Any]:
        """The variables that the entry sets, as it says them."""
        return as_table(self.said.get(CLIENTS[self.client].members.variables)) or {}

    def by_hand(self, names: Sequence[str]) -> str:
        """Say how variables get into it whose values are written by its owner alone."""
        variables = CLIENTS[self.client].members.variables
        if self.given:
            values = "its value" if len(names) == 1 else "their values"
            return f'add {", ".join(map(json.dumps, names))} with {values} to "{variables}" of that entry'
        inside = ", ".join(f'"{name}": "ITS VALUE"' for name in names)
        return f'add "{variables}": {{{inside}}} to that entry'

    @property
    def holds_secret(self) -> bool:
        """Whether a key, a token or a password stands in it itself, by what it is called or by its form."""
        redact = Redactor()
        names = secret_variables(self.loaded(self.variables()).settings.openai)
        return any(
            redact(text) != text
            or ((name in names or OF_SECRET.search(name)) and text.strip() and not is_unfilled(text))
            for name, text in _named_texts(self.said)
        )

    def loaded(self, environ: Mapping[str, str]) -> LoadedSettings:
        """Load the settings that a server has which it starts with these variables."""
        told = self.options
        home = str(self.machine.home)
        return load_settings(environ, config_path=told.get("--config"), toolsets=told.get("--toolsets"), home=home)

    @property
    def relative_paths(self) -> dict[str, str]:
        """What its server gets as relative paths, by variable, if nothing says in which folder it is started."""
        if self.scope != "user" or self._folder_said:
            return {}
        given = self.variables()
        return {name: given[name] for name in given if from_the_root(name, given[name], self.machine) != given[name]}

    @property
    def folder(self) -> Path | None:
        """The folder in which it says that it is to be started, None without one, or one that is not known here.

        A relative one is within where the client was started.
        """
        said = self._folder_said
        if not said or self.is_elsewhere(said) or not (self.scope == "project" or os.path.isabs(said)):  # noqa: PTH117
            return None
        return Path(self.machine.folder / said)

    @property
    def _folder_said(self) -> str:
        said = self.said.get(CLIENTS[self.client].members.folder or "")
        return self._filled(said) if isinstance(said, str) else ""

    def is_elsewhere(self, text: str) -> bool:
        """Tell whether a text of it names what is not known here: a workspace, or what VS Code asks its user for."""
        return CLIENTS[self.client].fills_places and (_WORKSPACE in text or ASKED in text)

    @property
    def is_known_here(self) -> bool:
        """Whether nothing in its command depends on where the client is started, or is asked for there."""
        name = "".join(self.command[:1])
        is_relative = os.path.dirname(name) and not os.path.isabs(name)  # noqa: PTH117, PTH120  # keeps ./
        if is_relative and self._folder_said and self.folder is None:
            return False
        return not any(map(self.is_elsewhere, self.command))

    @property
    def refusal(self) -> tuple[str, str] | None:
        """What keeps Claude Code from starting what a project's file says, and the cure; None where nothing does.

        A refusal in one of its settings wins over any approval in the others.
        """
        if self.client != _WITH_LOCAL or self.scope != "project":
            return None
        *others, local = claude_code_settings(self.machine)
        for path in map(Path, (local, *others)):
            named = map(_normalised, texts_in(_settings_in(path).get(_REFUSED)))
            if _normalised(self.name) in named:
                again = 'start claude here and choose "Use this MCP server"'
                cure = 'run "claude mcp reset-project-choices" here' if path == local else f"take it out of {path}"
                return (
                    f"{CLIENTS[self.client].title} was told not to use it ({_REFUSED} in {path})",
                    f"{cure}, then {again}",
                )
        return None

    def program(self) -> str | None:
        """Return the path of the program that it starts, as written if that is not known here; None if it is gone."""
        name, folder = "".join(self.command[:1]), self.folder
        if not self.is_known_here or name == self.machine.command[0]:
            return name
        if os.path.dirname(name) and folder is not None:  # noqa: PTH120  # keeps ./
            name = str(folder / name)
        return shutil.which(name, path=self.machine.environ.get("PATH", ""))

    def variables(self, secrets: Sequence[str] = ()) -> dict[str, str]:
        """Return the environment that the client gives to the server, as far as that is known.

        `secrets` names the variables that some clients pass on only where the entry says so.
        """
        client, around = CLIENTS[self.client], self.machine.environ
        if client.inherits:
            own = dict(around)
        elif client.reference is not None:
            own = {name: around[name] for name in around if name not in secrets}
        else:
            always = _ON_WINDOWS if self.machine.system == "windows" else _ALWAYS
            named = (*always, *variables_in(self.said.get(client.members.names or "")))
            own = {name: around[name] for name in named if name in around}
        values = {name: as_variable(value) for name, value in self.given.items()}
        given = {name: value for name, value in values.items() if isinstance(value, str)}
        return own | {name: self._filled(value, empties=client.empties) for name, value in given.items()}

    def elsewhere(self, name: str) -> str | None:
        """Say where the client may have the value of a variable from that is not known here; None if from nowhere."""
        client, said = CLIENTS[self.client], self.given.get(name)
        if isinstance(said, str):
            if self.is_elsewhere(said):
                return f"{client.title} {'asks for it' if ASKED in said else 'fills it in'}"
            arrives = client.references is not None and client.references.search(said) is not None
        else:
            file = self.said.get(client.members.file or "")
            if isinstance(file, str):
                return f"{client.title} may have it from {file}"
            arrives = client.inherits or name in variables_in(self.said.get(client.members.names or ""))
        files = (path for path in map(Path, client.variable_files(self.machine)) if arrives and _may_set(path, name))
        return next((f"{client.title} may have it from {path}" for path in files), None)

    def fills_in(self, name: str) -> bool:
        """Tell whether it sets a variable to another reference than ours, which has a value here or in itself."""
        client, said = CLIENTS[self.client], self.given.get(name)
        if client.reference is None or client.references is None or not isinstance(said, str):
            return False
        if said == client.reference.replace("NAME", name) or client.references.search(said) is None:
            return False
        value = self._filled(said)
        return bool(value.strip()) and not is_unfilled(value)

    def _filled(self, text: str, *, empties: bool = False) -> str:
        """Return a text with what it refers to filled in; of a variable that is not set, the reference may stay."""
        client = CLIENTS[self.client]
        if client.references is None:
            return text

        def value(reference: re.Match[str]) -> str:
            default = reference.groupdict().get("default")
            unset = "" if empties else reference[0]
            return self.machine.environ.get(reference["name"], unset if default is None else default)

        text = client.references.sub(value, text)
        if client.fills_places:
            text = text.replace("${userHome}", str(self.machine.home))
            if self.scope == "project":
                text = text.replace(f"{_WORKSPACE}}}", str(self.machine.folder))
        return text


class Unreadable(NamedTuple):
    """A file of a client that could not be read, and why, as the second half of a sentence."""

    client: str
    file: Path
    why: str


def document_of(text: str, client: Client, name: str) -> JsonDocument | CodexTable:
    """Return the text of a client's file, and the entry of that name in it; raises Unmergeable."""
    if client.dialect is None:
        raise Unmergeable("it is YAML, which this program does not change")
    if client.dialect == "toml":
        return CodexTable(text, container=client.container, name=name)
    return JsonDocument(text, container=client.container, name=name, dialect=client.dialect)


def find_entries(machine: Machine) -> Iterator[Entry | Unreadable]:
    """Yield the entries of this server in the files of all clients: those of the user, and of the working directory."""
    for key, client in CLIENTS.items():
        files: dict[Path, Literal["user", "project"]] = {Path(client.user_file(machine)): "user"}
        if client.project_file is not None:
            files.setdefault(Path(machine.folder / client.project_file), "project")
        local: Mapping[str, Any] = {}
        for file, scope in files.items() if client.dialect is not None else ():
            try:
                document = document_of(ClientFile(file, mark=client.reads_mark).text, client, ENTRY)
            except Unmergeable as problem:
                yield Unreadable(key, file, str(problem))
            except OSError as error:
                yield Unreadable(key, file, f"it cannot be read ({(error.strerror or type(error).__name__).lower()})")
            else:
                found: list[Entry] = []
                if key == _WITH_LOCAL and scope == "user" and isinstance(document, JsonDocument):
                    local = _local_in(document.root, Path(machine.folder))
                    found = [Entry(key, file, name, as_table(local[name]) or {}, machine, "local") for name in local]
                found += [
                    Entry(key, file, name, as_table(each) or {}, machine, scope, hidden=name in local)
                    for name, each in document.entries.items()
                ]
                yield from (each for each in found if each.is_ours)


def _local_in(root: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the entries that Claude Code keeps for the project that a folder is in, by what its file says."""
    kept: Any = root
    for name in ("projects", _project_of(folder).as_posix(), "mcpServers"):
        kept = (as_table(kept) or {}).get(name)
    return as_table(kept) or {}


def _project_of(folder: Path) -> Path:
    """Return the root of the repository that a folder is in, of a worktree that of the main one; else the folder."""
    root = next((each for each in (folder, *folder.parents) if os.path.exists(each / ".git")), folder)  # noqa: PTH110  # raises nothing
    git = root / ".git"
    with suppress(OSError, UnicodeDecodeError):
        kept = root / git.read_text("utf-8").removeprefix("gitdir:").strip() if git.is_file() else git
        kept = Path(os.path.normpath(kept))
        if kept.parts[-3:-1] == (".git", "worktrees"):
            return kept.parents[2]
    return root


def plugin_in(machine: Machine) -> tuple[str, Path] | None:
    """Return the plugin by which Claude Code starts this server, and the file that turns it on; None without one."""
    path = Path(claude_code_settings(machine)[0])
    enabled = as_table(_settings_in(path).get("enabledPlugins")) or {}
    return next(((name, path) for name, on in enabled.items() if on is True and name.startswith(f"{ENTRY}@")), None)


def _settings_in(path: Path) -> Mapping[str, Any]:
    """Return the settings of Claude Code in a file, none where it cannot be read."""
    try:
        return as_table(json.loads(ClientFile(path).text)) or {}
    except (Unmergeable, OSError, ValueError, RecursionError):
        return {}


def _normalised(name: str) -> str:
    """Return a name as Claude Code compares names of servers."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def read_by_server(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables of an environment that are not blank and that the server would read, with their values."""
    for name in READ_BY_SERVER:
        value = environ.get(name, "")
        if value.strip() and name not in _OF_OTHERS_TOO:
            yield name, value


def from_the_root(name: str, value: str, machine: Machine) -> str:
    """Return the value of a variable with what in it is a relative path, to the server, made an absolute one."""
    if name not in PATHS or is_unfilled(value):
        return value
    separator = (";" if machine.system == "windows" else ":") if name == "SSL_CERT_DIR" else None
    paths = value.split(separator) if separator else [value]
    kind = type(machine.folder)
    stays = (not path.strip() or path.startswith("~") or kind(path).is_absolute() for path in paths)
    return (separator or "").join(
        path if stay else str(machine.folder / path) for path, stay in zip(paths, stays, strict=True)
    )


def secret_variables(openai: OpenAISettings) -> tuple[str, ...]:
    """Return the names of the variables that hold secrets."""
    return (openai.api_key_env, *openai.headers_env.values())


def _named_texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of an entry, each with what it is called: a member, or the option before it or glued to it."""
    if (table := as_table(value)) is not None:
        for key, each in table.items():
            yield from _named_texts(each, key)
    elif isinstance(value, str):
        yield name, value
    for before, word in pairwise(["", *texts_in(value)]):
        option, _, glued = word.partition("=")
        yield option, glued
        yield before if before.startswith("-") and not word.startswith("-") else "", word


def _may_set(path: Path, name: str) -> bool:
    """Tell whether a file of variables, or of settings, may give one a value; a file that cannot be read may."""
    try:
        return any(_VALUE.match(behind) for behind in ClientFile(path).text.split(name)[1:])
    except (Unmergeable, OSError):
        return not os.path.isdir(path)  # noqa: PTH112  # raises nothing


def without_values(word: str) -> str:
    """Return a word of a command as it may be shown: what is set in it, as in a line for a shell, may be a key."""
    return Redactor()(re.sub(r"=\S+", "=(not shown)", word))
