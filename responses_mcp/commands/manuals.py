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
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from responses_mcp.commands.embedding import embed
from responses_mcp.commands.parser import Parser, no_command, parser_of, whole_number
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
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed
from responses_mcp.manuals.embeddings.provider import open_embedder
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import NEEDS_EXTRA, OTHER_FORMAT, Folder
from responses_mcp.manuals.files.unserved import about_links, in_words, why_empty
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.parsing import parse_search
from responses_mcp.manuals.requests.paths import parts_of
from responses_mcp.manuals.results.search_results import SearchRow
from responses_mcp.manuals.search.query import query as query_of
from responses_mcp.manuals.service import IndexReport, Manuals, open_manuals
from responses_mcp.settings.model import ManualsSettings, Settings

_ALL: Final = 2**53  # characters
_PATH_AND_LINE: Final = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_PAGE: Final = 50_000  # characters of a file written at once
_MOST_LISTED: Final = 20  # files that are not in the index, and manuals with some
_HITS: Final = 5
_MOST_HITS: Final = 50
_SEARCH_SECONDS: Final = 60
_WHY: Final = {  # of the reasons that do not say it themselves
    "too_large": "larger than 16 MiB",
    "locked": "another process holds the lock of the index",
    "format_not_served": "of a format that is not served; convert it to .md",
    NEEDS_EXTRA: f"PDF; {installing('documents')}",
    "not_text": "not text in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, "
    "GB18030 or Windows-1252; save it as UTF-8",
    "time_budget": "the search ran out of time; run 'manuals index' first",
}


class _Opened:
    """What each command works with: the manuals, their settings and the command line."""

    def __init__(self, settings: Settings, options: argparse.Namespace) -> None:
        self.settings = settings
        self.root = settings.manuals.root or ""
        self.options = options
        self.folder = Folder.of(settings.manuals)

    def names(self) -> list[str]:
        """Return the names of the manuals. Raises Stop where there is none."""
        if names := self.folder.manuals():
            return names
        raise Stop(
            f"There are no manuals in {self.root}; put each manual into a folder of its own there.",
            *_about_links(self.root),
        )

    def command(self, *command: str) -> str:
        """Return a command about the same folder of manuals, as it can be typed."""
        words = ["manuals", *command]
        if self.options.root is not None:
            words += ["--root", self.root]
        if self.options.config is not None:
            words += ["--config", self.options.config]
        return program(*words)

    def told(self, error: ManualsError) -> str:
        """Return a message with a cure that a person can follow: those of the tools name tools."""
        cause, _, cure = error.message.rpartition("; ")
        if "lines" in error.details:
            return f"The line is outside the file, whose last line is {error.details['lines']}."
        if not cause or "manual_" not in cure:
            return error.message
        if manuals := error.details.get("candidate_ids"):
            return f"{cause.replace('manual_id', 'MANUAL')}; the manuals are {', '.join(manuals)}."
        manual = [error.details["manual_id"]] if "path" in error.details else []
        return f"{cause.replace('manual_id', 'MANUAL')}; see what there is: {self.command('ls', *manual)}"


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    name = argv[0] if argv else ""
    if name not in _COMMANDS:
        parser = build_parser()
        parser.parse_known_args(argv)  # which may ask for help
        parser.error(no_command(name, _COMMANDS) if name else f"COMMAND is missing: {', '.join(_COMMANDS)}")
    options = _parser_of(name).parse_words(argv[1:])
    return run_command(lambda: _run(options, _COMMANDS[name].work), as_json=options.json)


def _run(options: argparse.Namespace, work: Callable[[_Opened], None]) -> None:
    opened = _Opened(_settings(options), options)
    try:
        work(opened)
    except EmbeddingFailed as error:
        raise Stop(f"{error} Finished sections are kept; run the command again to continue.") from error
    except ManualsError as error:
        code = WRONG if error.code == "invalid_parameter" else FAILED
        raise Stop(opened.told(error), code=code) from error


