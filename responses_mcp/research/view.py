"""How far a run is or how it ended, from its row and, once there is one, its Response."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice, repeat
from typing import Final, Literal, cast

from responses_mcp.errors import DeadlineExceeded, ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject, as_object, objects, text_at
from responses_mcp.research.inquiry import PROFILES
from responses_mcp.research.runs_file import Row
from responses_mcp.responses_api.background import WITH_ANSWER
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.request.payload import MAX_DOMAINS, bare_hosts
from responses_mcp.responses_api.response.parser import Answer, answer_messages, joined_text, output_items, read_answer
from responses_mcp.responses_api.response.web_pages import address, is_within, without_markers
from responses_mcp.sanitization import sanitized_json
from responses_mcp.secrets import Redact
from responses_mcp.settings.model import Settings
from responses_mcp.settings.time_zone import zone_of
from responses_mcp.usage.bill import usage_from

Status = Literal["running", "completed", "incomplete", "failed", "cancelled"]

CANCELLED: Final = "The run was cancelled."
NEVER_ASKED: Final = "No request was sent, so the run cost nothing; ask again."
UNTOLD: Final = "The run was cancelled before its id was known, so the API could not cancel it; it may cost something."

_NOT_CONFIRMED: Final = " The API did not confirm the cancel: the run may go on and cost something."

_NOT_KEPT: Final = (
    "The run had an answer, which the API does not keep: only the server that asked can show it, until it ends. "
    "If that server has ended, ask again."
)

_NO_DATA: Final = (
    "There is no data: the answer is not a JSON object, although output_schema asks for one. Read the answer "
    "before you ask again."
)

_DEEPEST: Final = 100
_MOST_READ: Final = 100  # sources that were read, in a result
_SENTENCE_ENDS: Final = ("\n", ". ", "! ", "? ", "。", "！", "？")
_MOST_TOOLS: Final = 100
_FENCED: Final = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it is shown. `seconds` is how long it has been going on, or took, since `created` (seconds since 1970).

    `tool` is the one that began it. `phase` says what is going on, also where the answer of a run that has ended cannot
    be fetched now. `error` says why there is no `answer`, and `maybe_paid` whether it may have cost something all the
    same; `confirmed`, that the API has confirmed a cancel, or reported the failure. `usage` is as `Usage.as_json` has
    it. `durable` is false where the API keeps nothing: the run and its answer end with the server that began it.
    `failure` is the error that a call would have raised, known only to the process in which the run failed.
    """

    run_id: str
    tool: str
    status: Status
    created: float
    seconds: float
    model: str
    label: str | None = None
    phase: str = ""
    searches: int = 0
    answer: Answer | None = None
    data: JsonObject | None = None
    sources_read: tuple[str, ...] = ()
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
    def pending(self) -> bool:
        """Tell whether waiting helps: it goes on, or has an answer that cannot be fetched now."""
        return bool(self.phase)

    def as_json(self, most: int | None = None, part: int = 1) -> JsonObject:
        """Return the object that tools answer with: of a long answer the `part` with `most` characters.

        What is not known is left out.
        """
        shown: JsonObject = {"status": self.status, "run_id": self.run_id, "label": self.label}
        shown["durable"] = None if self.durable else False
        if self.running:
            following = f"Call research_result with run_id {self.run_id} to wait for the answer."
            shown |= {"phase": self.phase, "searches": self.searches or None, "seconds": self.seconds}
            shown |= {**used(self.usage), "next": following}
        else:
            shown |= {"model": self.model, "maybe_paid": self.maybe_paid} if self.answer is None else {}
            shown |= {} if self.answer is None else self._part(self.answer, most, part)
            shown |= {"data": self.data, "sources_read": list(self.sources_read) or None, "error": self.error}
            shown["confirmed"] = self.confirmed if self.status == "cancelled" else None
            shown |= {**used(self.usage), "seconds": self.seconds}
        return {name: value for name, value in shown.items() if value is not None}

    def _part(self, answer: Answer, most: int | None, part: int) -> JsonObject:
        shown = answer.as_json()
        parts = list(parts_of(answer.text, most or len(answer.text) or 1))
        if len(parts) <= 1:
            return shown
        number = min(part, len(parts))
        shown = {**shown, "answer": parts[number - 1], "part": f"{number} of {len(parts)}"}
        if number < len(parts):
            shown["next"] = f"Call research_result with run_id {self.run_id} and part {number + 1}; it costs nothing."
        return shown


