"""The entries of this server in the files of clients: where they are, what they start, and what is wrong with them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from responses_mcp.commands.clients.codex_table import CodexTable
from responses_mcp.commands.clients.files import ClientFile, Unmergeable, as_table, texts_in
from responses_mcp.commands.clients.json_merge import JsonDocument
from responses_mcp.commands.clients.known import CLIENTS, ENTRY, Client, Machine, secret_variables
from responses_mcp.commands.findings import Finding, fail, ok, warn
from responses_mcp.errors import program
from responses_mcp.secrets import Redactor, is_unfilled
from responses_mcp.settings.address import is_loopback
from responses_mcp.settings.load import LoadedSettings, load_settings
from responses_mcp.settings.model import OpenAISettings, Settings
from responses_mcp.settings.schema import PATHS, READ_BY_SERVER

_OURS: Final = re.compile(r"(?i)openai[-_]responses[-_]mcp(?:\.(?:exe|cmd|git))?(?:\[[^]]*\])?(?:[@=<>!~].*)?")
_RUNNER: Final = re.compile(r"(?:uvx?|pipx|env|cmd|pyw?|python[\d.]*|npx|bunx|node)(?:\.exe|\.cmd)?")
_BETWEEN: Final = re.compile(r"run|tool|/c|--|--yes|-[yqIu]|[A-Za-z_]\w*=.*", re.DOTALL)
_WITH_VALUE: Final = frozenset({"--from", "--with", "--python", "-p", "--directory", "--project", "--spec"})
_TAKES_VALUE: Final = ("--config", "--toolsets", "--debug")
_DECLINED: Final = "disabledMcpjsonServers"
_OF_OTHERS_TOO: Final = frozenset({"DEBUG"})  # set for many programs, and the log would hold questions and answers
# What every client gives to a server.
_ALWAYS: Final = frozenset(
    {
        *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"),
        *("APPDATA", "LOCALAPPDATA", "PATHEXT", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERPROFILE"),
    }
)


def starting_words(words: Sequence[str]) -> int | None:
    """Return how many words of a command start this program: 4 for `uvx --from X openai-responses-mcp --stdio`.

    None if the command is not known to start it. Servers of others may name our folder or address in their arguments,
    so every word before the program has to be known.
    """
    for at, (before, word) in enumerate(pairwise(["", *words])):
        name = re.split(r"[/\\]", re.sub(r"[/\\]dist[/\\]index\.js$", "", word))[-1]
        if word == "-m":
            return at + 2 if words[at + 1 : at + 2] == ["responses_mcp"] else None
        if before in _WITH_VALUE or word in _WITH_VALUE or _RUNNER.fullmatch(name) or _BETWEEN.fullmatch(word):
            continue
        return at + 1 if _OURS.fullmatch(name) and not word.startswith(("@", "-")) else None
    return None


class Entry(NamedTuple):
    """An entry of this server: whose it is, its file, its name, and what it says.

    `scope` is project for a file of the working directory, which somebody else may have written. `problem` says, as the
    second half of a sentence, why the file could not be read; then nothing else of the entry is known.
    """

    client: str
    file: Path
    name: str
    said: Mapping[str, Any]
    machine: Machine
    scope: Literal["user", "project"] = "user"
    problem: str | None = None

    @property
    def of(self) -> Client:
        """The client."""
        return CLIENTS[self.client]

    @property
    def place(self) -> str:
        """Its name and where it stands, in words."""
        return f"{self.name} in {self.file}"

    def install(self, *words: str) -> str:
        """Return the command of `install` that is about this entry and no other."""
        scope = ("--scope", "project") if self.scope == "project" else ()
        name = () if self.name == ENTRY else ("--name", self.name)
        return program("install", self.client, *scope, *name, *words)

    @property
    def renewal(self) -> str:
        """What puts it right, in words."""
        return f'run "{self.install("--write")}" again'

    @property
    def words(self) -> list[str]:
        """What it starts, with arguments, as the file has them."""
        return self.of.words_in(self.said)

    @property
    def command(self) -> list[str]:
        """The same as the client fills it in."""
        return [self.filled(word) for word in self.words]

    @property
    def is_ours(self) -> bool:
        """Whether it starts this server, or has its name and something to start."""
        is_remote = not self.words and any(name in self.said for name in ("url", "httpUrl", "serverUrl"))
        return starting_words(self.command) is not None or (self.name == ENTRY and not is_remote)

    @property
    def serves(self) -> bool:
        """Whether its command is known to serve; another one may ask a question, which costs."""
        at = starting_words(self.words)
        words = self.words[at or 0 :]
        is_command = at is not None and words[:1] != [] and not words[0].startswith("-")
        return not is_command and (words == [] or any("--stdio" in word.split() for word in words))

    @property
    def program(self) -> str | None:
        """The path of the program that it starts, None if it is gone."""
        name = "".join(self.command[:1])
        is_this = name == self.machine.command[0]
        return name if is_this else shutil.which(name, path=self.machine.environ.get("PATH", ""))

    @property
    def given(self) -> dict[str, str]:
        """The variables that it sets, as the file has them; a number is the text that clients want."""
        table = as_table(self.said.get(self.of.variables)) or {}
        texts = {name: str(value) for name, value in table.items() if isinstance(value, int) and abs(value) < 2**63}
        return texts | {name: value for name, value in table.items() if isinstance(value, str)}

    @property
    def named(self) -> list[str]:
        """The variables that it passes on by their names; one of Codex's may be a table that has the name in it."""
        said = self.said.get(self.of.names or "")
        each = cast("list[object]", said) if isinstance(said, list) else []
        return texts_in([(as_table(one) or {}).get("name", one) for one in each])

    def variables(self) -> dict[str, str]:
        """Return the environment that the client gives to the server, as far as that is known."""
        around, names = self.machine.environ, _ALWAYS.union(self.named)
        own = {name: value for name, value in around.items() if self.of.inherits or name in names}
        return own | {name: self.filled(value) for name, value in self.given.items()}

    def loaded(self) -> LoadedSettings:
        """Load the settings of the server that it starts."""
        said, home = server_options(self.command), str(self.machine.home)
        config, toolsets = said.get("--config"), said.get("--toolsets")
        return load_settings(self.variables(), config_path=config, toolsets=toolsets, home=home)

    def has_value(self, name: str) -> bool:
        """Tell whether the value of a variable stands in it itself."""
        value = self.given.get(name, "").strip()
        return bool(value) and not is_unfilled(value)

    def is_asked(self, name: str) -> bool:
        """Tell whether the client asks its user for a variable."""
        return "${input:" in self.given.get(name, "")

    def add_by_hand(self, names: Sequence[str]) -> str:
        """Say how variables get into it whose values only its owner may write."""
        return f'add {", ".join(map(json.dumps, names))} with its value to "{self.of.variables}" of that entry'

    def filled(self, text: str) -> str:
        """Return a text with what it refers to filled in; a reference to a variable that is not set stays."""

        def value(reference: re.Match[str]) -> str:
            default = reference.groupdict().get("default")
            return self.machine.environ.get(reference["name"], reference[0] if default is None else default)

        return text if self.of.references is None else self.of.references.sub(value, text)


