"""`openai-responses-mcp doctor`: what is wrong here, and what to do about it, one line a check."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import trio

from responses_mcp import __version__
from responses_mcp.commands.clients import CLIENT_LIMITS, command_of, this_executable
from responses_mcp.commands.doctor.configuration import (
    address_is_wrong,
    check_configuration,
    check_program,
    check_time_outs,
)
from responses_mcp.commands.doctor.findings import Finding, Tell, fail_by, skip
from responses_mcp.commands.doctor.handshake import Handshake, check_handshake, shake_hands
from responses_mcp.commands.doctor.model_ends import check_models
from responses_mcp.commands.doctor.network import ask_for_models
from responses_mcp.commands.doctor.network_settings import check_certificates, check_proxy, proxy_secrets
from responses_mcp.commands.terminal import FAILED, Stop, parser_of, run_command, say, say_json, write
from responses_mcp.redaction import Redactor
from responses_mcp.settings.load import LoadedSettings, load_settings

_COLOURS: Final = {"ok": "32", "warn": "33", "FAIL": "1;31", "skip": "2"}
_NAMES_OF_THE_USER: Final = ".azure.com"  # where deployments have names that the list of models does not know
_EXAMPLE: Final = """\
example:
  openai-responses-mcp doctor --offline
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = parser_of(
        "doctor",
        usage="%(prog)s [options]",
        description="Check all that an answer needs, from the key to the handshake. Each line says\n"
        "ok, warn or FAIL, what was found, and the cure. The API is asked for its list of\n"
        "models, which is free of charge. The exit code is 0 when nothing failed.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("--offline", action="store_true", help="leave out what needs the network")
    clients = ", ".join(CLIENT_LIMITS)
    parser.add_argument("--client", metavar="NAME", choices=CLIENT_LIMITS, help=f"judge for one client: {clients}")
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    parser.add_argument("--json", action="store_true", help="write one JSON document")
    return parser


def run(argv: Sequence[str], *, server: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code. `server` is the command to shake hands with, if not this program's."""
    options = build_parser().parse_args(argv)
    # What a client would start: the module would be looked for in the working directory first.
    return run_command(lambda: _run(options, server or [*command_of(this_executable()), "--stdio"]))


def _run(options: argparse.Namespace, server: Sequence[str]) -> None:
    loaded = load_settings(os.environ, config_path=options.config)
    server_command = [*server, *([] if options.config is None else ["--config", options.config])]
    openai = loaded.settings.openai
    # Nothing that is said holds a secret on purpose; what an API or a child process says might.
    redact = Redactor([openai.api_key, *openai.headers.values(), *proxy_secrets()])
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        cure = None if finding.cure is None else redact(finding.cure)
        shown = finding._replace(found=redact(finding.found), cure=cure)
        findings.append(shown)
        if not options.json:
            _say(shown)

    trio.run(_check, options, loaded, partial(shake_hands, server_command, redact), tell)
    failed = any(finding.status == "FAIL" for finding in findings)
    if options.json:
        checks = [{name: value for name, value in each._asdict().items() if value is not None} for each in findings]
        say_json({"version": __version__, "ok": not failed, "checks": checks})
    if failed:
        raise Stop(code=FAILED)


async def _check(
    options: argparse.Namespace, loaded: LoadedSettings, start: Callable[[], Awaitable[Handshake]], tell: Tell
) -> None:
    settings = loaded.settings
    clients = list(CLIENT_LIMITS.values()) if options.client is None else [CLIENT_LIMITS[options.client]]
    for finding in (*check_program(), *check_configuration(loaded)):
        tell(finding)
    listed = await _network(loaded, tell, offline=options.offline)
    own_names = (urlsplit(settings.openai.base_url).hostname or "").endswith(_NAMES_OF_THE_USER)
    today = datetime.now(UTC).date()
    for finding in check_models(settings.model_profiles, listed, today, all_listed=not own_names):
        tell(finding)
    try:
        for finding in check_handshake(await start(), clients):
            tell(finding)
    except OSError as error:
        tell(fail_by(error, "start", f"the server cannot be started ({error.strerror})", "install this program again"))
    tell(check_time_outs(settings.request.timeout_ms, clients))


async def _network(loaded: LoadedSettings, tell: Tell, *, offline: bool) -> frozenset[str] | None:
    openai, trust_env = loaded.settings.openai, loaded.settings.request.trust_env
    certificates = check_certificates(trust_env=trust_env)
    tell(certificates)
    if address_is_wrong(loaded):  # the default has taken its place, and must not be sent what is meant for another
        tell(skip("network", "not tried, because it is not known where to"))
        return None
    findings, way = check_proxy(openai.base_url, trust_env=trust_env)
    for finding in findings:
        tell(finding)
    if offline:
        tell(skip("network", "not tried, because of --offline"))
    elif way is None or certificates.status == "FAIL":
        tell(skip("network", "not tried, because it cannot work before that is corrected"))
    else:
        return await ask_for_models(openai, way, tell, trust_env=trust_env)
    return None


def _say(finding: Finding) -> None:
    status = f"{finding.status:<4}"
    write(f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m" if _in_colour() else status)
    say(f" {finding.check + ':':<13} {finding.found}." + ("" if finding.cure is None else f" Cure: {finding.cure}."))
    sys.stdout.flush()


def _in_colour() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return False
    return os.name != "nt" or "WT_SESSION" in os.environ  # the old console of Windows would show the codes
