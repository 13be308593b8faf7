"""Spark's source of the joiner's query: rows that say which offsets of Kafka a batch reads, not records.

A row goes to the stateful processor of its group, which reads the records itself (`reading.range_reader`). So
the JVM handles a few rows a batch. Spark's own Kafka source would take each record through its rows, through
Arrow, and through the shuffle.

The rows of a batch are made together with its end, in the process beside the driver, and Spark keeps them as
a block. So no Python worker has to make them. Only a batch that was begun before a restart has no such block.

The options are those of a Kafka client with the prefix `kafka.`, `pattern` of the topics' names, `most`
records of a batch, and `groups`, the group number of each partition as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from tamis.errors import RefusedError, UnavailableError
from tamis_joiner.reading.offsets import LatestOffsets, by_partition, encode, limited, ranges

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

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """The reader of a query."""
        return OffsetsReader(self.options)


class OffsetsReader(SimpleDataSourceStreamReader):
    """Spark calls it in a Python process beside the driver, and `readBetweenOffsets` in a worker."""

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

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[int, str]], dict[str, Any]]:
        """The rows of the next batch, and its end. While Kafka doesn't answer there are none, the end is
        `start`, and Spark asks again. Raises RefusedError if a topic has more partitions than there are
        groups.
        """
        try:
            end, begin = self._kafka.latest(start)
        except UnavailableError:
            # The probe of Kafka reports it.
            time.sleep(PAUSE_SECONDS)
            return iter(()), start
        end = limited(begin, end, self._most)
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[int, str]]:
        """The rows of a batch, one for each group that has records. Raises RefusedError, as `read`."""
        found = []
        for partition, some in by_partition(ranges(start, end)):
            if partition >= len(self._groups):
                raise RefusedError(
                    f"topic {some[0].topic} has more than the fleet's {len(self._groups)} partitions; "
                    "give it the fleet's count"
                )
            found.append((self._groups[partition], encode(some)))
        # Spark copies this iterator, which a generator doesn't allow.
        return iter(found)


def _patiently(ask: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
