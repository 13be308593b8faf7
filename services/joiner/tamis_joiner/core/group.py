"""The group of one output partition: the joiner's side of `protocol.md`, rules 7 to 10, over columns.

A batch is taken in the order plans, tuples, progress and final records; the records of a topic partition in
the order of their offsets. Everything that is kept between batches is in a `StateMap`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson

from tamis.errors import InputError, RefusedError
from tamis.evaluation.key_codes import KeyCodes
from tamis.evaluation.temporal_join import combinations
from tamis.expressions.vectors import Mask
from tamis.messaging import topics
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.messaging.records import Frontier, StreamState
from tamis.planning.plan import Plan
from tamis.planning.plan_json import decode_plan
from tamis_joiner.core.alarms import alarm_records
from tamis_joiner.core.blobs import records_blob, records_of, tuples_blob, tuples_of
from tamis_joiner.core.decode import Envelopes, Records, Schema, fresh, read
from tamis_joiner.core.frontiers import NOTHING_YET, Frontiers, partners
from tamis_joiner.core.live import Live, coded, conform, merge
from tamis_joiner.core.retention import Use, needed, slice_width, uses
from tamis_joiner.core.state import StateMap

FORMAT = 1
META = "meta"

# Codes of keys that are long gone are let go once there are this many more than live tuples.
SPARE_CODES = 100_000


@dataclass
class Output:
    """What a batch has to say: alarms and the frontier as (key, value) of Kafka records, and dead letters."""

    alarms: list[tuple[bytes, bytes]] = field(default_factory=list)
    frontier: bytes | None = None
    dead: list[DeadLetter] = field(default_factory=list)


@dataclass(frozen=True)
class _Topic:
    """A topic of the plan."""

    stream: str
    time: str
    key: tuple[str, ...]
    schema: Schema
    uses: list[Use]
    width: int


@dataclass
class Counts:
    """Counters since the state's beginning."""

    alarms: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    late: int = 0


