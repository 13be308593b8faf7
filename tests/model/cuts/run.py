"""One edge at work on one shard, from the shard's commit on. A crash loses all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.model.cuts.chain import Chain, RawTopic
from tests.model.cuts.terms import END, FAR, INF, ChainCommit, Commit, Plan, RawCommit, Reading, Record, Shard

if TYPE_CHECKING:
    from tests.model.cuts.fleet import Edge, Fleet


class Request(NamedTuple):
    """A commit on its way, the watermark when it was made, and the number of a new fence or None."""

    commit: Commit
    watermark: float
    fence: int | None


class Run:
    """`next`: the offset to read. `out`: records to send, with their partitions, in order. `fence`: the
    number of the last fence of the shard; raw tuples carry it. `changing`: the readings before a change of
    queries are being sent, and reading waits. `unsure`: reading waits until a commit under the plan is
    durable.
    """

    def __init__(self, fleet: Fleet, edge: Edge, shard: Shard, generation: int) -> None:
        commit = fleet.commits[shard]
        self.fleet, self.edge, self.shard, self.generation = fleet, edge, shard, generation
        self.zombie = False
        self.version, self.epoch, self.source = commit.version, commit.epoch, commit.source
        self.next = commit.done
        self.n, self.fence = commit.n, commit.fence
        self.out: list[tuple[int, Record]] = []
        self.request: Request | None = None
        self.changing = self.unsure = False
        self.watermark = -INF
        self.topics: dict[int, Chain | RawTopic] = {}
        for topic, part in commit.topics:
            if isinstance(part, ChainCommit):
                self.topics[topic] = Chain(self, topic, part)
            else:
                self.topics[topic] = RawTopic(self, topic, part)
        least = [topic.W if isinstance(topic, Chain) else -INF for topic in self.topics.values()]
        self.began = self._position()
        self.watermark = (min if self.on("least_W") else max)(least, default=-INF)
        if self._ended():
            self.watermark = END
        if commit.version == 0 or self.plan.epoch != commit.epoch:
            self._obey()
        for chain in self.chains:
            chain.build()

    def on(self, rule: str) -> bool:
        return rule not in self.fleet.off

    @property
    def plan(self) -> Plan:
        assert self.edge.plan is not None
        return self.edge.plan

    @property
    def chains(self) -> list[Chain]:
        return [topic for topic in self.topics.values() if isinstance(topic, Chain)]

    @property
    def raw(self) -> list[RawTopic]:
        return [topic for topic in self.topics.values() if isinstance(topic, RawTopic)]

    def _position(self) -> list[int]:
        """For each topic the number of the reading that comes next for it."""
        source = self.fleet.sources[self.shard]
        done = [self.topics[topic].done if topic in self.topics else 0 for topic in range(self.fleet.topics)]
        return [source.number_at(self.source, max(self.next, offset)) for offset in done]

    def has(self, topic: int, reading: Reading) -> bool:
        """The run holds a reading that Kafka hasn't, for a topic."""
        present = self.topics.get(topic)
        is_open = isinstance(present, Chain) and reading.number in present.open
        return is_open or any(
            record.topic == topic and reading.number in record.readings for _, record in self.out
        )

    def __repr__(self) -> str:
        zombie = " zombie" if self.zombie else ""
        chains = {
            chain.topic: (chain.done, chain.c, chain.W, chain.cut, [*chain.open]) for chain in self.chains
        }
        state = f"next {self.source}/{self.next} version {self.version} watermark {self.watermark}"
        return f"{self.edge.name}{zombie} {self.shard.name} ({state} {chains})"

    def _ended(self) -> bool:
        source = self.fleet.sources[self.shard]
        here = self.source == source.number and self.next > source.first
        return here and source.at(self.next - 1).time == END

    # ---- records

    def record(self, kind: str, topic: int, version: int, **fields: Any) -> Record:
        """A record of this run, built by the queries of its plan."""
        return Record(kind, self.shard, topic, version, self.plan.version, self.epoch, self.fence, **fields)

    def send_progress(
        self, topic: int, time: float, version: int, *, ahead: bool = False, raw: bool = False
    ) -> None:
        """Send progress to all partitions of a topic."""
        record = self.record("progress", topic, version, progress=time, raw=raw)
        records = [(partition, record) for partition in range(self.fleet.partitions)]
        self.out = records + self.out if ahead else self.out + records

    def send_fence(self, topic: int) -> None:
        """Send the fence to all partitions of a topic."""
        record = self.record("fence", topic, self.version)
        self.out += [(partition, record) for partition in range(self.fleet.partitions)]

    def next_number(self) -> int:
        self.n += 1
        return self.n

    # ---- reading

    def read(self) -> bool:
        """Take the next reading."""
        source = self.fleet.sources[self.shard]
        begins = any(topic.caught_up for topic in self._to_begin()) and self.on("begin_waits")
        if self.changing or self.unsure or begins:
            return False
        if self.source != source.number:
            self._read_anew(source.number)
        if self.next < source.first:
            before, self.next = self.next, source.first
            for chain in self.chains:
                chain.jumped(before)
        if self.next >= source.end:
            for waiting in self.raw:
                waiting.caught_up |= self._fence_stands(waiting)
            return False
        reading = source.at(self.next)
        self.next += 1
        if reading.time < FAR or (reading.time == FAR and not self.epoch):
            # An upgraded edge refuses readings from the future.
            for number, topic in self.topics.items():
                if reading.passes[number]:
                    topic.take(reading)
            self.watermark = max(self.watermark, reading.time - source.delay)
        if reading.time == END:
            self.watermark = END
        for chain in self.chains:
            chain.build()
        return True

    def _read_anew(self, number: int) -> None:
        """The source was made anew."""
        self.source, self.next = number, 0
        for topic in self.topics.values():
            topic.source_begins()

    # ---- chains in place of raw tuples

    def _to_begin(self) -> list[RawTopic]:
        """Topics of raw tuples that the plan wants as partial aggregates."""
        taken_up = self.plan.version == self.version
        return [topic for topic in self.raw if taken_up and topic.topic in self.plan.partial]

    def _fence_stands(self, topic: RawTopic) -> bool:
        """Kafka has this run's fence: what earlier owners send from now on is dropped."""
        waiting = any(
            record.kind == "fence" and record.topic == topic.topic
            for _, record in [*self.edge.spool[self.shard], *self.out]
        )
        return (topic.fenced and not waiting) or not self.on("raw_fence")

    def _may_begin(self, topic: RawTopic) -> bool:
        """The chain may take over with the next commit."""
        caught_up = topic.caught_up or not self.on("begins_caught_up")
        return topic in self._to_begin() and caught_up and (topic.settled() or not self.on("begin_settled"))

    # ---- commits

    def propose(self) -> bool:
        """Make a commit; it becomes durable in a later step."""
        if self.request or (self.unsure and any(record.kind == "raw" for _, record in self.out)):
            return False
        ready = all(chain.replayed() for chain in self.chains)
        ready &= all(chain.cut is None or chain.built for chain in self.chains) or not self.on("change_waits")
        change = ready and self._chains_change()
        if change and self.on("full_at_change"):
            self.changing = True
        parts: dict[int, ChainCommit | RawCommit] = {}
        for number, topic in self.topics.items():
            if isinstance(topic, Chain):
                parts[number] = topic.propose(change and self._changes(topic))
            elif self._may_begin(topic):
                parts[number] = ChainCommit(self.next, self.next, self.next, self.watermark)
                self.unsure |= self.on("begin_waits")
            else:
                parts[number] = topic.propose()
        fence = None if all(topic.fenced for topic in self._to_begin()) else self.next_number()
        done = min((part.done for part in parts.values()), default=self.next)
        commit = Commit(
            done,
            self.n,
            self.fence if fence is None else fence,
            tuple(parts.items()),
            self.version,
            self.plan.version,
            self.epoch,
            self.source,
        )
        self.request = Request(commit, self.watermark, fence)
        return True

    def durable(self) -> bool:
        """The outcome of the commit under way."""
        fleet, request = self.fleet, self.request
        if request is None or not fleet.reaches(self.edge, self.shard):
            return False
        self.request = None
        outcome = fleet.commit(self, request.commit)
        if outcome == "stored":
            self._committed(request)
        return True

    def _committed(self, request: Request) -> None:
        self.unsure = False
        if request.fence is not None:
            self.fence = request.fence
        for number, part in request.commit.topics:
            topic = self.topics[number]
            if isinstance(topic, Chain):
                assert isinstance(part, ChainCommit)
                topic.committed(part)
            elif isinstance(part, ChainCommit):
                self.topics[number] = Chain(self, number, part)
            else:
                topic.committed(request.watermark, fence=request.fence is not None)

    # ---- plans

    def _changes(self, chain: Chain) -> bool:
        """The queries of the chain change, or raw tuples take its place."""
        plan, topic = self.plan, chain.topic
        if plan.version <= self.version:
            return False
        to_raw = topic not in plan.partial and self.on("full_before_raw")
        return to_raw or plan.serves(topic, self.version) != plan.serves(topic, plan.version)

    def _chains_change(self) -> bool:
        return any(self._changes(chain) for chain in self.chains)

    def _any_change(self) -> bool:
        """Queries of any topic change, or raw tuples take the place of a chain."""
        plan = self.plan
        to_raw = any(chain.topic not in plan.partial for chain in self.chains)
        return to_raw or any(
            plan.serves(topic, self.version) != plan.serves(topic, plan.version)
            for topic in range(self.fleet.topics)
        )

    def switch(self) -> bool:
        """Take up the edge's plan, or stop if it doesn't list the shard."""
        plan = self.plan
        if plan.version <= self.version or self.request:
            return False
        changed = [chain for chain in self.chains if self._changes(chain)]
        sent = all(chain.settled() and not chain.open and chain.replayed() for chain in changed)
        if self.shard not in plan.listed:
            self.fleet.stop(self)
        elif plan.epoch != self.epoch:
            self._obey()
        elif not self._any_change():
            self.version, self.changing = plan.version, False
            for chain in self.chains:
                chain.tell_again()
        elif sent or not self.on("full_at_change"):
            for chain in changed if self.on("full_at_change") else ():
                chain.adopt()
            self._obey()
        else:
            return False
        return True

    def _obey(self) -> None:
        """Serve the queries of the plan from the next reading on."""
        plan = self.plan
        if plan.epoch != self.epoch:  # time begins anew: the topics are new, and so are their queries
            self.out, self.watermark = [], END if self._ended() else -INF
            kept = {} if self.on("anew_forgets") else {chain.topic: chain.W for chain in self.chains}
            self.topics = {}
            for topic, W in kept.items():
                self.topics[topic] = self._new_chain(topic, W)
        raw_before, before = bool(self.raw), self.version
        for topic in range(self.fleet.topics):
            self._serve(topic, plan)
        self.unsure |= raw_before or bool(self.raw)
        self.version, self.epoch, self.changing = plan.version, plan.epoch, False
        for topic, number in enumerate(self._position()):
            if plan.serves(topic, before) != plan.serves(topic, plan.version):
                self.began[topic] = number
        for chain in self.chains:
            chain.tell_again()

    def _serve(self, topic: int, plan: Plan) -> None:
        """Give a topic the form that the plan wants, unless its raw tuples must go on for now."""
        present = self.topics.get(topic)
        queries = plan.serves(topic, plan.version)
        if not queries:
            return
        if topic not in plan.partial:
            if not isinstance(present, RawTopic):
                self.topics[topic] = RawTopic(self, topic, RawCommit(self._first(present)))
        elif isinstance(present, RawTopic):
            if not set(queries) & set(plan.serves(topic, self.version)):
                self.topics[topic] = self._new_chain(topic, self.watermark)
        elif present is None:
            self.topics[topic] = self._new_chain(topic, self.watermark)

    def _first(self, former: Chain | RawTopic | None) -> int:
        """The first reading that takes a new form. What is read again for other topics is before it."""
        return self.next if former is None else max(self.next, former.done)

    def _new_chain(self, topic: int, W: float) -> Chain:
        first = self._first(self.topics.get(topic))
        return Chain(self, topic, ChainCommit(first, first, first, W))
