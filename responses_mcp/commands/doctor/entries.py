"""What clients have been told: their entries of this server, what these start and pass on, and how long they wait."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.commands.clients.files import NOT_UNDERSTOOD, texts_in
from responses_mcp.commands.clients.installed import (
    Installed,
    Unreadable,
    from_the_root,
    read_by_server,
    secret_variables,
    without_values,
)
from responses_mcp.commands.clients.known import CLIENTS, ClientLimits, client_limit
from responses_mcp.commands.doctor.configuration import check_manuals
from responses_mcp.commands.doctor.findings import Finding, fail, ok, warn
from responses_mcp.errors import program
from responses_mcp.settings.address import is_loopback, is_placeholder
from responses_mcp.settings.model import OpenAISettings, Settings
from responses_mcp.settings.setting import names_in

_BROKEN: Final = (
    *("it is not valid ", "it is not UTF-8"),
    *("it holds something other than ", "it holds a number that is no JSON"),
)
_TIMEOUT: Final = "OPENAI_API_TIMEOUT"
_MANUALS: Final = "MANUALS_ROOT"
_TOOLSETS: Final = "MCP_TOOLSETS"
_OF_PLUGIN: Final = "claude-code"


def check_entries(
    found: Sequence[Installed | Unreadable],
    settings: Settings,
    client: str | None,
    *,
    root: str | None,
    plugin: tuple[str, Path] | None,
) -> Iterator[Finding]:
    """Say of each entry whether it starts something, whether the key and what else is set get there, and its manuals.

    `settings` are those of this shell. `client` is the one that is judged for, None for all; what is found is of that
    client only. `root` is a folder of manuals that was looked at already, as an entry offers it. `plugin` is that of
    Claude Code, and what turns it on.
    """
    openai = settings.openai
    if plugin is not None and client in {None, _OF_PLUGIN}:
        yield _plugin(found, *plugin)
    elif not found and client is not None and client in CLIENTS:
        fix = f'run "{program()} install {client} --write", and "{program()} install --list" to see all'
        yield warn("clients", f"{CLIENTS[client].title} has no entry for this server", fix)
    elif not found:
        yield ok("clients", f'none has an entry for this server; "{program()} install CLIENT --write" adds one')
    for each in found:
        title = CLIENTS[each.client].title
        if isinstance(each, Unreadable):
            # What is kept for its owner, or written in a way that we do not change, the client itself may read.
            verdict = fail if client is not None and each.why.startswith(_BROKEN) else warn
            why = each.why.removesuffix("; correct that")
            cure = "make it and its folder readable" if why.startswith("it cannot be read") else "correct that file"
            if why.startswith(NOT_UNDERSTOOD):
                cure = f"look at its entry yourself, if {title} reads that file"
            yield verdict("clients", f"{each.file} of {title} was not read: {why}", cure)
            continue
        where, again = f"by {each.place}", each.renewal
        verdict = warn if client is None else fail
        if each.hidden:
            comes_first = (
                f"{title} does not go by {each.place}: the one of that name for this project alone comes first"
            )
            yield warn("clients", comes_first, f'to have this one, run "{each._replace(scope="local").removal}"')
        elif each.unstartable is not None or each.is_predecessor or each.program() is None:
            if each.unstartable is not None:
                what = f"cannot start it: {each.unstartable}"
            elif each.is_predecessor:
                verdict, what = warn, "starts the older program of this name, which runs on Node"
            else:
                what = f"is told to start {without_values(each.command[0])}, which is not there"
            cure = again if each.scope == "local" else f'{again}, or "{each.removal}"'
            yield verdict("clients", f"{title} {what}, {where}", cure)
        elif wrong := [name for name, value in each.given.items() if not isinstance(value, str)]:
            yield verdict("clients", f"{title} refuses the value of {wrong[0]}, which is no text, {where}", again)
        elif (arguments := each.entry.get(CLIENTS[each.client].members.arguments or "", [])) != texts_in(arguments):
            refused = f"{title} refuses {CLIENTS[each.client].members.arguments}, which is no list of texts, {where}"
            yield verdict("clients", refused, again)
        elif each.entry.get(variables := CLIENTS[each.client].members.variables, each.given) != each.given:
            yield verdict("clients", f"{title} refuses {variables}, which is no table of variables, {where}", again)
        elif each.unknown:
            wrong_option = f"{title} gives it {without_values(each.unknown[0])}, which is none of its options, {where}"
            yield verdict("clients", wrong_option, again)
        elif CLIENTS[each.client].turns_off(each.entry):
            off = f"{title} has it turned off, {where}"
            yield warn(
                "clients", off, f"set {CLIENTS[each.client].members.switch} to true there, if you want to use it"
            )
        elif each.refusal is not None:
            refused, cure = each.refusal
            yield verdict("clients", f"{refused}: {each.place}", cure)
        elif lacking := _lacking(each, openai):
            fix = each.by_hand(lacking) if CLIENTS[each.client].writes_values else again
            yield warn("clients", f"{title} does not pass {', '.join(lacking)} on, {where}", fix)
        else:
            unstarted = (
                "; it is not started here, because that file is of this folder" if each.scope == "project" else ""
            )
            if each.line_without_stdio:
                unstarted = "; it is not started here, because its line for a shell has no --stdio"
            asks = ""
            if not each.entry.items() >= CLIENTS[each.client].trust.items():
                asks = f'; it asks before each call, which "{each.install("--trust", "--write")}" ends'
            yield ok("clients", f"{title} starts {without_values(each.command[0])}, {where}{unstarted}{asks}")
            yield from _surroundings(each, settings, where, again, root)


def _plugin(found: Sequence[Installed | Unreadable], name: str, file: Path) -> Finding:
    """Say that there is a plugin, which is one too many beside an entry."""
    has = f"{CLIENTS[_OF_PLUGIN].title} has the plugin {name}"
    entries = [each for each in found if isinstance(each, Installed) and each.client == _OF_PLUGIN]
    if not entries:
        return ok("clients", f"{has}, turned on in {file}")
    twice = f"{has} beside {entries[0].name} in {entries[0].file}, so tools appear twice"
    return warn("clients", twice, f"to have one of them, run claude plugin disable {name}")


def _surroundings(
    entry: Installed, settings: Settings, where: str, again: str, looked_at: str | None
) -> Iterator[Finding]:
    """Say what is set here and does not get there, and look at the folder of manuals that the entry names."""
    title, given = CLIENTS[entry.client].title, entry.variables()
    own = secret_variables(settings.openai)
    lost = {
        name: value for name, value in read_by_server(entry.machine.environ) if name not in given and name not in own
    }
    by_hand = [name for name, value in lost.items() if CLIENTS[entry.client].leaves_out(value)]
    others = [name for name in lost if name not in by_hand]
    for names, cure in zip((by_hand, others), (entry.by_hand(by_hand), again), strict=True):
        if names:
            yield warn("clients", f"{title} does not pass on {', '.join(names)}, set here, {where}", cure)
    for name, path in entry.relative_paths.items():
        told = f"{title} may start it elsewhere, and {name} is {path}, a relative path, {where}"
        whole = from_the_root(name, path, entry.machine)
        literal = entry.given.get(name) == path
        yield warn("clients", told, "write it from the root there" if literal else f"set it to {whole}")
    root = given.get(_MANUALS, "")
    if root == looked_at:
        return
    toolsets = entry.options.get("--toolsets") or given.get(_TOOLSETS, "")
    if root.strip() and toolsets.strip() and "manuals" not in names_in(toolsets):
        written = entry.options_written.get("--toolsets") or toolsets
        left_out = f"{title} does not offer those in {root}: its list of toolsets is {written}, {where}"
        yield warn("manuals", left_out, "add manuals to that list")
    if not root.strip() or root == settings.manuals.root or entry.is_elsewhere(root):
        return
    if not os.path.isdir(root):  # noqa: PTH112  # raises nothing
        again = entry.install("--write", "--manuals", "DIR")
        fix = f'run "{again}" with the folder in which your manuals are'
        yield warn("manuals", f"{title} is told that manuals are in {root}, which is not a folder, {where}", fix)
    else:
        for found in check_manuals(root, f"run {entry.install('--write', '--manuals')}"):
            yield found._replace(found=f"for {title}, {found.found}")


def _lacking(entry: Installed, openai: OpenAISettings) -> list[str]:
    """Return what of the key and the headers does not reach the server; one that is set nowhere is told elsewhere."""
    secrets = secret_variables(openai)
    given, judged = entry.variables(secrets), list(openai.headers_env.values())
    stands_in = is_loopback(urlsplit(openai.base_url).hostname or "") or (openai.headers and openai.api_key is None)
    if not stands_in and (openai.api_key is not None or CLIENTS[entry.client].writes_values):
        judged.insert(0, openai.api_key_env)
    return [
        name
        for name in dict.fromkeys(judged)
        if (not given.get(name, "").strip() or is_placeholder(given[name])) and entry.elsewhere(name) is None
    ]


def check_time_outs(timeout_ms: int, clients: Sequence[ClientLimits], entries: Sequence[Installed] = ()) -> Finding:
    """Compare the time limit of a call with those of the clients, which would discard a billed answer.

    Of a client with an entry, what the entry says counts; `clients` have none, or it is not known.
    """
    seconds = timeout_ms / 1000
    within = _may_take(seconds)
    if seconds < 1:
        fix = f"set it to milliseconds in which an answer comes, such as {_TIMEOUT}=300000"
        return warn("time-outs", f"{within}, too short for most answers", fix)
    anew = f'run "{program()} install CLIENT --write" again'
    hasty = [(each, each.call, anew, seconds) for each in clients if each.call is not None and each.call <= seconds]
    for each in entries:
        own, waits = _own_limit(each, seconds), CLIENTS[each.client].waits(each.entry)
        if waits is not None and waits <= own:
            hasty.append((CLIENTS[each.client], waits, each.renewal, own))
    if not hasty:
        return ok("time-outs", within)
    told: dict[float, list[str]] = {}
    for client, limit, _, own in hasty:
        told.setdefault(own, []).append(f"{client.title} ({limit:g} s)")
    cures = [
        client.call_cure.format(limit=client_limit(round(own * 1000))) if client.call_cure else again
        for client, _, again, own in hasty
    ]
    return warn(
        "time-outs",
        "; ".join(
            f"{_may_take(own)}, longer than some wait: {', '.join(dict.fromkeys(those))}" for own, those in told.items()
        ),
        "; ".join(dict.fromkeys(cures)),
    )


def _may_take(seconds: float) -> str:
    return f"a call may take {seconds:g} s (request.timeout_ms)"


def _own_limit(entry: Installed, seconds: float) -> float:
    """Return how many seconds a call may take where the entry has a word in it."""
    given = entry.given.get(_TIMEOUT)
    try:
        return int(given) / 1000 if isinstance(given, str | int) else seconds
    except (ValueError, OverflowError):
        return seconds
