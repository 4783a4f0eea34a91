"""Schedules: what client, host and upstream do in one run, all of it drawn from one seed.

Times come from a few round numbers, so that many things fall on one instant; Trio's order of tasks, which follows
from the seed too, then decides the race.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal, TypeAlias

from responses_mcp.protocol.jsonrpc import RequestId
from tests.simulation.upstream import PLAYS, RETRYABLE, Play

GRACES = (0.0, 0.5, 5.0, 20.0)
IDS: tuple[RequestId, ...] = (1, 2, 3, 4, "1", "2", "a", "", 0)
INSTANTS = (0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 3.0)
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
BAD_TOOLS = ("crash", "stubborn", "swallow", "crash_when_cancelled", "leak")
# The phases at whose beginning a cancel may be sent.
PHASES = (
    *("started", "queued", "connecting", "before the head", "within the body", "within the stream"),
    "between requests",
)
# What is no message, and how many errors without an id it earns.
GARBAGE: tuple[tuple[bytes, int], ...] = (
    (b"not json\n", 1),
    (b"\r\n\n", 0),
    (b"Content-Length: many\r\n\r\n", 1),
    (b"[1]\n", 1),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}\n', 0),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', 1),
    (b'{"jsonrpc":"2.0","method":"notifications/unknown"}\n', 0),
    (b"Content-Length: 3\r\n\r\n\xff\xfe{", 1),
    (b"x" * 5000 + b"\n", 1),
    (b"Content-Length: 99999999999\r\n\r\n", 1),
)
MAX_MESSAGE_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes from the client, and what they mean: `marker` names the one question they ask."""

    kind: str
    data: bytes
    id: object = None
    marker: str = ""
    token: RequestId | None = None
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """Messages in as many pieces as `pauses`, each after its pause."""

    messages: tuple[Message, ...]
    pauses: tuple[float, ...] = (0.0,)


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass, or with 0 only the other tasks."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Do:
    """What else can happen, with a number where it needs one: a size or a grace."""

    what: Literal["stall", "resume", "read slowly", "late reports", "stop", "host cancel", "leave", "end"]
    number: float = 0.0


Step: TypeAlias = Say | Wait | Do


@dataclass(frozen=True, slots=True)
class Trigger:
    """What the client says when a call reaches a phase."""

    phase: str
    delay: float
    say: Say


@dataclass
class Schedule:
    """One run. Limits are the settings of the same names."""

    seed: int
    max_in_flight: int
    max_connections: int
    max_unsent_bytes: int
    batch_bytes: int
    drain: float
    timeout: float
    max_retries: int
    line_mode: bool
    errors_as_results: bool
    connect: float
    steps: list[Step] = field(default_factory=list[Step])
    triggers: dict[str, Trigger] = field(default_factory=dict[str, Trigger])
    plays: dict[str, list[Play]] = field(default_factory=dict[str, list[Play]])


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    return _Drawing(seed).schedule


