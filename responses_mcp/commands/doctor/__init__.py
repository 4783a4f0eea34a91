"""`openai-responses-mcp doctor`: finds faults of the installation, and names their fixes."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import trio

from responses_mcp import __version__
from responses_mcp.commands.clients.entries import Entry, find_entries, judge, verdict
from responses_mcp.commands.clients.known import CLIENTS, command_of, this_executable, this_machine
from responses_mcp.commands.doctor.configuration import address_is_wrong, check_configuration, check_program
from responses_mcp.commands.doctor.handshake import check_handshake, shake_hands
from responses_mcp.commands.doctor.model_ends import check_models
from responses_mcp.commands.doctor.network import ask_for_models, check_surroundings
from responses_mcp.commands.findings import Finding, Tell, fail_by, ok, skip, warn
from responses_mcp.commands.parser import Parser, parser_of
from responses_mcp.commands.terminal import (
    FAILED,
    StatusLine,
    Stop,
    on_terminal,
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
        description="Check what an answer needs, from the key to the handshake, with a fix for each\n"
        "problem. Requests the API's list of models, which is free of charge. The exit\n"
        "code is 0 when nothing failed.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("--all", action="store_true", help="on a terminal, show the checks that passed as well")
    parser.add_argument("--offline", action="store_true", help="skip the checks that need the network")
    told = f"check one client, and start the server as its entry does: {', '.join(CLIENTS)}"
    parser.add_argument("--client", metavar="NAME", choices=CLIENTS, help=told)
    parser.add_common_options()
    return parser


def run(argv: Sequence[str], *, server: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code. `server` is the command to shake hands with, if not this program's."""
    options = build_parser().parse_options(argv)
    return run_command(lambda: _run(options, server))


def _run(options: argparse.Namespace, server: Sequence[str] | None) -> None:
    subject = _subject(options)
    if server is not None:
        subject = subject._replace(command=server)
    # Nothing that is said holds a secret on purpose; what an API or a child process says might.
    secrets = {*subject.here.openai.secrets, *subject.loaded.settings.openai.secrets}
    redact = Redactor(secrets)
    findings: list[Finding] = []
    brief = on_terminal(sys.stdout) and not (options.all or options.json)

    def tell(finding: Finding) -> None:
        shown = finding._replace(found=redact(finding.found), fix=finding.fix and redact(finding.fix))
        findings.append(shown)
        status.show(f"{finding.check} checked")
        if not (options.json or brief):
            _say(shown)

    with StatusLine(on=brief) as status:
        trio.run(partial(_check, subject, redact, tell, offline=options.offline))
    failed = any(finding.status == "FAIL" for finding in findings)
    if options.json:
        checks = [{name: value for name, value in each._asdict().items() if value is not None} for each in findings]
        say_json({"version": __version__, "ok": not failed, "checks": checks})
    else:
        _say_summary(findings, brief=brief)
    if failed:
        raise Stop(code=FAILED)


class _Subject(NamedTuple):
    """What is checked: the entries found, the settings, and the command to shake hands with.

    With `--client` both are those of the first `entry` that can be started, if there is one.
    """

    client: str | None
    found: Sequence[Entry]
    here: Settings
    loaded: LoadedSettings
    command: Sequence[str]
    entry: Entry | None = None


def _subject(options: argparse.Namespace) -> _Subject:
    here = load_settings(os.environ, config_path=options.config)
    found: list[Entry] = []
    with suppress(Stop):  # a user without a home has no files of clients
        found = [each for each in find_entries(this_machine()) if options.client in {None, each.client}]
    for each in found if options.client else ():
        # No file of the working directory decides: clients ask first whether an entry there is trusted.
        if each.scope != "project" and each.serves and verdict(each).status == "ok":
            command = [each.program or "", *each.command[1:]]
            return _Subject(options.client, found, here.settings, each.loaded(), command, each)
    config = [] if options.config is None else ["--config", options.config]
    command = [*command_of(this_executable()), "--stdio", *config]
    return _Subject(options.client, found, here.settings, here, command)


