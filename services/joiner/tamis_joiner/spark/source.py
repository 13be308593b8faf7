"""Spark's source of the joiner's query: rows that say which offsets of Kafka a batch reads, not records.

A row goes to the stateful processor of its group, which reads the records itself (`reading.range_reader`). So
the JVM handles a few rows a batch. Spark's own Kafka source would take each record through its rows, through
Arrow, and through the shuffle.

The options are those of a Kafka client with the prefix `kafka.`, `pattern` of the topics' names, `most`
records of a batch, and `groups`, the group number of each partition as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from tamis.errors import RefusedError, UnavailableError
from tamis_joiner.reading.latest import LatestOffsets
from tamis_joiner.reading.offsets import Offsets, by_partition, encode, limited, ranges

FORMAT = "tamis-offsets"
SCHEMA = "group int, ranges string"

_PREFIX = "kafka."
# Kafka is asked for the beginnings of its topics for so long, before the first batch.
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 1.0

T = TypeVar("T")


def options(config: Mapping[str, str], pattern: str, most: int, groups: Sequence[int]) -> dict[str, str]:
    """The options of the source."""
    return {
        **{_PREFIX + name: value for name, value in config.items()},
        "pattern": pattern,
        "most": str(most),
        "groups": json.dumps(list(groups)),
    }


class OffsetsSource(DataSource):
    """The source, as Spark registers it."""

    @classmethod
    def name(cls) -> str:
        """The format by which a query names the source."""
        return FORMAT

    def schema(self) -> str:
        """The columns of its rows."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a query."""
        return OffsetsReader(self.options)


class OffsetsReader(DataSourceStreamReader):
    """Spark calls it in a Python process beside the driver, and `read` in a worker."""

    def __init__(self, given: Mapping[str, str]) -> None:
        names = [name for name in given if name.startswith(_PREFIX)]
        self._config = {name.removeprefix(_PREFIX): given[name] for name in names}
        self._pattern, self._most = given["pattern"], int(given["most"])
        self._groups: list[int] = json.loads(given["groups"])
        self._asked: LatestOffsets | None = None

    @property
    def _kafka(self) -> LatestOffsets:
        # Made at the first use: Spark sends this object to the workers, which ask nothing.
        if self._asked is None:
            self._asked = LatestOffsets(self._config, self._pattern)
        return self._asked

    def initialOffset(self) -> dict[str, Any]:
        """The beginning of each topic. Raises UnavailableError if Kafka doesn't answer."""
        return _patiently(self._kafka.earliest)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The most records of a batch."""
        return ReadMaxRows(self._most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch. While Kafka doesn't answer it is `start`, and Spark asks again."""
        try:
            end, begin = self._kafka.latest(start)
        except UnavailableError:
            # The probe of Kafka reports it.
            time.sleep(PAUSE_SECONDS)
            return start
        return limited(begin, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One input of one task, with the rows of the batch; none if it has no records. Raises RefusedError
        if a topic has more partitions than there are groups.
        """
        return [InputPartition(rows)] if (rows := self._rows(start, end)) else []

    def _rows(self, start: Offsets, end: Offsets) -> list[tuple[int, str]]:
        found = []
        for partition, read in by_partition(ranges(start, end)):
            if partition >= len(self._groups):
                raise RefusedError(
                    f"topic {read[0].topic} has more than the fleet's {len(self._groups)} partitions; "
                    "give it the fleet's count"
                )
            found.append((self._groups[partition], encode(read)))
        return found

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        """The rows of an input."""
        yield from partition.value


def _patiently(ask: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
