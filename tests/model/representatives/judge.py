"""Rows that must have been given, and which may: a join of all readings in plain Python.

A query counts the readings of a shard from its activation there, at the latest: from the position that the
first durable commit under its version names. Readings before it may count that were read under its version or
a later one, up to the one that replaced it. After a loss of the joiner's state only those readings are due
that a shard counts from its first commit under a plan that tells edges of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.model.representatives.joiner import Definition, Row
from tests.model.representatives.office import Defined, Office
from tests.model.representatives.queries import streams_of
from tests.model.representatives.shard import Shard
from tests.oracle.bounded.representatives.random_queries import Join, Query


class Violation(NamedTuple):
    """MISS: a row was not given in time. EXTRA: a row of readings that don't count. STUCK: nothing moves."""

    kind: str
    note: str


class _Due:
    """The readings that are due for a query, joined so far."""

    def __init__(self, query: Query) -> None:
        self.join = Join(query)
        self.upto: dict[str, int] = {}
        self.missed: set[Row] = set()


class Judge:
    """`given`: the rows of each definition. `lost`: when the joiner last lost state, 0 if never."""

    def __init__(self, office: Office, shards: list[Shard]) -> None:
        self._office, self._shards = office, shards
        self.given: defaultdict[Definition, set[Row]] = defaultdict(set)
        self.lost = 0
        self.seen: Counter[str] = Counter()
        self._due: dict[tuple[Definition, int], _Due] = {}

    def in_time(self, arrived: Mapping[str, int]) -> Iterator[Violation]:
        """Rows that are missing though the joiner has taken all records. `arrived`: by shard, the offset up
        to which these have all decided readings.
        """
        for defined in self._office.current.values():
            definition = defined.alert, defined.version
            query = defined.asked.query
            due = self._due.setdefault((definition, self.lost), _Due(query))
            for shard in self._shards:
                if shard.stream not in streams_of(query) or shard.name not in arrived:
                    continue
                begin = self._begin(shard, defined)
                if begin is not None:
                    first, end = due.upto.get(shard.name, begin), arrived[shard.name]
                    for reading in shard.readings[first:end]:
                        due.join.add(shard.stream, reading)
                    due.upto[shard.name] = max(first, end)
            missing = due.join.given - self.given[definition] - due.missed
            due.missed |= missing
            self.seen["rows due"] += len(due.join.given)
            if missing:
                yield Violation("MISS", f"{definition}: {missing} {'after a loss' if self.lost else ''}")

    def _begin(self, shard: Shard, defined: Defined) -> int | None:
        """The offset from which on readings are due; None if the shard doesn't know the query yet."""
        begins = [offset for version, offset in shard.begun.items() if version >= defined.version]
        if not begins or not self.lost:
            return min(begins, default=None)
        told = [offset for version, offset in shard.begun.items() if self._tells(version, shard.stream)]
        return max(min(begins), min(told)) if told else None

    def _tells(self, version: int, stream: str) -> bool:
        """True if edges know under a plan of the last loss of state."""
        plan = self._office.plan_of(version)
        planned = None if plan is None else plan.stream(stream)
        since = None if planned is None else planned.representatives
        return since is not None and since >= self.lost

    def at_the_end(self) -> Iterator[Violation]:
        """Rows of readings that don't count, and rows of replaced queries that are missing."""
        for defined in self._office.every:
            definition = defined.alert, defined.version
            query, until = defined.asked.query, defined.until
            may, must = Join(query), Join(query)
            for shard in self._shards:
                begin = min((o for v, o in shard.begun.items() if v >= defined.version), default=None)
                for offset, reading in enumerate(shard.readings):
                    under = shard.versions[offset]
                    own = [v for v in under if v >= defined.version and (until is None or v < until)]
                    if own:
                        may.add(shard.stream, reading)
                    if own and len(own) == len(under) and begin is not None and offset >= begin:
                        must.add(shard.stream, reading)
            if extra := self.given[definition] - may.given:
                yield Violation("EXTRA", f"{definition}: {extra}")
            promised = not defined.ended and until is not None and not self.lost
            if promised and (missing := must.given - self.given[definition]):
                yield Violation("MISS", f"{definition}, replaced by {until}: {missing}")
