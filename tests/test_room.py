"""Room for unsent output: an order that nobody breaks, and no wake-up that is lost."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.room import Room

LIMIT = 10


@dataclass(eq=False)
class Caller:
    """One who wants `size` bytes, or with 0 any room at all."""

    size: int
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    done: trio.Event = field(default_factory=trio.Event)

    @property
    def held(self) -> int:
        return min(self.size, LIMIT // 2)


class Hall:
    """A room with output in it and callers before it; and, on paper, who must be where."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self.unsent = 0
        self.room = Room(LIMIT, lambda: self.unsent)
        self.callers: list[Caller] = []
        self.came_in: list[Caller] = []
        self.inside: list[Caller] = []
        self.line: deque[Caller] = deque()
        self.let_in: list[Caller] = []
        self.holding: list[Caller] = []

    async def visit(self, caller: Caller) -> None:
        with caller.scope:
            if not caller.size:
                await self.room.wait()
                self.came_in.append(caller)
                return
            async with self.room.reserve(caller.size):
                self.came_in.append(caller)
                self.inside.append(caller)
                assert self.unsent + sum(each.held for each in self.inside) <= LIMIT
                try:
                    await caller.done.wait()
                finally:
                    self.inside.remove(caller)
            self.unsent += caller.held  # its answer, in the step that leaves

    def arrive(self, size: int) -> None:
        caller = Caller(size)
        self.callers.append(caller)
        self.line.append(caller)
        self._nursery.start_soon(self.visit, caller)

    def write(self, size: int) -> None:
        self.unsent = max(0, self.unsent - size)
        self.room.changed()

    def add(self, size: int) -> None:
        self.unsent += size

    def cancel(self, which: int) -> None:
        if self.callers:
            caller = self.callers[which % len(self.callers)]
            caller.scope.cancel()
            for listed in (self.line, self.holding):
                if caller in listed:
                    listed.remove(caller)

    def leave(self, which: int) -> None:
        if self.holding:
            caller = self.holding.pop(which % len(self.holding))
            caller.done.set()

    async def settle(self) -> None:
        """Let everybody do what they can, and compare with what is on paper."""
        await trio.testing.wait_all_tasks_blocked()
        while self.line and self.unsent + sum(each.held for each in self.holding) + (self.line[0].held or 1) <= LIMIT:
            caller = self.line.popleft()
            self.let_in.append(caller)
            if caller.size:
                self.holding.append(caller)
        # One that is cancelled at the moment of its turn may still come in, and leaves at once.
        assert [each for each in self.came_in if not each.scope.cancel_called] == [
            each for each in self.let_in if not each.scope.cancel_called
        ]
        assert self.inside == self.holding


STEPS = st.one_of(
    st.tuples(st.just("arrive"), st.sampled_from([0, 0, 1, 3, 5, 9, LIMIT, 25])),
    st.tuples(st.sampled_from(["cancel", "leave"]), st.integers(0, 20)),
    st.tuples(st.sampled_from(["write", "add"]), st.sampled_from([1, 4, LIMIT, 25])),
)


@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=40))
def test_whoever_is_first_comes_in_as_soon_as_there_is_room_and_nobody_before(
    steps: list[tuple[tuple[str, int], bool]],
) -> None:
    async def play() -> None:
        async with trio.open_nursery() as nursery:
            hall = Hall(nursery)
            for (what, number), at_once in steps:
                # Of two tasks started at once Trio may run either first, so arrivals come one by one.
                if what == "arrive" or not at_once:
                    await hall.settle()
                getattr(hall, what)(number)
            await hall.settle()
            while hall.line or hall.holding:
                hall.write(hall.unsent)
                hall.leave(0)
                await hall.settle()

    trio.run(play, clock=trio.testing.MockClock())


async def test_one_who_was_woken_and_is_cancelled_in_that_moment_wakes_the_next() -> None:
    async with trio.open_nursery() as nursery:
        hall = Hall(nursery)
        hall.add(LIMIT)
        for size in (3, 0, 3):
            hall.arrive(size)
            await hall.settle()
        hall.write(LIMIT)
        hall.cancel(0)
        await hall.settle()
        assert hall.came_in[-2:] == hall.callers[1:]
        hall.leave(0)
