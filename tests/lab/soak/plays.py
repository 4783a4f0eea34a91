"""What the upstream does with the requests of a call, written into the question, and how the call may then end.

A question begins with ``#17 failed.0,ok.30#``: of call 17, the first request gets status 500 and all others an answer
after 30 ms. The number comes back in the answer, so an answer that was given to the wrong call is found.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Final

TIMEOUT: Final = 3.0  # seconds of a call, set for the server
TRY: Final = 1.0  # seconds of one try of a search, set for the server
MOST_REQUESTS: Final = 3  # of one call: max_retries is 2, max_attempts 3
LONGEST_WAIT: Final = 2.0  # seconds that any reply asks to wait

ANSWER: Final = "answer"
DEADLINE: Final = "deadline"
BROKEN: Final = "broken"
GATED: Final = "gated"  # another call's rate limit lasts longer than this call may take
ARGUMENT: Final = "argument"

# How the server words each end; one of the phrases is in the message.
FAULTS: Final[dict[str, tuple[str, ...]]] = {
    "limited": ("The API limits the rate of requests",),
    "failed": ("The API failed (5", "The API is overloaded (503)"),
    "unfinished": ("The API failed (server_error)",),
    GATED: ("The API's rate limit is used up",),
    "refused": ("The API refused the request",),
    "quota": ("The account's quota is used up",),
    "unusable": ("The API's answer cannot be used (200): It is not a JSON object",),
    BROKEN: ("The connection broke before", "The API's stream ended before"),
    DEADLINE: ("No answer within",),
    ARGUMENT: tuple(
        f"{name} is" for name in ("query", "recency_days", "max_results", "domains", "limit", "language", "timeframe")
    ),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to treat a request: how the call ends with it, and which tools ask again after it."""

    ends: str = ANSWER
    answers_repeat: bool = False
    search_repeats: bool = False


_BROKEN = Kind(BROKEN, search_repeats=True)
_HANGS = Kind(DEADLINE, search_repeats=True)
_FAILED = Kind("failed", answers_repeat=True)
KINDS: Final[dict[str, Kind]] = {
    "ok": Kind(),
    "plain": Kind(),  # without a search
    "big": Kind(),  # 1 MB of text
    "zip": Kind(),  # compressed
    "drip": Kind(),  # in pieces
    "idle": Kind(),  # and the connection is closed behind the answer
    "limited": Kind("limited", answers_repeat=True, search_repeats=True),  # 429; the time is its Retry-After-Ms
    "failed": _FAILED,  # 500
    "busy": _FAILED,  # 503
    "html": _FAILED,  # 502 with a page
    "unfinished": Kind("unfinished", answers_repeat=True),  # 200 with the status failed
    "refused": Kind("refused"),  # 400
    "quota": Kind("quota"),  # 429 that is no rate limit
    "notjson": Kind("unusable"),
    "reset": _BROKEN,
    "resethead": _BROKEN,
    "resetbody": _BROKEN,
    "cut": _BROKEN,
    "short": _BROKEN,  # a stream without its last event
    "closed": _BROKEN,
    "garbage": _BROKEN,
    "hang": _HANGS,
    "hanghead": _HANGS,
    "hangbody": _HANGS,
}
REPEATED: Final = ("limited", "failed", "busy", "html", "unfinished")
LAST_WORDS: Final = (
    "refused", "quota", "notjson", "reset", "resethead", "resetbody", "cut", "short", "closed", "garbage", "failed", "limited",
)  # fmt: skip
HANGING: Final = ("hang", "hanghead", "hangbody")


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one request; `ms` is the silence before it, or what a rate limit asks to wait."""

    kind: str
    ms: int = 0


Play = tuple[Step, ...]  # the last step is for all further requests

_SPELLED = re.compile(rb"#(\d+) ([a-z0-9.,]+)#")
NUMBER = re.compile(r"#(\d+)")


def spell(number: int, play: Play) -> str:
    """Return the beginning of the question."""
    return f"#{number} {','.join(f'{step.kind}.{step.ms}' for step in play)}#"


def find_play(body: bytes) -> tuple[int, Play] | None:
    """Return the call's number and its play out of the bytes of a request; None when there are none."""
    found = _SPELLED.search(body)
    if found is None:
        return None
    steps = (step.partition(".") for step in found[2].decode().split(","))
    return int(found[1]), tuple(Step(kind, int(ms)) for kind, _, ms in steps)


def fault_of(text: str) -> str | None:
    """Return the fault that a message tells of; None when it is none that we know."""
    return next((fault for fault, phrases in FAULTS.items() if any(phrase in text for phrase in phrases)), None)


def repeats(kind: str, *, search: bool) -> bool:
    """Tell whether another request may follow one that was treated so. A slow try of a search is any kind of try."""
    return search or KINDS[kind].answers_repeat


def ends(play: Play, *, search: bool, seconds: float, collision: bool = True) -> frozenset[str]:
    """Return how a call may end that took so many seconds.

    With `collision`, also by a connection that the upstream closed just as it was used again.
    """
    possible: set[str] = {BROKEN} if collision else set()
    if seconds >= (TRY if search else TIMEOUT) - 0.05:
        possible.add(DEADLINE)
    if search or seconds >= TIMEOUT - LONGEST_WAIT - 0.05:
        possible.add(GATED)
    for number in range(MOST_REQUESTS):
        kind = KINDS[play[min(number, len(play) - 1)].kind]
        again = kind.search_repeats if search else kind.answers_repeat
        if not again or number == MOST_REQUESTS - 1:
            possible.add(kind.ends)
            break
        if kind.ends != DEADLINE and seconds >= TIMEOUT - LONGEST_WAIT - 0.05:
            possible.add(kind.ends)  # the wait would have been longer than the time left
    if DEADLINE in possible and search:
        # What a late try brings is not known: it may have been the first, or none was left.
        possible |= {KINDS[step.kind].ends for step in play}
    return frozenset(possible)


def choose_play(rng: random.Random) -> Play:
    """Return a play at random: mostly an answer, often after a fault or two that pass, seldom a bad end."""
    roll = rng.random()
    if roll < 0.72:
        return (choose_answer(rng),)
    if roll < 0.87:
        return (*(choose_repeated(rng) for _ in range(rng.choice((1, 1, 1, 2)))), choose_answer(rng))
    if roll < 0.985:
        return (Step(rng.choice(LAST_WORDS), rng.randrange(30)),)
    return (Step(rng.choice(HANGING)),)


def choose_answer(rng: random.Random) -> Step:
    """Return a step that answers, soon."""
    ms = min(300, int(rng.expovariate(1 / 25)))
    roll = rng.random()
    if roll < 0.002:
        return Step("big", ms)
    if roll < 0.2:
        return Step(rng.choice(("plain", "plain", "zip", "drip", "idle", "idle")), ms)
    return Step("ok", ms)


def choose_repeated(rng: random.Random) -> Step:
    """Return a step after which the answer tools ask again."""
    kind = rng.choice(REPEATED)
    if kind == "limited":
        return Step(
            kind, rng.randrange(1500, int(LONGEST_WAIT * 1000)) if rng.random() < 0.1 else rng.randrange(5, 300)
        )
    return Step(kind, rng.randrange(20))
