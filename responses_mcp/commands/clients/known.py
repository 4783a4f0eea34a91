"""The MCP clients that are known: where each keeps its servers, what an entry of ours is there, how long it waits.

And the command that starts this program, as the configuration of a client should have it.

What was tried with the real clients, and with which versions: docs/reference/real-clients.md. How long they wait is
what their users report: anthropics/claude-code#16837, #22542, #84136; openai/codex#31641, #38689;
kky42/codex-as-mcp#5; modelcontextprotocol/typescript-sdk#2250. Looked up on 2026-11-21. Windsurf and Zed are as their
makers' pages say: docs.windsurf.com/windsurf/cascade/mcp, zed.dev/docs/ai/mcp and zed.dev/docs/configuring-zed. So is
Goose, block.github.io/goose/docs/guides/config-files, and so is OpenCode, which was tried as well:
opencode.ai/docs/mcp-servers and opencode.ai/docs/config.
"""

from __future__ import annotations

import math
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from responses_mcp.commands.clients.files import texts_in
from responses_mcp.commands.clients.json_merge import Dialect
from responses_mcp.commands.terminal import NAME, Stop
from responses_mcp.settings.files import absolute

ENTRY: Final = "openai-responses"
"""The name that an entry has unless another one is asked for."""

_MORE: Final = 30  # seconds that a client waits longer than the server, so that the server's message arrives
_FIXED_LIMIT: Final = 60  # seconds of one call in Claude Desktop
_WITHIN_FIXED_LIMIT_MS: Final = 55_000
_FOREVER: Final = 2**53  # of any unit; a file may hold numbers that no division can take
_NAME: Final = "(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_DEFAULT: Final = "(?::-(?P<default>[^}]{0,1000}))?"  # what stands behind the name for a variable that is not set
_ENV: Final = re.compile(rf"\$\{{env:{_NAME}\}}")
_START_LIMIT: Final = 30  # seconds that Codex is told to wait for the start


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides where files are: the system, the user's home, the working directory and the environment.

    `command` starts this program. Paths are of the system's kind, so that those of another system can be computed too.
    """

    system: Literal["linux", "mac", "windows"]
    home: PurePath
    folder: PurePath
    environ: Mapping[str, str]
    command: tuple[str, ...]

    def named(self, variable: str) -> PurePath | None:
        """Return the path that a variable holds, None if it is unset or empty."""
        text = self.environ.get(variable)
        return self.folder / text if text else None

    @property
    def app_data(self) -> PurePath:
        """The folder in which desktop programs keep their settings."""
        if self.system == "windows":
            return self.named("APPDATA") or self.home / "AppData" / "Roaming"
        if self.system == "mac":
            return self.home / "Library" / "Application Support"
        return self.named("XDG_CONFIG_HOME") or self.home / ".config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What a client is to start: a command, what it gets, and how many milliseconds a call may take.

    `secrets` names the variables that a client should pass on without their values being written anywhere. `passed` has
    what else is set here and is to reach the server, `env` what was asked for. `trusted` lets a client that asks before
    each call stop asking. `search_ms` is 0 if `chatgpt_o3_search` is not offered. `name` is that of the entry.
    """

    command: tuple[str, ...]
    secrets: tuple[str, ...] = ("OPENAI_API_KEY",)
    passed: Mapping[str, str] = field(default_factory=dict[str, str])
    trusted: bool = False
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    answer_ms: int = 300_000
    search_ms: int = 0
    name: str = ENTRY

    @property
    def client_limit(self) -> int:
        """How many seconds a client should wait for a call."""
        return client_limit(max(self.answer_ms, self.search_ms))


