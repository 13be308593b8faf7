"""Exchange of connections between Python workers, so that a group stays with the worker that has its tuples.

Spark gives a task to the worker that has been idle for the longest time. With several workers a group would
move between them at random, and a worker that doesn't have its tuples and the results of its filters has to
read and evaluate them. Spark knows a worker by its connection. A worker that gets the task of a group that
another one had last exchanges connections with it, and so gives it the task. For this the other one must be
idle. If it isn't, the task waits for it, for at most half of the time that a task takes.

Spark knows a connection by the process that made it. If it ends this process, because a task has failed or
was cancelled, it may end another worker than the one that has the task. Then it ends all workers of the
query, or repeats both tasks.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

# Others take part in no exchange. Spark has about one worker for each core of an executor.
MOST_WORKERS, MOST_TASKS = 256, 4096
GONE, IDLE, BUSY = 0, 1, 2
NOBODY = -1

LONGEST_WAIT_SECONDS = 1.0
LOOK_MILLISECONDS = 1
# For the other worker to answer; it is idle, so it does at once.
ANSWER_SECONDS = 1.0
_TASK = struct.Struct(">i")  # the number of a task, with which Spark's message begins

Worker = Callable[[socket.socket, bool], int]


class WorkerTable:
    """The state of each worker, and the number of the worker that had each task last. A directory has the
    workers' sockets; only this user may enter it.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4 * (2 * MOST_WORKERS + MOST_TASKS))  # shared with forked processes
        whole = np.frombuffer(self._memory, np.int32)
        self._pids, self._states = whole[:MOST_WORKERS], whole[MOST_WORKERS : 2 * MOST_WORKERS]
        self._last = whole[2 * MOST_WORKERS :]
        self._last[:] = NOBODY
        # Spark deletes its own directories where it kills this process, too.
        self._temporary = tempfile.TemporaryDirectory(
            prefix="tamis-workers-",
            dir=os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None,
            ignore_cleanup_errors=True,
        )
        self._directory = os.open(self._temporary.name, os.O_RDONLY | os.O_DIRECTORY)
        self._lock = os.open(Path(self._temporary.name) / "lock", os.O_CREAT | os.O_RDWR, 0o600)

    def join(self) -> int | None:
        """Take a number for this process, which is busy; None if there is none left."""
        with self.locked():
            for number in range(MOST_WORKERS):
                pid = int(self._pids[number])
                if not pid or not _lives(pid):
                    self._pids[number], self._states[number] = os.getpid(), BUSY
                    self._last[self._last == number] = NOBODY
                    return number
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait until no other process has the lock, and have it. The system frees it if a process dies."""
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            self.unlock()

    def try_lock(self) -> bool:
        """Have the lock if no other process has it."""
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self) -> None:
        """Give the lock back."""
        fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def set_state(self, number: int, state: int) -> None:
        """Set the state of this worker."""
        self._states[number] = state

    def state(self, number: int) -> int:
        """The state of a worker; `GONE` if its process has ended."""
        pid = int(self._pids[number])
        return int(self._states[number]) if pid and _lives(pid) else GONE

    def note(self, number: int, task: int) -> None:
        """Note that a worker has a task now."""
        if task < MOST_TASKS:
            self._last[task] = number

    def last(self, task: int) -> int:
        """The worker that had a task last, or `NOBODY`."""
        return int(self._last[task]) if 0 <= task < MOST_TASKS else NOBODY

    def socket_of(self, number: int) -> str:
        """The path of the socket at which a worker takes part in exchanges. It names the directory by its
        descriptor, since the path of a socket may have 108 bytes at most, and Spark's directories have more.
        """
        return f"/proc/self/fd/{self._directory}/{int(self._pids[number])}"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the number belongs to a process of someone else now
        return False
    return True


class ConnectionExchange:
    """The part of this process in exchanges: none, unless it is a worker of a daemon that called `begin`."""

    def __init__(self) -> None:
        self._has_served = False
        self._number: int | None = None  # None before the first task, and where no exchange is possible
        self._took = 0.0  # seconds of the last task

    def begin(self, serve: Worker) -> Worker:
        """Let the workers that this process forks exchange connections. `serve` is Spark's function, which
        does one task over a connection; returns the one that workers are to call instead.
        """
        try:
            self._table, self._serve = WorkerTable(), serve
        except OSError as error:
            print(f"no exchange of connections between Python workers: {error}", file=sys.stderr)
            return serve
        return self._do_task

    def note(self, task: int) -> None:
        """Note that this worker has a task, and keeps what it needs for the next one of this number."""
        if self._number is not None:
            self._table.note(self._number, task)

    def _do_task(self, connection: socket.socket, authenticated: bool) -> int:
        if not self._has_served:
            # The first task of a connection comes together with its secret.
            self._has_served = True
            self._join()
        elif self._number is not None:
            self._table.set_state(self._number, IDLE)
            self._await_task(connection, self._number)
        began = time.monotonic()
        try:
            return self._serve(connection, authenticated)
        finally:
            self._took = time.monotonic() - began

    def _join(self) -> None:
        number = self._table.join()
        if number is None:
            return
        path = self._table.socket_of(number)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            Path(path).unlink(missing_ok=True)  # of an earlier process with this process's number
            listener.bind(path)
            listener.listen()
        except OSError as error:
            print(f"no exchange of connections with this Python worker: {error}", file=sys.stderr)
            listener.close()
            return
        listener.setblocking(False)
        self._listener, self._number = listener, number

    def _await_task(self, connection: socket.socket, number: int) -> None:
        """Return, as a busy worker, when the connection has a task for this worker or is closed."""
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        poller.register(connection, select.POLLIN)
        deadline: float | None = None  # until then the task waits for the worker that had it last
        while True:
            ready = {fd for fd, _ in poller.poll(None if deadline is None else LOOK_MILLISECONDS)}
            if self._listener.fileno() in ready:
                if self._give(connection, number):
                    return
                continue
            if deadline is None:
                # The connection stays ready until the task begins: only exchanges are waited for from now on.
                poller.unregister(connection)
                deadline = time.monotonic() + min(self._took / 2, LONGEST_WAIT_SECONDS)
            task = _waiting_task(connection)
            other = NOBODY if task is None else self._table.last(task)
            what = GONE if other in (NOBODY, number) else self._table.state(other)
            if what == GONE or time.monotonic() > deadline:
                if self._begin(number):
                    return
            elif what == IDLE and self._table.try_lock():
                try:
                    # It may have begun a task before this process had the lock.
                    idle = self._table.state(other) == IDLE
                    if idle and not self._take(connection, other):
                        self._table.set_state(number, BUSY)
                        return
                finally:
                    self._table.unlock()
                if idle:
                    poller.register(connection, select.POLLIN)
                    deadline = None

    def _begin(self, number: int) -> bool:
        """Be busy, unless another worker has the lock: it may be about to exchange with this one."""
        if not self._table.try_lock():
            return False
        self._table.set_state(number, BUSY)
        self._table.unlock()
        return True

    def _take(self, connection: socket.socket, other: int) -> bool:
        """Exchange connections with an idle worker; False if it has ended. This process has the lock."""
        theirs: list[int] = []
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
                channel.settimeout(ANSWER_SECONDS)
                channel.connect(self._table.socket_of(other))
                theirs = socket.recv_fds(channel, 1, 1)[1]
                if not theirs:
                    return False
                socket.send_fds(channel, [b"1"], [connection.fileno()])
                # From here on the other one may have the task: only its answer or its end says which.
                channel.settimeout(None)
                if not channel.recv(1):
                    return False
                os.dup2(theirs[0], connection.fileno(), inheritable=False)
                return True
        except OSError:
            return False
        finally:
            for one in theirs:
                os.close(one)

    def _give(self, connection: socket.socket, number: int) -> bool:
        """Exchange connections with a worker that asks for it, and be busy with its task; False if it asks no
        longer.
        """
        try:
            channel = self._listener.accept()[0]
        except BlockingIOError:
            return False
        with channel:
            channel.setblocking(True)
            try:
                socket.send_fds(channel, [b"1"], [connection.fileno()])
                theirs = socket.recv_fds(channel, 1, 1)[1]
            except OSError:
                return False
            if not theirs:
                return False
            os.dup2(theirs[0], connection.fileno(), inheritable=False)
            os.close(theirs[0])
            self._table.set_state(number, BUSY)
            # If the other one has ended, nobody waits for the answer: its task is this one's now.
            with suppress(OSError):
                channel.send(b"1")
        return True


def _waiting_task(connection: socket.socket) -> int | None:
    """The number of the task that the connection has; None if Spark has closed it."""
    try:
        begun = connection.recv(_TASK.size, socket.MSG_PEEK | socket.MSG_WAITALL)
    except OSError:
        return None
    return int(_TASK.unpack(begun)[0]) if len(begun) == _TASK.size else None


EXCHANGE = ConnectionExchange()
"""That of this process. A worker has it from the daemon that it is forked from."""
