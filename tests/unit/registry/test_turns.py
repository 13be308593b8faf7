"""Turns of requests: changes first, writers before readers, and equal shares for all tokens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from tamis.errors import UnavailableError
from tamis_registry.proving.turns import Client, Rank, Turn, Turns

CHANGE, WRITER = Client("w", Rank.CHANGE), Client("w", Rank.WRITER)


def reader(name: str) -> Client:
    return Client(name, Rank.READER)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


class Waiting:
    """Requests that wait, and the order in which they get their turns."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.begun: list[Client] = []
        self.held: list[Turn] = []
        self.refused: list[Client] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def add(self, *clients: Client) -> None:
        for client in clients:
            self.tasks.append(asyncio.create_task(self._take(client)))
            await asyncio.sleep(0)
        await settled()

    async def _take(self, client: Client) -> None:
        try:
            turn = await self._turns.take(client)
        except UnavailableError:
            self.refused.append(client)
            return
        self.begun.append(client)
        self.held.append(turn)

    async def release(self) -> None:
        """The turn that began first ends."""
        self._turns.release(self.held.pop(0))
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_readers_leave_a_place_to_writers_and_changes_come_first() -> None:
    async def check() -> None:
        waiting = Waiting(Turns(2))
        await waiting.add(*[reader("a")] * 5)
        assert waiting.begun == [reader("a")]
        await waiting.add(CHANGE)
        assert waiting.begun[-1] is CHANGE
        await waiting.add(WRITER, CHANGE)
        await waiting.release()  # of the reader
        assert waiting.begun[-1] is CHANGE
        await waiting.release()
        assert waiting.begun[-1] is WRITER
        await waiting.release()
        assert waiting.begun[-1] == reader("a")

    run(check())


def test_each_token_has_its_share_however_many_requests_it_sends() -> None:
    async def check() -> None:
        waiting = Waiting(Turns(3, most_waiting=200))
        await waiting.add(*[reader("a")] * 40)
        await waiting.add(*[reader("b")] * 20)
        await waiting.add(*[reader("c")] * 20)
        for _ in range(40):
            await waiting.release()
        last = Counter(client.name for client in waiting.begun[-30:])
        assert set(last.values()) == {10}
        # One that comes anew has the next turn.
        await waiting.add(reader("d"))
        await waiting.release()
        assert waiting.begun[-1] == reader("d")

    run(check())


def test_where_too_many_wait_those_of_the_client_with_most_give_way() -> None:
    async def check() -> None:
        waiting = Waiting(Turns(2, most_waiting=4))
        await waiting.add(*[reader("a")] * 6)
        assert waiting.refused == [reader("a")]  # the last one
        await waiting.add(reader("b"), reader("b"), reader("b"))
        assert waiting.refused == [reader("a")] * 3 + [reader("b")]
        # Questions don't take the places of changes.
        await waiting.add(CHANGE, CHANGE, CHANGE)
        assert CHANGE not in waiting.refused

    run(check())


def test_a_request_that_is_given_up_leaves_its_place() -> None:
    async def check() -> None:
        turns = Turns(1)
        waiting = Waiting(turns)
        await waiting.add(reader("a"), reader("b"), reader("c"))
        waiting.tasks[1].cancel()
        await settled()
        await waiting.release()
        assert waiting.begun == [reader("a"), reader("c")] and turns.busy == 1
        await waiting.release()
        assert turns.busy == 0
        # Given up at the moment at which its turn begins.
        one = await turns.take(reader("a"))
        other = asyncio.create_task(turns.take(reader("b")))
        await settled()
        turns.release(one)
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other
        assert turns.busy == 0

    run(check())


@pytest.mark.parametrize("client", [CHANGE, WRITER])
def test_at_a_single_place_the_work_of_a_reader_ends_for_a_writer(client: Client) -> None:
    async def check() -> None:
        turns = Turns(1, patience=0.05)
        running = await turns.take(reader("a"))
        running.end = lambda: turns.release(running)
        turn = await turns.take(client)
        assert running.ended
        # That of a writer does not.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turns.take(CHANGE), 0.2)
        assert not turn.ended

    run(check())
