"""Jobs: decisions that HTTP threads hand to the registry's loop and wait for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, Literal, TypeVar

from tamis.errors import UnavailableError
from tamis_registry.core.plan.change import Change
from tamis_registry.core.registry import Registry

T = TypeVar("T")

# A client waits this long for a decision; a plan of thousands of queries takes seconds.
JOB_SECONDS = 30.0
IDLE = "reading reports of edges and joiner"

Decide = Callable[[Registry, int], tuple[T, Change]]


@dataclass
class Job(Generic[T]):
    """A decision and the thread that waits for its result."""

    decide: Decide[T]
    answer: Future[T]
    stage: Literal["waiting", "planned", "written"] = "waiting"


class Jobs:
    """The queue of jobs. `doing`: the present work of the loop, which is named in messages about jobs that
    are late.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Job[object]] = SimpleQueue()
        self.doing = IDLE

    def submit(self, decide: Decide[T]) -> T:
        """Wait until the loop has decided and the change is durable. Raises what `decide` raises.

        UnavailableError: the loop has not finished in time.
        """
        job = Job(decide, Future())
        self._queue.put(job)  # type: ignore[arg-type]
        try:
            return job.answer.result(JOB_SECONDS)
        except TimeoutError:
            raise self._overdue(job) from None

    def _overdue(self, job: Job[T]) -> UnavailableError:
        """The error for a job that is not done in time."""
        if job.answer.cancel():
            what = f"not begun within {JOB_SECONDS:g} s: the registry is {self.doing}"
            return UnavailableError(what, where="registry", hint="the request had no effect: send it again")
        what = "no answer from Kafka yet" if job.stage == "written" else "it is still being planned"
        hint = "send it again: statements that are in force already stay unchanged"
        return UnavailableError(what, where="registry", hint=hint)

    def next(self, timeout: float) -> Job[object] | None:
        """The next job for which a thread still waits; None if none comes within `timeout` seconds."""
        try:
            job = self._queue.get(timeout=timeout)
        except Empty:
            return None
        return job if job.answer.set_running_or_notify_cancel() else None

    def refuse_all(self, reason: str) -> None:
        """Answer all waiting jobs with UnavailableError."""
        while True:
            try:
                job = self._queue.get_nowait()
            except Empty:
                return
            if job.answer.set_running_or_notify_cancel():
                job.answer.set_exception(UnavailableError(reason, where="registry", hint="try again"))