async def _check(subject: _Subject, redact: Callable[[str], str], tell: Tell, *, offline: bool) -> None:
    loaded, settings = subject.loaded, subject.loaded.settings
    entries = [each for each in subject.found if each.problem is None]
    for finding in (*check_program(), *check_configuration(loaded, subject.entry, entries)):
        tell(finding)
    listed = await _network(loaded, tell, offline=offline)
    own_names = (urlsplit(settings.openai.base_url).hostname or "").endswith(_NAMES_OF_THE_USER)
    today = datetime.now(UTC).date()
    models = check_models(settings.model_profiles, listed, today, all_listed=not own_names, sources=loaded.sources)
    for finding in (*models, *_clients(subject)):
        tell(finding)
    tell(ok("time-outs", f"a call may take {settings.request.timeout_ms / 1000:g} s (request.timeout_ms)"))
    having = {each.client for each in entries} or CLIENTS
    judged = [CLIENTS[name] for name in ([subject.client] if subject.client else having)]
    # A client would start the server anywhere; in the working directory, `python -m` would run what lies there.
    entry = subject.entry
    started = None if entry is None else (entry.variables(), Path(entry.machine.home))
    whose = "a server with the settings of this shell" if subject.client and entry is None else "the server"
    try:
        for finding in check_handshake(await shake_hands(subject.command, redact, started), judged, whose):
            tell(finding)
    except OSError as error:
        told = f"{whose} cannot be started ({error.strerror})"
        tell(fail_by(error, "start", told, "install this program again"))


def _clients(subject: _Subject) -> Iterator[Finding]:
    """Judge the entries; nothing fails but what the one client has that was asked for."""
    client, found = CLIENTS.get(subject.client or ""), subject.found
    if client is not None and client.dialect is None:
        yield ok("clients", f"doctor does not read the file of {client.title}; look under its extensions")
    elif not found and client is not None:
        fix = f'run "{program("install", subject.client or "", "--write")}"'
        yield warn("clients", f"{client.title} has no entry for this server", fix)
    elif not found:
        yield ok("clients", f'no client has an entry for this server; "{program()} install CLIENT --write" adds one')
    for finding in (finding for each in found for finding in judge(each, subject.here)):
        yield finding._replace(status="warn") if finding.status == "FAIL" and client is None else finding


async def _network(loaded: LoadedSettings, tell: Tell, *, offline: bool) -> Mapping[str, date | None] | None:
    settings = loaded.settings
    trust_env = settings.request.trust_env
    for name in drop_unfilled(os.environ) if trust_env else ():
        told = f"{name} still holds a placeholder, so it is ignored"
        tell(warn("proxy", told, "set it where the client is started, or take it out of the client's entry"))
    if address_is_wrong(loaded):  # the default has taken its place, and must not be sent what is meant for another
        tell(skip("network", "not tried, because the configuration has errors and the address may be wrong"))
        return None
    findings, way = check_surroundings(settings.openai.base_url, trust_env=trust_env)
    for finding in findings:
        tell(finding)
    if offline or way is None:
        why = "of --offline" if offline else "the proxy or the certificates cannot be used"
        tell(skip("network", f"not tried, because {why}"))
        return None
    return await ask_for_models(settings.openai, way, tell, trust_env=trust_env)


def _say(finding: Finding) -> None:
    say(f"{finding.status:<4} {finding.check + ':':<13} {finding.found}.", hanging=_INDENT)
    if finding.fix is not None:
        say(f"{'':<{_INDENT}}Fix: {finding.fix}{'' if finding.fix.endswith('?') else '.'}", hanging=_INDENT)
    show_now()


def _say_summary(findings: Sequence[Finding], *, brief: bool) -> None:
    """Say how many checks are well or not; with `brief`, what is wrong before that, the worst last."""
    for status in ("skip", "warn", "FAIL") if brief else ():
        for finding in findings:
            if finding.status == status:
                _say(finding)
    counts = Counter(finding.status for finding in findings)
    told = ", ".join(f"{counts[status]} {status}" for status in ("ok", "skip", "warn", "FAIL") if counts[status])
    say(f"{told} (--all shows all)" if brief else told)
