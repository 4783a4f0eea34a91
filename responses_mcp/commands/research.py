"""`openai-responses-mcp research`: what the research tools do, for people and scripts."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import trio

from responses_mcp.commands.asking import COMMAND_LINE, Watch, call, question, used_in_words
from responses_mcp.commands.parser import Parser, not_blank, parser_of
from responses_mcp.commands.terminal import (
    FAILED,
    INTERRUPTED,
    NAME,
    OK,
    WRONG,
    Stop,
    configured,
    counted,
    on_terminal,
    remark,
    run_command,
    say,
    say_json,
    say_text,
)
from responses_mcp.errors import BadArgument, program
from responses_mcp.research.inquiry import EFFORTS
from responses_mcp.research.runs import Research, open_research
from responses_mcp.research.view import RunView
from responses_mcp.settings.model import Settings
from responses_mcp.under_trio import alone
from responses_mcp.usage.limits import dollars

T = TypeVar("T")

_EXAMPLES: Final = """\
examples:
  openai-responses-mcp research "What changed in the tax law?" --effort deep
  openai-responses-mcp research list
"""
_FOREVER: Final = 7 * 86_400.0  # seconds; runs end before that by themselves
_SECOND_THOUGHT: Final = 3.0  # seconds in which a second Ctrl-C cancels the run
_LARGEST_SCHEMA: Final = 64 * 1024  # bytes
_MOST_LISTED: Final = 100


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "research",
        usage='%(prog)s "QUESTION" [options]\n       %(prog)s list | show RUN | cancel RUN',
        description="Research a question on the web, for minutes if need be. The run goes on when\n"
        "this ends: Ctrl-C leaves it and prints its id, a second Ctrl-C cancels it.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="what to research; - reads it from stdin")
    parser.add_argument("--effort", metavar="E", choices=EFFORTS, help="quick, standard (the default) or deep")
    parser.add_argument("--domains", metavar="A,B", action="append", help="search only these sites")
    parser.add_argument("--stores", metavar="A,B", action="append", help="search these of research.stores, too")
    parser.add_argument("--schema", metavar="FILE", help="JSON Schema; the answer is then JSON that fits it")
    parser.add_argument(
        "--continue", dest="continue_from", metavar="RUN", type=not_blank, help="follow up a run that has an answer"
    )
    parser.add_argument("--label", metavar="TEXT", type=not_blank, help="a name for the run, for the list")
    parser.add_argument("--fresh", action="store_true", help="start a new run even if the same question has one")
    parser.add_common_options("as the tools return it")
    return parser


def _parser_of_runs(action: str) -> Parser:
    said = {
        "list": "List the last runs, the newest first.",
        "show": "Wait for a run and show its answer. Ctrl-C leaves it alone.",
        "cancel": "Cancel a run, so that it stops working and costing.",
    }
    example = "" if action == "list" else " run_0f3a5c7e9b1d2f46"
    parser = parser_of(
        f"research {action}", description=said[action], epilog=f"examples:\n  {NAME} research {action}{example}\n"
    )
    if action != "list":
        parser.add_argument("run", metavar="RUN", help="id of the run")
    parser.add_common_options("as the tools return it")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    if argv and argv[0] in _RUNS:
        options, work = _parser_of_runs(argv[0]).parse_options(argv[1:]), _RUNS[argv[0]]
    else:
        parser = build_parser()
        options, work = parser.parse_words(argv), _research
        words: list[str] = [] if "--" in argv else options.question
        if words and (words[0] in _RUNS or words[-1].startswith("run_")):  # perhaps not a question to pay for
            parser.error(f"put list, show or cancel first: {NAME} research show RUN; to ask these words, put -- first")
    return run_command(lambda: work(options, _settings(options)), as_json=options.json)


def _settings(options: argparse.Namespace) -> Settings:
    return configured(os.environ, options.config, toolsets="answer,research")


def _call(settings: Settings, work: Callable[[Research, Watch], Any]) -> Any:
    async def opened(watch: Watch) -> Any:
        async with open_research(settings) as research:
            try:
                return await work(research, watch)
            except BadArgument as error:  # which is worded for the tool as well
                listing = f'run "{program("research", "list")}"'
                raise BadArgument(str(error).replace("list the runs", listing)) from error

    return call(settings, opened)


def _research(options: argparse.Namespace, settings: Settings) -> int:
    query = question(options.question)
    schema = None if options.schema is None else _schema(options.schema)
    asked: list[str] = []
    ended: list[RunView] = []

    async def ask(research: Research, watch: Watch) -> None:
        run_id = await research.start(
            query,
            effort=options.effort,
            domains=options.domains,
            stores=options.stores,
            continue_from=options.continue_from,
            output_schema=schema,
            label=options.label,
            client=COMMAND_LINE,
            fresh=options.fresh,
        )
        asked.append(run_id)
        ended.append(await _watched(research, run_id, watch))

    try:
        try:
            _call(settings, ask)
        except* KeyboardInterrupt:  # which came as all that was open was left, and is no reason to keep the answer back
            if not ended:
                raise
        return _show(ended[0], as_json=options.json)
    except* KeyboardInterrupt:  # where nobody listens for it any more, or not yet
        for run_id in asked:
            said = f"To see how the run ended: {program()} research show {run_id}"
            remark(said, begin="\r" if on_terminal(sys.stderr) else "")
        raise


async def _watched(research: Research, run_id: str, watch: Watch) -> RunView:
    """Wait for a run; an interrupt leaves it, and a second one cancels it."""
    wait = partial(research.result, run_id, wait_seconds=_FOREVER, on_phase=watch.tell)
    if threading.current_thread() is not threading.main_thread():  # of a program that runs this
        return await wait()
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        if (view := await _unless_interrupted(interrupts, wait)) is not None:
            return view
        watch.end()
        remark("Leaving the run. Press Ctrl-C again to cancel it.")
        after = await _unless_interrupted(interrupts, partial(research.result, run_id, wait_seconds=_SECOND_THOUGHT))
    if after is None:
        return await research.cancel(run_id, on_phase=watch.tell)  # a third Ctrl-C leaves it on its way
    if not after.running:  # meanwhile
        return after
    if not after.durable:
        raise Stop("The API does not keep the run: it ends with this command and may cost something.", code=INTERRUPTED)
    raise Stop(f"This command leaves the run. To see how it ends: {program()} research show {run_id}", code=INTERRUPTED)


async def _unless_interrupted(interrupts: AsyncIterator[int], work: Callable[[], Awaitable[T]]) -> T | None:
    """Return what work returns, None if there was an interrupt before."""
    done: T | None = None
    async with alone() as nursery:

        async def listen() -> None:
            await anext(interrupts)
            nursery.cancel_scope.cancel(reason="interrupted")

        nursery.start_soon(listen)
        done = await work()
        nursery.cancel_scope.cancel(reason="it is done")
    return done


def _schema(name: str) -> Mapping[str, Any]:
    try:
        with Path(name).open("rb") as file:
            data = file.read(_LARGEST_SCHEMA + 1)
        if len(data) > _LARGEST_SCHEMA:
            raise Stop(f"{name} has more than {_LARGEST_SCHEMA} bytes; pass a smaller schema.", code=WRONG)
        schema = json.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise Stop(f"{name} cannot be read ({error.strerror}).", code=WRONG) from error
    except (ValueError, RecursionError):
        raise Stop(f"{name} is not JSON; pass a file with a JSON Schema.", code=WRONG) from None
    if not isinstance(schema, dict):
        raise Stop(f"{name} holds no JSON object; pass a file with a JSON Schema.", code=WRONG)
    return cast("Mapping[str, Any]", schema)


def _show(view: RunView, *, as_json: bool) -> int:
    if as_json:
        say_json(view.as_json())
    elif view.data is not None:
        say_json(view.data)
    elif view.answer is not None:
        say_text(f"{view.answer.text}\n")
    if on_terminal(sys.stderr):
        took = f"{view.run_id} took {view.seconds:g} s"
        remark(", ".join(filter(None, (took, used_in_words(view.usage or {})))))
    wanting = view.answer is None or view.error is not None
    if wanting and not as_json:
        remark(view.error or "There is no answer.")
    return FAILED if wanting else OK


def _list(options: argparse.Namespace, settings: Settings) -> int:
    async def listed(research: Research, _: Watch) -> Any:
        return await research.list(_MOST_LISTED)

    runs = _call(settings, listed)
    if options.json:
        say_json({"runs": runs})
        return OK
    for each in runs:
        minutes = each["seconds_ago"] / 60
        ago = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        cost = dollars(each["cost"]["usd"]) if "cost" in each else ""
        say(f"{each['run_id']}  {each['status']:<10}  {ago:>7} ago  {cost:>8}  {each.get('label', '')}".rstrip())
    if not runs:
        days = settings.research.keep_days
        remark(f"There are no runs from the last {days} days with this key and address.")
    going_on = sum(each["status"] == "running" for each in runs)
    if going_on:
        remark(f"{counted(going_on, 'run', 's')} going on at the API, even if their server has ended.")
    return OK


def _show_run(options: argparse.Namespace, settings: Settings) -> int:
    async def wait(research: Research, watch: Watch) -> RunView:
        return await research.result(options.run, wait_seconds=_FOREVER, on_phase=watch.tell)

    return _show(_call(settings, wait), as_json=options.json)


def _cancel(options: argparse.Namespace, settings: Settings) -> int:
    async def cancel(research: Research, watch: Watch) -> RunView:
        return await research.cancel(options.run, on_phase=watch.tell)

    view: RunView = _call(settings, cancel)
    if options.json:
        say_json(view.as_json())
    elif view.status == "cancelled":
        say(view.error or "The run was cancelled.")
    else:
        say(f"The run had already ended: {view.status}.")
    return FAILED if view.status == "cancelled" and view.maybe_paid and not view.confirmed else OK


_RUNS: Final = {"list": _list, "show": _show_run, "cancel": _cancel}
