"""Spark queries beside which the latency of alarms is measured: a copy of two topics, and Spark's own join.

The benchmark of the latency starts and stops this program: python -m benchmarks.spark_latency COPY|JOIN
BOOTSTRAP CHECKPOINT AIR SURFACE OUT
"""

from __future__ import annotations

import signal
import sys
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.kafka import PARTITIONS
from benchmarks.spark_join import MASTER, MEMORY, run, tuples
from tamis.settings import KafkaSettings
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import session

COPY, JOIN = "copy", "join"
# More records than arrive within any batch.
_BATCH = 100_000
# The alert's conditions: benchmarks.latency.ALERT in Spark's words.
_CONDITION = """
a.station = s.station AND s.ts >= a.ts - INTERVAL 2 SECONDS AND s.ts <= a.ts + INTERVAL 2 SECONDS
AND a.temp - s.temp > 3.6
"""
_ALARM = "to_json(named_struct('ts', unix_micros(greatest(a.ts, s.ts)), 'station', a.station))"


def copied(spark: SparkSession, kafka: KafkaSettings, topics: tuple[str, str]) -> DataFrame:
    """The records of both topics, unchanged."""
    reader = (
        spark.readStream.format("kafka")
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
    )
    for name, value in kafka.java_config().items():
        reader = reader.option(f"kafka.{name}", value)
    return reader.load().select("key", "value")


def joined(spark: SparkSession, kafka: KafkaSettings, topics: tuple[str, str]) -> DataFrame:
    """The combinations for which the alert raises an alarm, with the event time of the later tuple."""
    air, surface = (tuples(spark, kafka, topic, _BATCH) for topic in topics)
    return (
        air.alias("a")
        .join(surface.alias("s"), F.expr(_CONDITION))
        .select(F.to_json(F.array("a.station")).alias("key"), F.expr(_ALARM).alias("value"))
    )


def main(query: str, bootstrap: str, checkpoint: str, topics: tuple[str, str], out: str) -> None:
    """Run it until SIGTERM; `topics`: of air and of surface."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    kafka = KafkaSettings(bootstrap=bootstrap)
    spark = session.session(JoinerSettings(master=MASTER, memory=MEMORY), java_options="")
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    records = (copied if query == COPY else joined)(spark, kafka, topics)
    run(records, kafka, checkpoint, out, stopping)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], (sys.argv[4], sys.argv[5]), sys.argv[6])
