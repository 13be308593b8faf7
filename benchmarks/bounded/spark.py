"""Spark's own join of two streams without time, as a separate program.

python -m benchmarks.bounded.spark DIRECTORY CHECKPOINT reads DIRECTORY/bids and DIRECTORY/asks, a file of
each in every batch, and prints its figures as JSON.
"""

from __future__ import annotations

import sys

import orjson
import psutil
from pyspark.sql import functions as F

from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark import session

# As much as the bounded evaluator has: one core.
MASTER = "local[1]"
MEMORY = "12g"  # of which it needs most for the state of ten million tuples


def main(directory: str, checkpoint: str) -> None:
    """Run it to the end of its files."""
    # All in the JVM, it is faster with both of Java's compilers than with the joiner's one.
    spark = session.session(JoinerSettings(master=MASTER, memory=MEMORY), java_options="")
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", 100_000)  # all of them
    sides = {
        name: spark.readStream.schema("item LONG, price LONG")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{directory}/{name}")
        .alias(name)
        for name in ("bids", "asks")
    }
    condition = F.expr("bids.item = asks.item AND asks.price <= bids.price")
    found = sides["bids"].join(sides["asks"], condition).select("bids.item").dropDuplicates(["item"])
    began = _jvm_seconds()
    query = (
        found.writeStream.format("memory")
        .queryName("found")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = _jvm_seconds() - began
    batches = [one for one in query.recentProgress if one["numInputRows"]]
    figures = {
        "rows": spark.sql("SELECT count(*) FROM found").collect()[0][0],
        "seconds": seconds,
        "tuples": sum(one["numInputRows"] for one in batches),
        "state": sum(one["numRowsTotal"] for one in batches[-1]["stateOperators"]),
    }
    spark.stop()
    sys.stdout.write(orjson.dumps(figures).decode() + "\n")


def _jvm_seconds() -> float:
    """CPU time of the JVM, which is this process's only child."""
    (jvm,) = psutil.Process().children()
    times = jvm.cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
