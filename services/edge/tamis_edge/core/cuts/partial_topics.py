"""The topics of partial aggregates of one shard, with a chain of cuts for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis.messaging.topics import number_of
from tamis.operators.cuts.chain import START_OF_TIME, CutChain, Drawing
from tamis.operators.cuts.cut import CutsCommit
from tamis.operators.time_join.filter_dispatch import Bools
from tamis.plan.model import PaneGrid, Plan, StreamPlan, TopicPlan
from tamis_edge.core.commit import Commit
from tamis_edge.core.cuts.fence import Fence
from tamis_edge.core.cuts.records import CutOrigin, cut_records
from tamis_edge.core.rows import Batch


class PartialTopics:
    """Without any topic of partial aggregates, it does nothing.

    A topic may have carried tuples of its queries before, also of an earlier owner of the shard, who may have
    read further than this run. So the chain of such a topic begins only behind a fence, when all of this
    run's tuples are safe. New queries have no such tuples: their chain begins with the plan that brings them.

    `form`: the newest plan that is known. `watermark`: that of all readings, also of those that only the run
    before has read. `full`: all readings shall be sent.
    """

    def __init__(self, stream: str, commit: Commit) -> None:
        self._stream = stream
        self._resumed = {} if commit.cuts is None else dict(commit.cuts.chains)
        self._number = 0 if commit.cuts is None else commit.cuts.number
        self._chains: dict[str, CutChain] = {}
        self._before_chains: dict[str, TopicPlan] = {}  # topics that carry tuples until their chain begins
        self._version = commit.version
        self.form = 0
        self._partitions = 1
        # The watermark of the commit holds when all that it had read is read again.
        self._high, self._read = commit.high, commit.read
        self._delay = 0
        self.watermark = START_OF_TIME
        self._changing = self._begins = False
        self._unsafe: dict[int, CutChain] = {}  # by token, records of cuts that can still be lost
        self.fence = Fence(commit.fence)
        self.full = False

    def __bool__(self) -> bool:
        return bool(self._chains)

    # ---- the plan

    def serve(self, plan: Plan, version: int, next_offset: int) -> None:
        """Serve the topics of a plan, with the queries that are in force under `version`. This is the plan's
        own, or an older one under which a restart reads readings again.
        """
        topics = _partial_topics(plan.stream(self._stream))
        chains, self._before_chains = {}, {}
        for name, topic in topics.items():
            chain = self._chains.get(name)
            if chain is None and (number_of(name) in self._resumed):
                resumed = self._resumed[number_of(name)]
                chain = CutChain(resumed.since, resumed)
            if chain is None and self._version and _in_force(topic, self._version):
                self._before_chains[name] = topic
                continue
            if chain is None and not _in_force(topic, version):
                continue
            if chain is None:
                chain = self._begin(next_offset)
            chain.use(topic, version)
            chains[name] = chain
        self._chains, self._resumed = chains, {}
        stream = plan.stream(self._stream)
        self._delay = 0 if stream is None else stream.delay
        if stream is not None and stream.anew > self._version:
            self.watermark, self._high = START_OF_TIME, -1
        self._version, self.form, self._partitions = version, plan.version, plan.partitions
        self._changing = self._begins = False

    def _begin(self, next_offset: int) -> CutChain:
        # Places rise above those of tuples, too.
        self._number = max(self._number, next_offset)
        return CutChain(next_offset)

    def changes(self, plan: Plan) -> bool:
        """True if a plan changes the queries of a chain: then all that was read must be sent before."""
        return bool(self._changed(plan))

    def _changed(self, plan: Plan) -> list[CutChain]:
        stream = plan.stream(self._stream)
        if stream is None or stream.anew > self._version:
            return []  # other topics, and what was read doesn't count any more
        topics = {topic.name: topic for topic in stream.topics}
        return [
            chain
            for name, chain in self._chains.items()
            if (topic := topics.get(name)) is not None
            and _in_force(topic, self._version) != _in_force(topic, plan.version)
        ]

    def ready(self, plan: Plan, next_offset: int) -> bool:
        """True if a plan may be used now. Otherwise the next commits make it so. When the readings of the
        last cuts were read again, no other may be read until then (`waits`).
        """
        changed = self._changed(plan)
        if not all(chain.replayed(next_offset) for chain in changed):
            return False
        self._changing = not all(chain.settled and chain.empty for chain in changed)
        return not self._changing

    @property
    def waits(self) -> bool:
        """True if nothing may be read for now: another plan waits until everything is sent, or a chain until
        all tuples before it are safe.
        """
        return self._changing or self._begins

    @property
    def overfull(self) -> bool:
        """True if nothing may be read until Kafka has the last cut: the panes behind it take up the most."""
        return any(chain.overfull for chain in self._chains.values())

    @property
    def fences(self) -> dict[str, int]:
        """By topic that carries tuples until its chain begins, the number that its records have; none before
        the first fence.
        """
        return dict.fromkeys(self._before_chains, self.fence.number) if self.fence.number else {}

    @property
    def without_tuples(self) -> frozenset[str]:
        """The topics to which no tuples are published."""
        return frozenset(self._chains)

    # ---- readings

    def take(self, batch: Batch, now: int) -> Bools:
        """Take readings in the order of their offsets, also those that are read again; returns those that are
        in partial aggregates of any topic.
        """
        taken = np.zeros(len(batch), np.bool_)
        if self._chains:
            self.watermark = max(self.watermark, int(batch.times.max()) - self._delay)
        for chain in self._chains.values():
            taken |= chain.take(batch, now)
        return taken

    def reached(self, offset: int) -> None:
        """All readings before `offset` were read, or the source doesn't have them any more."""
        if offset >= self._read and self._high >= 0:
            self.watermark = max(self.watermark, self._high - self._delay)
        for chain in self._chains.values():
            chain.reached(offset)

    def source_begins_anew(self, first: int) -> None:
        """The source was made anew: its offsets begin again, at `first`."""
        for chain in self._chains.values():
            chain.source_begins_anew(first)

    # ---- cuts

    def begin_chains(self, next_offset: int, unsafe: int) -> bool:
        """Begin the chains of topics that carried tuples until now, if that is possible; returns True if it
        is. `unsafe`: the number of records of tuples that aren't safe.
        """
        passed = bool(self._before_chains) and self.fence.passed(self._before_chains)
        self._begins = passed and unsafe > 0
        if not passed or self._begins:
            return False
        for name, topic in self._before_chains.items():
            self._chains[name] = self._begin(next_offset)
            self._chains[name].use(topic, self._version)
        self._before_chains = {}
        self.fence.cuts_begin()
        return True

    def draw(self, next_offset: int, watermark: int, born: int, now: int) -> None:
        """Draw the cuts that are due, for a commit, and the fence. `born`: as in `Commit`."""
        self.fence.draw(self._before_chains, now)
        reached = max(watermark, self.watermark)
        for chain in self._chains.values():
            full = self.full or self._changing
            at = Drawing(self._number, next_offset, reached, self._version, born, full, now)
            self._number += chain.draw(at)

    def done(self, next_offset: int) -> int:
        """All readings before this offset are in Kafka, on all topics of partial aggregates."""
        return min((chain.done(next_offset) for chain in self._chains.values()), default=next_offset)

    def commit(self, decided: int, next_offset: int) -> CutsCommit | None:
        """The part of a commit about these topics. `decided`: as in the commit."""
        if not self._chains:
            return None
        chains = {number_of(name): chain.commit(next_offset) for name, chain in self._chains.items()}
        return CutsCommit(decided, self.form, self._number, chains)

    def made_durable(self) -> None:
        """The last commit is durable."""
        for chain in self._chains.values():
            chain.made_durable()

    def to_send(self, shard: str, born: int) -> Iterator[tuple[CutChain, int, list[tuple[int, bytes]]]]:
        """The cuts that may be sent now: the number of rows, and the records, each with its output
        partition.
        """
        origin = CutOrigin(shard, born, self.form)
        for chain in self._chains.values():
            if (sending := chain.to_send()) is not None:
                yield chain, len(sending.rows), list(cut_records(chain, sending, origin, self._partitions))

    @property
    def progress(self) -> dict[tuple[str, int], int]:
        """By topic and output partition, the time of the last cut."""
        return {(n, p): c.progress for n, c in self._chains.items() for p in range(self._partitions)}

    def sent_as(self, chain: CutChain, tokens: list[int]) -> None:
        """The records of a chain's cut are those of these tokens."""
        chain.unsafe = len(tokens)
        self._unsafe.update(dict.fromkeys(tokens, chain))

    def safe(self, *tokens: int) -> None:
        """These records can't be lost any more. Those of tuples are left out."""
        for token in tokens if self._unsafe or self.fence else ():
            self.fence.safe(token)
            if (chain := self._unsafe.pop(token, None)) is not None:
                chain.unsafe -= 1

    def carries(self, token: int) -> bool:
        """True if the record is one of a cut or a fence that isn't safe yet."""
        return token in self._unsafe or self.fence.carries(token)

    @property
    def unsafe(self) -> int:
        """The number of records of cuts that aren't safe."""
        return len(self._unsafe)

    # ---- for metrics

    @property
    def rows(self) -> int:
        """The number of rows of open panes."""
        return sum(chain.rows for chain in self._chains.values())

    @property
    def bytes(self) -> int:
        """The memory of open panes."""
        return sum(chain.bytes for chain in self._chains.values())


def _partial_topics(stream: StreamPlan | None) -> dict[str, TopicPlan]:
    topics = () if stream is None else stream.topics
    return {topic.name: topic for topic in topics if topic.partials is not None}


def _in_force(topic: TopicPlan, version: int) -> tuple[PaneGrid, ...]:
    """The queries of a topic of partial aggregates that count what is read under a version."""
    grids = () if topic.partials is None else topic.partials.grids
    return tuple(grid for grid in grids if grid.serves(version))
