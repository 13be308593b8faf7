"""Workers that exchange connections, with tasks as Spark gives them. It prints who did what.

Arguments: workers, tasks of a batch, batches, seconds of a task, how many workers are killed meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tamis_joiner.spark.processes.connection_exchange import EXCHANGE

ASKED, ANSWERED = struct.Struct(">ii"), struct.Struct(">iii")


@dataclass(eq=False)
class Connection:
    """One that the program has, the process that made it, and the task and its identity that it has now."""

    socket: socket.socket
    pid: int
    task: int = -1
    identity: int = -1

    @property
    def lives(self) -> bool:
        """True if the process has not ended."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def ask(self, task: int, identity: int) -> None:
        """Give the worker a task."""
        self.task, self.identity = task, identity
        with suppress(BrokenPipeError):  # closed meanwhile, which is found when the answer is read
            self.socket.send(ASKED.pack(task, identity))

    def answer(self) -> tuple[int, int] | None:
        """The task and the process that has done it; None if the connection is closed."""
        try:
            answer = self.socket.recv(ANSWERED.size)
        except ConnectionResetError:
            return None
        if not answer:
            return None
        task, identity, pid = ANSWERED.unpack(answer)
        assert (task, identity) == (self.task, self.identity), "an answer to the task of another connection"
        self.task = -1
        return task, pid


class Program:
    """Gives tasks to the worker that has been idle for the longest time, and starts up to `most` workers."""

    def __init__(self, most: int, do_task: Callable[[socket.socket, bool], int]) -> None:
        self._most, self._do_task = most, do_task
        self.connections: list[Connection] = []
        self._idle: deque[Connection] = deque()
        self._identity = 0
        self.repeated = 0

    def batch(self, tasks: int, killed: random.Random | None) -> list[tuple[int, int]]:
        """Each task with the process that has done it. `killed`: kill one of the workers, too."""
        waiting = deque(range(tasks))
        found: list[tuple[int, int]] = []
        while len(found) < tasks:
            while waiting and (one := self._free()) is not None:
                self._identity += 1
                one.ask(waiting.popleft(), self._identity)
            if killed is not None and (living := [one.pid for one in self.connections if one.lives]):
                os.kill(killed.choice(living), signal.SIGKILL)
                killed = None
            ready = select.select([one.socket for one in self.connections], [], [], 5)[0]
            for one in [one for one in self.connections if one.socket in ready]:
                answer = one.answer()
                if answer is not None:
                    found.append(answer)
                    self._idle.append(one)
                    continue
                self._drop(one)
                if one.task >= 0:
                    self.repeated += 1
                    waiting.append(one.task)
        return sorted(found)

    def _free(self) -> Connection | None:
        while self._idle:
            one = self._idle.popleft()
            if one.lives:
                return one
            self._drop(one)  # as Spark does, whichever process has the connection now
        return self._start() if len(self.connections) < self._most else None

    def _drop(self, one: Connection) -> None:
        one.socket.close()
        self.connections.remove(one)
        with suppress(ValueError):
            self._idle.remove(one)

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            for one in (ours, *(one.socket for one in self.connections)):
                one.close()
            while True:
                self._do_task(theirs, True)
        theirs.close()
        self.connections.append(Connection(ours, pid))
        return self.connections[-1]


def serve(connection: socket.socket, seconds: float) -> int:
    """Do a task: wait, and send its number and its identity back with that of this process."""
    asked = connection.recv(ASKED.size, socket.MSG_WAITALL)
    if len(asked) < ASKED.size:
        os._exit(0)
    task, identity = ASKED.unpack(asked)
    EXCHANGE.note(task)
    time.sleep(seconds * random.uniform(0.8, 1.2))
    connection.send(ANSWERED.pack(task, identity, os.getpid()))
    return 0


def main(workers: int, tasks: int, batches: int, seconds: float, killed: int) -> None:
    """Do the batches and print the result as JSON."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's daemon does
    program = Program(workers, EXCHANGE.begin(lambda connection, _: serve(connection, seconds)))
    chosen = random.Random(1)
    kills = set(chosen.sample(range(2, batches), killed))
    done = [program.batch(tasks, chosen if number in kills else None) for number in range(batches)]
    print(json.dumps({"done": done, "repeated": program.repeated}))
    for one in program.connections:
        one.socket.close()


if __name__ == "__main__":
    workers, tasks, batches, killed = (int(sys.argv[number]) for number in (1, 2, 3, 5))
    main(workers, tasks, batches, float(sys.argv[4]), killed)
