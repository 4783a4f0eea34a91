"""What is told of a run: how far it is or how it ended, from its row and, once there is one, its Response."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import repeat
from typing import Final, Literal, cast

from responses_mcp.errors import ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject, as_object, objects
from responses_mcp.research.runs_file import Row
from responses_mcp.research.states import State
from responses_mcp.responses_api.background import WITH_ANSWER
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.request.payload import MAX_DOMAINS
from responses_mcp.responses_api.response.parser import Answer, answer_messages, joined_text, output_items, read_answer
from responses_mcp.responses_api.response.web_pages import without_markers
from responses_mcp.sanitization import sanitized_json
from responses_mcp.secrets import Redact
from responses_mcp.settings.time_zone import zone_of
from responses_mcp.usage.bill import usage_from

Status = Literal["running", "completed", "incomplete", "failed", "cancelled"]

CANCELLED: Final = "The run was cancelled."

_NOT_KEPT: Final = (
    "The run had an answer, which the API does not keep: only the server that asked can show it, while it is there. "
    "Ask again if it is not at hand."
)

LATER: Final = "ask for the result again"
"""In what is told of a run whose answer may still be had."""

_MAY_COME: Final = (
    f"The API says that the run has ended, and shows no answer. It may still come, and was paid for: {LATER} before "
    "you ask anew."
)
_NO_DATA: Final = (
    "There is no data, for the answer is no JSON object, although output_schema asked for one. See the answer itself "
    "before you ask again."
)

# What goes on in a run that is not followed here.
_PHASES: Final = {
    State.QUEUED: "waiting for its turn",
    State.ASKING: "asking",
    State.WITHDRAWING: "cancelling",
    State.CANCELLING: "cancelling",
}
_MOST_TOOLS: Final = 100
_FENCED: Final = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it is told. `seconds` is how long it has been going on, or took, since `created` (seconds since 1970).

    `tool` is the one that began it.

    While it runs, `phase` says what is going on, and `place` how many runs begin before it. When it has ended there is
    an `answer`, with `data` where a schema was asked for; an `error` says why one is missing. `maybe_paid` tells that
    it may have cost something all the same, and `confirmed` that the API has confirmed a cancel, or told of its
    failure. `usage` is what it used and cost, as `Usage.as_json` has it; None while that is not known. `durable` is
    false where the API keeps nothing, so that the run ends, and its answer is gone, with the server that began it.
    `failure` is why a run failed as a call would have raised it: an `UpstreamError` or `LimitReached`. Only the process
    in which it failed knows it, and only of its last 32 runs.
    """

    run_id: str
    tool: str
    status: Status
    created: float
    seconds: float
    model: str
    phase: str = ""
    place: int | None = None
    answer: Answer | None = None
    data: JsonObject | None = None
    error: str | None = None
    maybe_paid: bool = False
    confirmed: bool = False
    usage: JsonObject | None = None
    durable: bool = True
    failure: ResponsesMcpError | None = field(default=None, compare=False)

    @property
    def running(self) -> bool:
        """Tell whether it goes on."""
        return self.status == "running"

    @property
    def may_go_on(self) -> bool:
        """Tell whether it was given up, and may have been paid for: the API has not said how it ended."""
        return self.status in ("failed", "cancelled") and self.maybe_paid and not self.confirmed

    def as_json(self, most: int | None = None) -> JsonObject:
        """Return the object that tools answer with, its answer cut to `most` characters. Unknown is left out."""
        shown: JsonObject = {"status": self.status, "run_id": self.run_id}
        if not self.durable:
            shown["durable"] = False
        if self.running:
            shown["phase"] = self.phase
            if self.place is not None:
                shown["runs_before_it"] = self.place
            shown["seconds"] = self.seconds
            return {**shown, "next": f"Call research_result with run_id {self.run_id} to wait for the answer."}
        if self.answer is not None:
            shown |= self.answer.as_json(most)
        else:
            shown["model"] = self.model
        if self.data is not None:
            shown["data"] = self.data
        if self.error is not None:
            shown["error"] = self.error
        if self.answer is None:
            shown["maybe_paid"] = self.maybe_paid
        if self.status == "cancelled":
            shown["confirmed"] = self.confirmed
        return {**shown, **used(self.usage), "seconds": self.seconds}


