"""Room for unsent output: who waits goes on as soon as there is some, and no wake-up is lost."""

from __future__ import annotations

import trio
import trio.testing

from responses_mcp.room import Room

LIMIT = 10


class Hall:
    """A room with output in it, and who came through."""

    def __init__(self) -> None:
        self.unsent = LIMIT
        self.room = Room(LIMIT, lambda: self.unsent)
        self.through: list[int] = []

    async def visit(self, number: int, adds: int = 0) -> None:
        await self.room.wait()
        self.through.append(number)
        self.unsent += adds

    def write(self, size: int) -> None:
        self.unsent -= size
        self.room.changed()


async def test_who_waits_goes_on_once_there_is_any_room() -> None:
    hall = Hall()
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(hall.visit, number)
        await trio.testing.wait_all_tasks_blocked()
        hall.write(0)
        await trio.testing.wait_all_tasks_blocked()
        assert not hall.through
        hall.write(1)
    assert sorted(hall.through) == [0, 1, 2]


async def test_who_comes_too_late_for_the_room_waits_on() -> None:
    hall = Hall()
    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(hall.visit, number, LIMIT)
        await trio.testing.wait_all_tasks_blocked()
        hall.write(1)
        await trio.testing.wait_all_tasks_blocked()
        assert len(hall.through) == 1
        hall.write(LIMIT)
    assert len(hall.through) == 2


async def test_where_there_is_room_nobody_waits_a_step() -> None:
    hall = Hall()
    hall.write(1)
    with trio.testing.assert_no_checkpoints():
        await hall.visit(1)


async def test_a_cancel_in_the_step_that_makes_room_is_no_way_through() -> None:
    hall = Hall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hall.visit, 1)
        await trio.testing.wait_all_tasks_blocked()
        hall.write(LIMIT)
        nursery.cancel_scope.cancel()
    assert not hall.through
