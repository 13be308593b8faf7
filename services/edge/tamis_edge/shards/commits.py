"""Commits of one shard, one at a time."""

from __future__ import annotations

from concurrent.futures import Future

from tamis.operators.windows.cut_policy import COMMIT_EVERY
from tamis.telemetry.logs import get_logger
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.sources.base import SourceShard

_log = get_logger("edge.shard")

RETRY = 1_000_000  # microseconds after a commit that failed


class Commits:
    """Makes the commits of a shard's runs durable through its source. `now` is wall clock in microseconds."""

    def __init__(self, source: SourceShard) -> None:
        self._source = source
        self._pending: tuple[ShardRun, Future[None], bool] | None = None
        self._due_at = 0
        self.final_version: int | None = None  # plan version of final records that are durably sent

    @property
    def pending(self) -> bool:
        """A commit is not durable yet."""
        return self._pending is not None

    def due(self, at: int) -> None:
        """The next commit is due at this time."""
        self._due_at = at

    def advance(self, run: ShardRun | None, now: int, *, at_once: bool) -> None:
        """Finish the pending commit, and begin the next one of `run` if it is due, or `at_once`."""
        if self._pending is not None and not self._finish(*self._pending, now):
            return
        # The clock may have been set back, so only a time that is near counts.
        waits = 0 < self._due_at - now <= RETRY
        if run is None or (waits and not at_once):
            return
        commit = run.commit()
        if commit is None:
            return
        self._due_at = now + COMMIT_EVERY
        final = run.ended and run.final_version == run.version
        if commit == run.durable and not (final and self.final_version != run.version):
            self._committed(run, final, now)
        else:
            self._pending = run, self._source.commit(commit, final), final

    def _finish(self, run: ShardRun, done: Future[None], final: bool, now: int) -> bool:
        """Take the result of the pending commit; False if there is none yet, or it failed."""
        if not done.done():
            return False
        self._pending = None
        fault = done.exception()
        if fault is not None:
            _log.warning("a commit failed", shard=self._source.name, error=str(fault))
            run.commit_failed()
            self._due_at = now + RETRY
            return False
        self._committed(run, final, now)
        return True

    def _committed(self, run: ShardRun, final: bool, now: int) -> None:
        run.committed(now)
        self.final_version = run.durable.version if final else None
