"""Data that sources, edges, registry and joiner exchange: readings, cuts, commits, plans, records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

INF = float("inf")
END = 10.0**6  # a source's last word: its watermark passes everything
FAR = 10.0**4  # the event time of a reading from the future


class Shard(NamedTuple):
    """`movable`: a Kafka partition, which any edge may own; otherwise it belongs to one edge for ever."""

    name: str
    movable: bool


class Reading(NamedTuple):
    """`number` counts all readings of the shard. `source` counts how often the source was made anew, and
    `offset` begins at 0 each time. `passes`: for each topic, whether its filter accepts the reading.
    """

    shard: Shard
    number: int
    source: int
    offset: int
    time: float
    group: int
    passes: tuple[bool, ...]


class Cut(NamedTuple):
    """All readings with offset < `c` and time < `W` (of every time if `full`) that no earlier cut sent. `c`
    is an offset of the shard's source number `source`.
    """

    n: int
    c: int
    W: float
    full: bool
    parts: int
    version: int
    source: int


class ChainCommit(NamedTuple):
    """A topic of partial aggregates. Its readings begin at the offset `since`; those before `done` are sent.
    `c` and `W` are of the last cut that Kafka has, and `cut` is the next one.
    """

    since: int
    done: int
    c: int
    W: float
    cut: Cut | None = None


class RawCommit(NamedTuple):
    """A topic of raw tuples, of which Kafka has those before the offset `done`."""

    done: int


class Commit(NamedTuple):
    """The durable state of a shard. Reading begins at `done`, the least of all topics. `n`: the greatest
    number of a cut or fence. `fence`: the number of the last fence. `form`: the newest plan that the run had.
    """

    done: int = 0
    n: int = 0
    fence: int = 0
    topics: tuple[tuple[int, ChainCommit | RawCommit], ...] = ()
    version: int = 0
    form: int = 0
    epoch: int = 0
    source: int = 0


class Query(NamedTuple):
    """A window aggregate over a topic: windows of `width` panes, which begin at offset + i * slide."""

    name: str
    topic: int
    version: int
    slide: int
    width: int
    offset: int

    def pane(self, time: float) -> int:
        """The number of the query's own pane."""
        return int((time - self.offset) // self.slide)

    def end(self, pane: int) -> int:
        """The end of the last window that has a pane."""
        return (pane + self.width) * self.slide + self.offset

    def ends(self, time: float) -> list[int]:
        """The ends of all windows that have a time."""
        last = self.end(self.pane(time))
        return [last - i * self.slide for i in range(self.width)]


class Plan(NamedTuple):
    """`queries`: with the version that replaces each. `epoch`: the version at which time began anew.
    `listed`: since which version. `partial`: the topics that have partial aggregates in place of raw tuples.
    """

    version: int
    queries: dict[Query, float]
    epoch: int
    listed: dict[Shard, int]
    partial: frozenset[int]

    def serves(self, topic: int, version: int) -> list[Query]:
        """The queries of a topic that count readings of a version. Ended queries aren't in newer plans."""
        return [
            query
            for query, until in self.queries.items()
            if query.topic == topic and query.version <= version < until
        ]


class Record(NamedTuple):
    """One of 'cut', 'raw', 'progress', 'final', 'fence'.

    `form`: the plan by whose queries it was built. `fence`: the number of the fence under which its run
    worked. `place`: (n, part) of a cut, (source, offset) of a raw tuple. `rows`: numbers of readings by
    beginning of the pane and group. `raw`: progress behind raw tuples, which only the judge reads. `bounds`:
    (source, c, W) of the cut before and of this one.
    """

    kind: str
    shard: Shard
    topic: int
    version: int
    form: int
    epoch: int
    fence: int = 0
    place: tuple[int, int] = (0, 0)
    rows: dict[tuple[float, int], list[int]] | None = None
    reading: Reading | None = None
    progress: float = -INF
    raw: bool = False
    bounds: tuple[tuple[int, int, float], tuple[int, int, float]] | None = None

    @property
    def readings(self) -> list[int]:
        """The numbers of the readings that it carries."""
        if self.reading is not None:
            return [self.reading.number]
        return [number for numbers in (self.rows or {}).values() for number in numbers]


def pane_start(time: float, queries: Iterable[Query]) -> float:
    """The pane of a time begins at the last boundary of any of the queries."""
    return max((time - q.offset) // q.slide * q.slide + q.offset for q in queries)
