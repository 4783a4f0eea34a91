"""The MCP clients: one row each, with its file, the form of an entry in it, and how long it waits.

And the command that starts this program, as an entry should have it.

docs/reference/real-clients.md names the clients that were tried, with versions. How long they wait is what their users
report: anthropics/claude-code#16837, #22542, #84136; openai/codex#31641, #38689. The other rows follow the makers'
pages: docs.windsurf.com/windsurf/cascade/mcp, zed.dev/docs/ai/mcp, block.github.io/goose/docs/guides/config-files,
opencode.ai/docs/mcp-servers.
"""

from __future__ import annotations

import math
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from responses_mcp.commands.clients.files import texts_in
from responses_mcp.commands.clients.json_merge import Dialect
from responses_mcp.commands.terminal import NAME, Stop
from responses_mcp.settings.files import absolute
from responses_mcp.settings.model import OpenAISettings, Settings

ENTRY: Final = "openai-responses"
"""The name of an entry unless another one is asked for."""

_MORE: Final = 30  # seconds that a client waits longer than the server, so that the server's message arrives
_LESS: Final = 5  # seconds by which the server gives up before a client whose limit is fixed
_FOREVER: Final = 2**53  # of any unit; a file may hold numbers that no division can take
_VARIABLE: Final = "(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_DEFAULT: Final = "(?::-(?P<default>[^}]{0,1000}))?"
_ENV: Final = re.compile(rf"\$\{{env:{_VARIABLE}\}}")


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

    def named(self, variable: str, default: PurePath) -> PurePath:
        """Return the folder that a variable names, the default if it is unset or empty."""
        text = self.environ.get(variable)
        return self.folder / text if text else default

    @property
    def app_data(self) -> PurePath:
        """The folder in which desktop programs keep their settings."""
        if self.system == "windows":
            return self.named("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "mac":
            return self.home / "Library" / "Application Support"
        return self.config

    @property
    def config(self) -> PurePath:
        """The folder in which programs of a terminal keep their settings."""
        return self.named("XDG_CONFIG_HOME", self.home / ".config")


def secret_variables(openai: OpenAISettings) -> tuple[str, ...]:
    """Return the names of the variables that hold secrets, whose values are written nowhere."""
    return (openai.api_key_env, *openai.headers_env.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client. `project_file` is relative to the project, None if the client has no such file.

    `dialect` is how its file is written; None for YAML, which this program neither reads nor changes. `container` is
    the table of entries; `command`, `arguments` and `variables` are members of an entry. Without `arguments`, `command`
    is a list that holds them.

    `reference` is how an entry names the environment variable NAME, `references` finds each form that the client fills
    in; `names` is a member with names of variables. A client with neither takes values only. `inherits` says that the
    server gets the whole environment of the client.

    `limit` is the member for the time limit of a call, and how many of its units are a second; `more` are further
    members. `start` and `call` are the seconds that the client waits by default, if known.
    """

    title: str
    user_file: Callable[[Machine], PurePath]
    project_file: str | None = None
    dialect: Dialect | Literal["toml"] | None = "json"
    container: str = "mcpServers"
    command: str = "command"
    arguments: str | None = "args"
    variables: str = "env"
    names: str | None = None
    reference: str | None = None
    references: re.Pattern[str] | None = None
    inherits: bool = False
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limit: tuple[str, int] | None = None
    start: float | None = None
    call: float | None = None
    check: str

    @property
    def writes_values(self) -> bool:
        """Whether an entry can only hold values of variables, not their names."""
        return self.reference is None and self.names is None

    def entry(
        self, command: Sequence[str], settings: Settings, passed: Mapping[str, str], env: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the entry that starts a server which has these settings.

        `passed` are variables that are set here; their values are written only where the client fills in no names.
        `env` are values that were asked for.
        """
        answer, search = settings.request.timeout_ms, settings.search.timeout_ms * settings.search.max_attempts
        search = search if "search" in settings.toolsets else 0
        secrets = secret_variables(settings.openai)
        names = [*secrets, *(() if self.inherits else passed)]
        given: dict[str, str] = {}
        if self.reference is not None:
            given = {name: self.reference.replace("NAME", name) for name in names}
        elif self.writes_values:
            given = {name: value for name, value in passed.items() if "@" not in value}
        given |= env
        if self.limit is None and self.call is not None:  # it cannot be told to wait longer
            if answer >= self.call * 1000:
                given |= {"OPENAI_API_TIMEOUT": f"{1000 * (self.call - _LESS):.0f}", "ANSWER_EFFORT": "low"}
            if search >= self.call * 1000:
                given |= {"SEARCH_MAX_ATTEMPTS": "1"}
        seconds = math.ceil(max(answer, search) / 1000) + _MORE
        program, *arguments = command
        return {
            self.command: program if self.arguments else [program, *arguments],
            **({self.arguments: arguments} if self.arguments else {}),
            **({self.variables: given} if given else {}),
            **({self.names: names} if self.names else {}),
            **self.more,
            **({self.limit[0]: seconds * self.limit[1]} if self.limit else {}),
        }

    def words_in(self, entry: Mapping[str, Any]) -> list[str]:
        """Return what an entry starts, with its arguments; nothing for one that starts nothing."""
        command = entry.get(self.command)
        if self.arguments is None:
            return texts_in(command)
        return [command, *texts_in(entry.get(self.arguments))] if isinstance(command, str) else []

    def waits(self, entry: Mapping[str, Any]) -> float | None:
        """Return how many seconds this client waits for a call by this entry; None if long enough, or not known."""
        name, units = self.limit or ("", 1)
        own = entry.get(name)
        if not isinstance(own, int | float) or isinstance(own, bool):
            return self.call
        return min(own, _FOREVER) / units


def _opencode_file(machine: Machine) -> PurePath:
    folder = machine.config / "opencode"  # on every system
    commented = folder / "opencode.jsonc"  # OpenCode reads it after the other, and it wins
    return commented if os.path.exists(commented) else folder / "opencode.json"  # noqa: PTH110  # raises nothing


def _zed_file(machine: Machine) -> PurePath:
    if machine.system == "mac":  # not where other desktop programs have theirs
        return machine.home / ".config" / "zed" / "settings.json"
    return machine.app_data / ("Zed" if machine.system == "windows" else "zed") / "settings.json"


def _goose_file(machine: Machine) -> PurePath:
    if machine.system == "windows":
        return machine.app_data / "Block" / "goose" / "config" / "config.yaml"
    return machine.config / "goose" / "config.yaml"


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(
        title="Claude Code",
        user_file=lambda machine: machine.named("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json",
        project_file=".mcp.json",
        reference="${NAME}",
        references=re.compile(rf"\$\{{{_VARIABLE}{_DEFAULT}\}}"),
        inherits=True,
        limit=("timeout", 1000),
        start=30,
        check="If Claude Code is running, restart it. 'claude mcp list' starts the server and shakes hands with it.",
    ),
    "claude-desktop": Client(
        title="Claude Desktop",
        user_file=lambda machine: machine.app_data / "Claude" / "claude_desktop_config.json",
        start=60,
        call=60,
        check="Quit Claude Desktop and start it again.",
    ),
    "cursor": Client(
        title="Cursor",
        user_file=lambda machine: machine.home / ".cursor" / "mcp.json",
        project_file=".cursor/mcp.json",
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
        reference="${env:NAME}",
        references=_ENV,
        more={"type": "stdio"},
        check="In VS Code, look at it with 'MCP: List Servers'.",
    ),
    "codex": Client(
        title="Codex",
        user_file=lambda machine: machine.named("CODEX_HOME", machine.home / ".codex") / "config.toml",
        project_file=".codex/config.toml",
        dialect="toml",
        container="mcp_servers",
        names="env_vars",
        more={"startup_timeout_sec": 30},  # not `required`: with that, Codex does not start once the command is gone
        limit=("tool_timeout_sec", 1),
        start=1,  # for the first turn
        call=60,
        check='If Codex is running, restart it. "{program} doctor --client codex" starts the server as Codex would.',
    ),
    "gemini": Client(
        title="Gemini CLI",
        user_file=lambda machine: machine.named("GEMINI_CLI_HOME", machine.home) / ".gemini" / "settings.json",
        project_file=".gemini/settings.json",
        dialect="json with comments",
        reference="$NAME",
        references=re.compile(rf"\$(?P<brace>\{{)?{_VARIABLE}(?(brace){_DEFAULT}\}})"),
        limit=("timeout", 1000),
        check="If Gemini is running, restart it. 'gemini mcp list', in a folder that Gemini trusts, starts the server "
        "and pings it.",
    ),
    "windsurf": Client(
        title="Windsurf",
        user_file=lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
        reference="${env:NAME}",
        references=_ENV,
        check="In Windsurf, press the refresh button of the MCP servers.",
    ),
    "zed": Client(
        title="Zed",
        user_file=_zed_file,
        dialect="jsonc",
        container="context_servers",
        limit=("timeout", 1),
        call=60,
        check="In Zed, look at the dot beside the server in the settings of the agent panel.",
    ),
    "opencode": Client(
        title="OpenCode",
        user_file=_opencode_file,
        project_file="opencode.json",
        dialect="jsonc",
        container="mcp",
        arguments=None,
        variables="environment",
        reference="{env:NAME}",
        references=re.compile(rf"\{{env:{_VARIABLE}\}}"),
        inherits=True,
        more={"type": "local"},
        limit=("timeout", 1000),
        check="If OpenCode is running, restart it. 'opencode mcp list' starts the server and shakes hands with it.",
    ),
    "goose": Client(
        title="Goose",
        user_file=_goose_file,
        dialect=None,
        container="extensions",
        command="cmd",
        variables="envs",
        names="env_keys",
        inherits=True,
        more={"type": "stdio", "enabled": True},
        limit=("timeout", 1),
        check="Then start a new session of Goose; in it, '/extension' or the settings show the extensions.",
    ),
}


# The command that starts this program


def this_executable() -> Path | None:
    """Return the absolute path of the script that this installation has, None where there is only the module.

    Links are not followed: the one in the user's `bin` outlives an update, what it leads to may not.
    """
    file, started = f"{NAME}.exe" if os.name == "nt" else NAME, Path(sys.argv[0])
    folders = Path(sysconfig.get_path("scripts")), Path(sys.executable).parent
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
