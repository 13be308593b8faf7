"""The joiner's one streaming query: stream topics and plans in, alarms and frontiers out."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tamis.messaging import topics
from tamis.query.file_access import FileAccess
from tamis.settings import KafkaSettings
from tamis_joiner.spark.cluster import is_local
from tamis_joiner.spark.group_numbers import group_numbers
from tamis_joiner.spark.packing import PACKED, RECORD, pack
from tamis_joiner.spark.processor import OUTPUT, GroupProcessor

NAME = "tamis-joiner"

_MB = 1024 * 1024


def records(spark: SparkSession, kafka: KafkaSettings, partitions: int, batch: int) -> DataFrame:
    """The records of all stream topics and of the plans, each with its group number. A batch reads at most
    `batch` records.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("subscribePattern", topics.JOINER_PATTERN)
        .option("startingOffsets", "earliest")
        # The query continues when a topic is deleted. `monitoring.lost_records` counts lost records.
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
    spark: SparkSession,
    kafka: KafkaSettings,
    partitions: int,
    checkpoint: str,
    *,
    batch: int,
    file_access: FileAccess,
) -> StreamingQuery:
    """Start the query. `batch` limits the records of a batch; `checkpoint` is the URI of offsets and state;
    `file_access`: the files that tables may name.
    """
    context = spark.sparkContext
    # By default each topic partition with records is a task, which costs more than reading a few records. The
    # executors of a cluster may still be starting, so their number of cores isn't asked for.
    tasks = min(partitions, context.defaultParallelism) if is_local(str(context.master)) else partitions
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    joined = (
        records(spark, kafka, partitions, batch)
        .coalesce(tasks)
        .mapInArrow(pack, PACKED)
        .groupBy("group")
        .transformWithState(
            statefulProcessor=GroupProcessor(group_numbers(partitions), file_access),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="None",
        )
    )
    writer = joined.writeStream.format("kafka").queryName(NAME).outputMode("append")
    for name, value in kafka.java_config().items():
        writer = writer.option(f"kafka.{name}", value)
    return (
        writer.option("kafka.acks", "all")
        .option("kafka.max.request.size", str(topics.MAX_RECORD_BYTES))
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
