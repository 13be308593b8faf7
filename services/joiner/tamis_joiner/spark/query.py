"""The joiner's one streaming query: stream topics and plans in, alarms and frontiers out."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.messaging import topics
from tamis.query.file_access import FileAccess
from tamis.settings import KafkaSettings
from tamis_joiner.spark.group_numbers import group_numbers
from tamis_joiner.spark.processes.planning_processes import skip_lookup
from tamis_joiner.spark.processor import OUTPUT, GroupProcessor
from tamis_joiner.spark.source import FORMAT, OffsetsSource, options

NAME = "tamis-joiner"
# Few rows pass through the JVM, since tasks read Kafka themselves. Compiling code for their plans costs more
# in each batch than it saves.
_NO_CODE_GENERATION = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def ranges(spark: SparkSession, kafka: KafkaSettings, partitions: int, batch: int) -> DataFrame:
    """Which offsets of all stream topics and of the plans each group reads, a row for each group. A batch has
    at most about `batch` records.
    """
    skip_lookup(spark)
    spark.dataSource.register(OffsetsSource)
    given = options(kafka.portable_config(), topics.JOINER_PATTERN, batch, group_numbers(partitions))
    return spark.readStream.format(FORMAT).options(**given).load()


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
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    for name, value in _NO_CODE_GENERATION.items():
        spark.conf.set(name, value)
    joined = (
        ranges(spark, kafka, partitions, batch)
        .groupBy("group")
        .transformWithState(
            statefulProcessor=GroupProcessor(group_numbers(partitions), kafka.portable_config(), file_access),
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