def _settings(options: argparse.Namespace) -> Settings:
    environ = dict(os.environ)
    if options.root is not None:
        root = os.path.expanduser(options.root)  # noqa: PTH111  # Path raises where there is no home
        if not os.path.isdir(root):  # noqa: PTH112
            raise Stop(f"--root: there is no folder '{options.root}'; correct the path.", code=WRONG)
        environ["MANUALS_ROOT"] = os.path.abspath(root)  # noqa: PTH100
    settings = configured(environ, options.config)
    if settings.manuals.root is None:
        raise Stop("There is no folder of manuals; pass --root DIR, or set manuals.root or MANUALS_ROOT.", code=WRONG)
    if not os.path.isdir(settings.manuals.root):  # noqa: PTH112
        raise Stop(code=WRONG)  # a warning has said so
    return settings


def _with_manuals(opened: _Opened, work: Callable[[Manuals, Embedder | None], Awaitable[None]]) -> None:
    async def working() -> None:
        async with AsyncExitStack() as stack:
            embedder = open_embedder(opened.settings)
            if embedder is not None:
                await stack.enter_async_context(aclosing(embedder))
            manuals = await stack.enter_async_context(open_manuals(opened.settings.manuals, embedder=embedder))
            await work(manuals, embedder)

    trio.run(working)


def _about_links(root: str) -> list[str]:
    """Say which links to folders in the root are not followed."""
    links = about_links(root)
    return [f"{'; '.join(links)}."] if links else []


# index


def _index(opened: _Opened) -> None:
    settings, options = opened.settings.manuals, opened.options
    if options.forget:
        _forget(opened)
        return
    if options.embed and settings.embeddings.provider == "none":
        raise Stop(
            "--embed needs a provider of vectors; set manuals.embeddings.provider (MANUALS_EMBEDDINGS_PROVIDER) to api "
            "or wordllama.",
            code=WRONG,
        )
    if options.embed and settings.index_dir is None:
        raise Stop("--embed: vectors cannot be kept, because the index is in memory only.", code=WRONG)
    _with_manuals(opened, lambda manuals, _: _update(manuals, opened))


async def _update(manuals: Manuals, opened: _Opened) -> None:
    options = opened.options
    reports: list[IndexReport] = []
    for name in map(_manual, options.words or opened.names()):
        with StatusLine() as status:
            reports.append(await manuals.index(name, on_progress=partial(_show_progress, status, name)))
        if not options.json:
            _say_report(reports[-1])
    filled: dict[str, Any] = {}
    if options.embed:
        filled["embeddings"] = await embed(manuals, opened.settings, [each.manual_id for each in reports], options)
    in_memory = opened.settings.manuals.index_dir is None or any(report.in_memory for report in reports)
    path = None if in_memory else str(_index_file(opened.settings.manuals))
    if options.json:
        shown = [{**asdict(report), "seconds": round(report.seconds, 3)} for report in reports]
        for each in shown:
            del each["in_memory"]
        say_json({"manuals": shown, "index": path, **filled})
    else:
        say("The index was in memory only and was not saved." if path is None else f"The index is in {path}.")


def _show_progress(status: StatusLine, name: str, done: int, total: int) -> None:
    status.show(f"{name}: {done:,} of {total:,} files")


def _say_report(report: IndexReport) -> None:
    unindexed = {
        path: reason for path, reason in report.unindexed.items() if reason not in (OTHER_FORMAT, NEEDS_EXTRA)
    }  # in `not_served`
    files = counted(report.files, "file")
    done = f"{report.manual_id}: {files}, {report.changed:,} of them new or changed, {report.seconds:.1f} s"
    out = f"{len(unindexed):,} not indexed:" if unindexed else ""
    say("; ".join(filter(None, (done, in_words(report.not_served), out))))
    for path, reason in sorted(unindexed.items())[:_MOST_LISTED]:
        say(f"  {path or report.manual_id} ({_why(reason)})")
    if len(unindexed) > _MOST_LISTED:
        say(f"  and {len(unindexed) - _MOST_LISTED:,} more, which --json lists")