class _Drawing:
    def __init__(self, seed: int) -> None:
        self._random = random = Random(seed)
        one_of = random.choice
        self.schedule = Schedule(
            seed=seed,
            max_in_flight=one_of((2, 3, 100, 100)),
            max_connections=one_of((1, 1, 2, 100)),
            max_unsent_bytes=one_of((400, 3000, 1 << 20)),
            batch_bytes=one_of((1, 600, 1 << 16)),
            drain=one_of((0.0, 0.5, 3.0, 10.0, 100.0)),
            timeout=one_of((1.0, 10.0, 60.0)),
            max_retries=one_of((0, 1, 3)),
            line_mode=one_of((False, True)),
            errors_as_results=one_of((False, True)),
            connect=one_of((0.0, 0.5)),
        )
        self._used: list[RequestId] = []
        self._markers = 0
        self._framed = one_of((True, False, None))
        if random.random() < 0.95:
            self._say(self._request("initialize", 0 if random.random() < 0.1 else "hello", {}))
        self._steps(random.randint(3, 9))
        self._finish()

    def _steps(self, count: int) -> None:
        choices = (
            *(self._call,) * 8,
            *(self._cancel,) * 4,
            *(self._call_and_cancel, self._call_twice, self._other, self._garbage, self._stall, self._resume),
            *(self._wait,) * 4,
            self._late,
        )
        for _ in range(count):
            self._random.choice(choices)()

    def _finish(self) -> None:
        one_of, steps = self._random.choice, self.schedule.steps
        steps.append(Wait(one_of((0.0, *INSTANTS, 30.0))))
        match self._random.randrange(12):
            case 0 | 1:
                steps += [Do("stop", one_of(GRACES)), Wait(one_of(INSTANTS))]
                self._steps(2)
                steps += [Do("stop", one_of(GRACES))]
            case 2:
                steps += [Do("host cancel")]
            case 3:
                steps += [Do("leave"), Wait(one_of(INSTANTS)), Do("end")]
            case 4:
                steps += [Do("stall", one_of((0, 50))), Wait(0.0), Do("end"), Wait(20.0), Do("stop", 1.0)]
            case 5:
                steps += [Do("end"), Wait(one_of(INSTANTS)), Do("host cancel")]
            case 6:
                steps += [Do("end"), Wait(one_of(INSTANTS)), Do("stop", one_of(GRACES))]
            case 7:
                steps += [Do("stop", one_of(GRACES)), Do("stop", one_of(GRACES))]
            case _:
                steps += [Do("end")]
        steps += [Wait(200.0), Do("resume")]

    # What the client says

    def _call(self) -> None:
        request = self._tool_call(self._free_id())
        self._say(request)
        if self._random.random() < 0.45:
            later = [self._cancellation(request.id)]
            if self._random.random() < 0.3:
                later.append(self._tool_call(request.id))
            if self._random.random() < 0.2:
                later.append(self._cancellation(request.id))
            phase = self._random.choice(PHASES)
            plays = self.schedule.plays.get(request.marker)
            if plays and plays[0].kind in RETRYABLE and self._random.random() < 0.5:
                phase = "between requests"  # that is in a wait before a retry
            self.schedule.triggers[request.marker] = Trigger(
                phase, self._random.choice(INSTANTS), Say(tuple(later), self._pauses())
            )

    def _call_and_cancel(self) -> None:
        request = self._tool_call(self._free_id())
        again = [self._tool_call(request.id)] if self._random.random() < 0.3 else []
        self.schedule.steps.append(Say((request, self._cancellation(request.id), *again)))

    def _call_twice(self) -> None:
        request = self._tool_call(self._free_id())
        second = self._tool_call(request.id) if self._random.random() < 0.6 else self._request("ping", request.id)
        if self._random.random() < 0.3:
            second = self._request("ping", request.id, kind="malformed")
            second = replace(second, data=second.data.replace(b'"2.0"', b'"3.0"'))
        cancels = [self._cancellation(request.id)] if self._random.random() < 0.4 else []
        self._say(request, second, *cancels)

    def _cancel(self) -> None:
        wanted = self._random.choice(self._used) if self._used else 1
        match self._random.randrange(8):
            case 0:
                other = (
                    str(wanted)
                    if isinstance(wanted, int)
                    else int(wanted)
                    if isinstance(wanted, str) and wanted.isdigit()
                    else 1
                )
                self._say(self._cancellation(other))
            case 1:
                self._say(self._cancellation(self._random.choice(("nobody", 99, None, 1.0, True, [1], {}))))
            case 2:
                self._say(self._message("cancel without id", "notifications/cancelled", params={}))
            case 3:
                self._say(self._cancellation(wanted), self._cancellation(wanted))
            case _:
                self._say(self._cancellation(wanted))

    def _other(self) -> None:
        match self._random.randrange(8):
            case 0:
                message = self._request("tools/list", self._any_id(), self._meta())
            case 1:
                message = self._request("server/discover", self._any_id(), {"_meta": ENVELOPE})
            case 2 | 3:
                params: dict[str, Any] = {"notifications": {}, "_meta": ENVELOPE}
                message = self._request("subscriptions/listen", self._free_id(), params)
                if self._random.random() < 0.4:
                    self._say(message)
                    self._wait()
                    message = self._cancellation(message.id)
            case 4:
                message = self._request(
                    "tools/call", self._any_id(), {"name": "nothing", **self._meta()}, kind="bad call"
                )
            case 5:
                message = self._request("resources/list", self._any_id(), kind="unknown method")
            case _:
                message = self._request("ping", self._any_id())
        self._say(message)

    def _garbage(self) -> None:
        data, errors = self._random.choice(GARBAGE)
        # In one piece: a line that is too long is refused before its end, and the model knows only ends.
        self.schedule.steps.append(Say((Message("garbage", data, errors=errors),)))

    # What else happens

    def _wait(self) -> None:
        self.schedule.steps.append(Wait(self._random.choice(INSTANTS)))

    def _stall(self) -> None:
        slowly = self._random.random() < 0.4
        self.schedule.steps.append(Do("read slowly" if slowly else "stall", self._random.choice((0, 1, 200))))

    def _resume(self) -> None:
        self.schedule.steps.append(Do("resume"))

    def _late(self) -> None:
        self.schedule.steps.append(Do("late reports"))

    # Parts

    def _say(self, *messages: Message) -> None:
        self.schedule.steps.append(Say(messages, self._pauses()))

    def _pauses(self) -> tuple[float, ...]:
        if self._random.random() < 0.6:
            return (0.0,)
        return tuple(self._random.choice((0.0, 0.0, 0.0, 0.25)) for _ in range(self._random.randint(2, 4)))

    def _any_id(self) -> RequestId:
        return self._random.choice(IDS)

    def _free_id(self) -> RequestId:
        """Return an id that is probably free; one that is not makes a duplicate."""
        fresh = [each for each in IDS if (type(each), each) not in [(type(used), used) for used in self._used]]
        chosen = self._random.choice(fresh if fresh and self._random.random() < 0.8 else IDS)
        self._used.append(chosen)
        return chosen

    def _meta(self) -> dict[str, Any]:
        return {"_meta": ENVELOPE} if self._random.random() < 0.4 else {}

    def _tool_call(self, id_: Any) -> Message:
        random = self._random
        self._markers += 1
        marker = f"q{self._markers}"
        bad = random.random() < 0.3
        name = random.choice(BAD_TOOLS if bad else ("answer", "answer", "answer_quick", "answer_detailed"))
        params: dict[str, Any] = {"name": name, "arguments": {"query": marker}, **self._meta()}
        if bad:
            params["arguments"]["seconds"] = random.choice(INSTANTS)
        else:
            self.schedule.plays[marker] = [self._play() for _ in range(random.randint(1, 3))]
        token: RequestId | None = None
        if random.random() < 0.6:
            token = random.choice((marker, self._markers))
            params["_meta"] = {**params.get("_meta", {}), "progressToken": token}
        return self._request("tools/call", id_, params, marker=marker, token=token)

    def _play(self) -> Play:
        one_of = self._random.choice
        kind = one_of((*("answer",) * 4, "plain", "drip", *PLAYS))
        return Play(
            kind,
            connect=one_of(INSTANTS),
            head=one_of(INSTANTS),
            piece=one_of(INSTANTS),
            close=one_of((0.0, 0.0, 0.0, 0.5, 30.0)),
            after=one_of((0.25, 1.0, 3.0, 100.0)),
        )

    def _cancellation(self, id_: object) -> Message:
        return self._message("cancel", "notifications/cancelled", params={"requestId": id_, "reason": "no"}, names=id_)

    def _request(
        self,
        method: str,
        id_: Any,
        params: dict[str, Any] | None = None,
        *,
        marker: str = "",
        token: RequestId | None = None,
        kind: str = "",
    ) -> Message:
        return self._message(
            kind or method, method, id_=id_, params=params or {}, names=id_, marker=marker, token=token
        )

    def _message(
        self,
        kind: str,
        method: str,
        *,
        params: dict[str, Any],
        names: object = None,
        id_: RequestId | None = None,
        marker: str = "",
        token: RequestId | None = None,
    ) -> Message:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if id_ is not None:
            message["id"] = id_
        body = json.dumps(message).encode()
        framed = self._framed if self._framed is not None else self._random.random() < 0.7
        data = b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if framed else body + b"\n"
        return Message(kind, data, names, marker, token)
