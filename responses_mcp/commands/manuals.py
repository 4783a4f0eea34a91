"""`openai-responses-mcp manuals index|find|read|ls`: the folder of manuals, for people."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict, replace
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

import trio

from responses_mcp.commands.embedding import embed
from responses_mcp.commands.parser import Parser, no_command, whole_number
from responses_mcp.commands.terminal import (
    FAILED,
    NAME,
    WRONG,
    StatusLine,
    Stop,
    columns,
    configured,
    counted,
    on_terminal,
    remark,
    run_command,
    say,
    say_json,
    say_text,
)
from responses_mcp.errors import installing, program
from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.provider import address_of, open_embedder
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import NEEDS_EXTRA, OTHER_FORMAT, UNREADABLE, Folder
from responses_mcp.manuals.files.unserved import (
    NO_FILES,
    about_links,
    in_words,
    why_empty,
)
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.parsing import parse_search
from responses_mcp.manuals.requests.paths import file_type, parts_of
from responses_mcp.manuals.results.search_results import OUT_OF_TIME, SearchRow, meant_by
from responses_mcp.manuals.service import IndexReport, Manuals, open_manuals
from responses_mcp.settings.model import ManualsSettings, Settings

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_Work = Callable[[Manuals, ManualsSettings, argparse.Namespace], Awaitable[None]]

_ALL: Final = 2**53  # characters
_PAGE: Final = 50_000  # characters of a file written at once
_LONG: Final = 3_000  # characters of a section, which is read from near the line that was asked for,
_ABOVE: Final = 3  # with so many lines before it
_MOST_LISTED: Final = 20  # files that are not in the index, and manuals with some
_HITS: Final = 10
_HITS_ON_SCREEN: Final = 5  # with the first one in sight on 24 lines
_LINES_OF_TEXT: Final = 2
_WORD: Final = re.compile(r"[a-zA-Z0-9]{3,40}|[\u3400-\u9fff々]{2,20}|[ァ-ヶー]{2,40}")
_ASKING: Final = frozenset(
    ["and", "are", "can", "does", "for", "from", "how", "long", "the", "what", "when", "where", "which", "with"]
)
_MOST_HITS: Final = 50
_MOST_COMPARED: Final = 2_000  # files whose names a slip may have meant
_ALIKE: Final = 0.8  # of 1
_HELD: Final = 32  # what Windows says where another process has a file open
_WHY: Final = {
    "too_large": "larger than manuals.max_file_bytes",
    "unreadable": "not readable",
    "name_not_served": "for a name that is not served",
    "too_deep": "under too many folders",
    "disk_full": "no room on the disk of the index",
    "locked": "another process holds the lock of the index and does nothing",
    "format_not_served": "of a format that is not served; convert it to .md",
    NEEDS_EXTRA: f"PDF; {installing('documents')}",
    "needs_a_password": "it needs a password",
    "no_text": "without text, such as scanned pages",
    "takes_too_long": "too complex to be read in time",
    "damaged_or_too_complex": "damaged, or too complex",
    "not_text": "not text in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, "
    "GB18030 or Windows-1252; save it as UTF-8",
    "time_budget": "no time was left; allow more with --budget-ms, or run 'manuals index' first",
}
_COMMANDS: Final = ("index", "find", "read", "ls")
_MEANT: Final = {"grep": "find", "list": "ls", "open": "read", "search": "find"}  # what others and the tools call it
_INDEX_EXAMPLE: Final = "index --root ~/manuals"
_FIND_EXAMPLE: Final = 'find "How long is a token valid?"'
_LS_EXAMPLE: Final = "ls guide auth"
_ONLY_PARTS: Final = "In these, the words are only parts of others, or written otherwise:"
_READ_EXAMPLE: Final = "read guide auth/tokens.md --line 57"


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    parser = build_parser()
    if not argv:
        parser.error(f"COMMAND is missing; it is one of {', '.join(_COMMANDS)}")
    if argv[0] not in {*_COMMANDS, "-h", "--help"}:
        option = argv[0].startswith("-")
        meant = _MEANT.get(argv[0])
        told = f"there is no command {argv[0]}; did you mean {meant}?" if meant else no_command(argv[0], _COMMANDS)
        parser.error(f"put {argv[0]} behind a command" if option else told)
    options, rest = parser.parse_known_args(argv)
    if options.command == "read":
        _require_quotes(options, rest)
    dashed = [word for word in rest if word.startswith("-")]
    if any(word.partition("=")[0] == "--manuals" for word in dashed):  # as install calls it
        options.own.error("there is no option --manuals; did you mean --root?")
    if dashed or (rest and options.command != "find"):
        options.own.refuse(rest)
    if options.command == "read":
        _take_apart(options, options.own)
    if options.command == "ls" and options.manual and not options.path:
        options.manual, _, options.path = options.manual.replace("\\", "/").partition("/")
    options.rest = rest  # words of a query that stand behind an option
    return run_command(lambda: _run(options), as_json=options.json)


def _run(options: argparse.Namespace) -> None:
    settings = _settings(options)
    options.vectors_from = address_of(settings)
    if _forgets(options):
        _forget(settings.manuals, options)
        return
    try:
        trio.run(_with_manuals, settings, options)
    except EmbeddingFailed as error:
        told = _with_options(str(error), settings.manuals, options)
        raise Stop(f"{told} What is done is kept; run it again to continue.") from error
    except ManualsError as error:
        raise Stop(
            _for_people(error, settings.manuals, options), code=WRONG if error.code == "invalid_parameter" else FAILED
        ) from error


async def _with_manuals(settings: Settings, options: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        embedder = open_embedder(settings)
        if embedder is not None:
            await stack.enter_async_context(aclosing(embedder))
        options.loading = embedder if settings.manuals.embeddings.provider == "wordllama" else None
        manuals = await stack.enter_async_context(open_manuals(settings.manuals, embedder=embedder))
        await options.work(manuals, settings.manuals, options)


# index


async def _index(manuals: Manuals, settings: ManualsSettings, options: argparse.Namespace) -> None:
    if options.embed:
        _check_embeds(settings)
    reports: list[IndexReport] = []
    names = options.manual or await _names(settings)
    unreadable: dict[str, str] = {}
    for name in names:
        try:
            with StatusLine() as status:
                report = await manuals.index(name, on_progress=partial(status.show_progress, name))
        except ManualsError as error:
            unreadable[name] = _only_of_one(error)
            report = IndexReport(name, 0, 0, 0.0, {"": UNREADABLE}, None)
        reports.append(report)
        if not options.json:
            _say_report(report)
    await _remark_links(settings)
    if not (unreadable or any(report.files for report in reports)):
        remark(NO_FILES)
    why = next(filter(None, (report.in_memory for report in reports)), None) or _why_in_memory(settings)
    names = [name for name in names if name not in unreadable]
    filled = {}
    if options.embed and names:
        filled["embeddings"] = await embed(manuals, settings.embeddings, names, options)
    if options.json:
        shown = [
            {
                **{key: value for key, value in asdict(report).items() if key != "in_memory"},
                "seconds": round(report.seconds, 3),
            }
            for report in reports
        ]
        path = _index_file(settings) if why is None else None
        say_json({"manuals": shown, "index": {"path": path, "in_memory": why}, **filled})
    elif why is None:
        say(f"The index is in {_index_file(settings)}.")
    else:
        say(f"The index was in memory only, and is gone ({why}).")
    if unreadable:
        raise Stop(*unreadable.values(), told=options.json)


def _only_of_one(error: ManualsError) -> str:
    """Return what is said of a manual that cannot be read; the others can be. Raises the error if it is another one."""
    if error.code != "conflict" or "manual_id" not in error.details:
        raise error
    return error.message


def _check_embeds(settings: ManualsSettings) -> None:
    if settings.embeddings.provider == "none":
        raise Stop(
            "--embed needs a provider of vectors; set manuals.embeddings.provider (MANUALS_EMBEDDINGS_PROVIDER) to api "
            "or wordllama.",
            code=WRONG,
        )
    if (why := _why_in_memory(settings)) is not None:
        raise Stop(f"--embed: the vectors would be lost with the index, which is in memory only ({why}).", code=WRONG)


def _forget(settings: ManualsSettings, options: argparse.Namespace) -> None:
    """Remove the index, also those that earlier versions made of the same manuals, and its folder if that is empty."""
    if options.manual:
        raise Stop("--forget removes the index of all manuals; leave out MANUAL.", code=WRONG)
    removed: list[str] = []
    if settings.index_dir is not None:
        index = Path(_index_file(settings))
        ours = index.name.partition("-")[0] + "-*.sqlite3*"  # with the journals
        try:
            found = sorted(index.parent.glob(ours), reverse=True)
            for file in found:  # the journals first, because they must not meet the next one
                file.unlink(missing_ok=True)
            removed = [str(file) for file in reversed(found) if file.suffix == ".sqlite3"]
        except OSError as error:
            held = getattr(error, "winerror", None) == _HELD
            why = "a server that is open holds it. End the clients that have it, then run this again"
            said = f"The index in {index.parent} cannot be removed: {why if held else error.strerror}."
            raise Stop(said) from error
        with suppress(OSError):  # something else is in it, or it is not there
            index.parent.rmdir()
    if options.json:
        say_json({"removed": removed})
        return
    for path in removed:
        say(f"Removed {path}.")
    if not removed:
        say("There is no index of these manuals.")


def _say_report(report: IndexReport) -> None:
    unindexed = {
        path: reason for path, reason in report.unindexed.items() if reason not in (OTHER_FORMAT, NEEDS_EXTRA)
    }  # in `not_served`
    out = len(unindexed)
    done = f", {report.changed:,} of them new or changed, {report.seconds:.1f} s" if "" not in unindexed else ""
    told = f"{report.manual_id}: {counted(report.files, 'file')}{done}"
    say("; ".join(filter(None, (told, in_words(report.not_served), f"{out:,} not indexed:" if out else ""))))
    for path, reason in sorted(unindexed.items())[:_MOST_LISTED]:
        say(f"  {path or report.manual_id} ({_WHY.get(reason, reason)})")
    if out > _MOST_LISTED:
        say(f"  and {out - _MOST_LISTED:,} more, which --json lists")


def _why_in_memory(settings: ManualsSettings) -> str | None:
    if settings.in_memory:
        return "manuals.in_memory is on"
    return None if settings.index_dir is not None else "there is no folder for caches; set manuals.index_dir"


def _index_file(settings: ManualsSettings) -> str:
    from responses_mcp.manuals.index.store import index_path  # noqa: PLC0415  # SQLite, which reading does without

    return str(index_path(Path(settings.index_dir or ""), Path(settings.root or "").resolve()))


# find


async def _find(manuals: Manuals, settings: ManualsSettings, options: argparse.Namespace) -> None:
    query = " ".join([*options.query, *options.rest])
    if not query.strip():
        raise Stop("QUERY is blank; say what to look for.", code=WRONG)
    names = [] if options.manual else await _names(settings)
    asked = parse_search({"query": query, "path_prefix": options.path})
    manual_ids = tuple(options.manual or ())
    began = trio.current_time()
    if options.loading is not None:
        # Each process loads it afresh, for longer than a search waits for a vector; half of the time is for the search.
        with trio.move_on_after(options.budget_ms / 2000), suppress(EmbeddingFailed):
            await options.loading.embed([query])
    left_ms = options.budget_ms - int((trio.current_time() - began) * 1000)
    usual = _HITS_ON_SCREEN if on_terminal(sys.stdout) and not options.json else _HITS
    request = replace(asked, limit=options.limit or usual, manual_ids=manual_ids, time_ms=left_ms)
    with StatusLine() as status:
        found = await manuals.search(request, on_phase=status.show)
    if found.not_by_meaning:
        found = replace(found, not_by_meaning=_with_options(found.not_by_meaning, settings, options))
    if found.no_such_path is not None:
        found = replace(found, meant=meant_by(found.no_such_path, names, "--manual {}", " --path {}"))
    if options.json:
        unsearched = [asdict(each) for each in found.unsearched]
        say_json({"query": request.query, **found.as_json(), "unsearched": unsearched})
    if found.no_such_path is not None:
        raise Stop(found.note or "", told=options.json)
    if options.json:
        return
    rows = sorted(found.rows, key=lambda row: not row.has_word)
    on_screen = on_terminal(sys.stdout)  # where room is short
    for rank, row in enumerate(rows, 1):
        if rank > 1 and not on_screen:
            say()
        if not row.has_word and (rank == 1 or rows[rank - 2].has_word):
            say(_ONLY_PARTS)
            if not on_screen:
                say()
        _say_row(rank, row, _words_of(query))
    if found.note:
        say(found.note)
    if found.others:
        kinds = in_words(found.others)
        say(f"{kinds[:1].upper()}{kinds[1:]}; convert what is to be searched to .md.")
    if found.unsearched:
        say()
    for each in found.unsearched[:_MOST_LISTED]:
        say(f"Not searched in {each.manual_id}: {each.number} ({_WHY.get(each.reason, each.reason)}).")
    if (more := len(found.unsearched) - _MOST_LISTED) > 0:
        say(f"Nor, for such reasons, in {more:,} more.")
    if lasting := dict.fromkeys(each.manual_id for each in found.unsearched if each.reason != OUT_OF_TIME):
        named = lasting if len(lasting) <= _MOST_LISTED else ()
        say(f"Which they are: {_command(settings, options, 'index', *named)}")
    if rows:
        if not on_screen:
            say()
        say(f"Read it: {_read_command(rows[0], settings, options)}")


def _say_row(rank: int, row: SearchRow, words: re.Pattern[str]) -> None:
    def bold(text: str) -> str:
        return words.sub(lambda found: f"\x1b[1m{found[0]}\x1b[0m" if found[0] else "", text)

    say(f"{rank:3}. {row.above} > {row.title}" if row.above else f"{rank:3}. {row.title}", style=bold, most=1)
    say(f"     {row.manual_id}/{row.path}:{row.match_line or row.line}  score {row.score:.2f}")
    if row.snippet is not None and row.snippet.text:
        say(f"     {row.snippet.text}", style=bold, most=_LINES_OF_TEXT)


def _words_of(query: str) -> re.Pattern[str]:
    """Return what finds the words of a question in a text, without those that only ask."""
    found = [word for word in _WORD.findall(query) if word.lower() not in _ASKING]
    return re.compile("|".join(map(re.escape, found)) or r"(?!)", re.IGNORECASE)


def _read_command(row: SearchRow, settings: ManualsSettings, options: argparse.Namespace) -> str:
    path = f"./{row.path}" if row.path.startswith("-") else row.path  # else it would be taken for an option
    if row.char_offset is not None:  # far along its line, which may be all of the file
        return _command(settings, options, "read", row.manual_id, path, "--char", str(row.char_offset))
    return _command(settings, options, "read", row.manual_id, path, "--line", str(row.match_line or row.line))


def _command(settings: ManualsSettings, options: argparse.Namespace, *command: str) -> str:
    """Return a command about the same folder of manuals, as it can be typed."""
    words = ["manuals", *command]
    if options.root is not None:
        words += ["--root", settings.root or ""]
    if options.config is not None:
        words += ["--config", options.config]
    return program(*words)


def _with_options(told: str, settings: ManualsSettings, options: argparse.Namespace) -> str:
    """Return what is told with its commands about the same folder of manuals."""
    return told.replace(program("manuals", "index"), _command(settings, options, "index"))


# ls


async def _ls(_: Manuals, settings: ManualsSettings, options: argparse.Namespace) -> None:
    if options.manual:
        await _list_folder(settings, options)
        return
    folder = Folder.of(settings)
    shown: list[JsonObject] = []
    unreadable: list[str] = []
    for name in await _names(settings):
        try:
            files, others = await _in_thread(_count_files, folder, name)
        except ManualsError as error:
            unreadable.append(_only_of_one(error))
            files, others = None, {}
        shown.append({"manual_id": name, "files": files, "not_served": others})
    if options.json:
        say_json({"manuals": shown})
    else:
        wide = max(columns(each["manual_id"]) for each in shown)
        for each in shown:
            name, told = each["manual_id"], in_words(each["not_served"])
            many = _WHY[UNREADABLE] if each["files"] is None else counted(each["files"], "file")
            say(f"{name}{' ' * (wide - columns(name))}  {many}{f'; {told}' if told else ''}")
        await _remark_links(settings)
        if not (unreadable or any(each["files"] for each in shown)):
            remark(NO_FILES)
    if unreadable:
        raise Stop(*unreadable, told=options.json)


async def _list_folder(settings: ManualsSettings, options: argparse.Namespace) -> None:
    folder = Folder.of(settings)
    path = "/".join(parts_of(options.path))
    if await _in_thread(_is_file, folder, options.manual, path):
        read = _command(settings, options, "read", options.manual, path)
        raise Stop(f"{path} is a file, not a folder; show it: {read}", code=WRONG)
    items = await _in_thread(folder.children, options.manual, path, unchecked)
    if options.json:
        rows = [{"name": name, "kind": kind} for name, kind in items]
        say_json({"manual_id": options.manual, "path": path, "items": rows})
        return
    for name, kind in items:
        say(f"{name}/" if kind == "dir" else name)
    if not items:
        remark(await _in_thread(why_empty, folder, options.manual, path, unchecked))


def _is_file(folder: Folder, manual_id: str, path: str) -> bool:
    try:
        folder.open(manual_id, path).close()
    except ManualsError:
        return False
    return True


def _count_files(folder: Folder, manual_id: str) -> tuple[int | None, dict[str, int]]:
    """Return how many files of a manual are served, and of others how many there are by their endings."""
    others: Counter[str] = Counter()
    return sum(1 for _ in folder.walk(manual_id, unchecked, {}, others=others)), dict(others)


# read


async def _read(manuals: Manuals, settings: ManualsSettings, options: argparse.Namespace) -> None:
    result = None if options.all or options.char is not None else await _section(manuals, options)
    if result is None:
        await _scan(manuals, settings, options, _LONG if options.char is not None and not options.all else _ALL)
    elif options.json:
        say_json(result)
    else:
        _say_read(result["text"], result.get("decoding_replacements", 0))


def _require_quotes(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Refuse a place as `find` shows it that the shell took apart at its blanks."""
    place = " ".join([options.manual, options.path or "", *rest])
    path, colon, line = place.rpartition(":")
    is_file = file_type(path if colon and line.isdecimal() else place) is not None
    if "/" in options.manual and options.path is not None and is_file:
        no_name = f"'{options.manual}' is not the name of a manual"
        options.own.error(f'{no_name}; put a place with blanks into quotation marks: "{place}"')


