"""Streams from files, and queries that stop after each file and go on from their checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

DELAY = "20 seconds"


@dataclass
class Source:
    """A directory of files, which is a stream."""

    directory: Path
    spark: SparkSession
    schema: Any

    def put(self, number: int, rows: pa.Table) -> None:
        """Add a file."""
        self.directory.mkdir(exist_ok=True)
        pq.write_table(rows, self.directory / f".{number}")
        (self.directory / f".{number}").rename(self.directory / f"{number:03}.parquet")

    def stream(self, delay: str = DELAY) -> DataFrame:
        """The stream of all files, with a watermark on `ts`."""
        read = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return read.parquet(str(self.directory)).withWatermark("ts", delay)


@dataclass
class Runs:
    """Runs of one query, each to the end of what its sources have; all have one checkpoint."""

    spark: SparkSession
    directory: Path
    metrics: list[Any] = field(default_factory=list)

    def run(self, query: DataFrame, name: str) -> None:
        """Run the query once, and note its observed metrics of this name."""
        writer = query.writeStream.format("parquet").option("path", str(self.directory / "out"))
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        batches = [one.observedMetrics[name] for one in running.recentProgress]
        self.metrics += batches

    def rows(self) -> DataFrame:
        """The rows that the query has written."""
        return self.spark.read.parquet(str(self.directory / "out"))


def split(rows: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    """The rows in parts that begin at 0 and at each cut."""
    edges = [0, *cuts, len(rows)]
    return [rows.slice(start, stop - start) for start, stop in pairwise(edges)]
