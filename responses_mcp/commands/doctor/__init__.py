"""`openai-responses-mcp doctor`: what is wrong here, and what to do about it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import trio

from responses_mcp import __version__
from responses_mcp.commands.clients.entries import Entry, Unreadable, find_entries, plugin_in, secret_variables
from responses_mcp.commands.clients.known import CLIENT_LIMITS, command_of, this_executable, this_machine
from responses_mcp.commands.doctor.configuration import (
    address_is_wrong,
    check_configuration,
    check_program,
)
from responses_mcp.commands.doctor.entries import check_entries, check_time_outs
from responses_mcp.commands.doctor.findings import Finding, Tell, fail_by, skip, warn
from responses_mcp.commands.doctor.handshake import Handshake, check_handshake, shake_hands
from responses_mcp.commands.doctor.model_ends import Announced, check_models
from responses_mcp.commands.doctor.network import ask_for_models, find_server
from responses_mcp.commands.doctor.network_settings import check_certificates, check_proxy, proxy_secrets
from responses_mcp.commands.parser import SHORTEST_SECRET, Parser
from responses_mcp.commands.terminal import (
    FAILED,
    StatusLine,
    Stop,
    on_terminal,
    parser_of,
    run_command,
    say,
    say_json,
    show_now,
)
from responses_mcp.errors import program
from responses_mcp.secrets import Redactor
from responses_mcp.settings.address import drop_unfilled
from responses_mcp.settings.load import LoadedSettings, load_settings
from responses_mcp.settings.model import Settings

_INDENT: Final = 19  # columns of status and check
_NAMES_OF_THE_USER: Final = ".azure.com"  # where deployments have names that the list of models does not know
_EXAMPLE: Final = """\
example:
  openai-responses-mcp doctor --offline
"""


def build_parser() -> Parser:
    """Return the parser of the command."""
    parser = parser_of(
        "doctor",
        usage="%(prog)s [options]",
        description="Check all that an answer needs, from the key to the handshake, and name the\n"
        "fix of what is wrong. The API is asked for its list of models, which is free of\n"
        "charge. The exit code is 0 when nothing failed.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("--all", action="store_true", help="on a terminal, show also what is well")
    parser.add_argument("--offline", action="store_true", help="leave out what needs the network")
    clients = ", ".join(CLIENT_LIMITS)
    told = f"judge for one client, and start the server as its entry says: {clients}"
    parser.add_argument("--client", metavar="NAME", choices=CLIENT_LIMITS, help=told)
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    parser.add_argument("--json", action="store_true", help="write one JSON document")
    return parser


def run(argv: Sequence[str], *, server: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code. `server` is the command to shake hands with, if not this program's."""
    options = build_parser().parse_options(argv)
    return run_command(lambda: _run(options, server))


def _run(options: argparse.Namespace, server: Sequence[str] | None) -> None:
    here = load_settings(os.environ, config_path=options.config)
    found: list[Entry | Unreadable] = []
    plugin = None
    with suppress(Stop):  # a user without a home has no files of clients there
        found = [each for each in find_entries(this_machine()) if options.client in {None, each.client}]
        plugin = plugin_in(this_machine())
    start = _Start.of(options, found, server, here)
    # Nothing that is said holds a secret on purpose; what an API or a child process says might.
    openais = (here.settings.openai, start.loaded.settings.openai)
    secrets = [secret for openai in openais for secret in openai.secrets]
    secrets += proxy_secrets()
    with _variables(start.environ):
        secrets += proxy_secrets()
    # A short word stands in for a key, as "local" does, and is a word of commands and paths as well.
    redact = Redactor(
        [secret for secret in secrets if secret and (len(secret) >= SHORTEST_SECRET or not secret.isalpha())]
    )
    findings: list[Finding] = []
    brief = on_terminal(sys.stdout) and not (options.all or options.json)

    def tell(finding: Finding) -> None:
        fix = None if finding.fix is None else redact(finding.fix)
        shown = finding._replace(found=redact(finding.found), fix=fix)
        findings.append(shown)
        status.show(f"{finding.check} checked")
        if not (options.json or brief):
            _say(shown)

    shaking = partial(shake_hands, start.command, redact, environ=start.environ, folder=start.folder)
    with StatusLine(on=brief) as status:
        trio.run(_check, options, start, here.settings, found, plugin, shaking, tell)
    failed = any(finding.status == "FAIL" for finding in findings)
    if options.json:
        checks = [{name: value for name, value in each._asdict().items() if value is not None} for each in findings]
        say_json({"version": __version__, "ok": not failed, "checks": checks})
    else:
        _say_summary(findings, brief=brief)
    if failed:
        raise Stop(code=FAILED)


