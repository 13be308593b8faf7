"""First Python worker of Spark, started while Spark plans the query.

The daemon of the workers imports their modules for two seconds. Without this it would do so in the first
batch, after the planning.
"""

from __future__ import annotations

import threading

from pyspark.sql import SparkSession

from tamis.telemetry import get_logger

log = get_logger("joiner")


def start_first_worker(spark: SparkSession) -> None:
    """Have a worker do nothing, in a thread. The first batch finds it idle, and its daemon ready."""
    threading.Thread(target=_run, args=(spark,), name="first-worker", daemon=True).start()


def _run(spark: SparkSession) -> None:
    try:
        spark.sparkContext.parallelize([0], 1).foreach(_nothing)
    except Exception as error:
        # Errors of a Spark that is stopped meanwhile have no common class. Otherwise the query starts workers
        # itself, and reports if they are too slow.
        log.info("no Python worker before the first batch", reason=str(error).partition("\n")[0])


def _nothing(_: int) -> None:
    """Work of the first worker: none."""