def _take_apart(options: argparse.Namespace, parser: Parser) -> None:
    """Take a place as `find` shows it, such as guide/auth/tokens.md:57, apart."""
    if options.path is None:
        options.manual, _, options.path = options.manual.replace("\\", "/").partition("/")
    if not options.manual or file_type(options.manual) is not None:
        given = options.manual or f"/{options.path}"
        parser.error(f"pass MANUAL and PATH, or a place as 'manuals find' shows it, not '{given}' alone")
    if not options.path:
        parser.error(f"PATH is missing; 'manuals ls {options.manual}' lists the files of {options.manual}")
    path, _, line = options.path.rpartition(":")
    if file_type(path) is not None and line.isdecimal():
        options.path = path
        if options.char is None:
            options.line = options.line or _positive(line)
    if options.line is not None and options.char is not None:
        parser.error("pass --line or --char, not both")


async def _section(manuals: Manuals, options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the section that a line is in, None for JSON, which has none."""
    try:
        request = ReadRequest(options.manual, options.path, options.line, _ALL, any_line=True)
        result, end = await manuals.read(request)
    except ManualsError as error:
        if error.code == "invalid_scope":
            return None
        raise
    line = options.line or end.line
    if line != end.line:
        where = "begins before it" if end.line < line else "comes next"
        said = f"line {line} is no heading; this is the section that {where}, on line {end.line}"
        begin = line - _ABOVE
        if end.line < begin and len(result["text"]) > _LONG:
            lines = result["text"].splitlines(keepends=True)[begin - end.line :]
            result, said = {**result, "text": "".join(lines)}, f"{said}, from line {begin} on"
        remark(f"{said}.")
    return {**result, "ref": {"manual_id": end.manual_id, "path": end.path, "start_line": end.line}}


async def _scan(manuals: Manuals, settings: ManualsSettings, options: argparse.Namespace, most: int) -> None:
    """Write a file, from a line or character on if one was given, up to `most` characters.

    It is written as it comes, unless it must be one document.
    """
    request = ScanRequest(options.manual, options.path, options.line, options.char, most if options.json else _PAGE)
    if options.json:
        say_json(await manuals.scan(request))
        return
    replaced = 0
    while True:
        page = await manuals.scan(replace(request, max_chars=min(most, _PAGE)))
        replaced += page.get("decoding_replacements", 0)
        following = page["next_cursor"]["char_offset"]
        if page["eof"] or most <= _PAGE:
            break
        say_text(page["text"])
        request = replace(request, start_line=None, char_offset=following)
    _say_read(page["text"], replaced)
    if following is not None:
        command = _command(settings, options, "read", options.manual, options.path, "--char", str(following))
        remark(f"there is more, from character {following} on: {command}")


def _say_read(text: str, replaced: int) -> None:
    say_text(text if text.endswith("\n") or not text else f"{text}\n")
    if not text:
        remark("the file is empty.")
    if replaced:
        remark(f"the file is not all valid UTF-8; {counted(replaced, 'place')} of it had to be replaced.")


# What all of them need


async def _names(settings: ManualsSettings) -> list[str]:
    names = await _in_thread(Folder.of(settings).manuals)
    if names:
        return names
    links = await _in_thread(about_links, settings.root or "")
    raise Stop(
        f"There are no manuals in {settings.root}; put each, as files of a served format, into its own folder there.",
        *([f"{'; '.join(links)}."] if links else []),
    )


async def _remark_links(settings: ManualsSettings) -> None:
    """Say which links to folders in the root are not followed."""
    if links := await _in_thread(about_links, settings.root or ""):
        remark(f"{'; '.join(links)}.")


async def _in_thread(work: Callable[[Unpack[Ts]], T], *given: *Ts) -> T:
    return await trio.to_thread.run_sync(work, *given, abandon_on_cancel=True)


def _settings(options: argparse.Namespace) -> Settings:
    environ = dict(os.environ)
    if options.root is not None:
        root = os.path.abspath(os.path.expanduser(options.root))  # noqa: PTH100, PTH111  # Path raises where there is no home
        if not options.root.strip() or (not os.path.isdir(root) and not _forgets(options)):  # noqa: PTH112
            is_file = os.path.isfile(root)  # noqa: PTH113
            what = f"'{options.root}' is a file, not a folder" if is_file else f"there is no folder '{options.root}'"
            raise Stop(f"--root: {what}; correct the path.", code=WRONG)
        environ["MANUALS_ROOT"] = root
    settings = configured(environ, options.config, silent=("manuals.root",) if _forgets(options) else ())
    folder = settings.manuals.root
    if folder is None:
        raise Stop("There is no folder of manuals; pass --root DIR, or set manuals.root or MANUALS_ROOT.", code=WRONG)
    if not os.path.isdir(folder) and not _forgets(options):  # noqa: PTH112
        raise Stop(code=WRONG)  # a warning has said so
    return settings


def _forgets(options: argparse.Namespace) -> bool:
    """Tell whether the index is to go, for which its manuals may be gone already."""
    return options.work is _index and options.forget


def _for_people(error: ManualsError, settings: ManualsSettings, options: argparse.Namespace) -> str:
    """Return a message with a cure that a person can follow: those of the tools name tools."""
    if options.work is _read and error.code == "invalid_parameter":
        if "lines" in error.details:
            last = error.details["lines"]
            return f"--line {options.line} is outside the file; pass a line from 1 to {last}, its last."
        if "characters" in error.details:
            return f"--char {options.char} is outside the text, which has {error.details['characters']:,} characters."
    cause, _, cure = error.message.rpartition("; ")
    if not cause or "manual_" not in cure:
        return error.message
    cause = cause.replace("manual_id", f"'{_given(options)}'", 1)
    folder = Folder.of(settings)
    if "candidate_ids" in error.details:
        meant = _like(error.details.get("manual_id", ""), folder.manuals())
        if meant is not None:
            return f"{cause}; did you mean {meant}?"
        manuals = ", ".join(error.details["candidate_ids"])
        return f"{cause}; the manuals are {manuals}." if manuals else f"{cause}; the folder of manuals has none."
    manual = [error.details["manual_id"]] if "manual_id" in error.details else []
    if error.code in ("not_found", "forbidden") and manual and "path" in error.details:
        given = getattr(options, "path", "") or error.details["path"]
        meant = _of_that_name(folder, manual[0], given, folders=options.work is _ls)
        if meant is not None:
            return f"{cause}; did you mean {meant}?"
    below = manual if "path" in error.details else []  # of the manual itself, listing it would say the same again
    if cause.endswith("is a folder, not a file"):
        below = [*manual, error.details["path"]]
    return f"{cause}; see what there is: {_command(settings, options, 'ls', *below)}"


def _given(options: argparse.Namespace) -> str:
    """Return the name that was given for a manual, of several the first that is none."""
    names = [options.manual] if isinstance(options.manual, str) else options.manual or [""]
    return next((each for each in names if "/" in each or "\\" in each), names[0])


def _of_that_name(folder: Folder, manual_id: str, path: str, *, folders: bool) -> str | None:
    """Return where in a manual the file with the name of `path` is, or else the one with a path like it, if any.

    With `folders`, it may be one of those, too.
    """
    name = path.rpartition("/")[2].casefold()
    with suppress(ManualsError):
        every = [each for each, _ in islice(folder.walk(manual_id, unchecked, {}), _MOST_COMPARED)]
        if folders:
            every += {str(above) for each in every for above in PurePosixPath(each).parents if above.name}
        found = [each for each in every if each.rpartition("/")[2].casefold() == name]
        return found[0] if len(found) == 1 else _like(path, found or every)
    return None


def _like(name: str, names: Sequence[str]) -> str | None:
    """Return the name that was probably meant; case does not count, nor whether the ending is there."""
    folded = {each.casefold(): each for each in names}
    found = get_close_matches(name.casefold(), folded, 1, _ALIKE)
    return folded[found[0]] if found else None


# The command line


def build_parser() -> Parser:
    """Return the parser of this command, with those of its own commands in it."""
    form = partial(argparse.RawDescriptionHelpFormatter, max_help_position=20)
    shared = Parser(add_help=False)
    shared.add_argument("--root", metavar="DIR", help="folder of manuals, instead of the configured one")
    shared.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    shared.add_argument("--json", action="store_true", help="write one JSON document, with all details")
    parser = Parser(
        prog=f"{NAME} manuals",
        description="Search and read a folder of manuals, as the manual_* tools do.",
        epilog=_examples(_LS_EXAMPLE, _FIND_EXAMPLE, _READ_EXAMPLE),
        formatter_class=form,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    def command(usage: str, work: _Work, summary: str, more: str, *examples: str) -> Parser:
        name, _, arguments = usage.partition(" ")
        parser = commands.add_parser(
            name,
            usage=f"%(prog)s {arguments} [options]",
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {more}",
            epilog=_examples(*examples),
            parents=[shared],
            formatter_class=form,
        )
        parser.set_defaults(work=work, own=parser)
        return parser

    index = command(
        "index [MANUAL ...]",
        _index,
        "bring the index of manuals up to date",
        "Searches do that too.\nCtrl-C keeps what is done; the next run goes on from there.",
        _INDEX_EXAMPLE,
    )
    index.add_argument("manual", metavar="MANUAL", nargs="*", type=_manual, help="which ones (default: all)")
    index.add_argument("--forget", action="store_true", help="remove the index from the disk instead")
    index.add_argument("--embed", action="store_true", help="then make the vectors that manuals.embeddings asks for")
    index.add_argument("--yes", action="store_true", help="make them without asking, whatever they cost")
    find = command(
        "find QUERY",
        _find,
        "search manuals",
        "The sections that fit best come first.\nPut -- before words that begin with -.",
        _FIND_EXAMPLE,
        'find "rotate keys" --manual guide --limit 3',
    )
    find.add_argument("query", metavar="QUERY", nargs="+", help="what to look for: a question, or words")
    find.add_argument("--manual", metavar="ID", action="append", type=_manual, help="search this one (default: all)")
    find.add_argument("--path", metavar="PATH", default="", help="search this folder or file of the manuals")
    find.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, _MOST_HITS),
        help=f"hits, 1 to {_MOST_HITS} (default {_HITS}, on a terminal {_HITS_ON_SCREEN})",
    )
    find.add_argument(
        "--budget-ms", metavar="N", type=_positive, default=60_000, help="milliseconds for all of it (default 60000)"
    )
    read = command(
        "read MANUAL PATH",
        _read,
        "show a section of a manual",
        "JSON is shown from --line on, or from its start.",
        _READ_EXAMPLE,
        "read guide/auth/tokens.md:57",
        "read guide errors.json",
    )
    read.add_argument("manual", metavar="MANUAL", type=_manual, help="which manual, or a place as 'find' shows it")
    read.add_argument("path", metavar="PATH", nargs="?", help="a file of it")
    read.add_argument("--line", metavar="N", type=_positive, help="a line of the section (default: the first section)")
    read.add_argument(
        "--char", metavar="N", type=_number, help=f"{_LONG:,} characters from this one on, as 'find' says"
    )
    read.add_argument("--all", action="store_true", help="all of the file, or from --line or --char on")
    listing = command(
        "ls [MANUAL [FOLDER]]",
        _ls,
        "list the manuals, or what is in one",
        "Also how many files there are, and how many that are not served.",
        _LS_EXAMPLE,
    )
    listing.add_argument("manual", metavar="MANUAL", nargs="?", type=_manual, help="which manual (default: list them)")
    listing.add_argument("path", metavar="FOLDER", nargs="?", default="", help="a folder in it (default: the manual)")
    return parser


def _examples(*commands: str) -> str:
    head = "example:" if len(commands) == 1 else "examples:"
    return "\n".join([head, *(f"  {NAME} manuals {command}" for command in commands)]) + "\n"


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of 0 or more, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of 1 or more, got {text!r}")
    return number


def _manual(text: str) -> str:
    """Return the name of a manual; a shell that completes it adds a slash."""
    return text.rstrip("/" + (os.sep if os.name == "nt" else "")) or text
