"""End of a query: it is started again, or else it ends the joiner with a reason.

It is started again after slow Python workers, and when a topic was created again. The joiner says why it
ended and what to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tamis.errors import RefusedError, UnavailableError
from tamis.messaging.connection import Cluster, not_authorized
from tamis.telemetry import Health, Metrics
from tamis_joiner.checkpoint.location import Location
from tamis_joiner.spark import jvm_messages, query_runner
from tamis_joiner.spark.query_runner import SLOW_WORKER, QueryRunner

SLOW = f"Job aborted: {SLOW_WORKER}.\n=== Streaming Query ==="


class Java:
    """An exception of the JVM with its cause, or the Option of one that a query has."""

    def __init__(self, name: str, message: str | None, cause: Java | None = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> Java:
        return self

    def getName(self) -> str:
        return self.name

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> Java | None:
        return self.cause

    def exception(self) -> Java:
        return self

    def isDefined(self) -> bool:
        return bool(self.name)

    def get(self) -> Java:
        return self


class Query:
    """A query as the joiner sees it, that ended by an error or, without one, is told to stop at once."""

    status: dict[str, bool] = {"isTriggerActive": False}  # noqa: RUF012

    def __init__(self, stopping: threading.Event, error: str | None) -> None:
        self.isActive = error is None
        self._jsq = Java("org.apache.spark.SparkException" if error else "", error)
        if error is None:
            stopping.set()

    def stop(self) -> None:
        self.isActive = False


def served(*errors: str | None) -> int:
    """How many queries a joiner starts that end so, one after the other."""
    stopping = threading.Event()
    started: list[Query] = []
    ends: Iterator[str | None] = iter(errors)

    def start() -> Any:
        started.append(Query(stopping, next(ends)))
        return started[-1]

    runner(stopping).run(cast(Any, start))
    return len(started)


def runner(
    stopping: threading.Event,
    recreated: Callable[[], list[str]] = list,
    directory: Path = Path("/nonexistent"),
) -> QueryRunner:
    cluster, location = Cluster("127.0.0.1:9092"), Location.of(directory)
    return QueryRunner(location, cluster, Metrics("joiner"), Health(), stopping, recreated=recreated)


MANY = 12


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_runner, "PAUSE_SECONDS", 0.0)


def test_slow_workers_are_waited_for() -> None:
    assert served(None) == 1
    assert served(*[SLOW] * MANY, None) == MANY + 1


def test_a_right_is_waited_for() -> None:
    sink = "TopicAuthorizationException: Not authorized to access topics: [tamis.alarms]"
    error = not_authorized(Cluster("127.0.0.1:9092"), "no Read on topic tamis.stream.air.1")
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    reader = f"Job aborted.\nTraceback (most recent call last):\n  File x\n{name}: {error}\n"
    assert served(sink, reader, reader, None) == 4


@pytest.mark.parametrize("errors", [["no such topic"], [SLOW, "no such topic"]])
def test_other_ends_are_told(errors: list[str]) -> None:
    with pytest.raises(UnavailableError) as raised:
        served(*errors)
    why = "the query ended: SparkException: no such topic"
    assert str(raised.value) == f"{why}; start the joiner again: its checkpoint has no batch yet"


class Hanging:
    """A query whose batch never ends, while `busy`."""

    isActive = True
    busy = True

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": True, "isDataAvailable": self.busy}

    @property
    def _jsq(self) -> Hanging:
        return self

    def recentProgress(self) -> list[Any]:
        return []


def test_a_batch_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_runner, "LONG_BATCH_SECONDS", 0.0)
    health, query = Health(), Hanging()
    location, cluster = Location.of(Path("/nonexistent")), Cluster("127.0.0.1:9092")
    looking = QueryRunner(location, cluster, Metrics("joiner"), health, threading.Event(), recreated=list)
    looking._look(cast(Any, query))
    assert "batch: a batch has not ended for " in health.readiness()[1]
    query.busy = False  # without readings no batch runs
    looking._look(cast(Any, query))
    assert "batch" not in health.readiness()[1]


def test_a_killed_worker_is_named() -> None:
    crashed = "Python worker exited unexpectedly (crashed). Consider setting faulthandler.enabled"
    with pytest.raises(
        UnavailableError, match=r"a Python worker was killed; if the system's log says .* memory"
    ):
        served(crashed)


def test_a_limit_of_open_files_is_named() -> None:
    error = "state/0/4/163.changelog does not exist. Please clear the checkpoint: Too many open files"
    with pytest.raises(UnavailableError, match=r": Too many open files; raise the limit \(ulimit"):
        served(error)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system without any room")
def test_a_full_disk_is_named() -> None:
    stopping = threading.Event()
    query = Query(stopping, "No space left on device")
    with pytest.raises(UnavailableError) as raised:
        runner(stopping, directory=Path("/proc")).run(cast(Any, lambda: query))
    full = "/proc has 0 bytes left; make room on the disk"
    assert f"No space left on device; {full}; start the joiner again" in str(raised.value)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system without any room")
def test_a_full_disk_of_temporary_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_runner, "_LARGE_FILE", 1)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/proc")
    stopping = threading.Event()
    query = Query(stopping, "No space left on device")
    with pytest.raises(UnavailableError, match="; /proc has 0 bytes left; make room on the disk; start"):
        runner(stopping, directory=tmp_path).run(cast(Any, lambda: query))


class Running:
    """A query that runs until it is stopped, and has no reports."""

    status = Query.status

    def __init__(self) -> None:
        self.isActive, self._jsq = True, self

    def recentProgress(self) -> list[object]:
        return []

    def stop(self) -> None:
        self.isActive = False


def test_after_a_topic_was_created_again_the_query_is_started_again() -> None:
    stopping = threading.Event()
    started: list[Running] = []

    def start() -> Any:
        assert not any(query.isActive for query in started), "offsets may change only while no query runs"
        started.append(Running())
        if len(started) == 3:
            stopping.set()
        return started[-1]

    runner(stopping, lambda: ["tamis.plans"] if len(started) < 3 else []).run(cast(Any, start))
    assert len(started) == 3 and not started[-1].isActive


def test_who_is_told_to_stop_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_runner, "PAUSE_SECONDS", 1e9)
    monkeypatch.setattr(query_runner, "LONGEST_PAUSE_SECONDS", 1e9)
    stopping = threading.Event()

    def start() -> Any:
        query = Query(stopping, SLOW)
        threading.Timer(0.3, stopping.set).start()
        return query

    runner(stopping).run(cast(Any, start))


def test_what_a_worker_refuses_is_told_as_it_is() -> None:
    """Nothing is gained by starting again."""
    trace = 'Traceback (most recent call last):\n  File "x.py", line 3\n'
    refused = "state of format 9; this joiner reads 10; start with a new checkpoint"
    with pytest.raises(RefusedError) as raised:
        served(f"Job aborted: {trace}tamis.errors.RefusedError: {refused}\n")
    assert str(raised.value) == refused


def test_all_causes_of_a_failure_are_told_once() -> None:
    last = Java("java.io.EOFException", None)
    failed = Java(
        "org.apache.hadoop.fs.ChecksumException", "Checksum error: file:/c/3.changelog at 512", last
    )
    wrapped = Java(
        "org.apache.spark.SparkException", "[CANNOT_LOAD_STATE_STORE] An error occurred.\n", failed
    )
    again = Java("java.lang.RuntimeException", "[CANNOT_LOAD_STATE_STORE] An error occurred.", wrapped)
    query = Java("org.apache.spark.sql.streaming.StreamingQueryException", "[STREAM_FAILED] Query …", again)
    assert jvm_messages.query_failure(query) == [
        "RuntimeException: [CANNOT_LOAD_STATE_STORE] An error occurred.",
        "ChecksumException: Checksum error: file:/c/3.changelog at 512",
        "EOFException",
    ]


def test_of_a_python_worker_its_last_line_is_told() -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 3\nRefusedError: state of format 9\n'
    query = Java("org.apache.spark.api.python.PythonException", f"An exception was thrown: {trace}\n")
    assert jvm_messages.query_failure(query) == ["PythonException: RefusedError: state of format 9"]


def test_causes_that_close_upon_themselves_end() -> None:
    failed = Java("a.Error", "no room")
    failed.cause = Java("b.Error", "no disk", failed)
    assert jvm_messages.query_failure(failed) == ["Error: no room", "Error: no disk"]