def used(usage: JsonObject | None) -> JsonObject:
    """Return the members that tell what a run used and, apart from that, what it may have cost."""
    if usage is None:
        return {}
    counts = {name: value for name, value in usage.items() if name not in ("cost_usd", "prices_as_of")}
    if "cost_usd" not in usage:
        return {"usage": counts}
    day = usage.get("prices_as_of")
    return {"usage": counts, "cost": {"usd": usage["cost_usd"], **({"prices_as_of": day} if day else {})}}


def day_of(moment: float, time_zone: str) -> str:
    """Return the date of a moment, in seconds since 1970, in a time zone, as YYYY-MM-DD."""
    return datetime.fromtimestamp(moment, zone_of(time_zone) or UTC).date().isoformat()


def view_of_end(row: Row, response: JsonObject, *, max_citations: int, time_zone: str, redact: Redact) -> RunView:
    """Return what a Response that has ended says, the same whoever reads it and whenever."""
    plain = _plain(row, row.created)
    status = cast(Status, response.get("status") or "completed")
    if status == "cancelled":
        return replace(plain, status=status, error=CANCELLED, confirmed=True, maybe_paid=True)
    try:
        if (failed := response_error(response, redact)) is not None:
            raise failed
        date = day_of(row.created, time_zone)
        blocked, files = _searched(response)
        answer = read_answer(
            response,
            model=row.model,
            max_citations=max_citations,
            date=date,
            redact=redact,
            blocked=blocked,
            files=files,
        )
        answer = replace(answer, usage=None if row.usage is None else usage_from(row.usage))
        data = _data(response, redact) if row.has_schema else None
        why = _NO_DATA if row.has_schema and data is None else None
        return replace(plain, status=status, answer=answer, data=data, error=why)
    except UpstreamError as error:
        # Some say that it has ended before its answer is there: where they keep it, it is asked for again.
        sure = status not in WITH_ANSWER or bool(response.get("output")) or not row.is_kept
        why = str(error) if sure else _MAY_COME if status == "completed" else f"{error} {_MAY_COME}"
        return replace(plain, status="failed", error=why, maybe_paid=True, confirmed=sure, failure=error)


def view_of_row(row: Row, now: float) -> RunView:
    """Return what a row says of a run that ended without an answer, or that is not followed here.

    `now` is in seconds since 1970.
    """
    plain = _plain(row, now)
    if row.status is None:
        return replace(plain, phase=_PHASES.get(row.state, "working"))
    if row.status in WITH_ANSWER:  # and nobody has it any more
        return replace(plain, status="failed", error=_NOT_KEPT, maybe_paid=True)
    status = cast(Status, row.status)
    return replace(plain, status=status, error=row.reason, maybe_paid=row.maybe_paid, confirmed=row.confirmed)


def _plain(row: Row, until: float) -> RunView:
    """Return what can be told of any run, which, unless its row says when it ended, goes on `until` then."""
    seconds = round(max(0.0, (row.ended or until) - row.created), 1)
    return RunView(
        run_id=row.id,
        tool=row.tool,
        status="running",
        created=row.created,
        seconds=seconds,
        model=row.model,
        usage=row.usage,
        durable=row.durable,
    )


def _searched(response: JsonObject) -> tuple[list[str], bool]:
    """Return the domains that were not to be searched, and whether files were: a Response says what it was asked with.

    Nothing else knows it after a crash.
    """
    tools = list(objects(response.get("tools"), repeat(None, _MOST_TOOLS)))
    listed = [as_object(tool.get("filters")).get("blocked_domains") for tool in tools]
    domains = [domain for each in listed if isinstance(each, list) for domain in cast(list[object], each)[:MAX_DOMAINS]]
    files = any(tool.get("type") == "file_search" for tool in tools)
    return [domain for domain in domains if isinstance(domain, str)], files


def _finite(number: str) -> float:
    """Read a number of JSON. Raises ValueError for one that cannot be written as JSON again."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)
    return value


def _data(response: JsonObject, redact: Redact) -> JsonObject | None:
    """Return the object that the answer is; None for an answer in other words, which was paid for, too."""
    items = output_items(response)
    text = without_markers(joined_text(answer_messages(items), "output_text", "text", redact))
    if fenced := _FENCED.fullmatch(text.strip()):
        text = fenced[1]
    try:
        value = sanitized_json(
            json.loads(text, parse_constant=_finite, parse_float=_finite), redact
        )  # which JSON may have escaped
    except (ValueError, RecursionError):
        value = None
    return cast(JsonObject, value) if isinstance(value, dict) else None