class _Start(NamedTuple):
    """What to shake hands with: its command, the settings it has, its environment and folder, None for ours.

    `entry` is that of the client which says so.
    """

    command: Sequence[str]
    loaded: LoadedSettings
    environ: Mapping[str, str] | None = None
    folder: Path | None = None
    entry: Entry | None = None

    @classmethod
    def of(
        cls,
        options: argparse.Namespace,
        found: Sequence[Entry | Unreadable],
        server: Sequence[str] | None,
        here: LoadedSettings,
    ) -> _Start:
        """Return what the one client that is judged for would start; without an entry, the server as it is here.

        No file of the working directory is run: clients ask first whether an entry there is trusted, and an entry of
        the user is started where it says, else in the home folder, since `python -m` looks for modules where it starts.
        """
        if server is None and options.client is not None:
            for each in found:
                if not isinstance(each, Entry) or each.scope == "project" or each.hidden or each.is_older:
                    continue
                startable = each.program() is not None and not each.may_ask and each.fault is None
                if each.is_known_here and startable:
                    environ = each.variables(secret_variables(each.loaded(each.variables()).settings.openai))
                    folder = each.folder or Path(each.machine.home)
                    return cls(each.command, each.loaded(environ), environ, folder, each)
        # What a client would start: the module would be looked for in the working directory first.
        command = server or [*command_of(this_executable()), "--stdio"]
        return cls([*command, *([] if options.config is None else ["--config", options.config])], here)


async def _check(  # noqa: PLR0917
    options: argparse.Namespace,
    start: _Start,
    here: Settings,
    found: Sequence[Entry | Unreadable],
    plugin: tuple[str, Path] | None,
    shaking: Callable[[], Awaitable[Handshake]],
    tell: Tell,
) -> None:
    loaded, settings = start.loaded, start.loaded.settings
    entries = [each for each in found if isinstance(each, Entry) and not each.hidden]
    chosen = [] if options.client is None else [CLIENT_LIMITS[options.client]]
    having = list(dict.fromkeys(each.client for each in entries))
    for finding in (*check_program(), *check_configuration(loaded, options.client, start.entry, entries)):
        tell(finding)
    elsewhere = options.config is not None and loaded.settings is not here
    if elsewhere and not any(options.config in each.command for each in entries):
        again = f'run "{program()} install {options.client} --config {options.config} --write"'
        tell(warn("config", f"{options.config} is not what the entry names, so it was not looked at", again))
    with _variables(start.environ):
        listed = await _network(loaded, tell, offline=options.offline)
    own_names = (urlsplit(settings.openai.base_url).hostname or "").endswith(_NAMES_OF_THE_USER)
    today = datetime.now(UTC).date()
    for finding in check_models(
        settings.model_profiles, listed, today, all_listed=not own_names, sources=loaded.sources
    ):
        tell(finding)
    for finding in check_entries(found, here, options.client, started=start.entry, plugin=plugin):
        tell(finding)
    whose = "a server with the settings of this shell" + (", and not that of an entry," if chosen else "")
    if start.environ is not None:
        whose = "the server"
    judged = chosen or [CLIENT_LIMITS[client] for client in having] or list(CLIENT_LIMITS.values())
    try:
        renewal = None if start.entry is None else start.entry.renewal
        for finding in check_handshake(await shaking(), judged, whose, renewal):
            tell(finding)
    except OSError as error:
        what, fix = f"the server cannot be started ({error.strerror})", "install this program again"
        if start.folder is not None and not os.path.isdir(start.folder):  # noqa: ASYNC240, PTH112  # raises nothing
            what, fix = (
                f"its entry starts it in {start.folder}, which is not a folder",
                "correct cwd in that entry",
            )
        tell(fail_by(error, "start", what, fix))
    tell(check_time_outs(settings.request.timeout_ms, [] if found else chosen, entries))