def server_options(words: Sequence[str]) -> dict[str, str | None]:
    """Return the options of this server among words, in order, with their values; None for one without."""
    found: dict[str, str | None] = {}
    for word, after in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if option in _TAKES_VALUE:
            found[option] = value if equals else None if after.startswith("-") else after or None
        elif option == "--stdio":
            found[option] = None
    return found


def document_of(text: str, client: Client, name: str) -> JsonDocument | CodexTable:
    """Return the text of a client's file, and the entry of that name in it; raises Unmergeable."""
    if client.dialect is None:
        raise Unmergeable("it is YAML, which this program does not change")
    if client.dialect == "toml":
        return CodexTable(text, container=client.container, name=name)
    return JsonDocument(text, container=client.container, name=name, dialect=client.dialect)


def find_entries(machine: Machine) -> Iterator[Entry]:
    """Yield the entries of this server in the files of all clients: those of the user, and of the working directory."""
    for key, client in CLIENTS.items():
        files: dict[Path, Literal["user", "project"]] = {Path(client.user_file(machine)): "user"}
        if client.project_file is not None:
            files.setdefault(Path(machine.folder / client.project_file), "project")
        for file, scope in files.items() if client.dialect is not None else ():
            try:
                document = document_of(ClientFile(file).text, client, ENTRY)
            except Unmergeable as problem:
                yield Entry(key, file, ENTRY, {}, machine, scope, str(problem))
                continue
            for name, said in document.entries.items():
                entry = Entry(key, file, name, as_table(said) or {}, machine, scope)
                if entry.is_ours:
                    yield entry


