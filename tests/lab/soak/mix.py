"""What a client sends, chosen at random: bytes for the server, and what the ledger has to know of them.

The choices come from one seed. How they fall together with time does not.
"""

from __future__ import annotations

import heapq
import json
import random
from typing import Any, Final

from tests.lab.soak.expected import answer_of, error_with, failure, manual_with, result_with
from tests.lab.soak.ledger import Id, Judge, Ledger, Message, Use
from tests.lab.soak.library import Library
from tests.lab.soak.plays import Play, Step, choose_play, choose_repeated, spell

ANSWER_TOOLS: Final = ("answer", "answer", "answer_detailed", "answer_quick")
SEARCH: Final = "chatgpt_o3_search"
META: Final = "io.modelcontextprotocol/"
MAX_MESSAGE: Final = 64 * 1024  # bytes, set for the server
FRAMED_CALLS: Final = 100  # at the beginning, before the first line switches the output to lines
CANCELLED: Final = 0.12  # of all calls
LASTING: Final = 3  # subscriptions at once
PARSE, INVALID, METHOD, PARAMS = -32700, -32600, -32601, -32602

PONG: Final = result_with("ping", lambda result: result == {})

# What is no message, and the code of the error that it gets, which bears no id.
JUNK: Final = (
    (b'{"jsonrpc":"2.0","id":1,"method":"pi', PARSE),
    (b"hello there", PARSE),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping\xff"}', PARSE),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID),
    (b"[" * 20_000, PARSE),
    (b'{"x":"' + b"x" * (2 * MAX_MESSAGE) + b'"}', INVALID),
)
BAD_ARGUMENTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"query": ""},
    {"query": None},
    {"query": ["a list"]},
    {"query": "x", "recency_days": "soon"},
    {"query": "x", "max_results": [1]},
    {"query": "x", "domains": [1, 2]},
)
HINTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"recency_days": 7},
    {"recency_days": "30", "max_results": "5"},
    {"domains": ["example.com", "example.org"], "max_results": 3},
    {"domains": '["example.jp"]', "unknown": True},
)
SEARCH_HINTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"limit": 5},
    {"language": "ja"},
    {"timeframe": "past_month", "limit": "3"},
)