@contextmanager
def _variables(of_entry: Mapping[str, str] | None) -> Generator[None]:
    """Have the variables that an entry starts the server with; httpx and Python's TLS ask no other place for them."""
    ours = dict(os.environ)
    if of_entry is not None:
        os.environ.clear()
        for name, value in of_entry.items():
            with suppress(ValueError, OSError):  # no system takes it; the start of the server tells that
                os.environ[name] = value
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(ours)


async def _network(loaded: LoadedSettings, tell: Tell, *, offline: bool) -> Mapping[str, Announced] | None:
    openai, trust_env = loaded.settings.openai, loaded.settings.request.trust_env
    for name in drop_unfilled(os.environ) if trust_env else ():
        check = "certificates" if name.startswith("SSL") else "proxy"
        ignored = f"{name} still holds a placeholder, so it is ignored"
        tell(warn(check, ignored, "set it where the client is started, or take it out of the client's entry"))
    certificates = check_certificates(openai.base_url, trust_env=trust_env)
    tell(certificates)
    if address_is_wrong(loaded):  # the default has taken its place, and must not be sent what is meant for another
        tell(skip("network", "not tried, because the address is not known"))
        return None
    findings, way = check_proxy(openai.base_url, trust_env=trust_env)
    for finding in findings:
        tell(finding)
    if offline:
        tell(skip("network", "not tried, because of --offline"))
    elif way is None or certificates.status == "FAIL":
        tell(skip("network", "not tried, because it cannot work before that is corrected"))
    else:
        await _embeddings(loaded, tell, trust_env=trust_env)
        return await ask_for_models(openai, way, tell, trust_env=trust_env)
    return None


async def _embeddings(loaded: LoadedSettings, tell: Tell, *, trust_env: bool) -> None:
    """Look whether the server of the embeddings is there, if it is another one."""
    chosen = loaded.settings.manuals.embeddings
    if chosen.provider == "api" and chosen.base_url is not None and loaded.settings.manuals.root is not None:
        _, way = check_proxy(chosen.base_url, trust_env=trust_env)
        if way is not None:
            tell(await find_server(way, "embeddings", "correct manuals.embeddings.base_url, or start that server"))


def _say(finding: Finding) -> None:
    say(f"{finding.status:<4} {finding.check + ':':<13} {finding.found}.")
    if finding.fix is not None:
        say(f"{'':<{_INDENT}}Fix: {finding.fix}{'' if finding.fix.endswith('?') else '.'}")
    show_now()


def _say_summary(findings: Sequence[Finding], *, brief: bool) -> None:
    """Say how it stands: what is wrong, the worst last, and how many checks are well; or in one line."""
    by_status = {
        status: [each for each in findings if each.status == status] for status in ("skip", "warn", "FAIL", "ok")
    }
    skipped, warned, failed, _ = (list(dict.fromkeys(each.check for each in those)) for those in by_status.values())
    if brief:
        for finding in (*by_status["skip"], *by_status["warn"], *by_status["FAIL"]):
            _say(finding)
        say(f"{len(by_status['ok'])} ok (--all shows them)")
        return
    told = [
        f"{len(by_status['FAIL'])} failed ({', '.join(failed)})" if failed else "nothing failed",
        f"{len(by_status['warn'])} to look at ({', '.join(warned)})" if warned else "",
        f"not checked: {', '.join(skipped)}" if skipped else "",
    ]
    say(f"{len(findings)} checks: {'; '.join(filter(None, told))}.")