class Group:
    """The state of one output partition of `partitions`, in memory between `load` and the end of `process`.

    Trimming is done at the beginning of a batch, by the frontiers and the plan at the end of the one before:
    so what is in memory is never less than what the store held when the batch began.
    """

    def __init__(self, partition: int, partitions: int) -> None:
        self.partition = partition
        self.partitions = partitions
        self.token = ""
        self._plan: Plan | None = None
        self._topics: dict[str, _Topic] = {}
        self._partners: dict[str, frozenset[str]] = {}
        self._frontiers = Frontiers()
        self._codes = KeyCodes()
        self._live: dict[str, Live] = {}
        self._needed: dict[str, Mask] = {}
        self._slices: dict[str, tuple[str, int]] = {}  # name: (token of the write, bytes)
        self._parked: dict[str, int] = {}  # name: records
        self._counts = Counts()
        self._report: bytes | None = None  # a frontier record that waits for the alarms before it
        self._trimmed_to: dict[str, int] = {}  # the frontiers by which memory was last trimmed
        self._changed: dict[str, set[int]] = {}  # numbers of the slices that this batch put tuples into

    @property
    def plan_version(self) -> int:
        """The version of the plan that the group obeys, 0 before the first."""
        return self._plan.version if self._plan else 0

    # ---- state

    @staticmethod
    def load(partition: int, partitions: int, state: StateMap, memory: Group | None = None) -> Group:
        """The group as `state` has it. `memory` is what this process remembers of it, possibly of another
        attempt or time: only what provably is the same is taken from there.
        """
        blob = state.get(META)
        if blob is None:
            return Group(partition, partitions)
        meta = orjson.loads(blob)
        if meta["format"] != FORMAT:
            raise RefusedError(
                f"state of format {meta['format']}; this joiner reads {FORMAT}",
                hint="start with a new checkpoint",
            )
        if memory is not None and memory.token == meta["token"]:
            memory._settle()
            return memory
        self = Group(partition, partitions)
        self._read(meta, state)
        if memory is not None and memory.plan_version == self.plan_version:
            self._codes = memory._codes
        self._read_slices(state, memory)
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
            self._set_plan(decode_plan(blob))
        self._frontiers = Frontiers.from_json(meta["frontiers"])
        self._slices = {name: (token, size) for name, (token, size) in meta["slices"].items()}
        self._parked = dict(meta["parked"])
        counts = meta["counts"]
        self._counts = Counts(Counter(counts["alarms"]), Counter(counts["dead"]), counts["late"])
        self._report = meta["report"].encode() if meta["report"] else None

    def _read_slices(self, state: StateMap, memory: Group | None) -> None:
        """Decode the slices, but for those that `memory` has with the same token."""
        kept = self._remembered(memory)
        for name, topic in self._topics.items():
            parts: list[Live] = []
            mine = [s for s in self._slices if s.startswith(_prefix(name, topic.width))]
            same = [int(s.rsplit("/", 1)[1]) for s in mine if s in kept]
            if same and memory is not None:
                live = memory._live[name]
                parts.append(live.pick(np.isin(live.times // topic.width, same)).old())
            for slice_ in mine:
                if slice_ not in kept:
                    blob = state.get(slice_)
                    assert blob is not None  # named by the same commit
                    parts.append(coded(tuples_of(blob, topic.schema), topic.key, self._codes, new=False))
            if parts:
                self._live[name] = merge(parts)
        self._mark_needed()
        self._settle()

    def _remembered(self, memory: Group | None) -> set[str]:
        """Names of slices that `memory` holds just as the store does.

        Its tuples are those of the write with that token, less what was trimmed since by its frontiers and
        plan. Under the same plan and at frontiers no further than the store's, the store's would have been
        trimmed as well.
        """
        if (
            memory is None
            or memory.plan_version != self.plan_version
            or any(memory._trimmed_to.get(t, NOTHING_YET) > self._frontiers.of(t) for t in self._topics)
        ):
            return set()
        return {name for name, write in self._slices.items() if memory._slices.get(name) == write}

    def _settle(self) -> None:
        """Let go what nothing needed at the end of the last batch."""
        for name, mask in self._needed.items():
            if not mask.all():
                self._live[name] = self._live[name].pick(mask)
            self._live[name] = self._live[name].old()
        self._trimmed_to = {name: self._frontiers.of(name) for name in self._topics}
        if len(self._codes) > SPARE_CODES + 2 * sum(map(len, self._live.values())):
            self._codes = KeyCodes()
            for name, live in self._live.items():
                keys = [live.columns[column] for column in self._topics[name].key]
                self._live[name] = merge([replace(live, keys=self._codes.encode(keys, len(live)))])

    def _mark_needed(self) -> dict[str, Counter[str]]:
        """Note what is needed now; live tuples by topic and definition."""
        counts = {}
        self._needed = {}
        for name, live in self._live.items():
            self._needed[name], by_definition = needed(live, self._topics[name].uses, self._frontiers)
            counts[name] = Counter({who: int(mask.sum()) for who, mask in by_definition.items()})
        return counts

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
        self._changed = {}
        for some in plans:
            for row in range(len(some.values)):
                self._obey(some, row, state, out)
        self._take([read(some, self.plan_version, out.dead) for some in records], state, out)
        self._counts.dead.update(letter.reason.value for letter in out.dead)
        live_counts = self._mark_needed()
        self._write_slices(state, token)
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
            plan = decode_plan(some.values[row])
        except InputError as error:
            out.dead.append(some.dead(row, Reason.UNDECODABLE, str(error)))
            return
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
        self._set_plan(plan)
        self._frontiers.obey(plan)
        self._fit_slices(state)
        waiting = [records for name in self._parked for records in records_of(state.get(name) or b"")]
        for name in self._parked:
            state.remove(name)
        self._parked = {}
        # What was dead was dead when it came, so a second look finds nothing to set aside.
        self._take([read(records, plan.version, []) for records in waiting], state, out)
        self._frontiers.advance(self._partners)

    def _set_plan(self, plan: Plan) -> None:
        self._plan = plan
        self._partners = partners(plan)
        by_topic = uses(plan)
        self._topics = {}
        for stream in plan.streams:
            types = {column.name: column.type for column in stream.columns}
            for topic in stream.topics:
                if stream.time is None:
                    continue
                names = dict.fromkeys((*topic.partition_key, stream.time, *topic.columns))
                mine = by_topic.get(topic.name, [])
                self._topics[topic.name] = _Topic(
                    stream.name,
                    stream.time,
                    topic.partition_key,
                    {name: types[name] for name in names},
                    mine,
                    slice_width(mine),
                )

    def _fit_slices(self, state: StateMap) -> None:
        """After a new plan: drop the slices of topics that are gone, and cut anew where the width changed."""
        prefixes = {_prefix(name, topic.width): name for name, topic in self._topics.items()}
        for slice_ in list(self._slices):
            if slice_.rsplit("/", 1)[0] + "/" not in prefixes:
                state.remove(slice_)
                del self._slices[slice_]
        for name in list(self._live):
            if name not in self._topics:
                del self._live[name]
                continue
            topic = self._topics[name]
            self._live[name] = conform(self._live[name], topic.schema)
            if not any(s.startswith(_prefix(name, topic.width)) for s in self._slices):
                self._changed.setdefault(name, set()).update(
                    np.unique(self._live[name].times // topic.width).tolist()
                )

    def _take(self, found: Sequence[Envelopes], state: StateMap, out: Output) -> None:
        """Tuples first, then progress and final records; what is above the plan's version is parked."""
        parked = [envelopes.records.pick(envelopes.parked) for envelopes in found if envelopes.parked]
        if parked:
            number = 1 + max((int(name.rsplit("/", 1)[1]) for name in self._parked), default=0)
            name = f"parked/{number:08}"
            state.put(name, records_blob(parked))
            self._parked[name] = sum(len(records.values) for records in parked)
        self._join(found, out)
        marks = [(envelopes.records.topic, mark) for envelopes in found for mark in envelopes.marks]
        for topic, mark in marks:
            self._frontiers.take(topic, mark, self._partners)
        if marks:
            self._frontiers.advance(self._partners)

    def _join(self, found: Sequence[Envelopes], out: Output) -> None:
        arrived = set()
        for envelopes in found:
            name = envelopes.records.topic
            topic = self._topics.get(name)
            if topic is None or not envelopes.documents:
                continue
            tuples = fresh(envelopes, topic.schema, topic.time, out.dead)
            new = coded(tuples, topic.key, self._codes, new=True)
            if not len(new):
                continue
            self._counts.late += int(tuples.late.sum())
            parts = [new]
            if name in self._live:  # new tuples of a topic may come in several parts: all of them stay new
                before = self._live[name]
                parts.insert(0, before if name in arrived else before.old())
            live = self._live[name] = merge(parts)
            ids = np.unique(live.times[live.new] // topic.width)
            self._changed.setdefault(name, set()).update(ids.tolist())
            arrived.add(name)
        if not arrived or self._plan is None:
            return
        for name in self._live.keys() - arrived:
            self._live[name] = self._live[name].old()
        for definition in self._plan.definitions:
            names = {source.topic for source in definition.inputs}
            if not names & arrived or not names <= self._live.keys():
                continue
            by_alias = {source.alias: self._live[source.topic] for source in definition.inputs}
            for rows in combinations(definition, by_alias):
                out.alarms += alarm_records(definition, self._plan.version, by_alias, rows)
                self._counts.alarms[definition.alert] += len(rows[0])

    # ---- what a batch leaves behind

    def _write_slices(self, state: StateMap, token: str) -> None:
        for name, live in self._live.items():
            topic = self._topics[name]
            ids = live.times // topic.width
            wanted = set(np.unique(ids[self._needed[name]]).tolist())
            prefix = _prefix(name, topic.width)
            for slice_ in [s for s in self._slices if s.startswith(prefix)]:
                if int(slice_[len(prefix) :]) not in wanted:
                    state.remove(slice_)
                    del self._slices[slice_]
            for number in self._changed.get(name, set()) & wanted:
                blob = tuples_blob(live.pick(self._needed[name] & (ids == number)), topic.schema)
                state.put(f"{prefix}{number}", blob)
                self._slices[f"{prefix}{number}"] = (token, len(blob))

    def _frontier(self, live_counts: Mapping[str, Counter[str]], now: int) -> bytes:
        definitions: Counter[str] = Counter(
            {f"{d.alert}@{d.version}": 0 for d in (self._plan.definitions if self._plan else ())}
        )
        states = {}
        for name, topic in self._topics.items():
            definitions.update(live_counts.get(name, {}))
            reached = self._frontiers.of(name)
            prefix = _prefix(name, topic.width)
            states[name] = StreamState(
                frontier=None if reached == NOTHING_YET else reached,
                tuples=int(self._needed[name].sum()) if name in self._needed else 0,
                bytes=sum(size for s, (_, size) in self._slices.items() if s.startswith(prefix)),
                void=self._frontiers.void(name),
                shards=self._frontiers.listed(name),
            )
        return Frontier(
            partition=self.partition,
            plan=self.plan_version,
            topics=states,
            definitions=dict(definitions),
            alarms=dict(self._counts.alarms),
            late=self._counts.late,
            parked=sum(self._parked.values()),
            time=now,
            dead=dict(self._counts.dead),
        ).to_bytes()

    def _write_meta(self, state: StateMap, token: str) -> None:
        self.token = token
        counts = self._counts
        meta = {
            "format": FORMAT,
            "token": token,
            "partitions": self.partitions,
            "plan": self.plan_version,
            "frontiers": self._frontiers.to_json(),
            "slices": self._slices,
            "parked": self._parked,
            "counts": {"alarms": dict(counts.alarms), "dead": dict(counts.dead), "late": counts.late},
            "report": self._report.decode() if self._report else None,
        }
        state.put(META, orjson.dumps(meta))


def _prefix(topic: str, width: int) -> str:
    return f"slice/{topic}/{width}/"


def plan_records(records: Sequence[Records]) -> tuple[list[Records], list[Records]]:
    """Records of the plan topic, and those of stream topics."""
    plans = [some for some in records if some.topic == topics.PLANS]
    return plans, [some for some in records if some.topic != topics.PLANS]
