"""The four research tools as `tools/list` shows them, and the template of resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.toolsets.schema import (
    BOOLEAN,
    CITATIONS,
    NUMBER,
    OPEN,
    READS,
    STRING,
    STRINGS,
    Definition,
    described,
    list_of,
    members,
    object_of,
    one_of,
)

USUAL_WAIT: Final = 50  # seconds: under the 60 after which several clients give a call up
LONGEST_WAIT: Final = 280
USUAL_LIST: Final = 20
LONGEST_LIST: Final = 100

_RUN_ID: Final = described(STRING, "as research gave it")
_WAIT: Final = described(
    {**NUMBER, "minimum": 0, "maximum": LONGEST_WAIT}, f"seconds to wait for the end; default {USUAL_WAIT}"
)
_BILL: Final = {"usage": OPEN, "cost": object_of(usd=NUMBER, prices_as_of=STRING)}
_STATUS: Final = one_of("running completed incomplete failed cancelled")
_RUN: Final = object_of(
    "status run_id",
    status=_STATUS,
    **members(STRING, "run_id label phase"),
    **members(NUMBER, "searches seconds"),
    **members(STRING, "next answer"),
    part=described(STRING, "such as 1 of 4; research_result gives the others"),
    used_search=BOOLEAN,
    citations=CITATIONS,
    model=STRING,
    data=OPEN,
    sources_read=described(STRINGS, "pages found or opened, cited or not"),
    error=STRING,
    maybe_paid=described(BOOLEAN, "whether a run without an answer may have cost something"),
    confirmed=described(BOOLEAN, "whether the API has confirmed the cancel"),
    durable=described(BOOLEAN, "false where the run ends with this server"),
    **_BILL,
)
_LISTED: Final = object_of(
    "run_id status",
    run_id=STRING,
    status=_STATUS,
    seconds_ago=NUMBER,
    **members(STRING, "model label effort"),
    **_BILL,
)
TEMPLATE: Final[JsonObject] = {
    "uriTemplate": "run://{run_id}",
    "name": "run",
    "title": "The report of a run",
    "description": "The whole report of a run of research that has ended, with its data if it has any.",
}
_EFFORT: Final = (
    "default standard; quick takes about a minute and some cents, standard minutes and some ten cents, deep up to an "
    "hour and some dollars"
)
_STORES: Final = "also search these collections of files"


def definitions(stores: Sequence[str] = ()) -> Sequence[Definition]:
    """Return the four tools; `stores` are the names of `research.stores`."""
    listed = {"stores": described(list_of({**STRING, "enum": list(stores)}), _STORES)} if stores else {}
    return (
        Definition(
            "research",
            "Research",
            "Research a question thoroughly on the web, which may take minutes, and return an answer with citations. "
            "If the result has status running, call research_result with its run_id until the status is another; the "
            "run goes on meanwhile, also when a call is cancelled or times out: then research_list has its run_id.",
            object_of(
                "query",
                query=described(STRING, "one self-contained question"),
                effort=described(one_of("quick standard deep"), _EFFORT),
                domains=described(STRINGS, "search only these sites"),
                blocked_domains=described(STRINGS, "never search these sites"),
                recency_days=described(NUMBER, "prefer pages of the last days"),
                location=described(
                    object_of(country=described(STRING, "two letters"), region=STRING, city=STRING, timezone=STRING),
                    "where to search from",
                ),
                continue_from=described(STRING, "run_id of an answered run that this follows up"),
                output_schema=described(
                    object_of(type=one_of("object"), required=STRINGS),  # its own properties may have any names
                    "JSON Schema of an object, with its properties; data is such an object then",
                ),
                **listed,
                max_tool_calls=described({**NUMBER, "minimum": 1}, "at most so many searches"),
                max_cost_usd=described({**NUMBER, "minimum": 0}, "refuse if the estimate is above"),
                label=described(STRING, "a name for the run, which research_list shows"),
                wait_seconds=_WAIT,
                fresh=described(BOOLEAN, "start a new run even while one for the same question is running"),
            ),
            _RUN,
        ),
        Definition(
            "research_result",
            "Result of research",
            "Wait for a run of research and return its answer, or how far it is. Call it again while the status is "
            "running; it costs nothing.",
            object_of(
                "run_id",
                run_id=_RUN_ID,
                wait_seconds=_WAIT,
                part=described({**NUMBER, "minimum": 1}, "which part of a long answer; default 1"),
            ),
            _RUN,
            {**READS, "idempotentHint": True},
        ),
        Definition(
            "research_cancel",
            "Cancel research",
            "Cancel a run of research, so that it stops working and costing. Tells whether the API confirmed that.",
            object_of("run_id", run_id=_RUN_ID),
            _RUN,
            {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
        ),
        Definition(
            "research_list",
            "List research",
            "List the last runs of research, the newest first, with the run_id that research_result takes.",
            object_of(
                limit=described({**NUMBER, "minimum": 1, "maximum": LONGEST_LIST}, f"how many; default {USUAL_LIST}")
            ),
            object_of("runs", runs=list_of(_LISTED), running=described(NUMBER, "how many of them go on")),
            {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        ),
    )
