"""The joiner on a Spark cluster: two executors beside one, each on a core of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psutil
from tests.integration.joiner.spark_cluster import SparkCluster, running

from benchmarks.harness import Cell, Goal, Result, Say
from benchmarks.joiner import AIR, KEYS, SURFACE, records
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.spark_queries import Input, Joined, follow, joiner_process
from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import free_ports
from tamis.messaging.topics import ALARMS, DEAD_LETTERS, FRONTIERS, PLANS

NAME = "executors"
EXECUTORS = (1, 2)
MEMORY = "1g"


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    tuples, batch = (60_000, 20_000) if quick else (800_000, 100_000)
    found: dict[int, Joined] = {}
    with tempfile.TemporaryDirectory(prefix="tamis-bench-executors-") as temporary:
        directory = Path(temporary)
        with EmbeddedKafka(directory / "kafka") as broker:
            topics = Topics(broker.bootstrap)
            topics.create([PLANS, ALARMS, AIR, SURFACE])
            topics.create([FRONTIERS, DEAD_LETTERS], 1)
            say(f"filling the stream topics with {tuples:,} retained tuples")
            topics.fill(records(tuples))
            given = Input((AIR, SURFACE), topics.end(AIR) + topics.end(SURFACE), batch)
            for count in EXECUTORS:
                say(f"executors: {count}")
                found[count] = _joined(directory / str(count), broker.bootstrap, count, given, say)
            topics.close()
    one, two = (found[count] for count in EXECUTORS)
    rows: list[dict[str, Cell]] = [
        {
            "executors": count,
            "rows/s": round(joined.rows / joined.seconds),
            "rate / one executor": joined.rows / joined.seconds / (one.rows / one.seconds),
            "CPU µs a row": joined.cpu / joined.rows * 1e6,
            "rows": joined.rows,
            "batches": joined.batches,
        }
        for count, joined in found.items()
    ]
    return Result(
        NAME,
        "The joiner on a Spark cluster, by executors",
        tuple(rows[0]),
        rows,
        {"tuples": tuples, "keys": KEYS, "partitions": PARTITIONS, "batch": batch, "quick": quick},
        (
            "a standalone master and workers, each worker with an executor of one core; Kafka and the driver"
            " share the cores of the machine with them",
            "CPU: the driver, the workers, their executors and Python's workers",
        ),
        (
            Goal(
                "joiner, two executors: CPU a row",
                (two.cpu / two.rows) / (one.cpu / one.rows),
                "times that of one executor",
                most=1.2,
            ),
        ),
    )


def _joined(directory: Path, bootstrap: str, count: int, given: Input, say: Say) -> Joined:
    checkpoint = directory / "checkpoint"
    checkpoint.mkdir(parents=True)
    conf = directory / "spark.conf"
    # The checkpoint is on a file system that only Hadoop can read, as on a cluster of several machines.
    link = f"spark.hadoop.fs.viewfs.mounttable.tamis.link./joiner file://{checkpoint}\n"
    driver, blocks = free_ports(2)
    with running(SparkCluster(directory / "cluster", count, "1200m", bound=True)) as cluster:
        conf.write_text(cluster.properties.read_text() + link)
        settings = {
            "TAMIS_JOINER_MASTER": cluster.url,
            "TAMIS_JOINER_MEMORY": MEMORY,
            "TAMIS_JOINER_CHECKPOINT": "viewfs://tamis/joiner",
            "TAMIS_JOINER_SPARK_CONF": str(conf),
            "TAMIS_JOINER_DRIVER_HOST": "127.0.0.1",
            "TAMIS_JOINER_DRIVER_PORT": str(driver),
            "TAMIS_JOINER_BLOCK_MANAGER_PORT": str(blocks),
            "TAMIS_JOINER_EXECUTORS": str(count),
            "TAMIS_JOINER_EXECUTOR_CORES": "1",
            "TAMIS_JOINER_EXECUTOR_MEMORY": MEMORY,
        }
        with joiner_process(bootstrap, directory, given.batch, settings) as process:
            workers = [psutil.Process(worker.pid) for worker in cluster.workers.values()]
            return follow(checkpoint / "query", process, given, say, workers)