def client_limit(milliseconds: int) -> int:
    """Return how many seconds a client should wait for a call that may take so long."""
    return math.ceil(milliseconds / 1000) + _MORE


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """How many seconds a client waits for the start of a server and for a call, and how it can be told to wait longer.

    A limit that is None hardly matters, or is not known. `{limit}` in `call_cure` stands for the seconds that do.
    """

    title: str
    start: float | None = None
    call: float | None = None
    start_cure: str = ""
    call_cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """What a client calls the members of an entry.

    Where `arguments` is None, `command` is a list that holds them, too. `names` has names of variables to pass on.
    `switch` is false in an entry that is turned off. `folder` is where the command is started, `file` a
    file with variables.
    """

    command: str = "command"
    arguments: str | None = "args"
    variables: str = "env"
    names: str | None = None
    switch: str | None = None
    folder: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client(ClientLimits):
    """A client. `project_file` is relative to the project, None if the client has no such file.

    `dialect` is how its file is written; None for YAML, which this program neither reads nor changes.

    `reference` is how its file refers to the environment variable NAME; None if it cannot. `references` finds all ways
    in which it can, and `fills_places` tells that it can refer to folders, too. `variable_files` are those from which a
    client may take variables. `inherits` tells that all of its own environment reaches the server anyway. `limit` is
    the member of an entry that says how long it waits for a call, and how many of its units are a second. `empties`
    tells that a variable that is not set arrives empty, and not as the reference to it. `trust` is what lets it call
    tools without asking, `untrusted` what it does else. `check` says how to see that it has the server; `{program}` in
    it stands for the command of this program. `reads_mark` tells that its file may begin with a byte order mark.
    """

    user_file: Callable[[Machine], PurePath]
    project_file: str | None
    dialect: Dialect | Literal["toml"] | None
    container: str = "mcpServers"
    members: Members = Members()
    reference: str | None = None
    references: re.Pattern[str] | None = None
    fills_places: bool = False
    reads_mark: bool = True
    variable_files: Callable[[Machine], tuple[PurePath, ...]] = lambda _: ()
    inherits: bool = False
    empties: bool = False
    limits: Callable[[Server], dict[str, Any]] = lambda _: {}
    limit: tuple[str, int] | None = None
    trust: Mapping[str, Any] = field(default_factory=dict[str, Any])
    untrusted: str = ""
    check: str
    project_note: str | None = None

    @property
    def writes_values(self) -> bool:
        """Whether its file has no way to name a variable, so that only the value itself can stand there."""
        return self.reference is None and self.members.names is None

    def entry(self, server: Server) -> dict[str, Any]:
        """Return the entry for a server. Where only values can be written, those with credentials are left out."""
        members = self.members
        names = [*server.secrets, *(() if self.inherits else server.passed)]
        env: dict[str, str] = {}
        if self.reference is not None:
            env = {name: self.reference.replace("NAME", name) for name in names}
        elif self.writes_values:
            env = {name: value for name, value in server.passed.items() if not self.leaves_out(value)}
        limits = self.limits(server)
        env |= {**server.env, **limits.get("env", {})}
        program, *arguments = server.command
        return {
            members.command: [program, *arguments] if members.arguments is None else program,
            **({} if members.arguments is None else {members.arguments: arguments}),
            **({members.variables: env} if env else {}),
            **({} if members.names is None else {members.names: names}),
            **{key: limits[key] for key in limits if key != "env"},
            **(self.trust if server.trusted else {}),
        }

    def leaves_out(self, value: str) -> bool:
        """Return whether a variable is not written for its value, which has credentials in it."""
        return self.writes_values and "@" in value

    def command_in(self, entry: Mapping[str, Any]) -> list[str]:
        """Return what an entry starts, with its arguments; nothing for one that starts nothing."""
        command = entry.get(self.members.command)
        if self.members.arguments is None:
            return texts_in(command)
        return [command, *texts_in(entry.get(self.members.arguments))] if isinstance(command, str) else []

    def turns_off(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry is turned off, so that this client starts nothing."""
        return self.members.switch is not None and entry.get(self.members.switch) is False

    def waits(self, entry: Mapping[str, Any]) -> float | None:
        """Return how many seconds this client waits for a call by this entry; None for long enough, or not known."""
        name, units = self.limit or ("", 1)
        own = entry.get(name)
        if not isinstance(own, int | float) or isinstance(own, bool):
            return self.call
        return min(own, _FOREVER) / units


def _claude_code_file(machine: Machine) -> PurePath:
    configured = machine.named("CLAUDE_CONFIG_DIR")
    older = (configured or machine.home / ".claude") / ".config.json"  # read instead of the other while it is there
    return older if _has_content(older) else (configured or machine.home) / ".claude.json"


def claude_code_settings(machine: Machine) -> tuple[PurePath, ...]:
    """Return where Claude Code's settings may be: the user's first, then those of the project."""
    user = (machine.named("CLAUDE_CONFIG_DIR") or machine.home / ".claude") / "settings.json"
    return user, *(machine.folder / ".claude" / name for name in ("settings.json", "settings.local.json"))


def _has_content(path: PurePath) -> bool:
    try:
        return Path(path).stat().st_size > 0
    except OSError:
        return False


def _fixed_limit(server: Server) -> dict[str, Any]:
    env: dict[str, str] = {}
    if server.answer_ms >= _FIXED_LIMIT * 1000:
        env |= {"OPENAI_API_TIMEOUT": str(_WITHIN_FIXED_LIMIT_MS), "ANSWER_EFFORT": "low"}
    if server.search_ms >= _FIXED_LIMIT * 1000:
        env |= {"SEARCH_MAX_ATTEMPTS": "1"}
    return {"env": env}


def _codex_limits(server: Server) -> dict[str, Any]:
    # Not `required`: a Codex with a required server whose command is gone does not start at all.
    return {
        "startup_timeout_sec": _START_LIMIT,
        "tool_timeout_sec": server.client_limit,
    }


def _zed_file(machine: Machine) -> PurePath:
    if machine.system == "mac":  # not where other desktop programs have theirs
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.app_data / ("Zed" if machine.system == "windows" else "zed") / "settings.json"


def _opencode_file(machine: Machine) -> PurePath:
    folder = (machine.named("XDG_CONFIG_HOME") or machine.home / ".config") / "opencode"  # on every system
    commented = folder / "opencode.jsonc"  # is read after the other, and wins
    return commented if _has_content(commented) else folder / "opencode.json"


def _goose_file(machine: Machine) -> PurePath:
    root = machine.named("GOOSE_PATH_ROOT")
    if root is not None:
        return root / "config" / "config.yaml"
    if machine.system == "windows":
        return machine.app_data / "Block" / "goose" / "config" / "config.yaml"
    return (machine.named("XDG_CONFIG_HOME") or machine.home / ".config") / "goose" / "config.yaml"


def _goose_members(server: Server) -> dict[str, Any]:
    return {"name": server.name, "type": "stdio", "enabled": True, "timeout": server.client_limit}


def _milliseconds(server: Server) -> dict[str, Any]:
    return {"timeout": server.client_limit * 1000}


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(
        title="Claude Code",
        start=30,
        start_cure="for Claude Code set MCP_TIMEOUT=60000",
        user_file=_claude_code_file,
        variable_files=claude_code_settings,
        project_file=".mcp.json",
        dialect="json",
        reference="${NAME}",
        references=re.compile(rf"\$\{{{_NAME}{_DEFAULT}\}}"),
        inherits=True,
        limits=_milliseconds,
        limit=("timeout", 1000),
        check="If Claude Code is running, restart it. 'claude mcp list' starts the server and shakes hands with it.",
        project_note='When Claude Code asks about it, choose "Use this MCP server": its dialog stands on the choice to '
        "continue without, so Enter alone declines.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        start=60,
        call=_FIXED_LIMIT,
        start_cure="Claude Desktop cannot be told to wait longer",
        call_cure="for Claude Desktop, which cannot be told to wait longer, set request.timeout_ms "
        f"(OPENAI_API_TIMEOUT) to {_WITHIN_FIXED_LIMIT_MS}, or let it use answer_quick with a low effort",
        user_file=lambda machine: machine.app_data / "Claude" / "claude_desktop_config.json",
        project_file=None,
        dialect="json",
        limits=_fixed_limit,
        check="Quit Claude Desktop and start it again.",
    ),
    "cursor": Client(
        title="Cursor",
        user_file=lambda machine: machine.home / ".cursor" / "mcp.json",
        project_file=".cursor/mcp.json",
        members=Members(file="envFile"),
        fills_places=True,
        dialect="jsonc",
        reference="${env:NAME}",
        references=_ENV,
        check="Start Cursor again, and look under Settings, MCP.",
    ),
    "vscode": Client(
        title="VS Code",
        user_file=lambda machine: machine.app_data / "Code" / "User" / "mcp.json",
        project_file=".vscode/mcp.json",
        dialect="jsonc",
        container="servers",
        members=Members(folder="cwd", file="envFile"),
        fills_places=True,
        reference="${env:NAME}",
        references=_ENV,
        limits=lambda _: {"type": "stdio"},
        check="In VS Code, look at it with 'MCP: List Servers'.",
    ),
    "codex": Client(
        title="Codex",
        start=1,  # for the first turn
        call=60,
        start_cure="for Codex add required = true to the server's entry, and take it out again before you remove this "
        "program: Codex does not start without a required server",
        call_cure="for Codex set tool_timeout_sec = {limit} in the server's entry",
        user_file=lambda machine: (machine.named("CODEX_HOME") or machine.home / ".codex") / "config.toml",
        project_file=".codex/config.toml",
        dialect="toml",
        container="mcp_servers",
        members=Members(names="env_vars", switch="enabled", folder="cwd"),
        variable_files=lambda machine: ((machine.named("CODEX_HOME") or machine.home / ".codex") / ".env",),
        limits=_codex_limits,
        limit=("tool_timeout_sec", 1),
        check='If Codex is running, restart it. "{program} doctor --client codex" starts the server as Codex would '
        "from the user's file; 'codex mcp list' starts none.",
        project_note="Codex reads this file only in a project that it trusts.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        user_file=lambda machine: (machine.named("GEMINI_CLI_HOME") or machine.home) / ".gemini" / "settings.json",
        project_file=".gemini/settings.json",
        dialect="json with comments",
        members=Members(folder="cwd"),
        reference="$NAME",
        references=re.compile(rf"\$(?P<brace>\{{)?{_NAME}(?(brace){_DEFAULT}\}})"),
        empties=True,
        reads_mark=False,
        limits=_milliseconds,
        limit=("timeout", 1000),
        trust={"trust": True},
        untrusted="'gemini -p' offers no tool of a server that is not trusted: --trust adds that to the entry.",
        check="If Gemini is running, restart it. 'gemini mcp list', in a folder that Gemini trusts, starts the server "
        "and pings it.",
    ),
    "windsurf": Client(
        title="Windsurf",
        user_file=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        project_file=None,
        dialect="json",
        reference="${env:NAME}",
        references=_ENV,
        check="In Windsurf, press the refresh button of the MCP servers.",
    ),
    "zed": Client(
        title="Zed",
        call=60,
        call_cure='for Zed set "timeout": {limit} in the server\'s entry',
        user_file=_zed_file,
        project_file=None,  # it has one, but the key would stand in it
        dialect="jsonc",
        container="context_servers",
        limits=lambda server: {"timeout": server.client_limit},
        limit=("timeout", 1),
        check="In Zed, look at the dot beside the server in the settings of the agent panel.",
    ),
    "opencode": Client(
        title="OpenCode",  # each sign of progress begins its time limit anew
        call_cure='for OpenCode set "timeout": {limit}000 in the server\'s entry',
        user_file=_opencode_file,
        project_file="opencode.json",
        dialect="jsonc",
        container="mcp",
        members=Members(arguments=None, variables="environment", switch="enabled"),
        reference="{env:NAME}",
        references=re.compile(rf"\{{env:{_NAME}\}}"),
        inherits=True,
        limits=lambda server: {"type": "local", **_milliseconds(server)},
        limit=("timeout", 1000),
        check="If OpenCode is running, restart it. 'opencode mcp list' starts the server and shakes hands with it.",
    ),
    "goose": Client(
        title="Goose",
        call=300,
        call_cure="for Goose set timeout: {limit} in the server's entry",
        user_file=_goose_file,
        project_file=None,
        dialect=None,
        container="extensions",
        members=Members(command="cmd", variables="envs", names="env_keys"),
        inherits=True,
        limits=_goose_members,
        check="Then start a new session of Goose; in it, '/extension' or the settings show the extensions.",
    ),
}

_RAISE: Final = "for other clients raise their own time-out"

CLIENT_LIMITS: Final[Mapping[str, ClientLimits]] = {
    **{name: CLIENTS[name] for name in ("codex", "claude-code", "claude-desktop")},
    "typescript-sdk": ClientLimits(
        title="many clients made with the TypeScript SDK", start=60, call=60, start_cure=_RAISE, call_cure=_RAISE
    ),
    **{name: client for name, client in CLIENTS.items() if client.start is None},
}
"""All clients that can be judged for, the hastiest first."""


# The command that starts this program


def this_executable() -> Path | None:
    """Return the absolute path of the script that this installation has, None where there is only the module."""
    folders = Path(sysconfig.get_path("scripts")), Path(sys.executable).parent
    return executable(sys.argv[0], *folders, windows=os.name == "nt")


def executable(program: str, *folders: Path, windows: bool) -> Path | None:
    """Return the script that runs as `program`, else that in the first of `folders` that has it.

    Links are not followed: the one in the user's `bin` outlives an update, what it leads to may not.
    """
    file = f"{NAME}.exe" if windows else NAME
    started = Path(program)
    places = [*([started.with_name(file)] if started.stem == NAME else []), *(folder / file for folder in folders)]
    return next((absolute(place) for place in places if place.is_file()), None)


def command_of(script: Path | None) -> tuple[str, ...]:
    """Return what starts a script; where there is none, what starts the module."""
    return (sys.executable, "-m", "responses_mcp") if script is None else (str(script),)


def this_machine() -> Machine:
    """Return where this program runs; raises Stop for a user without a home."""
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