def _why(reason: str) -> str:
    return _WHY.get(reason, reason.replace("_", " "))


def _forget(opened: _Opened) -> None:
    """Remove the index, also those that earlier versions made of the same manuals, and the vectors."""
    if opened.options.words:
        raise Stop("--forget removes the index of all manuals; leave out MANUAL.", code=WRONG)
    removed: list[str] = []
    if opened.settings.manuals.index_dir is not None:
        from responses_mcp.manuals.embeddings.vectors import vectors_path  # noqa: PLC0415  # as `_index_file` does

        index = _index_file(opened.settings.manuals)
        vectors = vectors_path(index.parent, Path(opened.settings.manuals.root or "").resolve(), "")
        ours = (f"{index.name.partition('-')[0]}-*.sqlite3*", f"{vectors.name.partition('.')[0]}.*")
        try:
            # The journals first, because they must not meet the next index.
            for file in sorted((file for each in ours for file in index.parent.glob(each)), reverse=True):
                file.unlink(missing_ok=True)
                removed.insert(0, str(file))
        except OSError as error:
            said = f"The index in {index.parent} cannot be removed ({error.strerror}); end the clients that use it."
            raise Stop(said) from error
    if opened.options.json:
        say_json({"removed": removed})
    for path in () if opened.options.json else removed or ["nothing: there is no index of these manuals"]:
        say(f"Removed {path}.")


def _index_file(settings: ManualsSettings) -> Path:
    from responses_mcp.manuals.index.store import index_path  # noqa: PLC0415  # SQLite, which reading does without

    return index_path(Path(settings.index_dir or ""), Path(settings.root or "").resolve())


# find


def _find(opened: _Opened) -> None:
    query = " ".join(opened.options.words)
    if not query.strip():
        raise Stop("QUERY is blank; say what to look for.", code=WRONG)
    if not opened.options.manual:
        opened.names()
    _with_manuals(opened, lambda manuals, embedder: _search(manuals, embedder, opened, query))


async def _search(manuals: Manuals, embedder: Embedder | None, opened: _Opened, query: str) -> None:
    options = opened.options
    request = parse_search({"query": query, "path_prefix": options.path})
    if embedder is not None and opened.settings.manuals.embeddings.provider == "wordllama":
        # Each process loads it afresh, for longer than a search waits for a vector.
        with trio.move_on_after(_SEARCH_SECONDS), suppress(EmbeddingFailed):
            await embedder.embed([query])
    request = replace(
        request, limit=options.limit, manual_ids=tuple(options.manual or ()), time_ms=1000 * _SEARCH_SECONDS
    )
    with StatusLine() as status:
        found = await manuals.search(request, on_phase=status.show)
    if found.no_such_path is not None:
        raise Stop(found.note or "")
    if options.json:
        unsearched = [asdict(each) for each in found.unsearched]
        say_json({"query": request.query, **found.as_json(), "unsearched": unsearched})
        return
    words = re.compile("|".join(map(re.escape, query_of(query).words)) or "(?!)", re.IGNORECASE)
    for rank, row in enumerate(found.rows, 1):
        _say_row(rank, row, words)
    if found.note:
        say(found.note)
    if found.others:
        say(f"{in_words(found.others)}; convert those to search to .md.".capitalize())
    for each in found.unsearched[:_MOST_LISTED]:
        say(f"Not searched in {each.manual_id}: {each.number} ({_why(each.reason)}).")
    if found.unsearched:
        more = f"all {len(found.unsearched):,} reasons, and " if len(found.unsearched) > _MOST_LISTED else ""
        say(f"To see {more}the files: {opened.command('index')}")
    if found.rows:
        best = found.rows[0]
        say(f"Read it: {opened.command('read', f'{best.manual_id}/{best.path}:{best.match_line or best.line}')}")


