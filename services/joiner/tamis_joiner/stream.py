"""The joiner's one Structured Streaming query: stream topics and plans in, alarms and frontiers out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tamis.fleet.jars import jars
from tamis.messaging import topics
from tamis.query.reach import Reach
from tamis.settings import KafkaSettings
from tamis_joiner.packing import PACKED, RECORD, pack
from tamis_joiner.placement import group_numbers
from tamis_joiner.processor import OUTPUT, GroupProcessor

QUERY = "tamis-joiner"

_MB = 1024 * 1024

# Each setting has a reason; the figures are measured (decision record 16).
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # State in RocksDB; each commit uploads a changelog, not a snapshot.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Latency is process forks: Hadoop's local file system runs `chmod` about twelve times a batch without
    # its native library; this one does it in Java.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # No timers and no watermark of Spark's: a batch without records has nothing to do.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # How often an idle query asks Kafka for new offsets: less costs CPU, more costs latency.
    "spark.sql.streaming.pollingDelay": "50ms",
    # The service looks at them several times a second.
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # What Spark remembers of jobs, tasks and plans for a page that is off, by default up to 100,000 tasks.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    # A batch's shuffle files go with it, not when the JVM next collects what is old.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # Batches to go back to; a retry needs the last one.
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Spark shows a query's options when it fails, and knows neither JAAS nor a private key in PEM as secrets.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore",
    # Tasks are as short as the wait for a "better" place would be.
    "spark.locality.wait": "0",
    # Python workers are forked with all that they need, and don't look at it after each task.
    "spark.python.daemon.module": "tamis_joiner.daemon",
}

# Without Java's second compiler, which costs more in the first minutes than it saves: the joins are Python's
# columns. On a loaded machine Spark was there after 12 s, not 34.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
# Log4j's events as JSON, by a file that Spark carries; its own setting for that doesn't count in PySpark.
_JSON_LOGS = "-Dlog4j2.configurationFile=classpath:org/apache/spark/log4j2-json-layout.properties"
# Spark starts its JVM by another one, which lives for half a second.
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(
    master: str, memory: str, java_options: str = JAVA_OPTIONS, stderr: int | None = None
) -> SparkSession:
    """Start Spark in this process. `memory` is the driver's heap, which can't change once its JVM runs;
    `stderr` a file descriptor for what that writes of itself, with events as JSON.
    """
    # Only a local master keeps everything on this machine; a cluster's executors must reach the driver.
    local = master.startswith("local")
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LAUNCHER_OPTS"] = _LAUNCHER_OPTIONS
    settings = dict(_SETTINGS)
    if not local:
        del settings["spark.driver.host"], settings["spark.driver.bindAddress"]
    if stderr is not None:
        java_options = f"{java_options} {_JSON_LOGS}".strip()
    if java_options:
        settings |= {f"spark.{process}.extraJavaOptions": java_options for process in ("driver", "executor")}
    # Not `spark.jars`: Spark uses its file system to fetch those, and that is among them.
    classpath = os.pathsep.join(str(jar) for jar in jars("spark"))
    settings |= {f"spark.{process}.extraClassPath": classpath for process in ("driver", "executor")}
    settings |= {"spark.app.name": QUERY, "spark.master": master, "spark.driver.memory": memory}
    if stderr is not None:
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        # Only so can its JVM be given anything but this process' own standard error.
        gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def records(spark: SparkSession, kafka: KafkaSettings, partitions: int, batch: int) -> DataFrame:
    """All stream topics and the plans, with the group of each record."""
    reader = (
        spark.readStream.format("kafka")
        .option("subscribePattern", topics.JOINER_PATTERN)
        .option("startingOffsets", "earliest")
        # A topic that is deleted must not end the query; lost records have a metric of our own (observer.py).
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", str(batch))
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.poll.records", "5000")
        .option("kafka.max.partition.fetch.bytes", str(2 * _MB))
    )
    for name, value in kafka.java_config().items():
        reader = reader.option(f"kafka.{name}", value)
    numbers = F.array(*(F.lit(number) for number in group_numbers(partitions)))
    group = F.when(F.col("partition") < partitions, F.get(numbers, F.col("partition"))).otherwise(
        F.raise_error(
            F.concat(
                F.lit("topic "),
                F.col("topic"),
                F.lit(f" has more than the fleet's {partitions} partitions; give it the fleet's count"),
            )
        )
    )
    return reader.load().select(
        group.cast("int").alias("group"),
        *(F.unix_micros("timestamp").alias(name) if name == "arrived" else F.col(name) for name in RECORD),
    )


def start(
    spark: SparkSession, kafka: KafkaSettings, partitions: int, checkpoint: Path, *, batch: int, reach: Reach
) -> StreamingQuery:
    """Start the query. `batch` caps the records of a batch; `checkpoint` holds offsets and state; `reach`:
    which files tables may name.
    """
    context = spark.sparkContext
    # Each topic partition that has records would be a task, which costs more than to read a few of them. A
    # cluster's executors may not be there yet when the query starts, so what they can do isn't asked for.
    local = str(context.master).startswith("local")
    tasks = min(partitions, context.defaultParallelism) if local else partitions
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    joined = (
        records(spark, kafka, partitions, batch)
        .coalesce(tasks)
        .mapInArrow(pack, PACKED)
        .groupBy("group")
        .transformWithState(
            statefulProcessor=GroupProcessor(group_numbers(partitions), reach),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
    )
    writer = joined.writeStream.format("kafka").queryName(QUERY).outputMode("append")
    for name, value in kafka.java_config().items():
        writer = writer.option(f"kafka.{name}", value)
    return (
        writer.option("kafka.acks", "all")
        .option("kafka.max.request.size", str(topics.MAX_RECORD_BYTES))
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="0 seconds")
        .start()
    )
