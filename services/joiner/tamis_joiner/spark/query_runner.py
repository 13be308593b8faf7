"""Runner of the streaming query: runs it until the joiner is stopped, and restarts it if that helps."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from tamis.errors import RefusedError, TamisError, UnavailableError
from tamis.messaging.connection import Cluster, NotAuthorizedError, from_java
from tamis.telemetry import Health, Metrics, get_logger
from tamis.telemetry.health import disk_trouble
from tamis_joiner.checkpoint.files import Checkpoint
from tamis_joiner.checkpoint.location import Location
from tamis_joiner.monitoring.deletions import Offsets, offsets_of, records_between
from tamis_joiner.spark.jvm_messages import KILLED_HINT, causes, query_failure

log = get_logger("joiner")

# A batch takes about a second: one that is running when the joiner is stopped may end.
LAST_BATCH_SECONDS = 8.0
LOOK_SECONDS = 0.2
# A batch that runs for longer is reported: a reader waits for Kafka for two minutes at most.
LONG_BATCH_SECONDS = 300.0
# Spark gives a Python worker ten seconds to start, and has no setting for it. On a busy machine that may be
# too little. The query is begun again as often as needed, since query and state are sound.
SLOW_WORKER = "Python worker failed to connect back"
# Spark's message of a worker whose process is gone advises settings that find errors of Python.
GONE_WORKER = "Python worker exited unexpectedly"
PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
# An error in a Python worker comes back as the last line of its trace.
_REFUSED = f"{RefusedError.__module__}.{RefusedError.__qualname__}: "
_DENIED = f"{NotAuthorizedError.__module__}.{NotAuthorizedError.__qualname__}: "

# The system's message of a full disk (ENOSPC). Spark adds no path to it.
_NO_SPACE = os.strerror(errno.ENOSPC)
_NO_FILES = os.strerror(errno.EMFILE)
# Bytes of the checkpoint's disk that can be left after a file was too large for it, and was deleted.
_LARGE_FILE = 256 * 2**20

# The joiner checks only files of its own machine for damage.
_REMOTE_HINT = "remove the cause and start the joiner again: it continues where it ended"


class QueryRunner:
    """The query whose checkpoint is at `location`/query. `cluster` is Kafka in messages. `recreated` returns
    the topics that were deleted and created again since the query was started. `planned` is called once the
    first batch of a started query has ended.
    """

    def __init__(
        self,
        location: Location,
        cluster: Cluster,
        metrics: Metrics,
        health: Health,
        stopping: threading.Event,
        *,
        recreated: Callable[[], Sequence[str]],
        planned: Callable[[], object] = lambda: None,
    ) -> None:
        self._location, self._cluster = location, cluster
        self._metrics, self._health, self._stopping = metrics, health, stopping
        self._recreated, self._planned = recreated, planned
        self._is_planned = False
        self._last_batch = -1
        self._free_at = 0.0  # monotonic: when no batch ran, the last time
        self.read_from: Offsets = {}  # the offsets from which the last batch read

    def run(self, start: Callable[[], StreamingQuery]) -> None:
        """Start the query and follow it until the joiner is stopped. Raises TamisError if it can't continue.

        If its Python workers start too slowly for Spark, or if a right is missing in Kafka, the query is
        started again after a pause, which grows from one attempt to the next. If a topic was created again,
        the query is started again at once: `start` lets it read the topic from its beginning.
        """
        failed = 0
        while not self._stopping.is_set():
            batch = self._last_batch
            try:
                self._follow(self._start(start))
                continue
            except UnavailableError as error:
                denied = isinstance(error, NotAuthorizedError)
                if SLOW_WORKER not in error.what and not denied:
                    raise
                failed = 1 if self._last_batch > batch else failed + 1
                why = f"a Python worker was too slow to start, {failed} times: the query is started again"
                hint = "the machine is overloaded: give the joiner more CPU"
                if denied:
                    why, hint = str(error), "the query is started again until the right is granted"
            if failed == 1:
                log.warning(why, hint=hint)
            self._health.not_ready(why)
            for _ in range(int(min(PAUSE_SECONDS * 2**failed, LONGEST_PAUSE_SECONDS) / LOOK_SECONDS)):
                self._health.beat()
                if self._stopping.wait(LOOK_SECONDS):
                    return

    def _start(self, start: Callable[[], StreamingQuery]) -> StreamingQuery:
        try:
            return start()
        except (Py4JError, PySparkException) as error:
            raise self._failure("the query doesn't start", causes(error)) from error

    def _follow(self, query: StreamingQuery) -> None:
        """Follow the query until the joiner is stopped or a topic was created again, and stop the query."""
        self._health.not_ready("Spark is up, and the first batch is running")
        self._is_planned = False
        self._free_at = time.monotonic()
        while not self._stopping.wait(LOOK_SECONDS) and not self._recreated():
            self._look(query)
        batch, deadline = self._last_batch, time.monotonic() + LAST_BATCH_SECONDS
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and self._last_batch == batch
            and time.monotonic() < deadline
        ):
            self._look(query)
            time.sleep(0.02)
        query.stop()

    def _look(self, query: StreamingQuery) -> None:
        if not query.isActive:
            raise self._failure("the query ended", query_failure(query._jsq))
        self._health.beat()
        if self._location.path is not None:
            self._health.check("disk", disk_trouble(self._location.path))
        self._health.check("batch", self._long_batch(query))
        for report in _reports(query, self._last_batch):
            self._last_batch, self._free_at = report["batchId"], time.monotonic()
            self._metrics.observe(
                "tamis_joiner_batch_seconds", report["durationMs"]["triggerExecution"] / 1000
            )
            self.read_from = offsets_of(report["sources"], "startOffset")
            read = records_between(self.read_from, offsets_of(report["sources"], "endOffset"))
            self._metrics.inc("tamis_joiner_rows_total", read)
            self._health.ready()
            if not self._is_planned:
                self._is_planned = True
                self._planned()

    def _long_batch(self, query: StreamingQuery) -> str | None:
        """The problem of a batch that has run for long; None if there is none."""
        now, status = time.monotonic(), query.status
        if not (status["isTriggerActive"] and status["isDataAvailable"]):
            self._free_at = now
            return None
        seconds = now - self._free_at
        if seconds < LONG_BATCH_SECONDS:
            return None
        return f"a batch has not ended for {seconds:.0f} s; restart the joiner if the log shows no reason"

    def _failure(self, what: str, causes: list[str]) -> TamisError:
        """The error with which the joiner ends: the damage of the checkpoint if there is any, else the
        causes.
        """
        log.error("query failed", causes=causes)
        if (refused := from_java("\n".join(causes), self._cluster)) is not None:
            return refused
        for text, error in ((_REFUSED, RefusedError), (_DENIED, NotAuthorizedError)):
            if ours := [cause.partition(text)[2] for cause in causes if text in cause]:
                return error(ours[-1])
        reason = ", caused by ".join(causes) or "without a reason"
        if SLOW_WORKER in reason:
            return UnavailableError(f"{what}: {reason}", hint="give the joiner more CPU")
        if GONE_WORKER in reason:
            gone = f"{what}: the process of a Python worker was killed"
            return UnavailableError(gone, hint=KILLED_HINT)
        if _NO_FILES in reason:
            # Spark says that a file of the checkpoint doesn't exist, and advises to clear the checkpoint.
            return UnavailableError(
                f"{what}: {_NO_FILES}",
                hint="raise the limit (ulimit -n, LimitNOFILE), and start the joiner again: it continues "
                "where it ended",
            )
        if self._location.path is None:
            return UnavailableError(f"{what}: {reason}", hint=_REMOTE_HINT)
        checkpoint = Checkpoint(self._location.path / "query")
        if damages := checkpoint.damage():
            return checkpoint.refusal(damages)
        hint = checkpoint.hint_without_damage()
        if _NO_SPACE in reason and (full := self._full_disk()):
            hint = f"{full}; {hint}"
        return UnavailableError(f"{what}: {reason}", hint=hint)

    def _full_disk(self) -> str | None:
        """Name and free room of a full disk: that of the checkpoint, or one of Spark's temporary files."""
        temporary = os.environ.get("SPARK_LOCAL_DIRS") or "/tmp"  # Spark's and Java's default, not TMPDIR
        for path in (self._location.path, *map(Path, temporary.split(","))):
            if path is not None and (full := disk_trouble(path, _LARGE_FILE)):
                return full
        return None


def _reports(query: StreamingQuery, after: int) -> list[dict[str, Any]]:
    """Spark's reports on the batches above `after`, in order.

    They are read as JSON from the JVM: PySpark's own `recentProgress` would ask it for each number of each
    report, which takes about a thousand calls. JSON is made of new reports only, since each takes the JVM
    some milliseconds.
    """
    jvm: Any = query._jsq
    found = []
    for report in reversed(jvm.recentProgress()):
        if report.batchId() <= after:
            break
        found.append(json.loads(report.json()))
    return [report for report in reversed(found) if "addBatch" in report["durationMs"]]
