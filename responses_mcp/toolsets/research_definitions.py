"""The four research tools as `tools/list` shows them.

Each input has one plain type and is optional by being left out, though null is taken too.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from responses_mcp.json_types import JsonObject

USUAL_WAIT: Final = 50  # seconds: under the 60 after which several clients give a call up
LONGEST_WAIT: Final = 280
USUAL_LIST: Final = 20
LONGEST_LIST: Final = 100

_STRING: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_BOOLEAN: Final = {"type": "boolean"}
_STRINGS: Final = {"type": "array", "items": _STRING}


class Definition(NamedTuple):
    """A tool without what does it."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    annotations: JsonObject


def _object(required: str = "", **properties: Any) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def _told(schema: JsonObject, description: str) -> JsonObject:
    return {**schema, "description": description}


_RUN_ID: Final = _told(_STRING, "as research gave it")
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": LONGEST_WAIT,
    "description": f"seconds to wait for the end; default {USUAL_WAIT}",
}
_USAGE: Final = {"type": "object"}
_COST: Final = _object(usd=_NUMBER, prices_as_of=_STRING)
_STATUS: Final = {"type": "string", "enum": ["running", "completed", "incomplete", "failed", "cancelled"]}
_RUN: Final = _object(
    "status run_id",
    status=_STATUS,
    run_id=_STRING,
    phase=_STRING,
    runs_before_it=_NUMBER,
    seconds=_NUMBER,
    next=_STRING,
    answer=_STRING,
    used_search=_BOOLEAN,
    citations={
        "type": "array",
        "items": _object("url", url=_STRING, title=_STRING, published_at=_STRING),
    },
    model=_STRING,
    data={"type": "object"},
    error=_STRING,
    maybe_paid=_BOOLEAN,
    confirmed=_BOOLEAN,
    durable=_BOOLEAN,
    usage=_USAGE,
    cost=_COST,
)
_LIST: Final = _object(
    "runs",
    runs={
        "type": "array",
        "items": _object(
            "run_id status",
            run_id=_STRING,
            status=_STATUS,
            seconds_ago=_NUMBER,
            model=_STRING,
            question=_STRING,
            usage=_USAGE,
            cost=_COST,
        ),
    },
)

# `research` changes nothing but its own list of runs; without readOnlyHint Codex refuses the call.
_READS: Final = {"readOnlyHint": True, "openWorldHint": True}

DEFINITIONS: Final = (
    Definition(
        "research",
        "Research",
        "Research a question thoroughly on the web, which may take minutes, and return an answer with citations. If "
        "the result has status running, call research_result with its run_id until the status is another; the run goes "
        "on meanwhile, also when a call is cancelled or times out: then research_list has its run_id.",
        _object(
            "query",
            query=_told(_STRING, "one self-contained question"),
            effort={"type": "string", "enum": ["quick", "standard", "deep"], "description": "default standard"},
            domains=_told(_STRINGS, "search only these sites"),
            blocked_domains=_told(_STRINGS, "never search these sites"),
            recency_days=_told(_NUMBER, "prefer pages of the last days"),
            location=_told(
                _object(country=_told(_STRING, "two letters"), region=_STRING, city=_STRING, timezone=_STRING),
                "where to search from",
            ),
            continue_from=_told(_STRING, "run_id of an answered run that this follows up"),
            output_schema={"type": "object", "description": "JSON Schema of an object, which data then is"},
            stores=_told(_STRINGS, "also search these collections of files, by configured name"),
            wait_seconds=_WAIT,
            fresh=_told(_BOOLEAN, "start a new run even while one for the same question is running"),
        ),
        _RUN,
        _READS,
    ),
    Definition(
        "research_result",
        "Result of research",
        "Wait for a run of research and return its answer, or how far it is. Call it again while the status is "
        "running; it costs nothing.",
        _object("run_id", run_id=_RUN_ID, wait_seconds=_WAIT),
        _RUN,
        {**_READS, "idempotentHint": True},
    ),
    Definition(
        "research_cancel",
        "Cancel research",
        "Cancel a run of research, so that it stops working and costing. Tells whether the API confirmed that.",
        _object("run_id", run_id=_RUN_ID),
        _RUN,
        {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
    ),
    Definition(
        "research_list",
        "List research",
        "List the last runs of research, the newest first, with the run_id that research_result takes.",
        _object(
            limit={
                "type": "number",
                "minimum": 1,
                "maximum": LONGEST_LIST,
                "description": f"how many; default {USUAL_LIST}",
            }
        ),
        _LIST,
        {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    ),
)
