"""The group of one output partition: the joiner's side of `protocol.md`, rules 7 to 10, over columns.

A batch is taken in the order plans, tuples, progress and final records; the records of a topic partition in
the order of their offsets. Everything that is kept between batches is in a `StateMap`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tamis.errors import InputError, RefusedError
from tamis.evaluation.temporal_join import combinations
from tamis.expressions.opaque import FunctionError, installed
from tamis.messaging import topics
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import Frontier, StreamState
from tamis.planning.plan import Plan
from tamis.query.reach import NOWHERE, Reach
from tamis_joiner.core.alarms import alarm_records
from tamis_joiner.core.decode import NOTHING_YET, Envelopes, Fresh, Records, fresh, read
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.join import Join
from tamis_joiner.core.parking import Parking
from tamis_joiner.core.scheme import Scheme, Topic, scheme_of
from tamis_joiner.core.shed import Shed
from tamis_joiner.core.standing import Arrived, StandingQueries
from tamis_joiner.core.state import StateMap
from tamis_joiner.core.synopses import Synopses

FORMAT = 1
META = "meta"


@dataclass
class Output:
    """What a batch has to say: alarms and the frontier as (key, value) of Kafka records, and dead letters."""

    alarms: list[tuple[bytes, bytes]] = field(default_factory=list)
    frontier: bytes | None = None
    dead: list[DeadLetter] = field(default_factory=list)


@dataclass
class Counts:
    """Counters since the state's beginning. `late`: tuples that joins took, `missed`: by alert, those that
    came too late to count for a standing query.
    """

    alarms: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    late: int = 0
    missed: Counter[str] = field(default_factory=Counter)


class Group:
    """The state of one output partition of `partitions`, from `load` to the end of `process`."""

    def __init__(self, partition: int, partitions: int, reach: Reach = NOWHERE) -> None:
        self.partition = partition
        self.partitions = partitions
        self.token = ""
        self._plan: Plan | None = None
        self._topics: dict[str, Topic] = {}
        self._joins: tuple[Join, ...] = ()
        self._partners: Mapping[str, frozenset[str]] = {}
        self._frontiers = Frontiers()
        self._synopses = Synopses()
        self._standing = StandingQueries(partition, reach)
        self._parking = Parking()
        self._missing: frozenset[str] = frozenset()  # alerts whose functions aren't installed here
        self._unable: dict[str, str] = {}  # why an alert isn't evaluated
        self._shed = Shed()
        self._counts = Counts()
        self._report: bytes | None = None  # a frontier record that waits for the alarms before it

    @property
    def plan_version(self) -> int:
        """The version of the plan that the group obeys, 0 before the first."""
        return self._plan.version if self._plan else 0

    # ---- state

    @staticmethod
    def load(
        partition: int,
        partitions: int,
        state: StateMap,
        memory: Group | None = None,
        reach: Reach = NOWHERE,
    ) -> Group:
        """The group as `state` has it. `memory` is what this process remembers of it, possibly of another
        attempt or time: only what provably is the same is taken from there. `reach`: of the paths of tables.
        """
        blob = state.get(META)
        if blob is None:
            return Group(partition, partitions, reach)
        meta = orjson.loads(blob)
        if meta["format"] != FORMAT:
            raise RefusedError(
                f"state of format {meta['format']}; this joiner reads {FORMAT}",
                hint="start with a new checkpoint",
            )
        if memory is not None and memory.token == meta["token"]:
            memory._synopses.settle(memory._frontiers)
            return memory
        self = Group(partition, partitions, reach)
        self._read(meta, state)
        same_plan = memory is not None and memory.plan_version == self.plan_version
        remembered = memory._synopses if memory is not None and same_plan else None
        self._synopses = Synopses.load(self._topics, self._frontiers, meta["slices"], state, remembered)
        return self

    def _read(self, meta: Mapping[str, Any], state: StateMap) -> None:
        if meta["partitions"] != self.partitions:
            raise RefusedError(
                f"state of a fleet with {meta['partitions']} partitions; this one has {self.partitions}",
                hint="start with a new checkpoint",
            )
        self.token = meta["token"]
        if meta["plan"]:
            blob = state.get(f"plan/{meta['plan']}")
            assert blob is not None  # written in the same commit as the number
            self._set_plan(scheme_of(blob))
            # What failed stays told until it works.
            alerts = {definition.alert for definition in (self._plan.definitions if self._plan else ())}
            before = {alert: why for alert, why in meta.get("unable", {}).items() if alert in alerts}
            self._unable = before | self._unable
        self._frontiers = Frontiers.from_json(meta["frontiers"])
        if self._plan:
            self._standing.load(self._plan, meta.get("standing", {}), state)
        self._parking = Parking(meta["parked"])
        self._shed = Shed(meta.get("shed"))  # state of an older version has none
        counts = meta["counts"]
        missed = Counter(counts.get("missed", {}))  # state of an older version has none
        self._counts = Counts(Counter(counts["alarms"]), Counter(counts["dead"]), counts["late"], missed)
        self._report = meta["report"].encode() if meta["report"] else None

    def _write_meta(self, state: StateMap, token: str) -> None:
        self.token = token
        counts = self._counts
        meta = {
            "format": FORMAT,
            "token": token,
            "partitions": self.partitions,
            "plan": self.plan_version,
            "frontiers": self._frontiers.to_json(),
            "slices": self._synopses.to_json(),
            "standing": self._standing.to_json(),
            "parked": self._parking.to_json(),
            "shed": self._shed.to_json(),
            "counts": {
                "alarms": dict(counts.alarms),
                "dead": dict(counts.dead),
                "late": counts.late,
                "missed": dict(counts.missed),
            },
            "unable": self._unable,
            "report": self._report.decode() if self._report else None,
        }
        state.put(META, orjson.dumps(meta))

    # ---- a batch

    def process(
        self,
        plans: Sequence[Records],
        records: Sequence[Records],
        state: StateMap,
        *,
        now: int,
        token: str,
    ) -> Output:
        """Take a batch and write what has changed to `state`.

        `plans` are records of the plan topic, `records` of stream topics, one `Records` per topic; `now` is
        the wall clock in microseconds; `token` is random and never used before. An exception leaves this
        object unusable; `state` then must not be committed.
        """
        out = Output()
        for some in plans:
            for row in range(len(some.values)):
                self._obey(some, row, state, out)
        self._take(self._read_all(records, out.dead), state, out)
        self._counts.dead.update(letter.reason.value for letter in out.dead)
        live_counts = self._synopses.mark_needed(self._frontiers)
        self._shed.trim(self._plan.definitions if self._plan else (), self._frontiers)
        self._synopses.write(state, token)
        self._standing.write(state)
        report = self._frontier(live_counts, now)
        if out.alarms:
            # Its alarms are in Kafka only when this batch has ended.
            out.frontier, self._report = self._report, report
        else:
            out.frontier, self._report = report, None
        self._write_meta(state, token)
        return out

    def _obey(self, some: Records, row: int, state: StateMap, out: Output) -> None:
        try:
            scheme = scheme_of(some.values[row])
        except InputError as error:
            out.dead.append(some.dead(row, Reason.UNDECODABLE, str(error)))
            return
        plan = scheme.plan
        if plan.partitions != self.partitions:
            out.dead.append(
                some.dead(
                    row,
                    Reason.FOREIGN,
                    f"the plan is for {plan.partitions} partitions, this fleet has {self.partitions}",
                )
            )
            return
        if plan.version <= self.plan_version:
            return
        if self._plan:
            state.remove(f"plan/{self._plan.version}")
        state.put(f"plan/{plan.version}", some.values[row])
        self._set_plan(scheme)
        self._frontiers.obey(plan)
        self._synopses.fit(self._topics, state)
        self._standing.obey(plan, state)
        waiting = self._parking.release(state)
        # What was dead was dead when it came, so a second look finds nothing to set aside.
        self._take(self._read_all(waiting, []), state, out)
        self._frontiers.advance(self._partners)
        self._raise(self._standing.advance(self._frontiers, plan.version), out)

    def _set_plan(self, scheme: Scheme) -> None:
        self._plan, self._topics, self._joins = scheme.plan, scheme.topics, scheme.joins
        self._partners = scheme.partners
        self._unable = unable(scheme.calling)
        self._missing = frozenset(self._unable)

    def _read_all(self, records: Sequence[Records], dead: list[DeadLetter]) -> list[Envelopes]:
        counted = {name for name, topic in self._topics.items() if topic.counted}
        return [read(some, self.plan_version, dead, some.topic in counted) for some in records]

    def _raise(self, alarms: Mapping[str, list[tuple[bytes, bytes]]], out: Output) -> None:
        for alert, raised in alarms.items():
            out.alarms += raised
            self._counts.alarms[alert] += len(raised)

    def _take(self, found: Sequence[Envelopes], state: StateMap, out: Output) -> None:
        """What was shed, then tuples, then progress and final records; what is above the plan's version is
        parked.
        """
        parked = [envelopes.records.pick(envelopes.parked) for envelopes in found if envelopes.parked]
        if parked:
            self._parking.park(parked, state)
        marks = [(envelopes.records.topic, mark) for envelopes in found for mark in envelopes.marks]
        for topic, mark in marks:
            if mark.shed is not None:
                self._shed.add(topic, mark.shed)
        self._join(found, out)
        for topic, mark in marks:
            self._frontiers.take(topic, mark, self._partners)
            self._standing.passed(topic, mark)
        if marks:
            self._frontiers.advance(self._partners)
            self._raise(self._standing.advance(self._frontiers, self.plan_version), out)

    def _join(self, found: Sequence[Envelopes], out: Output) -> None:
        arrived: list[tuple[str, Fresh]] = []
        counted: list[Arrived] = []
        for envelopes in found:
            topic = self._topics.get(envelopes.records.topic)
            if topic is not None and envelopes.documents:
                tuples = fresh(envelopes, topic.schema, topic.time, out.dead)
                if len(tuples.times):
                    self._counts.late += int(tuples.late.sum())
                    if topic.time:
                        self._frontiers.saw(topic.name, int(tuples.times.max()))
                    if topic.joined:
                        arrived.append((topic.name, tuples))
                    if topic.counted:
                        counted.append(Arrived(topic.name, tuples, topic.counting))
        before = self._standing.late()
        self._raise(self._standing.take(counted, self.plan_version), out)
        self._counts.missed += self._standing.late() - before
        changed = self._synopses.take(arrived)
        live = self._synopses.live
        for join in self._joins:
            definition = join.definition
            # One with a missing function would seem to work where no tuples meet.
            waits = definition.alert in self._missing
            if waits or not join.topics & changed or not join.topics <= live.keys():
                continue
            inputs = [(self._synopses.passed(topic), row) for topic, row in join.inputs]
            if not any(passed.new(row) for passed, row in inputs):
                continue
            by_alias = {source.alias: live[source.topic] for source in definition.inputs}
            raised: list[tuple[bytes, bytes]] = []
            try:
                masks = [passed.mask(row) for passed, row in inputs]
                for rows in combinations(definition, by_alias, masks):
                    raised += alarm_records(definition, self.plan_version, by_alias, rows, self._shed)
            except FunctionError as error:
                # One operator's function must not stop the alerts of others.
                self._unable[definition.alert] = str(error)
                continue
            self._unable.pop(definition.alert, None)
            out.alarms += raised
            self._counts.alarms[definition.alert] += len(raised)

    def _frontier(self, live_counts: Mapping[str, Counter[str]], now: int) -> bytes:
        definitions: Counter[str] = Counter(
            {f"{d.alert}@{d.version}": 0 for d in (self._plan.definitions if self._plan else ())}
        )
        sizes = Counter(definitions)
        definitions.update(self._standing.entries())
        sizes.update(self._standing.sizes())
        states = {}
        for name in self._topics:
            counts, tuples, size = (
                live_counts.get(name, Counter()),
                self._synopses.tuples(name),
                self._synopses.bytes(name),
            )
            definitions.update(counts)
            # A tuple that several definitions need counts for each of them, as it does among their tuples.
            sizes.update({who: size * count // tuples for who, count in counts.items() if count})
            reached = self._frontiers.of(name)
            states[name] = StreamState(
                frontier=None if reached == NOTHING_YET else reached,
                tuples=tuples,
                bytes=size,
                void=self._frontiers.void(name),
                shards=self._frontiers.listed(name),
                left=self._frontiers.left(name),
                obeyed=self._frontiers.obeyed(name),
            )
        return Frontier(
            partition=self.partition,
            plan=self.plan_version,
            topics=states,
            definitions=dict(definitions),
            alarms=dict(self._counts.alarms),
            late=self._counts.late,
            parked=len(self._parking),
            time=now,
            dead=dict(self._counts.dead),
            unable=self._unable | self._standing.unable,
            bounds=self._standing.bounds(),
            missed=dict(self._counts.missed),
            sizes=dict(sizes),
        ).to_bytes()


def unable(calling: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The alerts that call functions of Python which aren't installed here, and what to do."""
    found = {}
    for alert, names in calling.items():
        for name in names:
            try:
                installed(name)
            except FunctionError as error:
                found[alert] = str(error)
    return found


def plan_records(records: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """Records of the plan topic, and those of stream topics."""
    plans = [some for some in records if some.topic == topics.PLANS]
    return plans, [some for some in records if some.topic != topics.PLANS]