def _say_row(rank: int, row: SearchRow, words: re.Pattern[str]) -> None:
    say(f"{rank:3}. {row.above} > {row.title}" if row.above else f"{rank:3}. {row.title}", most=1, bold=words)
    say(f"     {row.manual_id}/{row.path}:{row.match_line or row.line}  score {row.score:.2f}")
    if row.snippet is not None and row.snippet.text:
        say(f"     {row.snippet.text}", most=2, bold=words)
    if not on_terminal(sys.stdout):  # where the best hit has to be in sight
        say()


# ls


def _ls(opened: _Opened) -> None:
    manual, path = _place(opened.options.words)
    if manual:
        _list_folder(opened, manual, path)
        return
    rows: list[tuple[str, int, Counter[str]]] = []
    for name in opened.names():
        others: Counter[str] = Counter()
        rows.append((name, sum(1 for _ in opened.folder.walk(name, unchecked, {}, others=others)), others))
    if opened.options.json:
        shown = [{"manual_id": name, "files": files, "not_served": dict(others)} for name, files, others in rows]
        say_json({"manuals": shown})
        return
    wide = max((columns(name) for name, *_ in rows), default=0)
    for name, files, others in rows:
        told = "; ".join(filter(None, (counted(files, "file"), in_words(others))))
        say(f"{name}{' ' * (wide - columns(name))}  {told}")
    for sentence in _about_links(opened.root):
        remark(sentence)


def _list_folder(opened: _Opened, manual: str, path: str) -> None:
    items = opened.folder.children(manual, path, unchecked)
    if opened.options.json:
        rows = [{"name": name, "kind": kind} for name, kind in items]
        say_json({"manual_id": manual, "path": path, "items": rows})
        return
    for name, kind in items:
        say(f"{name}/" if kind == "dir" else name)
    if not items:
        remark(why_empty(opened.folder, manual, path, unchecked))


# read


def _read(opened: _Opened) -> None:
    manual, path = _place(opened.options.words)
    if not path:
        listing = opened.command("ls", *filter(None, [manual]))
        raise Stop(f"PATH is missing; see what there is: {listing}", code=WRONG)
    path, line = (found[1], int(found[2])) if (found := _PATH_AND_LINE.fullmatch(path)) else (path, None)
    _with_manuals(opened, lambda manuals, _: _show(manuals, opened.options, manual, path, line))


def _place(words: Sequence[str]) -> tuple[str, str]:
    """Return the manual and the path in it that are given, in one word as `find` shows them, or in several."""
    manual, _, path = "/".join(words).replace("\\", "/").partition("/")
    return manual, "/".join(parts_of(path.rstrip("/")))


async def _show(manuals: Manuals, options: argparse.Namespace, manual: str, path: str, line: int | None) -> None:
    section = None
    if not options.all:
        try:
            section = await manuals.read(ReadRequest(manual, path, line, _ALL, any_line=True))
        except ManualsError as error:
            if error.code != "invalid_scope":  # of JSON, which has no sections
                raise
    if section is None:
        await _scan(manuals, options, ScanRequest(manual, path, line, None, _ALL if options.json else _PAGE))
        return
    result, end = section
    if line not in (None, end.line):
        where = "begins before it" if end.line < line else "comes next"
        remark(f"line {line} is not a heading; this is the section that {where}, on line {end.line}.")
    if options.json:
        say_json({**result, "ref": {"manual_id": end.manual_id, "path": end.path, "start_line": end.line}})
    else:
        _say_read(result["text"], result.get("decoding_replacements", 0))


async def _scan(manuals: Manuals, options: argparse.Namespace, request: ScanRequest) -> None:
    """Write a file, from a line on if one was given: as it comes, unless it must be one document."""
    page = await manuals.scan(request)
    if options.json:
        say_json(page)
        return
    replaced = page.get("decoding_replacements", 0)
    while not page["eof"]:
        say_text(page["text"])
        page = await manuals.scan(replace(request, start_line=None, char_offset=page["next_cursor"]["char_offset"]))
        replaced += page.get("decoding_replacements", 0)
    _say_read(page["text"], replaced)


