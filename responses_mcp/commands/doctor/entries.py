"""Judges the entries of clients: what they start, what they pass on, and how long their clients wait."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from responses_mcp.commands.clients.entries import (
    Entry,
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
from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.address import is_loopback
from responses_mcp.settings.model import OpenAISettings, Settings
from responses_mcp.settings.setting import names_in

_BROKEN: Final = (
    *("it is not valid JSON", "it is not UTF-8"),
    *("it holds something other than ", "it holds a number that is no JSON"),
)
_TIMEOUT: Final = "OPENAI_API_TIMEOUT"
_OF_PLUGIN: Final = "claude-code"


def check_entries(
    found: Sequence[Entry | Unreadable],
    settings: Settings,
    client: str | None,
    *,
    started: Entry | None,
    plugin: tuple[str, Path] | None,
) -> Iterator[Finding]:
    """Judge all that was found in the files of one `client`, or of all for None; nothing fails but what that one has.

    `settings` are those of this shell. The manuals of the entry that is `started` are looked at elsewhere. `plugin` is
    that of Claude Code, and what turns it on.
    """
    known = CLIENTS.get(client or "")
    if plugin is not None and client in {None, _OF_PLUGIN}:
        yield _plugin(found, *plugin)
    elif not found and known is not None and known.dialect is None:
        yield ok("clients", f"the file of {known.title} is not read; see its extensions there")
    elif not found and known is not None:
        fix = f'run "{program()} install {client} --write", and "{program()} install --list" to see all'
        yield warn("clients", f"{known.title} has no entry for this server", fix)
    elif not found:
        yield ok("clients", f'none has an entry for this server; "{program()} install CLIENT --write" adds one')
    for each in found:
        for finding in (_unread(each),) if isinstance(each, Unreadable) else judge(each, settings):
            if finding.check == "manuals" and each is started:
                continue
            softened = finding.status == "FAIL" and client is None
            yield finding._replace(status="warn") if softened else finding


def judge(entry: Entry, settings: Settings) -> list[Finding]:
    """Return whether an entry starts this server, and, where it does, what does not get there.

    `settings` are those of this shell, whose folder of manuals was looked at already.
    """
    first = verdict(entry)
    if first.status != "ok":
        return [first]
    return [first, *_passed(entry, settings.openai), *_manuals(entry, settings.manuals.root)]


def verdict(entry: Entry) -> Finding:
    """Return whether an entry starts this server."""
    client, where, again = CLIENTS[entry.client], f"by {entry.place}", entry.renewal
    title = client.title
    either = again if entry.scope == "local" else f'{again}, or "{entry.removal}"'
    if entry.hidden:
        told = f"{title} does not go by {entry.place}: the one of that name for this project alone comes first"
        return warn("clients", told, f'to have this one, run "{entry._replace(scope="local").removal}"')
    if entry.fault is not None:
        return fail("clients", f"{title} cannot use it: {entry.fault}, {where}", either)
    if entry.is_older:
        return warn("clients", f"{title} starts the older program of this name, which runs on Node, {where}", either)
    command = without_values(entry.command[0])
    if entry.program() is None:
        return fail("clients", f"{title} is told to start {command}, which is not there, {where}", either)
    if entry.unknown:
        told = f"{title} gives it {without_values(entry.unknown[0])}, which is none of its options, {where}"
        return fail("clients", told, again)
    if client.turns_off(entry.said):
        cure = f"set {client.members.switch} to true there, if you want to use it"
        return warn("clients", f"{title} has it turned off, {where}", cure)
    if entry.refusal is not None:
        refused, cure = entry.refusal
        return fail("clients", f"{refused}: {entry.place}", cure)
    more = "; it asks before each call" if not entry.said.items() >= client.trust.items() else ""
    more += f', which "{entry.install("--trust", "--write")}" ends' if more else ""
    return ok("clients", f"{title} starts {command}, {where}{more}")


def _unread(file: Unreadable) -> Finding:
    """Return that a file was not read; what is kept for its owner, or is TOML 1.1, the client itself may read."""
    why = file.why.removesuffix("; correct that")
    cure = "make it and its folder readable" if why.startswith("it cannot be read") else "correct that file"
    if why.startswith("it is not valid TOML"):
        cure = f"correct that file, or look at its entry yourself if {CLIENTS[file.client].title} reads it"
    told = f"{file.file} of {CLIENTS[file.client].title} was not read: {why}"
    return (fail if why.startswith(_BROKEN) else warn)("clients", told, cure)


def _plugin(found: Sequence[Entry | Unreadable], name: str, file: Path) -> Finding:
    """Return that there is a plugin, which is one too many beside an entry."""
    has = f"{CLIENTS[_OF_PLUGIN].title} has the plugin {name}"
    entries = [each for each in found if isinstance(each, Entry) and each.client == _OF_PLUGIN]
    if not entries:
        return ok("clients", f"{has}, turned on in {file}")
    twice = f"{has} beside {entries[0].name} in {entries[0].file}, so tools appear twice"
    return warn("clients", twice, f"to have one of them, run claude plugin disable {name}")


def _passed(entry: Entry, openai: OpenAISettings) -> Iterator[Finding]:
    """Yield what is set here, or has to stand in the entry, and does not reach the server as it should."""
    client, where = CLIENTS[entry.client], f"by {entry.place}"
    if lacking := _lacking(entry, openai):
        fix = f"{entry.by_hand(lacking)}, and let nobody else read that file" if client.writes_values else entry.renewal
        yield warn("clients", f"{client.title} does not pass {', '.join(lacking)} on, {where}", fix)
    given, own = entry.variables(), secret_variables(openai)
    set_here = {name: value for name, value in read_by_server(entry.machine.environ) if name not in own}
    lost = [name for name in set_here if name not in given]
    by_hand = [name for name in lost if client.leaves_out(set_here[name])]
    others = [name for name in lost if name not in by_hand]
    for names, cure in zip((by_hand, others), (entry.by_hand(by_hand), entry.renewal), strict=True):
        if names:
            yield warn("clients", f"{client.title} does not pass on {', '.join(names)}, set here, {where}", cure)
    for name, path in entry.relative_paths.items():
        told = f"{client.title} may start it elsewhere, and {name} is {path}, a relative path, {where}"
        whole = from_the_root(name, path, entry.machine)
        literal = entry.given.get(name) == path
        yield warn("clients", told, "write it from the root there" if literal else f"set it to {whole}")


def _manuals(entry: Entry, looked_at: str | None) -> Iterator[Finding]:
    """Look at the folder of manuals that the entry names, and whether they are offered."""
    title, given = CLIENTS[entry.client].title, entry.variables()
    root = given.get("MANUALS_ROOT", "")
    if not root.strip() or entry.is_elsewhere(root):
        return
    toolsets = entry.options.get("--toolsets") or given.get("MCP_TOOLSETS", "")
    if toolsets.strip() and "manuals" not in names_in(toolsets):
        written = entry.options_written.get("--toolsets") or toolsets
        left_out = f"{title} does not offer those in {root}: its list of toolsets is {written}, by {entry.place}"
        yield warn("manuals", left_out, "add manuals to that list")
    if root == looked_at:
        return
    if os.path.isdir(root):  # noqa: PTH112  # raises nothing
        for found in check_manuals(root):
            yield found._replace(found=f"for {title}, {found.found}")
    else:
        fix = f'run "{entry.install("--write", "--manuals", "DIR")}" with the folder in which your manuals are'
        told = f"{title} is told that manuals are in {root}, which is not a folder, by {entry.place}"
        yield warn("manuals", told, fix)


def _lacking(entry: Entry, openai: OpenAISettings) -> list[str]:
    """Return what of the key and the headers does not reach the server; one that is set nowhere is told elsewhere."""
    secrets = secret_variables(openai)
    given, judged = entry.variables(secrets), list(openai.headers_env.values())
    stands_in = is_loopback(urlsplit(openai.base_url).hostname or "") or (openai.headers and openai.api_key is None)
    if not stands_in and (openai.api_key is not None or CLIENTS[entry.client].writes_values):
        judged.insert(0, openai.api_key_env)
    return [
        name
        for name in dict.fromkeys(judged)
        if (not given.get(name, "").strip() or is_unfilled(given[name])) and entry.elsewhere(name) is None
    ]


def check_time_outs(timeout_ms: int, clients: Sequence[ClientLimits], entries: Sequence[Entry] = ()) -> Finding:
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
        own, waits = _own_limit(each, seconds), CLIENTS[each.client].waits(each.said)
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


def _own_limit(entry: Entry, seconds: float) -> float:
    """Return how many seconds a call may take where the entry has a word in it."""
    given = entry.given.get(_TIMEOUT)
    try:
        return int(given) / 1000 if isinstance(given, str | int) else seconds
    except (ValueError, OverflowError):
        return seconds
