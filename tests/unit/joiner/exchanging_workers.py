"""Workers that exchange connections, and a program that gives them tasks as Spark does. Prints who did what.

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
from dataclasses import dataclass

from tamis_joiner.spark.processes.connection_exchange import EXCHANGE

ASKED, ANSWERED = struct.Struct(">ii"), struct.Struct(">iii")


@dataclass(eq=False)
class Connection:
    socket: socket.socket
    pid: int
    task: int = -1
    number: int = -1


def serve(connection: socket.socket, _: bool) -> int:
    """A task: its number and an identity that comes back with the process that has done it."""
    asked = connection.recv(ASKED.size, socket.MSG_WAITALL)
    if len(asked) < ASKED.size:
        os._exit(0)
    task, number = ASKED.unpack(asked)
    EXCHANGE.note(task)
    time.sleep(SECONDS * random.uniform(0.8, 1.2))
    connection.send(ANSWERED.pack(task, number, os.getpid()))
    return 0


def lives(pid: int) -> bool:
    """True if the process has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def start() -> Connection:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return Connection(ours, pid)
    ours.close()
    for one in connections:
        one.socket.close()
    while True:
        do_task(theirs, True)


WORKERS, TASKS, BATCHES, KILLED = (int(sys.argv[n]) for n in (1, 2, 3, 5))
SECONDS = float(sys.argv[4])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as Spark's daemon does
do_task = EXCHANGE.begin(serve)
connections: list[Connection] = []
idle: deque[Connection] = deque()
done: list[list[tuple[int, int]]] = []
repeated = number = 0
chosen = random.Random(1)
kill_at = sorted(chosen.sample(range(2, BATCHES), KILLED))
for batch in range(BATCHES):
    waiting = deque(range(TASKS))
    found: list[tuple[int, int]] = []
    while len(found) < TASKS:
        while waiting and (idle or len(connections) < WORKERS):
            if not idle:
                connections.append(start())
                idle.append(connections[-1])
            one = idle.popleft()
            if not lives(one.pid):  # Spark drops the connections of ended processes, whoever has them now
                one.socket.close()
                connections.remove(one)
                continue
            number += 1
            one.task, one.number = waiting.popleft(), number
            try:
                one.socket.send(ASKED.pack(one.task, one.number))
            except BrokenPipeError:  # closed meanwhile: found below
                pass
        if kill_at and kill_at[0] == batch:
            kill_at.pop(0)
            living = [one.pid for one in connections if lives(one.pid)]
            if living:
                os.kill(chosen.choice(living), signal.SIGKILL)
        for one in [
            c for c in connections if c.socket in select.select([c.socket for c in connections], [], [], 5)[0]
        ]:
            try:
                answer = one.socket.recv(ANSWERED.size)
            except ConnectionResetError:
                answer = b""
            if answer:
                task, same, pid = ANSWERED.unpack(answer)
                assert (task, same) == (one.task, one.number), "an answer to another connection's task"
                found.append((task, pid))
                one.task = -1
                idle.append(one)
                continue
            one.socket.close()
            connections.remove(one)
            if one in idle:
                idle.remove(one)
            if one.task >= 0:
                repeated += 1
                waiting.append(one.task)
    done.append(sorted(found))
print(json.dumps({"done": done, "repeated": repeated}))
for one in connections:
    one.socket.close()
