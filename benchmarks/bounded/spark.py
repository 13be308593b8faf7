"""Spark's own join of two streams without time, as anyone would write it: a program of its own.

python -m benchmarks.bounded.spark DIRECTORY CHECKPOINT: reads DIRECTORY/bids and DIRECTORY/asks, a file of
each in every batch, and prints its figures as JSON.
"""

from __future__ import annotations

import sys

import orjson
from pyspark.sql import functions as F

from tamis_joiner import stream

# As much as the bounded evaluator has: one core.
MASTER = "local[1]"
MEMORY = "12g"  # of which it needs most for the state of ten million tuples


def main(directory: str, checkpoint: str) -> None:
    """Run it to the end of its files."""
    # All in the JVM, it is faster with both of Java's compilers than with the joiner's one.
    spark = stream.session(MASTER, MEMORY, java_options="")
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    sides = {
        name: spark.readStream.schema("item LONG, price LONG")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{directory}/{name}")
        .alias(name)
        for name in ("bids", "asks")
    }
    condition = F.expr("bids.item = asks.item AND asks.price <= bids.price")
    found = sides["bids"].join(sides["asks"], condition).select("bids.item").dropDuplicates(["item"])
    machine = spark._jvm.java.lang.management.ManagementFactory.getOperatingSystemMXBean()  # type: ignore[union-attr]
    began = machine.getProcessCpuTime()
    query = (
        found.writeStream.format("memory")
        .queryName("found")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    ended = machine.getProcessCpuTime()
    batches = [one for one in query.recentProgress if one["numInputRows"]]
    figures = {
        "rows": spark.sql("SELECT count(*) FROM found").collect()[0][0],
        "seconds": (ended - began) / 1e9,
        "tuples": sum(one["numInputRows"] for one in batches),
        "state": sum(one["numRowsTotal"] for one in batches[-1]["stateOperators"]),
    }
    spark.stop()
    sys.stdout.write(orjson.dumps(figures).decode() + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