def _say_read(text: str, replaced: int) -> None:
    say_text(text if text.endswith("\n") or not text else f"{text}\n")
    if not text:
        remark("the file is empty.")
    if replaced:
        remark(f"the file has invalid UTF-8, which was replaced in {counted(replaced, 'place')}.")


# The command line


class _Command(NamedTuple):
    """One of the commands: what it takes, what it does, and what its help says of that."""

    work: Callable[[_Opened], None]
    arguments: str
    words: str
    summary: str
    more: str
    examples: tuple[str, ...]


_COMMANDS: Final = {
    "index": _Command(
        _index,
        "[MANUAL ...]",
        "which ones (default: all)",
        "bring the index of manuals up to date",
        "Searches do that too.\nCtrl-C keeps what is done; the next run goes on from there.",
        ("index --root ~/manuals",),
    ),
    "find": _Command(
        _find,
        "QUERY",
        "what to look for: a question, or words",
        "search manuals",
        "The sections that fit best come first.\nPut -- before words that begin with -.",
        ('find "How long is a token valid?"', 'find "rotate keys" --manual guide --limit 3'),
    ),
    "read": _Command(
        _read,
        "PLACE",
        "manual and path, as 'find' shows them: guide/auth/tokens.md:57, or guide auth/tokens.md",
        "show a section of a manual",
        "JSON is shown from the line on, or from its start.",
        ("read guide/auth/tokens.md:57",),
    ),
    "ls": _Command(
        _ls,
        "[MANUAL [FOLDER]]",
        "a manual, or a folder in it (default: list all)",
        "list the manuals, or what is in one",
        "Counts the files, and those that are not served.",
        ("ls guide auth",),
    ),
}


def build_parser() -> Parser:
    """Return the parser of this command, whose help lists its own commands."""
    commands = "".join(f"  {name:<7} {command.summary}\n" for name, command in _COMMANDS.items())
    examples = _examples(*(command.examples[0] for command in _COMMANDS.values()))
    return parser_of(
        "manuals",
        usage="%(prog)s COMMAND [options]",
        description="Search and read a folder of manuals, as the manual_* tools do.",
        epilog=f"commands:\n{commands}\n{examples}",
    )


def _parser_of(name: str) -> Parser:
    said = _COMMANDS[name]
    parser = parser_of(
        f"manuals {name}",
        usage=f"%(prog)s {said.arguments} [options]",
        description=f"{said.summary[0].upper()}{said.summary[1:]}. {said.more}",
        epilog=_examples(*said.examples),
    )
    parser.add_argument("words", metavar=said.arguments.strip("[]").split()[0], nargs="*", help=said.words)
    parser.add_argument("--root", metavar="DIR", help="folder of manuals, instead of the configured one")
    parser.add_common_options("with all details")
    if name == "index":
        parser.add_argument("--forget", action="store_true", help="remove the index from the disk instead")
        told = "then make the vectors that manuals.embeddings asks for"
        parser.add_argument("--embed", action="store_true", help=told)
        parser.add_argument("--yes", action="store_true", help="make them, whatever they cost")
    elif name == "find":
        told = "search this one (default: all)"
        parser.add_argument("--manual", metavar="ID", action="append", type=_manual, help=told)
        parser.add_argument("--path", metavar="PATH", default="", help="search this folder or file of the manuals")
        limit = f"hits, 1 to {_MOST_HITS} (default {_HITS})"
        parser.add_argument("--limit", metavar="N", type=whole_number(1, _MOST_HITS), default=_HITS, help=limit)
    elif name == "read":
        parser.add_argument("--all", action="store_true", help="the whole file, or all of it from the line on")
    return parser


def _examples(*commands: str) -> str:
    head = "example:" if len(commands) == 1 else "examples:"
    return "\n".join([head, *(f"  {NAME} manuals {command}" for command in commands)]) + "\n"


def _manual(text: str) -> str:
    """Return the name of a manual; a shell that completes it adds a slash."""
    return text.rstrip("/\\") or text
