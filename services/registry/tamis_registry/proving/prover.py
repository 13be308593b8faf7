"""The registry's handle of one process that parses and proves SQL statements."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tamis.errors import RefusedError, UnavailableError
from tamis.query.model import Catalog
from tamis.telemetry import get_logger
from tamis_registry.core.statements.reading import Read
from tamis_registry.proving.fork import data_bytes
from tamis_registry.proving.messages import (
    Difference,
    Failed,
    Needed,
    Progress,
    Request,
    Sent,
    Settings,
    Trial,
    TrialRequest,
    Tried,
    decoded,
    is_read,
)

# A process that waits for a core must not be taken for one that computes: several times its processor time.
WAIT_FACTOR = 5
LEAST_WAIT = 60

_log = get_logger("tamis.registry")


@dataclass(frozen=True)
class _Words:
    """Words for the errors of one kind of request. `what` is a plural."""

    what: str
    late: str
    hint: str


_PROOFS = _Words(
    "the proofs for these SQL statements",
    "the SQL statements were not proved",
    "send fewer statements at a time",
)
_TRIAL = _Words(
    "the steps of this trial", "the trial was not done", "send fewer readings, or a query with fewer rows"
)


class Prover:
    """A proving process: started with the first text, and again after it was killed.

    `ask` and `try_out` may be used by one thread at a time; `kill` by any.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._doomed = False  # killed, though it may not have ended yet
        self._connection: Connection | None = None
        self._sent = Sent()

    def start(self) -> None:
        """Start the process if none runs, before it is needed."""
        with self._lock:
            if self._closed:
                return
            if self._process is not None and self._doomed:
                self._process.wait()
            if self._process is None or self._process.poll() is not None:
                self._start()

    def ask(self, text: str, catalog: Catalog, file: str | None, *, keep: bool, files: bool = True) -> Read:
        """Parse and prove a text in the process, against a catalogue. `files`: the text may name files.

        Raises the TamisError that applying the text would raise; RefusedError if proving needs more time or
        memory than allowed; UnavailableError if the process was killed for another reason.
        """
        answer = decoded(self.ask_encoded(text, catalog, file, keep=keep, files=files))
        assert isinstance(answer, Read)
        return answer

    def ask_encoded(
        self, text: str, catalog: Catalog, file: str | None, *, keep: bool, files: bool = True
    ) -> bytes:
        """As `ask`, with the answer as `decoded` takes it. Raises as `ask` does."""
        answer = self._exchange(
            lambda changes: Request(changes, text, file, keep, files),
            catalog,
            self._settings.seconds,
            _PROOFS,
        )
        assert is_read(answer)
        return answer

    def try_out(self, trial: Trial, catalog: Catalog) -> Needed | Tried:
        """Run a query of a text on samples; without samples, tell which streams and columns it needs.

        Raises the TamisError of a mistake in the text or in the samples; RefusedError if the query isn't
        accepted, or needs more time or memory than allowed; UnavailableError as `ask`.
        """
        answer = decoded(
            self._exchange(
                lambda changes: TrialRequest(changes, trial), catalog, trial.limits.seconds, _TRIAL
            )
        )
        assert isinstance(answer, Needed | Tried)
        return answer

    def _exchange(
        self, made: Callable[[Difference], object], catalog: Catalog, seconds: int, words: _Words
    ) -> bytes:
        """The encoded answer to one request, which may use the processor for so many seconds."""
        self.start()
        connection = self._connection
        assert connection is not None
        doing: Progress | None = None
        wait = max(LEAST_WAIT, WAIT_FACTOR * seconds)
        deadline = time.monotonic() + wait
        try:
            connection.send_bytes(pickle.dumps(made(self._sent.difference(catalog))))
            while connection.poll(max(0.0, deadline - time.monotonic())):
                message = connection.recv_bytes()
                if is_read(message):
                    return message
                answer = decoded(message)
                if isinstance(answer, Failed):
                    raise answer.error
                if not isinstance(answer, Progress):
                    return message
                doing = answer
            self.kill()
            raise UnavailableError(
                f"{words.late} within {wait} s, since the machine is busy",
                where="registry",
                hint="try again later",
            )
        except (EOFError, OSError):
            pass  # it has ended: its exit code says why
        raise self._ended(doing, seconds, words)

    @property
    def running(self) -> subprocess.Popen[bytes] | None:
        """The process; None if it was not started."""
        return self._process

    @property
    def ended(self) -> bool:
        """True if the process must be started before it reads again."""
        return self._doomed or (self._process is not None and self._process.poll() is not None)

    @property
    def overgrown(self) -> bool:
        """True if the process keeps half of the memory that it may have: it would refuse later texts."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return False
            return data_bytes(self._process.pid) > self._settings.data_bytes // 2

    def kill(self) -> None:
        """End the process at any point of its work. A caller that waits in `ask` gets UnavailableError."""
        with self._lock:
            if self._process is not None:
                self._doomed = True
                self._process.kill()

    def _ended(self, doing: Progress | None, seconds: int, words: _Words) -> RefusedError | UnavailableError:
        """The error for a process that has ended."""
        killed_here = self._doomed
        self.kill()
        assert self._process is not None
        code = self._process.wait()
        where = None if doing is None else f"{doing.where}: {doing.query}"
        if code == -signal.SIGXCPU:
            _log.warning(f"{words.what} took too long", seconds=seconds, where=where)
            return RefusedError(
                f"{words.what} take more than {seconds} s of processor time",
                where=where,
                hint="simplify the query" if doing else words.hint,
            )
        if killed_here:
            _log.info("a process that proves SQL statements was ended, since its client has gone")
        else:
            _log.warning("the process that proves SQL statements has ended", code=code, where=where)
        return UnavailableError(
            f"the process that proved these SQL statements ended with exit code {code}",
            where=where,
            hint="send them again",
        )

    def _start(self) -> None:
        if self._connection is not None:
            self._connection.close()
        mine, theirs = socket.socketpair()
        with theirs:
            # -P: nothing is imported from the working directory.
            command = [sys.executable, "-P", "-m", "tamis_registry.proving.child", str(theirs.fileno())]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self._connection = Connection(mine.detach())
        self._sent, self._doomed = Sent(), False
        self._connection.send_bytes(pickle.dumps(self._settings))

    def close(self) -> None:
        """End the process permanently."""
        self.kill()
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.wait()
            if self._connection is not None:
                self._connection.close()
                self._connection = None
