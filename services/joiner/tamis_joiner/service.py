"""The joiner as a process: starts and stops Spark, the query, the monitor and telemetry."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.messaging import topics
from tamis.messaging.connection import Cluster
from tamis.messaging.heartbeat_sender import LOOP_SECONDS, HeartbeatSender
from tamis.messaging.heartbeats import JOINER, Heartbeat
from tamis.messaging.probe import KafkaProbe, wait_for_topics
from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.settings.common import private_directory
from tamis.settings.known_variables import warn_of_unknown_variables
from tamis.telemetry import Health, Metrics, TelemetryServer, configure_logs, get_logger
from tamis_joiner.checkpoint.files import Checkpoint
from tamis_joiner.checkpoint.location import LocalFiles, Location
from tamis_joiner.checkpoint.start_checks import (
    KnownTopics,
    check_partition_count,
    has_frontiers,
    warn_if_emptied,
)
from tamis_joiner.monitoring.deletions import LostRecords, TopicIds
from tamis_joiner.monitoring.kafka_monitor import KafkaMonitor
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import query
from tamis_joiner.spark.hadoop_files import HadoopFiles
from tamis_joiner.spark.processes.before_first_batch import end_planning_processes, start_first_worker
from tamis_joiner.spark.query_runner import QueryRunner
from tamis_joiner.spark.session import running_spark

log = get_logger("joiner")

# A batch may take long after the joiner was away; its process is alive all the same.
STALE_SECONDS = 300.0


class Joiner:
    """One joiner. `run` blocks until `stop` is called or the query can't continue."""

    def __init__(
        self, service: ServiceSettings, kafka: KafkaSettings, joiner: JoinerSettings, tables: TableSettings
    ) -> None:
        self._service, self._kafka, self._settings, self._tables = service, kafka, joiner, tables
        self._checkpoint = (
            Location.parse(joiner.checkpoint) if joiner.checkpoint else Location.of(service.data / "joiner")
        )
        self._metrics = Metrics("joiner")
        self._health = Health(stale_after=STALE_SECONDS)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ask `run` to return."""
        self._stopping.set()

    def run(self) -> None:
        """Work until `stop` is called. Raises TamisError if the query can't continue."""
        configure_logs("joiner", self._service.log_level, self._service.log_format)
        warn_of_unknown_variables()
        if self._settings.checkpoint is None:
            self._service.data_directory()
        if self._checkpoint.path is not None:
            private_directory(self._checkpoint.path)
        host, port, names = (
            self._service.telemetry_host,
            self._service.telemetry_port,
            self._service.telemetry_names,
        )
        server = TelemetryServer(self._metrics, self._health, host, port, names)
        server.start()
        log.info("telemetry", url=server.url)
        try:
            self._check_logs()
            with ThreadPoolExecutor(1) as executor:
                # Spark takes seconds to start; meanwhile the registry may make the topics.
                waiting = executor.submit(self._wait_for_plans)
                try:
                    with running_spark(
                        self._settings,
                        local_files=self._checkpoint.path is not None,
                        java_properties=self._kafka.java_properties(),
                    ) as spark:
                        start_first_worker(spark)
                        self._work(spark, waiting.result())
                finally:
                    self._stopping.set()
        finally:
            server.stop()
        log.info("stopped")

    def _check_logs(self) -> None:
        """Raise RefusedError if the checkpoint is damaged. Only files of this machine are checked."""
        if self._checkpoint.path is not None:
            checkpoint = Checkpoint(self._checkpoint.path / "query")
            if damages := checkpoint.damage_of_logs():
                raise checkpoint.refusal(damages)

    def _wait_for_plans(self) -> int | None:
        partitions = wait_for_topics(self._kafka, [topics.PLANS], self._health, self._stopping, "joiner")
        if partitions is not None:
            self._health.not_ready("Spark is starting")
        return partitions

    def _work(self, spark: SparkSession, partitions: int | None) -> None:
        """Run the query. `partitions` is the fleet's partition count; None if the joiner was stopped
        before it was known.
        """
        if partitions is None:
            return
        path = self._checkpoint.path
        files = HadoopFiles(spark, self._checkpoint) if path is None else LocalFiles(path)
        check_partition_count(files, partitions)
        warn_if_emptied(files, lambda: has_frontiers(self._kafka))
        cluster = Cluster.of(self._kafka.client_config())
        known, ids = KnownTopics(files), TopicIds(self._kafka)
        runner = QueryRunner(
            self._checkpoint,
            cluster,
            self._metrics,
            self._health,
            self._stopping,
            recreated=lambda: known.recreated(ids.newest),
            planned=lambda: end_planning_processes(spark),
        )
        monitor = KafkaMonitor(
            self._kafka,
            self._metrics,
            self._health,
            partitions=partitions,
            read_from=lambda: runner.read_from,
        )
        probe = KafkaProbe(
            self._kafka, self._health, service="joiner", planned=lambda: monitor.topics, optional=True
        )
        heartbeats = HeartbeatSender(self._kafka, JOINER, lambda: self._heartbeat(monitor.lost))

        def start() -> StreamingQuery:
            if recreated := known.forget_recreated(ids.ask()):
                log.warning("topics were created again: they are read from their beginning", topics=recreated)
                monitor.lost.note()
            return query.start(
                spark,
                self._kafka,
                partitions,
                self._checkpoint.child("query").uri,
                batch=self._settings.batch,
                file_access=self._tables.joiner,
            )

        with monitor, probe, ids, heartbeats:
            runner.run(start)

    def _heartbeat(self, lost: LostRecords) -> Heartbeat | None:
        """A sign of life, unless the loop hangs that looks after the query: it waits for Spark's JVM."""
        if not self._health.loop_runs(LOOP_SECONDS):
            return None
        return Heartbeat.of_this_process(joiner=True, lost=lost.last)
