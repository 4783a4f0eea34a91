"""What the server owes for everything that was sent, and whether what comes is that.

Each id that was not cancelled is answered exactly once. Nothing is heard about an id once its cancel was read: a ping
is sent behind each cancel, and its answer is the line. What the server answers while it reads comes in the order in
which it was asked. Progress belongs to a call in flight, rises, and ends before the answer.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
Id = str | int
Key = tuple[type, Id]
Judge = Callable[[Message, float], str]
"""Looks at an answer that took so many seconds; returns what it was, in a word, or raises Wrong."""

IN_USE = -32600, "Invalid Request: this id is already in flight"
LATEST = 8.0  # seconds that a call may take that is given 3: the machine has other things to do
MOST_TOLD = 50  # violations
REMEMBERED = 200  # ids that were answered, for cancels that come too late and for using them again


class Wrong(Exception):
    """An answer is not what was asked for."""


@dataclass(eq=False, slots=True)
class Use:
    """One use of an id: a call, a subscription, or a request with the id of another in flight (`again`).

    A `lasting` one is not answered before it is cancelled or the input ends.
    """

    key: Key
    judge: Judge
    token: Key | None
    asked: float
    again: bool = False
    lasting: bool = False
    acknowledged: bool = False
    cancelled: bool = False
    progress: float = 0.0

    @property
    def id(self) -> Id:
        return self.key[1]


@dataclass(slots=True)
class AtOnce:
    """A request, or what is none, that is answered as it is read. Without a key its error bears no id."""

    key: Key | None
    judge: Judge
    asked: float
    line_of: list[Use] | None = None  # uses that were cancelled just before it
    timed: bool = False


def key_of(value: object) -> Key | None:
    """Return what tells ids apart: 1 and "1" are two; None for what is no id."""
    return (type(value), value) if isinstance(value, str | int) and not isinstance(value, bool) else None


class Ledger:
    """The debts of the server. Times are seconds of one clock."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.in_flight = 0  # calls neither answered nor cancelled
        self.progress = 0
        self.slowest_ping = 0.0
        self.read_slowly_until = 0.0  # what was asked before must not be blamed for its time
        self.answered: deque[Id] = deque(maxlen=REMEMBERED)
        self._uses: dict[Key, list[Use]] = {}
        self._tokens: dict[Key, Use] = {}
        self._at_once: deque[AtOnce] = deque()
        self._at_once_keys: Counter[Key | None] = Counter()

    # What is sent

    def asks(
        self,
        request: Id,
        judge: Judge,
        now: float,
        *,
        token: Id | None = None,
        again: bool = False,
        lasting: bool = False,
    ) -> Use:
        """Note a call by its id; `again` if that is in flight already."""
        use = Use((type(request), request), judge, key_of(token), now, again, lasting)
        self._uses.setdefault(use.key, []).append(use)
        if use.token is not None:
            self._tokens[use.token] = use
        self.in_flight += not lasting
        return use

    def asks_at_once(
        self, request: Id | None, judge: Judge, now: float, *, line_of: list[Use] | None = None, timed: bool = False
    ) -> None:
        """Note what is answered as it is read, by its id if it has one; `timed` if the time that it takes is of interest."""
        due = AtOnce(key_of(request), judge, now, line_of, timed)
        self._at_once.append(due)
        self._at_once_keys[due.key] += 1

    def cancels(self, use: Use) -> list[Use]:
        """Note that the id of a use was cancelled; return what a ping sent behind it is the line of."""
        uses = [each for each in self._uses.get(use.key, []) if not each.cancelled]
        for each in uses:
            each.cancelled = True
            self.in_flight -= not each.lasting
        self.outcomes["cancelled"] += 1
        return uses

    def is_open(self, use: Use) -> bool:
        """Tell whether a use was neither answered nor cancelled."""
        return not use.cancelled and use in self._uses.get(use.key, [])

    def is_free(self, request: Id) -> bool:
        """Tell whether nothing is owed for an id."""
        key = (type(request), request)
        return key not in self._uses and not self._at_once_keys[key]

    # What is heard

    def hears(self, message: Message, now: float) -> None:
        """Hold a message against what is owed; what is wrong with it is added to the violations."""
        try:
            if "method" in message:
                self._hears_notification(message)
            else:
                self._hears_response(message, key_of(message.get("id")), now)
        except Wrong as wrong:
            self.wrong(f"{wrong}: {str(message)[:400]}")
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            self.wrong(f"it has not the expected form ({error!r}): {str(message)[:400]}")

    def wrong(self, what: str) -> None:
        """Note a violation, once; after so many more is not of interest."""
        if len(self.violations) < MOST_TOLD and what not in self.violations:
            self.violations.append(what)

    def _hears_notification(self, message: Message) -> None:
        if message["jsonrpc"] != "2.0":
            raise Wrong("it is no JSON-RPC 2.0")
        params = message["params"]
        if message["method"] == "notifications/progress":
            token = key_of(params["progressToken"])
            use = self._tokens.get(token) if token is not None else None
            if use is None:
                raise Wrong("progress of nothing in flight")
            if params["progress"] <= use.progress:
                raise Wrong(f"progress does not rise from {use.progress}")
            use.progress = params["progress"]
            self.progress += 1
        elif message["method"] == "notifications/subscriptions/acknowledged":
            key = key_of(params["_meta"]["io.modelcontextprotocol/subscriptionId"])
            uses = [use for use in self._uses.get(key, []) if use.lasting] if key is not None else []
            if not uses or uses[0].acknowledged:
                raise Wrong("nothing to acknowledge")
            uses[0].acknowledged = True
        else:
            raise Wrong("an unknown notification")

    def _hears_response(self, message: Message, key: Key | None, now: float) -> None:
        if message["jsonrpc"] != "2.0" or ("result" in message) == ("error" in message):
            raise Wrong("a response of JSON-RPC 2.0 has a result or an error, and not both")
        if key is None and message["id"] is not None:
            raise Wrong("no id")
        if self._at_once_keys[key]:
            self._hears_at_once(message, key, now)
        elif key is not None and key in self._uses:
            self._hears_answer(message, key, now)
        else:
            raise Wrong("nothing is owed for this id: it was never used, is answered, or is cancelled")

    def _hears_at_once(self, message: Message, key: Key | None, now: float) -> None:
        due = self._at_once.popleft()
        self._at_once_keys[due.key] -= 1
        if not self._at_once_keys[due.key]:
            del self._at_once_keys[due.key]
        for use in due.line_of or ():
            if use in self._uses.get(use.key, []):
                self._close(use)
                self.outcomes["silent after its cancel"] += 1
        if due.key != key:
            raise Wrong(f"it overtook the answer about {due.key}")
        if due.timed and due.asked > self.read_slowly_until:
            self.slowest_ping = max(self.slowest_ping, now - due.asked)
        self.outcomes[due.judge(message, now - due.asked)] += 1

    def _hears_answer(self, message: Message, key: Key, now: float) -> None:
        uses = self._uses[key]
        use = uses[0]
        error = message.get("error", {})
        if error.get("code") == IN_USE[0] and error["message"].startswith(IN_USE[1]):
            refused = [each for each in uses if each.again]
            if not refused:
                raise Wrong("an id is refused that was not used twice")
            use, outcome = refused[0], "refused: the id is in flight"
        elif len(uses) == 1:
            outcome = self._judged(use, message, now)
        else:
            try:
                outcome = self._judged(use, message, now)
            except Wrong:  # the first may have been silenced, or be slower than the second
                use = uses[1]
                outcome = self._judged(use, message, now)
        self._close(use)
        self.in_flight -= not (use.lasting or use.cancelled)
        if now - use.asked > LATEST and not use.lasting and use.asked > self.read_slowly_until:
            self.wrong(f"{use.key} was answered after {now - use.asked:.1f} s: {outcome}")
        if use.cancelled:
            outcome = "answered before its cancel"
        self.outcomes[outcome] += 1
        self.answered.append(use.id)

    def _judged(self, use: Use, message: Message, now: float) -> str:
        try:
            return use.judge(message, now - use.asked)
        except Wrong:
            if len(self._uses[use.key]) == 1:
                self._close(use)  # one answer, one violation
                self.in_flight -= not (use.lasting or use.cancelled)
            raise

    def _close(self, use: Use) -> None:
        uses = self._uses[use.key]
        uses.remove(use)
        if not uses:
            del self._uses[use.key]
        if use.token is not None:
            del self._tokens[use.token]

    # What is still owed

    @property
    def settled(self) -> bool:
        """Whether nothing is owed but the answers to what lasts."""
        return not self._at_once and not any(not use.lasting or use.cancelled for use in self._open())

    def open_uses(self) -> list[Use]:
        """Return what was neither answered nor cancelled."""
        return [use for use in self._open() if not use.cancelled]

    def overdue(self, before: float) -> list[str]:
        """Say what was asked before a moment and should have been answered by now."""
        late = [str(due.key) for due in self._at_once if due.asked < before]
        return late + [str(use.key) for use in self._open() if use.asked < before and not use.lasting]

    def _open(self) -> Iterator[Use]:
        return (use for uses in self._uses.values() for use in uses)
