"""Checks a run by its transcript, with a model of the conversation that shares no code with the server.

The model replays what was read and written. It knows at every moment which requests are in flight, so it knows what
each message answers, and whether it may.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.frames import Frames
from tests.simulation.invariants import Invariant, Verdict, Violation
from tests.simulation.run import Run
from tests.simulation.schedule import Message
from tests.simulation.transcript import Event, Kind
from tests.simulation.upstream import RETRYABLE

CLOSE_GRACE = 1.0  # seconds that closing one connection, and then the toolset, may take
INTERNAL_ERROR = -32603
ID_OF_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
ANSWERED_AT_ONCE = ("ping", "initialize", "tools/list", "server/discover", "bad call", "unknown method")

Key = tuple[type, object]


@dataclass(eq=False)
class Use:
    """One use of an id: a call or a subscription, from when it was read."""

    key: Key
    message: Message
    read_at: float
    chunk: int  # which read it came with
    full: bool
    state: str = "open"
    phase: str = "waiting for its task"
    started_at: float | None = None
    ended_at: float | None = None
    cancelled_at: float = 0.0
    given_in: int = -1  # which write took the answer
    refusals: int = 0
    requests: int = 0
    last_play: str = ""
    progress: float = 0.0
    acknowledged: bool = False


def check(run: Run) -> Verdict:
    """Replay a run and judge it."""
    model = _Model(run)
    try:
        for event in run.events:
            model.take(event)
    except ValueError as error:
        model.wrong(Invariant.NEVER_TORN, str(error))
    else:
        model.finish()
    return model.verdict


class _Model:
    def __init__(self, run: Run) -> None:
        self.verdict = Verdict()
        self._run = run
        self._schedule = run.schedule
        self._frames = Frames()
        self._to_read = run.said[::-1]
        self._initialized = False
        self._in_flight: dict[Key, Use] = {}
        self._uses: list[Use] = []
        self._by_marker: dict[str, Use] = {}
        self._last_of: dict[Key, Use] = {}
        self._owed: Counter[tuple[Key | None, str]] = Counter()
        self._refusals: dict[Key, list[Use]] = {}
        self._reads = self._writes = 0
        self._now = 0.0
        self._writing = False
        self._last_written = self._reading_ended = 0.0
        self._grace = run.schedule.drain
        self._deadline: float | None = None
        self._cut_off = False
        self._forced: str = ""
        self._forced_at = 0.0
        self._last_end = 0.0
        self._returned: Event | None = None
        self._open: set[int] = set()
        self._busy: dict[int, str] = {}

    def wrong(self, invariant: Invariant, what: str) -> None:
        self.verdict.violations.append(Violation(invariant, f"at {self._now:g} s: {what}"))

    def saw(self, situation: str) -> None:
        self.verdict.situations[situation] += 1

    def take(self, event: Event) -> None:
        if event.at > self._now:
            self._time_passes(event.at)
        details = event.details
        match event.kind:
            case Kind.READ:
                self._same_table(details[1])
                self._reads += 1
                while self._to_read and self._to_read[-1][0] <= details[0]:
                    self._read(self._to_read.pop()[1])
            case Kind.GIVE:
                self._give(*details)
            case Kind.WRITTEN:
                self._writing = False
                self._last_written = self._now
            case Kind.BROKE:
                self._force("the reader had gone")
            case Kind.INPUT_ENDED:
                self._same_table(details[0])
                self._reading_ends(self._grace)
                self.saw("end: of input" + (", with calls in flight" if self._in_flight else ""))
            case Kind.STOP:
                self._stop(details[0])
            case Kind.HOST:
                self._force("the host had cancelled")
            case Kind.PHASE:
                self._phase(*details)
            case Kind.REQUEST:
                self._request(*details)
            case Kind.FAULT:
                self.saw(f"upstream: {details[1]}")
                if details[0] in self._by_marker:
                    self._by_marker[details[0]].last_play = details[1]
            case Kind.END:
                self._end(details[0])
            case Kind.OPEN:
                self._open.add(details[0])
                if len(self._open) > self._schedule.max_connections:
                    self.wrong(Invariant.CLOSED, f"{len(self._open)} connections are open, more than max_connections")
            case Kind.CLOSE:
                self._open.discard(details[0])
                self._busy.pop(details[0], None)
            case Kind.BUSY:
                if details[0] in self._busy:
                    self.wrong(
                        Invariant.CLOSED, f"{details[1]} uses a connection amid an exchange of {self._busy[details[0]]}"
                    )
                self._busy[details[0]] = details[1]
            case Kind.IDLE:
                self._busy.pop(details[0], None)
            case Kind.STALL | Kind.RESUME | Kind.GONE | Kind.HELD | Kind.REPORT:
                self.saw(f"client: {event.kind.value}")
            case Kind.HUNG:
                self.wrong(Invariant.IN_TIME, "serve did not return")
            case Kind.RAISED:
                self.wrong(Invariant.QUIET, details[0])
            case Kind.RETURNED:
                self._returned = event
            case Kind.OVER:
                if details[0]:
                    self.wrong(Invariant.NO_TASK, f"{details[0]} tasks left")

    # What the server reads

    def _same_table(self, in_flight: int) -> None:
        if in_flight != len(self._in_flight):
            self.wrong(Invariant.EMPTY_TABLE, f"{in_flight} are in flight, and {[*self._in_flight]} should be")

    def _read(self, message: Message) -> None:
        kind = message.kind
        if kind == "garbage":
            self._owed[None, "error"] += message.errors
            self.saw("client: garbage")
        elif kind == "cancel":
            self._cancel(message.id)
        elif kind == "cancel without id":
            self.saw("cancel: without id")
        else:
            self._ask(message, (type(message.id), message.id))

    def _ask(self, message: Message, key: Key) -> None:
        if (use := self._in_flight.get(key)) is not None:
            use.refusals += 1
            self._refusals.setdefault(key, []).append(use)
            malformed = message.kind == "malformed"
            self.saw(f"client: a {'malformed message with an id in use' if malformed else 'duplicate id'}")
        elif message.kind == "malformed":
            self._owed[key, "error"] += 1
        elif message.kind in ANSWERED_AT_ONCE:
            self._initialized |= message.kind == "initialize"
            self._owed[key, "error" if message.kind in ("bad call", "unknown method") else "reply"] += 1
            self.saw(f"client: {message.kind}")
        elif not self._initialized and b"io.modelcontextprotocol/protocolVersion" not in message.data:
            self._owed[key, "error"] += 1
            self.saw("client: a call before initialize")
        else:
            self._open_use(message, key)

    def _open_use(self, message: Message, key: Key) -> None:
        full = len(self._in_flight) >= self._schedule.max_in_flight
        if full:
            self.saw("client: one request too many")
            if message.kind == "subscriptions/listen":
                self._owed[key, "error"] += 1
                return
        if key in self._last_of:
            self.saw(
                f"client: an id used again, after {'its cancel' if self._last_of[key].state == 'cancelled' else 'its answer'}"
            )
        use = Use(key, message, self._now, self._reads, full)
        self._in_flight[key] = self._last_of[key] = use
        self._uses.append(use)
        if message.marker:
            self._by_marker[message.marker] = use

    def _cancel(self, id_: object) -> None:
        key = (type(id_), id_) if type(id_) in (int, str) else None
        use = self._in_flight.pop(key, None) if key is not None else None
        if use is not None:
            self.saw(f"cancel: {self._where(use)}")
            use.state = "cancelled"
            use.cancelled_at = self._now
            self._refusals[use.key] = [each for each in self._refusals.get(use.key, []) if each is not use]
        elif key in self._last_of:
            last = self._last_of[key]
            in_hand = self._writing and last.given_in == self._writes
            self.saw(
                "cancel: a second time"
                if last.state == "cancelled"
                else f"cancel: after its answer was {'taken' if in_hand else 'written'}"
            )
        elif any(str(other[1]) == str(id_) for other in self._in_flight):
            self.saw("cancel: of an id of another type")
        else:
            self.saw("cancel: of an unknown id")

    def _where(self, use: Use) -> str:
        if use.message.kind == "subscriptions/listen":
            return "of a subscription"
        if use.ended_at is not None or use.full:
            return "while its answer waits"
        if use.chunk == self._reads:
            return "in the chunk of its call"
        if use.phase == "between requests":
            return "during backoff"
        return use.phase if use.phase == "waiting for its task" else f"while {use.phase}"

    # What tools and upstream do

    def _phase(self, marker: str, phase: str) -> None:
        use = self._by_marker.get(marker)
        if use is None:
            self.wrong(Invariant.BELONGS, f"{marker} runs and was never accepted")
            return
        if phase == "started":
            use.started_at = self._now
            if use.full:
                self.wrong(Invariant.ROOM, f"{marker} runs although too many were in flight")
            if not use.message.data.count(b'"name": "answer'):
                phase = "a tool of the host runs"
        use.phase = phase

    def _request(self, marker: str, number: int, connection: int) -> None:
        use = self._by_marker.get(marker)
        if use is None:
            self.wrong(Invariant.BELONGS, f"{marker} is asked upstream and was never accepted")
            return
        if use.state == "cancelled":
            self.wrong(Invariant.NO_REQUEST, f"{marker} is asked upstream, request {number}")
        if number > 1 + self._schedule.max_retries:
            self.wrong(Invariant.FEW_REQUESTS, f"{marker} is asked upstream for the {number}th time")
        if number > 1 and use.last_play not in RETRYABLE and use.last_play != "html":
            self.wrong(Invariant.FEW_REQUESTS, f"{marker} is asked again after {use.last_play!r}")
        if number > 1:
            self.saw("upstream: asked again")
        use.requests = number

    def _end(self, marker: str) -> None:
        use = self._by_marker.get(marker)
        if use is None:
            return  # that it ran at all has been noted
        use.ended_at = self._last_end = self._now
        if marker in self._busy.values():
            self.wrong(Invariant.CLOSED, f"{marker} ended and its connection is still open")
        if b'"name": "answer' not in use.message.data:
            return
        grace = CLOSE_GRACE + 0.001
        if use.state == "cancelled" and self._now > use.cancelled_at + grace:
            self.wrong(Invariant.CLOSED, f"{marker} took {self._now - use.cancelled_at:g} s to stop")
        if use.started_at is not None and self._now > use.started_at + self._schedule.timeout + grace:
            self.wrong(Invariant.PROMPT, f"{marker} took {self._now - use.started_at:g} s")

    # What the server writes

    def _give(self, data: bytes, in_flight: int) -> None:
        if self._returned is not None:
            self.wrong(Invariant.LAST, repr(data[:100]))
        self._writes += 1
        self._writing = True
        reported: set[Use] = set()
        for body in self._frames.feed(data):
            message = json.loads(body)
            if message.get("method") == "notifications/progress":
                reported.add(self._progress(message["params"]))
            elif "method" in message:
                self._acknowledged(message["params"]["_meta"][ID_OF_SUBSCRIPTION])
            elif message["id"] is None:
                self._settle(None, "error", message)
            else:
                self._response(message, (type(message["id"]), message["id"]))
        if self._frames.rest:
            self.wrong(Invariant.NEVER_TORN, f"half a message is written: {self._frames.rest[:60]!r}")
        for use in reported:
            if use.given_in == self._writes:
                self.wrong(Invariant.PROGRESS, f"{use.message.marker}: in one write with its answer")
        self._same_table(in_flight)

    def _progress(self, params: dict[str, Any]) -> Use:
        token = params["progressToken"]
        tokens = [use for use in self._uses if use.message.token == token and type(use.message.token) is type(token)]
        if not tokens:
            raise ValueError(f"progress for {token!r}, which nobody gave")
        use = tokens[-1]
        if use.state == "cancelled":
            self.wrong(Invariant.SILENT, f"progress of {use.message.marker}")
        elif use.state == "answered":
            self.wrong(Invariant.PROGRESS, f"{use.message.marker}: after its answer")
        if params["progress"] <= use.progress:
            self.wrong(Invariant.PROGRESS, f"{use.message.marker}: {params['progress']} after {use.progress}")
        use.progress = params["progress"]
        self._only(use, json.dumps(params["message"]))
        self.saw("server: a heartbeat" if params["message"].endswith(" s)") else "server: progress")
        return use

    def _acknowledged(self, id_: object) -> None:
        use = self._in_flight.get((type(id_), id_))
        if use is None or use.acknowledged:
            self.wrong(Invariant.SILENT, f"a subscription is acknowledged that is over: {id_!r}")
        else:
            use.acknowledged = True

    def _response(self, message: dict[str, Any], key: Key) -> None:
        text = json.dumps(message.get("result", message.get("error")))
        result = message.get("result", {})
        malformed = "jsonrpc must be" in text and not self._owed[key, "error"]
        if malformed or "already in flight; use a new one" in text:
            if not self._refusals.get(key):
                self.wrong(Invariant.SILENT, f"{key[1]!r} is refused for a request that was cancelled, or never made")
            else:
                self._refusals[key].pop(0).refusals -= 1
        elif (
            "content" in result
            or ID_OF_SUBSCRIPTION in result.get("_meta", {})
            or ("error" in message and not self._owed[key, "error"])
        ):
            self._answer(key, text, message)
        else:
            self._settle(key, "error" if "error" in message else "reply", message)

    def _settle(self, key: Key | None, kind: str, message: dict[str, Any]) -> None:
        if not self._owed[key, kind]:
            self.wrong(Invariant.ONE_ANSWER, f"nothing asked for {message}")
        self._owed[key, kind] -= 1

    def _answer(self, key: Key, text: str, message: dict[str, Any]) -> None:
        use = self._in_flight.pop(key, None)
        if use is None:
            last = self._last_of.get(key)
            cancelled = last is not None and last.state == "cancelled"
            self.wrong(
                Invariant.SILENT if cancelled else Invariant.ONE_ANSWER, f"an answer for {key[1]!r}: {text[:100]}"
            )
            return
        use.state = "answered"
        use.given_in = self._writes
        if use.message.kind == "subscriptions/listen":
            if not use.acknowledged:
                self.wrong(Invariant.ALL_ANSWERED, "a subscription ended before it was acknowledged")
            self.saw("server: a subscription ended")
            return
        if use.full != ("requests are in flight" in text):
            self.wrong(Invariant.ROOM, f"{use.message.marker}: {text[:100]}")
        self._only(use, text)
        if message.get("error", {}).get("code") == INTERNAL_ERROR and b'"name": "crash' not in use.message.data:
            self.wrong(Invariant.QUIET, f"{use.message.marker} crashed")
        if "the answer did not arrive" in text:
            self._cut_off = True
            if self._deadline is None or self._now < self._deadline:
                self.wrong(Invariant.IN_TIME, f"{use.message.marker} was cut off before its time was over")
        success = message.get("result", {}).get("isError") is False
        if success and f"answer to {use.message.marker}" not in text:
            self.wrong(Invariant.BELONGS, f"{use.message.marker} got {text[:100]}")
        if success and use.requests and f"by request {use.requests}" not in text:
            self.wrong(Invariant.BELONGS, f"{use.message.marker} got another request's answer: {text[:100]}")
        self.saw(f"server: {'an answer' if success else 'a timeout' if 'No answer within' in text else 'a failure'}")

    def _only(self, use: Use, text: str) -> None:
        """Fail if a text speaks of another question."""
        if strangers := set(re.findall(r"\bq[0-9]+\b", text)) - {use.message.marker}:
            self.wrong(Invariant.BELONGS, f"{use.message.marker} hears of {strangers}")

    # The end

    def _force(self, why: str) -> None:
        if not self._forced and self._returned is None:
            self._forced, self._forced_at = why, self._now
            self.saw(f"end: {why}" + (", with calls in flight" if self._in_flight else ""))

    def _stop(self, grace: float) -> None:
        if self._returned is not None:
            return
        if self._deadline is None:
            self._reading_ends(grace)
            self.saw("end: stopped" + (", with calls in flight" if self._in_flight else ""))
        else:
            self._deadline = min(self._deadline, self._now + grace)
            self.saw("end: stopped while it drained")

    def _reading_ends(self, grace: float) -> None:
        if self._deadline is None:
            self._deadline = self._now + grace
            self._reading_ended = self._now

    def _time_passes(self, now: float) -> None:
        """Look at what must have been done before the clock moved on."""
        ended = self._forced or self._returned or (self._deadline is not None and self._deadline <= self._now)
        if not ended and not self._writing:
            waiting = [use.message.marker for use in self._in_flight.values() if use.ended_at is not None or use.full]
            if waiting or any(count > 0 for count in self._owed.values()) or any(self._refusals.values()):
                self.wrong(
                    Invariant.PROMPT,
                    f"not written although the client reads: {waiting or self._owed or self._refusals}",
                )
            calls = [use for use in self._uses if use.message.marker and use.ended_at is None]
            idle = [use for use in calls if use.started_at is None and use.state == "open" and not use.full]
            if idle:
                self.wrong(
                    Invariant.PROMPT, f"not begun although there is room: {[use.message.marker for use in idle]}"
                )
        self._now = now

    def finish(self) -> None:
        returned = self._returned
        if returned is None:
            return  # it hung, which has been said
        in_flight, unsent, in_use = returned.details
        latest = max(self._last_end, self._forced_at) if self._forced else max(self._last_end, self._deadline or 0.0)
        if returned.at > latest + 2 * CLOSE_GRACE:
            self.wrong(Invariant.IN_TIME, f"serve returned at {returned.at:g} s, and should have by {latest:g}")
        if self._deadline is None and not self._forced:
            self.wrong(Invariant.IN_TIME, "serve returned although nobody asked it to")
        if self._open or in_use:
            self.wrong(Invariant.CLOSED, f"open at the end: {self._open}, in use: {in_use}")
        if self._forced:
            return
        idle = max(self._reading_ended, self._last_end, self._last_written)
        if not (self._in_flight or self._writing) and returned.at > idle + 2 * CLOSE_GRACE:
            self.wrong(Invariant.IN_TIME, f"serve returned at {returned.at:g} s, and had nothing to do since {idle:g}")
        if self._deadline is not None and returned.at >= self._deadline:
            self.saw("end: the drain ran out" if self._in_flight or self._cut_off else "end: within the drain")
            self._check_answered(self._uses)  # those too that were cut off
            return
        self.saw("end: within the drain")
        self._check_answered(self._uses)
        if in_flight:
            self.wrong(Invariant.EMPTY_TABLE, f"{in_flight} are in flight at the end")
        if unsent or self._writing:
            self.wrong(Invariant.ALL_WRITTEN, f"{unsent} bytes are unsent")
        if self._frames.rest:
            self.wrong(Invariant.NEVER_TORN, f"half a message at the end: {self._frames.rest[:60]!r}")
        if owed := +self._owed:
            self.wrong(Invariant.ALL_ANSWERED, f"never answered: {dict(owed)}")

    def _check_answered(self, uses: list[Use]) -> None:
        if self._writing:
            return  # the client has not read what was written last
        for use in uses:
            if use.state == "open":
                self.wrong(Invariant.ALL_ANSWERED, f"{use.message.marker or use.message.kind} was never answered")
            if use.state != "cancelled" and use.refusals:
                self.wrong(Invariant.ALL_ANSWERED, f"a duplicate of {use.message.marker} was never refused")
