"""Python workers of one daemon: what each does, and which of them had each task of a batch last.

The daemon makes the table before it forks the workers, so all of them share its memory.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

# Others take part in no exchange. Spark has about one worker for each core of an executor.
MOST_WORKERS, MOST_TASKS = 256, 4096
GONE, IDLE, BUSY = 0, 1, 2
NOBODY = -1


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
