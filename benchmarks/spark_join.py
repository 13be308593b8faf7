"""Spark's own stream-stream join of the joiner's topics, for comparison.

The benchmark of the joiner starts and stops this program: python -m benchmarks.spark_join BOOTSTRAP
CHECKPOINT BATCH AIR SURFACE ALARMS
"""

from __future__ import annotations

import signal
import sys
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.kafka import PARTITIONS
from tamis.errors import UnavailableError
from tamis.settings import KafkaSettings
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import session

# As the joiner is given them.
MASTER, MEMORY = "local[2]", "2g"

_SCHEMA = "station STRING, ts BIGINT, temp DOUBLE, rh DOUBLE"

# The alert's conditions: benchmarks.joiner.SQL in Spark's words.
_CONDITION = """
a.station = s.station AND s.ts >= a.ts - INTERVAL 5 SECONDS AND s.ts <= a.ts + INTERVAL 5 SECONDS
AND a.dew_point - s.temp > 0.5
"""
_DEW_POINT = (
    "243.04 * (ln(rh / 100) + 17.625 * temp / (243.04 + temp)) "
    "/ (17.625 - ln(rh / 100) - 17.625 * temp / (243.04 + temp))"
)
_ALARM = """
to_json(named_struct('alert', 'condensation', 'key', array(a.station),
  'event_time', unix_micros(greatest(a.ts, s.ts)),
  'tuples', named_struct('a', named_struct('station', a.station, 'ts', unix_micros(a.ts), 'temp', a.temp,
    'rh', a.rh), 's', named_struct('station', s.station, 'ts', unix_micros(s.ts), 'temp', s.temp))))
"""


def tuples(spark: SparkSession, kafka: KafkaSettings, topic: str, batch: int) -> DataFrame:
    """A topic's tuples, with the joiner's settings for Kafka, and the watermark of their stream."""
    reader = (
        spark.readStream.format("kafka")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        # Both topics take half of what the joiner may read in a batch.
        .option("maxOffsetsPerTrigger", str(batch // 2))
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.poll.records", "5000")
        .option("kafka.max.partition.fetch.bytes", str(2 * 2**20))
    )
    for name, value in kafka.java_config().items():
        reader = reader.option(f"kafka.{name}", value)
    return (
        reader.load()
        .select(F.from_json(F.col("value").cast("string"), _SCHEMA).alias("tuple"))
        .select("tuple.*")
        # Progress records carry no time.
        .where("ts IS NOT NULL")
        .withColumn("ts", F.timestamp_micros("ts"))
        .withColumn("dew_point", F.expr(_DEW_POINT))
        .withWatermark("ts", "2 seconds")
    )


def main(bootstrap: str, checkpoint: str, batch: int, topics: tuple[str, str], alarms: str) -> None:
    """Run it until SIGTERM; `topics`: of air and of surface."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    kafka = KafkaSettings(bootstrap=bootstrap)
    # All in the JVM, it is faster with both of Java's compilers than with the joiner's one.
    spark = session.session(JoinerSettings(master=MASTER, memory=MEMORY), java_options="")
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    joined = (
        tuples(spark, kafka, topics[0], batch)
        .alias("a")
        .join(tuples(spark, kafka, topics[1], batch).alias("s"), F.expr(_CONDITION))
        .select(F.to_json(F.array("a.station")).alias("key"), F.expr(_ALARM).alias("value"))
    )
    run(joined, kafka, checkpoint, alarms, stopping)
    spark.stop()


def run(
    records: DataFrame, kafka: KafkaSettings, checkpoint: str, topic: str, stopping: threading.Event
) -> None:
    """Write the records to a topic, as the joiner does, until `stopping` is set. Raises UnavailableError."""
    writer = records.writeStream.format("kafka").outputMode("append").option("topic", topic)
    for name, value in kafka.java_config().items():
        writer = writer.option(f"kafka.{name}", value)
    query = (
        writer.option("kafka.acks", "all")
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
    while not stopping.wait(0.2):
        if not query.isActive:
            raise UnavailableError(f"the query ended: {query.exception()}")
    query.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), (sys.argv[4], sys.argv[5]), sys.argv[6])