def parts_of(text: str, most: int) -> Iterator[str]:
    """Yield the parts of a text, each of `most` characters at most, and where possible ending with a sentence."""
    begin = 0
    while begin < len(text):
        end = min(begin + most, len(text))
        if end < len(text):
            sentence = max(text.rfind(mark, begin + most // 2, end) for mark in _SENTENCE_ENDS) + 1
            end = sentence or end
        yield text[begin:end]
        begin = end


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


def view_of(row: Row, now: float, response: JsonObject | None = None) -> RunView:
    """Return what a row says of a run that goes on, with a look at its Response, or that ended without an answer.

    `now` is in seconds since 1970: how long the run has been going on, unless its row says when it ended.
    """
    view = RunView(
        run_id=row.id,
        tool=row.tool,
        status="running",
        created=row.created,
        seconds=round(max(0.0, (row.ended or now) - row.created), 1),
        model=row.model,
        label=row.label,
        usage=row.usage,
        durable=row.kept,
    )
    if row.is_open and row.cancel_asked and row.sent is not None:
        is_late = row.is_late(now)
        error = UNTOLD if not row.key else f"{too_late(row) if is_late else CANCELLED}{_NOT_CONFIRMED}"
        return replace(view, status="failed" if is_late else "cancelled", error=error, maybe_paid=True)
    if row.is_open:
        phase = "waiting to be sent" if row.sent is None else "working" if row.key else "asking"
        if response is not None and response.get("status") == "queued":
            phase = "waiting at the API"
        searches = sum(item.get("type") == "web_search_call" for item in output_items(response or {}))
        return replace(view, phase=phase, searches=searches)
    if row.status in WITH_ANSWER and not row.key:  # and nobody has it any more
        return replace(view, status="failed", error=_NOT_KEPT, maybe_paid=True)
    status = cast(Status, row.status)
    return replace(view, status=status, error=row.reason, maybe_paid=row.maybe_paid, confirmed=row.confirmed)


def view_of_end(row: Row, response: JsonObject, settings: Settings, redact: Redact) -> RunView:
    """Return what a Response that has ended says; no blocked page is cited, of the request or of the reader's profile.

    Raises nothing: what cannot be read is a run that failed.
    """
    status = cast(Status, response.get("status") or "completed")
    view = replace(view_of(replace(row, status=None, cancel_asked=False), row.created), phase="", status=status)
    if status == "cancelled":
        view = replace(view, error=CANCELLED, confirmed=True, maybe_paid=True)
        if row.ended is None or not row.is_late(row.ended):
            return view
        return failed_with(replace(view, status="failed", error=too_late(row)), DeadlineExceeded(too_late(row)))
    tools = list(objects(response.get("tools"), repeat(None, _MOST_TOOLS)))
    blocked = [*_blocked(tools), *_blocked_by_reader(row, settings)]
    try:
        if (failed := response_error(response, redact)) is not None:
            raise failed
        answer = read_answer(
            response,
            model=row.model,
            max_citations=settings.policy.max_citations,
            date=day_of(row.created, settings.locale.time_zone),
            redact=redact,
            blocked=blocked,
            files=any(tool.get("type") == "file_search" for tool in tools),
        )
    except UpstreamError as error:
        return failed_with(replace(view, status="failed", error=str(error), maybe_paid=True, confirmed=True), error)
    answer = replace(answer, usage=None if row.usage is None else usage_from(row.usage))
    read = tuple(islice(_read_pages(response, redact, blocked), _MOST_READ))
    if not row.has_schema:
        return replace(view, answer=answer, sources_read=read)
    data = _data(response, redact)
    why = _NO_DATA if data is None else misfit(data, _schema(response))
    return replace(view, answer=answer, sources_read=read, data=data, error=why)


def too_late(row: Row) -> str:
    """Say that a run took too long, and what to do."""
    return (
        f"It took longer than {row.may_take:g} s and was cancelled; raise research.timeout_ms "
        "(RESEARCH_TIMEOUT_MS, in milliseconds), or ask for less."
    )


def why_lost(row: Row, error: Exception | None) -> str:
    """Say why a run without an id failed that may have been paid for."""
    cause = f" ({error})" if error is not None else ""
    what = "The request was sent, but no id came back"
    if not row.kept:
        what = "The connection or the server was lost, and this API does not keep the run"
    return f"{what}{cause}. It may have been paid for, so it was not repeated. Asking again may cost a second time."


def failed_with(view: RunView, failure: Exception | None) -> RunView:
    """Return a view with why its run failed. The error is of one request, and the run is more than that."""
    if isinstance(failure, UpstreamError):
        failure.maybe_paid, failure.usage = view.maybe_paid, view.usage
        failure.retryable = failure.retryable and not view.maybe_paid
    return replace(view, failure=failure if isinstance(failure, ResponsesMcpError) else None)


def answer_in(view: RunView) -> Answer:
    """Return the answer of a run that has ended. Raises `UpstreamError` for one that has none."""
    if view.answer is not None:
        return view.answer
    failure = UpstreamError(view.error or NEVER_ASKED, maybe_paid=view.maybe_paid)
    failure.usage = view.usage
    raise failure


def _read_pages(response: JsonObject, redact: Redact, blocked: Collection[str]) -> Iterator[str]:
    """Yield the addresses of the pages that the searches found or opened, each once."""
    known = set[str]()
    for item in output_items(response):
        action = as_object(item.get("action")) if item.get("type") == "web_search_call" else {}
        for page in (action, *objects(action.get("sources"), repeat(None, 10 * _MOST_READ))):
            url = address(redact(text_at(page, "url")))
            if url and url not in known and not is_within(url, blocked):
                known.add(url)
                yield url


def _blocked(tools: Iterable[JsonObject]) -> Iterator[str]:
    """Yield the domains that were not to be searched, as a Response says: after a crash, nothing else knows them."""
    for tool in tools:
        domains: object = as_object(tool.get("filters")).get("blocked_domains")
        yield from (each for each in _listed(domains)[:MAX_DOMAINS] if isinstance(each, str))


def _blocked_by_reader(row: Row, settings: Settings) -> Sequence[str]:
    profiles = settings.model_profiles
    profile = profiles.get(PROFILES.get(row.effort, row.tool)) or profiles.get("answer")
    return () if profile is None else bare_hosts(profile.blocked_domains)


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
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
        value = sanitized_json(found, redact)  # which JSON may have escaped
    except (ValueError, RecursionError):
        value = None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _schema(response: JsonObject) -> JsonObject:
    """Return the schema that a Response was asked for, which it repeats."""
    return as_object(as_object(as_object(response.get("text")).get("format")).get("schema"))


_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def misfit(data: object, schema: JsonObject, place: str = "data", depth: int = 0) -> str | None:
    """Return where a value lacks what a JSON schema requires, or has another type; None where it fits.

    Only `type`, `required`, `properties` and `items` are looked at.
    """
    given, members, items = schema.get("type"), as_object(data), _listed(data)
    kinds = [each for each in _listed(given) or [given] if isinstance(each, str) and each in _KINDS]
    if kinds and not any(_is_of(data, kind) for kind in kinds):
        return f"The answer does not fit output_schema: {place} is not of type {' or '.join(kinds)}."
    for name in _listed(schema.get("required")) if isinstance(data, dict) else ():
        if isinstance(name, str) and name not in members:
            return f"The answer does not fit output_schema: {place} has no {name[:60]!r}."
    if depth > _DEEPEST:
        return None
    properties = as_object(schema.get("properties"))
    parts = [(name, value, properties.get(name)) for name, value in members.items()]
    parts += [(str(number), value, schema.get("items")) for number, value in enumerate(items)]
    found = (misfit(value, as_object(inner), f"{place}.{name[:60]}", depth + 1) for name, value, inner in parts)
    return next(filter(None, found), None)


def _is_of(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind]) or (kind == "integer" and isinstance(value, float) and value.is_integer())


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
