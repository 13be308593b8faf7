"""A function in a forked process, within limits of time and memory.

The fork has the registry's state as it is, without any of it being sent, and pays only for what it changes.
Only the thread that forks goes on in it. It computes, writes its answer into a pipe, and ends; it uses
neither Kafka nor HTTP nor the log.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tamis.errors import RefusedError, TamisError, UnavailableError
from tamis.telemetry import get_logger


def data_bytes(process: int | str = "self") -> int:
    """The memory of a process that counts for RLIMIT_DATA, in bytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE")


def limit(what: int, soft: int) -> None:
    """Set a limit of this process, as far as it may have it."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def too_large(most: int) -> RefusedError:
    """The error for an answer of more bytes than are sent."""
    return RefusedError(
        f"the answer for these SQL statements takes more than {most >> 20} MiB",
        hint="send fewer statements at a time",
    )


# A process that waits for a core must not be taken for one that computes: several times its processor time.
WAIT_FACTOR = 5
LEAST_WAIT = 60.0
# Another thread may have held a lock of a library when the process was forked. A fork that sleeps for so
# many seconds waits for such a lock in vain, and is made anew.
ASLEEP_SECONDS = 5
_NICE = 5  # the registry's loop comes first
_ANSWER, _FAILED, _FAULT = b"a", b"f", b"x"

_log = get_logger("tamis.registry")


class Fork:
    """One function in a process of its own. `kill` may be called by any thread, at any time."""

    def __init__(self, seconds: int, most_bytes: int, most_answer: int) -> None:
        """Limits: processor time, memory beyond that of this process, and the size of the answer."""
        self._seconds, self._most_bytes, self._most_answer = seconds, most_bytes, most_answer
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._killed = False

    def run(self, work: Callable[[], bytes]) -> bytes:
        """The answer of `work`, which changes nothing here.

        Raises the TamisErrors of `work`, RefusedError if it exceeds a limit, and UnavailableError if the
        process was ended.
        """
        found = self._once(work)
        return found if found is not None else (self._once(work) or self._ended("the process didn't answer"))

    def kill(self) -> None:
        """End the process, and keep it from being started."""
        with self._lock:
            self._killed = True
            self._end()

    def _once(self, work: Callable[[], bytes]) -> bytes | None:
        """The answer; None if the process hung."""
        read, write = os.pipe()
        with self._lock:
            if self._killed:
                os.close(read)
                os.close(write)
                self._ended("the request was given up")
            self._pid = os.fork()
            if self._pid == 0:
                self._child(work, write)
        os.close(write)
        try:
            answer, hung = self._read(read)
        finally:
            os.close(read)
            with self._lock:
                self._end()
                _, status = os.waitpid(self._pid, 0)
                self._pid = None
        if hung and not answer:
            return None
        return self._judged(answer, status)

    def _end(self) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)

    def _read(self, pipe: int) -> tuple[bytes, bool]:
        """All that the process writes, and True if it was asleep."""
        found = bytearray()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        deadline = time.monotonic() + max(LEAST_WAIT, WAIT_FACTOR * self._seconds)
        asleep = 0
        while time.monotonic() < deadline and asleep < ASLEEP_SECONDS:
            if not poll.poll(1000):
                asleep = asleep + 1 if self._sleeps() else 0
                continue
            more = os.read(pipe, 1 << 20)
            if not more:
                return bytes(found), False
            found += more
        return b"", asleep >= ASLEEP_SECONDS

    def _sleeps(self) -> bool:
        state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S"

    def _judged(self, answer: bytes, status: int) -> bytes:
        kind, rest = answer[:1], answer[1:]
        if kind == _ANSWER:
            return rest
        if kind == _FAILED:
            error = pickle.loads(rest)
            assert isinstance(error, TamisError)
            raise error
        if kind == _FAULT:
            _log.error("planning an explanation failed", traceback=rest.decode(errors="replace"))
            raise TamisError("an error in the registry; its log has the cause")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            raise RefusedError(
                f"the plan for these SQL statements takes more than {self._seconds} s of processor time",
                hint="send fewer statements at a time",
            )
        self._ended(f"it ended with status {status}")

    def _ended(self, why: str) -> NoReturn:
        raise UnavailableError(
            f"the process that planned these SQL statements was ended: {why}",
            where="registry",
            hint="send them again",
        )

    def _child(self, work: Callable[[], bytes], pipe: int) -> NoReturn:
        """Compute and answer in the fork."""
        try:
            # Connections belong to the parent, and objects that could be collected may wait for its threads.
            gc.disable()
            os.closerange(3, pipe)
            os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.nice(_NICE)
            limit(resource.RLIMIT_CPU, self._seconds)
            limit(resource.RLIMIT_DATA, data_bytes() + self._most_bytes)
            _write(pipe, self._answer(work))
        finally:
            os._exit(0)

    def _answer(self, work: Callable[[], bytes]) -> bytes:
        try:
            found = work()
            if len(found) > self._most_answer:
                raise too_large(self._most_answer)
            return _ANSWER + found
        except TamisError as error:
            return _FAILED + pickle.dumps(error)
        except MemoryError:
            what = "the plan for these SQL statements takes too much memory"
            return _FAILED + pickle.dumps(RefusedError(what, hint="send fewer statements at a time"))
        except Exception:
            return _FAULT + traceback.format_exc()[-10_000:].encode(errors="replace")


def _write(pipe: int, answer: bytes) -> None:
    rest = memoryview(answer)
    while rest:
        rest = rest[os.write(pipe, rest) :]
