"""Turns of requests that work for long: changes first, then writers, and equal shares for all clients.

A client is known by the name of its token. Within a rank, the next turn is for a client with the fewest turns
in progress, and among these for the one whose last turn was longest ago. So a client that sends request after
request delays others by one turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from tamis.errors import UnavailableError

# Requests that wait. A further one is refused with the advice to try again, or takes the place of one of the
# client that has most.
MOST_WAITING = 32
_MOST_NAMES = 1_000  # of clients whose last turn is known


class Rank(IntEnum):
    """The order of requests: a lower rank comes first."""

    CHANGE = 0
    WRITER = 1
    READER = 2


@dataclass(frozen=True)
class Client:
    """Client of a request: the name of the token, empty without tokens."""

    name: str = ""
    rank: Rank = Rank.READER


NOBODY = Client()


@dataclass(eq=False)
class Turn:
    """A request that waits or has its turn. `end` ends its work early; `ended`: this was done for others."""

    client: Client
    number: int
    began: asyncio.Future[None]
    end: Callable[[], None] = field(default=lambda: None)
    ended: bool = False


class Turns:
    """Turns at `places`. For one event loop."""

    def __init__(
        self,
        places: int,
        most_waiting: int = MOST_WAITING,
        patience: float | None = None,
        what: str = "requests with SQL statements",
        reserved: int = 1,
    ) -> None:
        """`what`: the requests, in messages. `reserved`: of several places, those that readers never take.
        `patience`: at a single place, the seconds after which a change
        or a writer that waits ends the work of a reader. None: never.
        """
        self._places, self._most_waiting, self._what = places, most_waiting, what
        self._for_readers = max(1, places - reserved)
        self._patience = patience if places == 1 else None
        self._waiting: list[Turn] = []
        self._running: list[Turn] = []
        self._number = 0
        self._last: dict[str, int] = {}  # by client, the number of its last turn

    @property
    def busy(self) -> int:
        """The number of turns in progress."""
        return len(self._running)

    async def take(self, client: Client) -> Turn:
        """A turn, as soon as there is one, which the caller releases. Raises UnavailableError if too many
        wait.
        """
        mine = self._queued(client)
        patience = None
        try:
            self._begin()
            if self._patience is not None and client.rank < Rank.READER and not mine.began.done():
                patience = asyncio.get_running_loop().call_later(self._patience, self._end_reader)
            await mine.began
        except BaseException:
            if mine in self._waiting:
                self._waiting.remove(mine)
            self.release(mine)
            raise
        finally:
            if patience is not None:
                patience.cancel()
        return mine

    def release(self, turn: Turn) -> None:
        """End a turn."""
        if turn in self._running:
            self._running.remove(turn)
            if len(self._last) > _MOST_NAMES:
                known = {one.client.name for one in (*self._running, *self._waiting)}
                self._last = {name: at for name, at in self._last.items() if name in known}
            self._begin()

    def _queued(self, client: Client) -> Turn:
        # Questions never keep changes from waiting.
        changes = client.rank == Rank.CHANGE
        crowd = [one for one in self._waiting if (one.client.rank == Rank.CHANGE) == changes]
        if len(crowd) >= self._most_waiting and not self._free(client):
            counts = Counter(one.client.name for one in crowd)
            name, most = counts.most_common(1)[0]
            if most <= counts[client.name] + 1:
                raise self._refused(len(crowd))
            last = next(one for one in reversed(crowd) if one.client.name == name)
            self._waiting.remove(last)
            if not last.began.done():
                last.began.set_exception(self._refused(len(crowd)))
        self._number += 1
        made = Turn(client, self._number, asyncio.get_running_loop().create_future())
        self._waiting.append(made)
        return made

    def _free(self, client: Client) -> bool:
        if len(self._running) >= self._places:
            return False
        readers = sum(one.client.rank == Rank.READER for one in self._running)
        return client.rank != Rank.READER or readers < self._for_readers

    def _begin(self) -> None:
        """Begin the turns that can begin."""
        while True:
            able = [one for one in self._waiting if self._free(one.client)]
            if not able:
                return
            turns = Counter(one.client.name for one in self._running)
            following = min(
                able,
                key=lambda one: (
                    one.client.rank,
                    turns[one.client.name],
                    self._last.get(one.client.name, 0),
                    one.number,
                ),
            )
            self._waiting.remove(following)
            self._running.append(following)
            self._number += 1
            self._last[following.client.name] = self._number
            if not following.began.done():
                following.began.set_result(None)

    def _end_reader(self) -> None:
        for one in self._running:
            if one.client.rank == Rank.READER:
                one.ended = True
                one.end()

    def _refused(self, count: int) -> UnavailableError:
        return UnavailableError(
            f"too many {self._what} are waiting: {count}", where="registry", hint="try again later"
        )
