"""The joiner as a process: Spark in it, telemetry beside it, a clean end on SIGTERM."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.errors import RefusedError, TamisError, UnavailableError
from tamis.messaging import topics
from tamis.messaging.compacted import CompactedReader
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.telemetry import Health, Metrics, TelemetryServer, configure_logs, get_logger
from tamis_joiner import stream
from tamis_joiner.java_logs import retold
from tamis_joiner.observer import Observer, lost, offsets_of
from tamis_joiner.settings import JoinerSettings

log = get_logger("joiner")

# A batch takes about a second; one that is under way may end before the query is stopped.
LAST_BATCH_SECONDS = 8.0
# The JVM ends by itself once its standard input is closed; after this it is killed.
JVM_SECONDS = 4.0
LOOK_SECONDS = 0.2
# Spark gives a Python worker ten seconds to start, which no setting changes: little where others want the
# machine, too.
SLOW_WORKER = "Python worker failed to connect back"
STARTS = 5
# Kafka is asked for its least offsets this often: deleting old records is no matter of seconds.
OFFSETS_SECONDS = 10.0


class Joiner:
    """One joiner. `run` blocks until `stopping` is set or the query fails."""

    def __init__(
        self, service: ServiceSettings, kafka: KafkaSettings, joiner: JoinerSettings, tables: TableSettings
    ) -> None:
        self._service, self._kafka, self._settings, self._tables = service, kafka, joiner, tables
        self._checkpoint = (joiner.checkpoint or service.data / "joiner").resolve()
        self._metrics = Metrics("joiner")
        # A batch that catches up on a long absence may take its time without being dead.
        self._health = Health(stale_after=300.0)
        self._stopping = threading.Event()
        self._seen_batch = -1
        self._read_from: dict[str, dict[int, int]] = {}

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stopping.set()

    def run(self) -> None:
        """Work until told to stop. Raises TamisError when the query can't go on."""
        configure_logs("joiner", self._service.log_level, self._service.log_format)
        server = TelemetryServer(
            self._metrics, self._health, self._service.telemetry_host, self._service.telemetry_port
        )
        server.start()
        log.info("telemetry", url=server.url)
        try:
            with ThreadPoolExecutor(1) as beside:
                # Spark starts while the registry makes the topics.
                waiting = beside.submit(self._partitions)
                try:
                    with self._spark() as spark:
                        self._work(spark, waiting.result())
                finally:
                    self._stopping.set()
        finally:
            server.stop()
        log.info("stopped")

    def _work(self, spark: SparkSession, partitions: int | None) -> None:
        if partitions is not None:
            self._claim_checkpoint(partitions)
            with self._observing(partitions):
                self.serve(lambda: self._start(spark, partitions))

    def _partitions(self) -> int | None:
        """The fleet's partition count, once the registry has made the topics; None when told to stop."""
        consumer = Consumer({**self._kafka.client_config(), "group.id": "tamis-joiner"})
        told = ""
        try:
            while not self._stopping.is_set():
                self._health.beat()
                try:
                    found = consumer.list_topics(topics.PLANS, timeout=5.0).topics[topics.PLANS]
                    if found.error is None:
                        self._health.not_ready("Spark is starting")
                        return len(found.partitions)
                    why = f"there is no topic {topics.PLANS} yet; the registry makes it"
                except KafkaException as error:
                    why = f"Kafka at {self._kafka.bootstrap} is away: {error.args[0].str()}"
                if why != told:
                    log.warning("waiting", reason=why)
                    told = why
                self._health.not_ready(why)
                self._stopping.wait(0.5)
        finally:
            consumer.close()
        return None

    def _claim_checkpoint(self, partitions: int) -> None:
        """Spark takes the count of its tasks from a checkpoint, without a word: a fleet of another partition
        count must not start on it.
        """
        self._checkpoint.mkdir(parents=True, exist_ok=True)
        mark = self._checkpoint / "tamis-joiner.json"
        if not mark.exists():
            mark.write_text(json.dumps({"partitions": partitions}))
        known = json.loads(mark.read_text())["partitions"]
        if known != partitions:
            raise RefusedError(
                f"the checkpoint is of a fleet with {known} partitions; {topics.PLANS} has {partitions}",
                where=str(self._checkpoint),
                hint="choose another checkpoint directory, or the Kafka that it belongs to",
            )

    @contextmanager
    def _spark(self) -> Iterator[SparkSession]:
        log.info("starting Spark", master=self._settings.master)
        with retold() as stderr:
            try:
                spark = stream.session(self._settings.master, self._settings.memory, stderr=stderr)
            except Exception as error:
                # Py4J's and PySpark's errors have nothing in common; of Java's only its own words matter.
                what = str(getattr(error, "java_exception", error)).partition("\n")[0]
                hint = "look at what it said before, and at TAMIS_JOINER_MASTER and TAMIS_JOINER_MEMORY"
                raise UnavailableError(f"Spark doesn't start: {what}", hint=hint) from error
            gateway: Any = spark.sparkContext._gateway
            try:
                yield spark
            finally:
                spark.stop()
                # What is left of the JVM ends when its standard input does; so do its Python workers.
                process = gateway.proc
                gateway.shutdown()
                process.stdin.close()
                try:
                    process.wait(JVM_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _start(self, spark: SparkSession, partitions: int) -> StreamingQuery:
        return stream.start(
            spark,
            self._kafka,
            partitions,
            self._checkpoint / "query",
            batch=self._settings.batch,
            reach=self._tables.joiner,
        )

    # ---- the query

    def serve(self, start: Callable[[], StreamingQuery]) -> None:
        """Follow the query until told to stop. One whose Python workers don't start in Spark's time is begun
        again, a few times. Raises UnavailableError when it can't go on.
        """
        failed = 0
        while True:
            batch = self._seen_batch
            try:
                return self._follow(start())
            except UnavailableError as error:
                failed = 1 if self._seen_batch > batch else failed + 1
                if SLOW_WORKER not in error.what or failed == STARTS:
                    raise
                log.warning("a Python worker was too slow to start: beginning the query again", failed=failed)

    def _follow(self, query: StreamingQuery) -> None:
        self._health.not_ready("the first batch is under way")
        while not self._stopping.wait(LOOK_SECONDS):
            self._look(query)
        batch, deadline = self._seen_batch, time.monotonic() + LAST_BATCH_SECONDS
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and self._seen_batch == batch
            and time.monotonic() < deadline
        ):
            self._look(query)
            time.sleep(0.02)
        query.stop()

    def _look(self, query: StreamingQuery) -> None:
        if not query.isActive:
            error = query.exception()
            raise UnavailableError(
                f"the query ended: {_reason(error)}", hint="the checkpoint is whole: start the joiner again"
            )
        self._health.beat()
        for report in _reports(query, self._seen_batch):
            self._seen_batch = report["batchId"]
            self._metrics.inc("tamis_joiner_rows_total", report["numInputRows"])
            self._metrics.observe(
                "tamis_joiner_batch_seconds", report["durationMs"]["triggerExecution"] / 1000
            )
            self._read_from = offsets_of(report["sources"], "startOffset")
            self._health.ready()

    # ---- beside the query

    @contextmanager
    def _observing(self, partitions: int) -> Iterator[None]:
        ending = threading.Event()
        observer = Observer(self._metrics)

        def work() -> None:
            while not ending.is_set():
                try:
                    self._observe(observer, ending, partitions)
                except (TamisError, KafkaException) as error:
                    log.warning("can't observe", reason=str(error))
                    ending.wait(2.0)

        thread = threading.Thread(target=work, name="observer", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join(timeout=3.0)

    def _observe(self, observer: Observer, ending: threading.Event, partitions: int) -> None:
        counted: dict[tuple[str, int], int] = {}
        looked = time.monotonic()
        with CompactedReader(self._kafka.client_config(), (topics.FRONTIERS, topics.PLANS)) as reader:
            records = reader.snapshot()
            while not ending.is_set():
                for record in records:
                    if record.value is None:
                        continue
                    if record.topic == topics.FRONTIERS:
                        observer.frontier(record.value)
                    elif (plan := observer.plan(record.value)) and plan.partitions != partitions:
                        log.error("plan refused", its_partitions=plan.partitions, partitions=partitions)
                        self._health.not_ready(
                            f"plan {plan.version} is for {plan.partitions} partitions, not {partitions}"
                        )
                observer.show(time.time())
                if time.monotonic() - looked > OFFSETS_SECONDS:
                    looked = time.monotonic()
                    self._count_lost(counted)
                records = iter(reader.poll(0.5))

    def _count_lost(self, counted: dict[tuple[str, int], int]) -> None:
        """Count records that Kafka deleted unread; `counted` is up to which offset that was done."""
        read_from = self._read_from
        least = _least_offsets(self._kafka, read_from)
        for (topic, partition), number in lost(read_from, least).items():
            offset = read_from[topic][partition]
            fresh = offset + number - max(offset, counted.get((topic, partition), 0))
            counted[topic, partition] = offset + number
            if fresh > 0:
                log.error("records were deleted unread", topic=topic, partition=partition, records=fresh)
                self._metrics.inc("tamis_joiner_lost_records_total", fresh)


def _reports(query: StreamingQuery, seen: int) -> list[dict[str, Any]]:
    """Spark's reports on the batches after `seen`, in order.

    As JSON from the JVM: `recentProgress` would ask it for every number of every report, some thousand calls.
    """
    jvm: Any = query._jsq
    last = jvm.lastProgress()
    if last is None or json.loads(last.json())["batchId"] <= seen:
        return []
    found = [json.loads(report.json()) for report in jvm.recentProgress()]
    return [r for r in found if r["batchId"] > seen and "addBatch" in r["durationMs"]]


def _least_offsets(kafka: KafkaSettings, of: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
    least: dict[str, dict[int, int]] = {}
    consumer = Consumer({**kafka.client_config(), "group.id": "tamis-joiner"})
    try:
        for topic, partitions in of.items():
            for partition in partitions:
                # A topic that was deleted meanwhile has no offsets, and nothing to lose.
                with suppress(KafkaException):
                    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=5.0)
                    least.setdefault(topic, {})[partition] = low
    finally:
        consumer.close()
    return least


def _reason(error: StreamingQueryException | None) -> str:
    if error is None:
        return "without a reason"
    # The lines behind the first are a trace of the JVM; the log has it.
    log.error("query failed", error=str(error))
    return str(error).splitlines()[0]