def read_by_server(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables of an environment that are not blank and that the server would read, with their values."""
    for name in READ_BY_SERVER:
        value = environ.get(name, "")
        if value.strip() and name not in _OF_OTHERS_TOO:
            yield name, value


def from_the_root(name: str, value: str, machine: Machine) -> str:
    """Return the value of a variable; a relative path is made an absolute one."""
    if name not in PATHS or is_unfilled(value) or value.startswith("~"):
        return value
    return str(machine.folder / value)


# What is wrong with an entry


def judge(entry: Entry, settings: Settings) -> list[Finding]:
    """Return whether an entry starts this server, and, where it does, what does not get there or ends too early.

    `settings` are those of this shell.
    """
    first = verdict(entry)
    return [first, *_passed(entry, settings.openai), *_limited(entry)] if first.status == "ok" else [first]


def verdict(entry: Entry) -> Finding:
    """Return whether an entry starts this server."""
    title, where, client = entry.of.title, f"(entry {entry.place})", entry.of
    if entry.problem is not None:
        told = f"{entry.file} of {title} was not read: {entry.problem.removesuffix('; correct that')}"
        if client.dialect == "toml":  # of which Codex reads a newer edition
            return warn("clients", told, f"correct that file, or look at it yourself if {title} reads it")
        return fail("clients", told, "correct that file")
    arguments, variables = entry.said.get(client.arguments or client.command, []), entry.said.get(client.variables, {})
    if not entry.words or arguments != texts_in(arguments) or variables != entry.given:
        told = f"{title} cannot use the entry: command, arguments and variables must be strings {where}"
        return fail("clients", told, entry.renewal)
    shown = without_values(entry.command[0])
    is_relative = os.path.dirname(entry.command[0]) and not os.path.isabs(entry.command[0])  # noqa: PTH117, PTH120
    if is_relative or any("${" in word for word in entry.command):
        told = f"{title} starts {shown} {where}, which doctor cannot check: the path depends on where {title} runs"
        return warn("clients", told, "write an absolute path in the entry")
    if entry.program is None:
        told = f"{title} cannot start {shown}: no such program {where}"
        return fail("clients", told, f'{entry.renewal}, or "{entry.install("--remove")}"')
    if starting_words(entry.words) is not None and not entry.serves:
        return fail("clients", f"{title} starts {shown} without --stdio, so it does not serve {where}", entry.renewal)
    if entry.said.get("enabled") is False:
        return warn("clients", f"{title} has this server turned off {where}", "set enabled to true in the entry")
    if (path := _declining(entry)) is not None:
        told = f"{title} does not start this server, because it was declined ({_DECLINED} in {path})"
        cure = f'run "claude mcp reset-project-choices" in this folder, or take it out of {path}'
        return fail("clients", told, f'{cure}; then choose "Use this MCP server" in {title}')
    return ok("clients", f"{title} starts {shown} {where}")


def _declining(entry: Entry) -> Path | None:
    """Return the settings of Claude Code by which it does not start this server of a project, None if none say so."""
    if entry.client != "claude-code" or entry.scope != "project":
        return None
    machine = entry.machine
    user, project = machine.named("CLAUDE_CONFIG_DIR", machine.home / ".claude"), machine.folder / ".claude"
    for path in map(Path, (project / "settings.local.json", project / "settings.json", user / "settings.json")):
        with suppress(Unmergeable, ValueError, RecursionError):
            if entry.name in texts_in((as_table(json.loads(ClientFile(path).text)) or {}).get(_DECLINED)):
                return path
    return None


def _passed(entry: Entry, openai: OpenAISettings) -> Iterator[Finding]:
    """Yield a warning where a key, or what is set here for the server, does not reach it."""
    client, reaches, secrets = entry.of, entry.variables(), secret_variables(openai)
    is_needed = openai.api_key is not None or client.writes_values
    if not is_needed or is_loopback(urlsplit(openai.base_url).hostname or ""):
        secrets = secrets[1:]
    values = {name: reaches.get(name, "").strip() for name in secrets if not entry.is_asked(name)}
    missing = [name for name, value in values.items() if not value or is_unfilled(value)]
    named = (*reaches, *missing, openai.api_key_env)
    missing += [name for name, _ in read_by_server(entry.machine.environ) if name not in named]
    if missing:
        around = entry.machine.environ
        hidden = [name for name in missing if client.writes_values and (name in secrets or "@" in around[name])]
        fixes = [entry.renewal] if len(hidden) < len(missing) else []
        if hidden:
            fixes.append(f"{entry.add_by_hand(hidden)}, and let nobody else read that file")
        told = f"{client.title} does not pass {', '.join(missing)} on (entry {entry.place})"
        yield warn("clients", told, "; ".join(fixes))


def _limited(entry: Entry) -> Iterator[Finding]:
    """Compare the time limit of a call with that of the client, which would discard a billed answer."""
    waits, seconds = entry.of.waits(entry.said), entry.loaded().settings.request.timeout_ms / 1000
    if waits is not None and waits <= seconds:
        told = f"a call may take {seconds:g} s (request.timeout_ms), and {entry.of.title} waits {waits:g} s"
        yield warn("time-outs", f"{told} (entry {entry.place})", entry.renewal)


def without_values(word: str) -> str:
    """Return a word of a command as it may be shown: what is set in it, as in a line for a shell, may be a key."""
    return Redactor()(re.sub(r"=\S+", "=(not shown)", word))
