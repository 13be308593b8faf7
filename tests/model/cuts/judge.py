"""The oracle: which readings must be in which rows, from the durable commits and the readings alone.

(a) A query counts of each shard exactly the accepted readings from the position at which the first durable
    commit under its version (or a later one) begins, up to that of its successor.
(b) Each of these is at most once in a row, and in every window of its time that ends after what had been
    promised before it: W of the commits before its cut, or the progress before its raw tuple.
(c) Without `idle_timeout`, a reading that isn't behind the watermark of plain evaluation is in all its
    windows.
(d) A repeated batch gives equal rows.

Two exceptions: readings that a source has deleted before Kafka had them may be missing, unless a run had read
them and lives. And the raw tuples of a run that doesn't know of a change may count for the old query, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tests.model.cuts.fleet import Fleet
from tests.model.cuts.terms import FAR, INF, ChainCommit, Query, Reading, Shard


class Violation(NamedTuple):
    """CHANGED, DOUBLE, EXTRA: rows of a window. TAKEN, LOST, MISS: readings. STUCK: joiners that wait."""

    kind: str
    query: Query | None = None
    reading: Reading | None = None
    note: str = ""


class Judge:
    """Judges a schedule that has ended."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._rows = {key: readings for (_, key), readings in fleet.rows.items()}
        self._takes: Counter[tuple[Query, Shard, int]] = Counter()
        self._raw: set[tuple[Query, Shard, int]] = set()
        for joiner in fleet.joiners.values():
            for take, count in joiner.takes.items():
                self._takes[take[:3]] += count
                self._raw |= {take[:3]} if take.raw else set()
        self._until = {query: until for plan in fleet.plans for query, until in plan.queries.items()}
        self._epochs = {plan.version: plan.epoch for plan in fleet.plans}
        self._alive = fleet.runs()

    def violations(self) -> list[Violation]:
        found = [
            Violation("CHANGED", query, note=f"in the row of {end}, group {group}")
            for query, end, group in self._fleet.changed_rows
        ]
        found += self._wrong_rows()
        for shard in self._fleet.shards:
            on_time = {upgraded: self._on_time(shard, upgraded) for upgraded in (False, True)}
            for query in self._fleet.every_query:
                found += self._wrong_readings(shard, query, on_time[bool(self._epochs[query.version])])
        return found

    # ---- rows

    def _wrong_rows(self) -> Iterator[Violation]:
        """Readings that are twice in a row, or in a row that isn't theirs."""
        for (query, end, group), readings in self._rows.items():
            for (shard, number), times in readings.items():
                reading = self._fleet.sources[shard].sent[number]
                self._fleet.seen["counted"] += 1
                if times > 1:
                    yield Violation("DOUBLE", query, reading, f"in the row of {end}")
                mine = reading.group == group and reading.passes[query.topic]
                if not (mine and end in query.ends(reading.time)):
                    yield Violation("EXTRA", query, reading, f"in the row of {end}")

    # ---- readings

    def _wrong_readings(self, shard: Shard, query: Query, on_time: set[int]) -> Iterator[Violation]:
        """Readings that a query has counted too often, too seldom, or not in all rows."""
        fleet, dropped = self._fleet, query in self._fleet.dropped
        first, last = self._begin(shard, query, query.version), self._begin(shard, query, self._until[query])
        latest = FAR + (not self._epochs[query.version])
        for reading in fleet.sources[shard].sent:
            key = query, shard, reading.number
            want = reading.passes[query.topic] and reading.time < latest and first <= reading.number < last
            got = self._takes[key]
            unaware = got == 1 and key in self._raw and reading.number >= last
            if got > want and not (dropped and got == 1) and not unaware:
                yield Violation("TAKEN", query, reading, f"{got} times, {first} to {last}")
            if dropped or not want or self._excused(query, reading):
                continue
            if not got:
                yield Violation("LOST", query, reading, f"{first} to {last}")
                continue
            bound = self._bound(query, reading, on_time=reading.number in on_time)
            for end in query.ends(reading.time):
                fleet.seen["windows due" if end > bound else "windows not due"] += 1
                row = self._rows.get((query, end, reading.group), {})
                if end > bound and (shard, reading.number) not in row:
                    yield Violation("MISS", query, reading, f"in the row of {end}, due after {bound}")

    def _excused(self, query: Query, reading: Reading) -> bool:
        """The source had deleted it before Kafka had it, and no run that lives had it."""
        key = query.topic, reading.shard, reading.number
        sent = self._fleet.deleted.get(key)
        held = self._fleet.held.get(key) in self._alive
        in_time = any(query.version <= version < self._until[query] for version in sent or ())
        return sent is not None and not in_time and not held

    def _begin(self, shard: Shard, query: Query, version: float) -> float:
        """The number of the first reading under a version or a later one, in the query's topic."""
        numbers = [
            number
            for (topic, other, began), number in self._fleet.began.items()
            if topic == query.topic and other is shard and began >= version
        ]
        return min(numbers, default=INF)

    def _on_time(self, shard: Shard, upgraded: bool) -> set[int]:
        """The readings that plain evaluation, which reads each once, doesn't find behind its watermark."""
        reached, on_time = -INF, set()
        for reading in self._fleet.sources[shard].sent:
            if reading.time >= reached:
                on_time.add(reading.number)
            if not upgraded or reading.time < FAR:
                reached = max(reached, reading.time - self._fleet.delay)
        return on_time

    def _bound(self, query: Query, reading: Reading, *, on_time: bool) -> float:
        """Windows that end up to this time needn't have the reading."""
        fleet, shard = self._fleet, reading.shard
        place = query.topic, reading.group % fleet.partitions
        progress, raw = fleet.progress[place, shard], (query, shard, reading.number) in self._raw
        if fleet.idle_timeout is None and on_time:
            # A restart may read again for a new query what was followed by progress of an older one.
            former = [
                told
                for (version, after_raw), told in progress.items()
                if after_raw and version < query.version
            ]
            bound = max(former, default=-INF)
        elif raw:
            key = query.topic, shard, reading.number
            bound = min(
                told
                for (other, version), told in fleet.before_raw.items()
                if other == key and query.version <= version < self._until[query]
            )
        else:
            behind_raw = (told for (_, after_raw), told in progress.items() if after_raw)
            bound = max([self._promised(query, reading), *behind_raw])
        return max(bound, fleet.joiners[place].included.get(shard, -INF))

    def _promised(self, query: Query, reading: Reading) -> float:
        """W of the commits before the cut of a reading."""
        W, c, epoch = -INF, 0, self._epochs[query.version]
        for commit in self._fleet.history[reading.shard]:
            chain = dict(commit.topics).get(query.topic)
            if commit.epoch != epoch or not isinstance(chain, ChainCommit):
                continue
            W = max(W, chain.W)
            if chain.cut is None:
                continue
            cut, here = chain.cut, reading.source == chain.cut.source
            read = (reading.source, reading.offset) < (cut.source, cut.c)
            if read and (cut.full or reading.time < cut.W):
                late = reading.offset >= c
                return W if late else min(W, reading.time)
            W, c = max(W, cut.W), max(c, cut.c) if here else c
        return W
