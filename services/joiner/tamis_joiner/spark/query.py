"""The joiner's one streaming query: stream topics and plans in, alarms and frontiers out."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tamis.declarations.file_access import FileAccess
from tamis.messaging import topics
from tamis.settings import KafkaSettings
from tamis_joiner.spark.processes.before_first_batch import skip_lookup
from tamis_joiner.spark.processor import OUTPUT, GroupProcessor
from tamis_joiner.spark.source import FORMAT, OffsetsSource, options

# Spark's seed for the hash of a row.
_SEED = 42
_WORD = 0xFFFFFFFF

NAME = "tamis-joiner"
# Few rows pass through the JVM, since tasks read Kafka themselves. Compiling code for their plans costs more
# in each batch than it saves.
_NO_CODE_GENERATION = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def murmur3(value: int) -> int:
    """Spark's hash of an INT column: Murmur3 (x86, 32 bits) of its four bytes, as a signed integer.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """
    mixed = (value & _WORD) * 0xCC9E2D51 & _WORD
    mixed = (mixed << 15 | mixed >> 17) & _WORD
    mixed = mixed * 0x1B873593 & _WORD
    result = _SEED ^ mixed
    result = (result << 13 | result >> 19) & _WORD
    result = (result * 5 + 0xE6546B64) & _WORD
    result ^= 4  # length
    result ^= result >> 16
    result = result * 0x85EBCA6B & _WORD
    result ^= result >> 13
    result = result * 0xC2B2AE35 & _WORD
    result ^= result >> 16
    return result - (1 << 32) if result >= 1 << 31 else result


def group_numbers(partitions: int) -> list[int]:
    """The least number for each partition that Spark's `pmod(hash(number), partitions)` puts in its task.

    Spark assigns groups to tasks by a hash of their number. With partition numbers as group numbers some
    tasks would have several groups and others none.

    >>> group_numbers(4), group_numbers(8)
    ([12, 6, 2, 0], [12, 6, 5, 1, 25, 15, 2, 0])
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(murmur3(number) % partitions, number)
        number += 1
    return [found[task] for task in range(partitions)]


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