class Mix:
    """The client's side of the conversation. `now` is the time at which what is made is sent.

    It begins with so many `manual_calls`: what the server remembers of manuals is complete only after thousands.
    """

    def __init__(self, seed: int, ledger: Ledger, library: Library, *, manual_calls: int = 0) -> None:
        self.rng = random.Random(seed)
        self.ledger = ledger
        self.library = library
        self.calls = 0
        self._manual_calls = manual_calls
        self._number = 0  # of calls and of ids
        self._due: list[tuple[float, int, Use]] = []  # cancels, the next one first
        self._lasting: list[Use] = []
        self._kinds = (
            (self._call, 100), (self._manual, 10), (self._ping, 25), (self._list, 2), (self._unknown_tool, 1.5),
            (self._bad_call, 2), (self._bad_request, 1.5), (self._junk, 2), (self._twice, 2), (self._late_cancel, 2),
            (self._listen, 0.3), (self._greet, 0.3),
        )  # fmt: skip

    def turn(self, now: float) -> bytes:
        """Return something to send."""
        if self.calls < self._manual_calls:
            return self._manual(now)
        [chosen] = self.rng.choices([kind for kind, _ in self._kinds], [weight for _, weight in self._kinds])
        return chosen(now)

    def hello(self, now: float) -> bytes:
        """Return the handshake, and the listing without which clients of its revision get no manuals."""
        self.calls += 1
        listed = manual_with("manual_ls", lambda found: bool(found["items"]), modern=False)
        use = self.ledger.asks(self._id(), listed, now)
        listing = self._request(use.id, "tools/call", {"name": "manual_ls"})
        return self._greet(now) + self._encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}) + listing

    def next_cancel(self) -> float:
        """Return when the next cancel is due."""
        return self._due[0][0] if self._due else float("inf")

    def cancels(self, now: float) -> bytes:
        """Return the cancels that are due."""
        data = b""
        while self._due and self._due[0][0] <= now:
            use = heapq.heappop(self._due)[2]
            if self.ledger.is_open(use):
                data += self.cancel(use, now)
        return data

    def cancel(self, use: Use, now: float) -> bytes:
        """Return the cancel of a call, and a ping behind it."""
        line_of = self.ledger.cancels(use)
        return self._cancel(use.id) + self._ping(now, line_of=line_of)

    def cancel_everything(self, now: float) -> bytes:
        """Return cancels of all that is in flight, and of all that lasts."""
        self._lasting.clear()
        return b"".join(self.cancel(use, now) for use in self.ledger.open_uses())

    # Calls

    def _call(self, now: float) -> bytes:
        rng = self.rng
        play = choose_play(rng)
        plan = rng.random()
        if plan >= CANCELLED:
            return self._model_call(now, play)[0]
        part = int(plan / CANCELLED * 6)
        streamed = None
        if part == 0:  # at once, or before the headers
            play = (Step(rng.choice(("hang", "ok")), 250),)
            after = rng.choice((0.0, rng.uniform(0, 0.25)))
        elif part == 1:  # amid the body
            play, streamed, after = (Step(rng.choice(("hangbody", "drip", "hanghead"))),), False, rng.uniform(0.01, 0.2)
        elif part == 2:  # amid a stream
            play, streamed, after = (Step(rng.choice(("hangbody", "drip"))),), True, rng.uniform(0.01, 0.3)
        elif part == 3:  # between two requests
            first = Step("limited", 1900) if rng.random() < 0.4 else choose_repeated(rng)
            play, after = (first, *play), rng.uniform(0.03, 0.5)
        elif part == 4:  # about when the answer comes
            play, after = (Step("ok", rng.randrange(60)),), 0.0
            after = play[0].ms / 1000 + rng.uniform(-0.005, 0.03)
        else:  # whenever
            after = rng.uniform(0, 0.5)
        data, use = self._model_call(now, play, streamed=streamed)
        if after <= 0:
            return data + self.cancel(use, now)
        self._cancel_at(now + after, use)
        return data

    def _cancel_at(self, time: float, use: Use) -> None:
        self._number += 1
        heapq.heappush(self._due, (time, self._number, use))

    def _model_call(
        self, now: float, play: Play, *, streamed: bool | None = None, same: Id | None = None
    ) -> tuple[bytes, Use]:
        rng = self.rng
        self.calls += 1
        self._number += 1
        number = self._number
        search = rng.random() < 0.12
        modern = rng.random() < 0.35
        question = spell(number, play) + rng.choice((" Which one is current?", " 東京の天気は？", "\nTwo lines."))
        if rng.random() < 0.01:
            question += "x" * (3_000 if search else 30_000)
        arguments = {"query": question, **rng.choice(SEARCH_HINTS if search else HINTS)}
        token: Id | None = None
        if streamed or (streamed is None and rng.random() < 0.35):
            token = rng.choice((number, f"token {number}"))
        judge = answer_of(number, play, search=search, modern=modern)
        use = self.ledger.asks(self._id() if same is None else same, judge, now, token=token, again=same is not None)
        tool = SEARCH if search else rng.choice(ANSWER_TOOLS)
        return self._request(
            use.id, "tools/call", {"name": tool, "arguments": arguments}, modern=modern, token=token
        ), use

    def _twice(self, now: float) -> bytes:
        """Ask, and at once again with the same id: a call, or a ping."""
        data, use = self._model_call(now, (Step("ok", self.rng.randrange(40, 120)),))
        if self.rng.random() < 0.5:
            return data + self._model_call(now, (Step("ok", 20),), same=use.id)[0]
        self.ledger.asks(use.id, PONG, now, again=True)
        return data + self._request(use.id, "ping", None)

    def _bad_call(self, now: float) -> bytes:
        self.calls += 1
        modern = self.rng.random() < 0.35
        arguments = self.rng.choice(BAD_ARGUMENTS)
        use = self.ledger.asks(self._id(), answer_of(0, (), search=False, modern=modern, bad=True), now)
        return self._request(use.id, "tools/call", {"name": "answer", "arguments": arguments}, modern=modern)

    def _unknown_tool(self, now: float) -> bytes:
        self.calls += 1
        modern = self.rng.random() < 0.35
        judge = error_with("unknown tool", PARAMS if modern else METHOD)
        return self._at_once(now, judge, "tools/call", {"name": "summarise", "arguments": {}}, modern=modern)

    def _manual(self, now: float) -> bytes:
        modern = self.rng.random() < 0.35
        tool, arguments, judge = self.library.question(self.rng, modern=modern)
        return self._manual_call(now, tool, arguments, judge, modern=modern)

    def _manual_call(self, now: float, tool: str, arguments: Message, judge: Judge, *, modern: bool) -> bytes:
        self.calls += 1

        def judged(message: Message, seconds: float) -> str:
            outcome = judge(message, seconds)
            if tool == "manual_find" and failure(message) is None:
                self.library.remember(message["result"]["structuredContent"])
            return outcome

        use = self.ledger.asks(self._id(), judged, now)
        if self.rng.random() < 0.05:
            self._cancel_at(now + self.rng.uniform(0, 0.02), use)
        return self._request(use.id, "tools/call", {"name": tool, "arguments": arguments}, modern=modern)

    # All else

    def _at_once(
        self,
        now: float,
        judge: Judge,
        method: str,
        params: Message | None = None,
        *,
        modern: bool = False,
        line_of: list[Use] | None = None,
    ) -> bytes:
        """Ask for what is answered as it is read."""
        fresh = self._id()
        self.ledger.asks_at_once(fresh, judge, now, line_of=line_of, timed=method == "ping")
        return self._request(fresh, method, params, modern=modern)

    def _ping(self, now: float, *, line_of: list[Use] | None = None) -> bytes:
        return self._at_once(now, PONG, "ping", line_of=line_of)

    def _list(self, now: float) -> bytes:
        modern = self.rng.random() < 0.5
        if modern and self.rng.random() < 0.3:
            judge = result_with("server/discover", lambda result: "supportedVersions" in result, modern=True)
            return self._at_once(now, judge, "server/discover", {}, modern=True)
        judge = result_with("tools/list", lambda result: len(result["tools"]) == 11, modern=modern)
        return self._at_once(now, judge, "tools/list", {}, modern=modern)

    def _greet(self, now: float) -> bytes:
        judge = result_with("initialize", lambda result: result["protocolVersion"] == "2025-06-18")
        client = {"name": "soak", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        return self._at_once(now, judge, "initialize", params)

    def _bad_request(self, now: float) -> bytes:
        fresh = self._id()
        unknown = {META + "protocolVersion": "1999-01-01", META + "clientCapabilities": {}}
        bad: list[tuple[Message, int]] = [
            ({"method": "tools/call", "params": {"name": 7}}, PARAMS),
            ({"method": "tools/call", "params": {"name": "answer", "arguments": [1]}}, PARAMS),
            ({"method": "resources/subscribe"}, METHOD),
            ({"method": "ping", "params": [1]}, INVALID),
            ({"method": "ping", "jsonrpc": "1.0"}, INVALID),
            ({"method": "tools/list", "params": {"_meta": unknown}}, -32022),
            ({"method": "tools/list", "params": {"_meta": {META + "protocolVersion": "2026-07-28"}}}, PARAMS),
        ]
        message, code = self.rng.choice(bad)
        self.ledger.asks_at_once(fresh, error_with("a bad request", code), now)
        return self._encoded({"jsonrpc": "2.0", "id": fresh, **message})

    def _junk(self, now: float) -> bytes:
        body, code = self.rng.choice(JUNK)
        self.ledger.asks_at_once(None, error_with("junk", code), now)
        if self._only_frames or self.rng.random() < 0.4:
            return frame(body, self.rng)
        return body + b"\n"

    def _late_cancel(self, now: float) -> bytes:
        """Cancel what was answered, or never asked."""
        answered = self.ledger.answered
        late = self.rng.choice(answered) if answered and self.rng.random() < 0.7 else f"never {self._number}"
        return self._cancel(late) if self.ledger.is_free(late) else b""

    def _listen(self, now: float) -> bytes:
        self._lasting = [use for use in self._lasting if self.ledger.is_open(use)]
        if len(self._lasting) >= LASTING:
            return self.cancel(self._lasting.pop(0), now)
        judge = result_with("subscriptions/listen", modern=True)
        use = self.ledger.asks(self._id(), judge, now, lasting=True)
        self._lasting.append(use)
        return self._request(use.id, "subscriptions/listen", {"notifications": {}}, modern=True)

    # Messages

    def _id(self) -> Id:
        answered, rng = self.ledger.answered, self.rng
        if answered and rng.random() < 0.1 and self.ledger.is_free(again := rng.choice(answered)):
            return again
        self._number += 1
        return rng.choice((self._number, f"{self._number}", f"call {self._number}"))

    def _cancel(self, request: Id) -> bytes:
        params: Message = {"requestId": request}
        if self.rng.random() < 0.5:
            params["reason"] = "the user gave up"
        return self._encoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _request(
        self, request: Id, method: str, params: Message | None, *, modern: bool = False, token: Id | None = None
    ) -> bytes:
        meta: Message = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}} if modern else {}
        if token is not None:
            meta["progressToken"] = token
        message: Message = {"jsonrpc": "2.0", "id": request, "method": method}
        if params is not None:
            message["params"] = {**params, "_meta": meta} if meta else params
        return self._encoded(message)

    def _encoded(self, message: Message) -> bytes:
        body = json.dumps(message, ensure_ascii=self.rng.random() < 0.5).encode()
        return frame(body, self.rng) if self._only_frames or self.rng.random() < 0.3 else body + b"\n"

    @property
    def _only_frames(self) -> bool:
        return self.calls < FRAMED_CALLS


HEADS: Final = (
    b"Content-Length: %d\r\n\r\n",
    b"Content-Length: %d\r\n\r\n",
    b"content-length:%d\n\n",
    b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
    b"\n\nContent-Length: %d\r\n\r\n",
)


def frame(body: bytes, rng: random.Random) -> bytes:
    """Return a frame with one of the heads that are understood."""
    return rng.choice(HEADS) % len(body) + body
