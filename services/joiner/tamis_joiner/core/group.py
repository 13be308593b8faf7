"""The group of one output partition: the joiner's side of `protocol.md`, rules 7 to 10, over columns.

A batch is processed in this order: plans, tuples, progress, final records. The records of a topic partition
are processed in the order of their offsets. All state that lasts from batch to batch is in a `StateMap`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tamis.declarations.file_access import NO_ACCESS, FileAccess
from tamis.errors import InputError, RefusedError
from tamis.messaging.dead_letters import DeadLetter, Reason
from tamis.plan.json_form import NewerFormatError
from tamis.plan.model import Definition, Plan
from tamis_joiner.core.alarms import KeyValue
from tamis_joiner.core.compiled_plan import CompiledPlan, Topic, compile_plan, missing_functions
from tamis_joiner.core.frontier_report import Counters, Output, frontier_report, with_next
from tamis_joiner.core.frontiers import Completeness, Frontiers
from tamis_joiner.core.join_evaluation import Moved, evaluate_existence, evaluate_joins
from tamis_joiner.core.records.cut_records import ArrivedCut, arrived_cut
from tamis_joiner.core.records.envelopes import Envelopes, Records, read_envelopes
from tamis_joiner.core.records.tuple_columns import TupleColumns, columns_of, tuple_columns
from tamis_joiner.core.running_query import ArrivedTuples
from tamis_joiner.core.shed_spans import ShedSpans
from tamis_joiner.core.standing_queries import StandingQueries
from tamis_joiner.core.state import PendingRecords, StateMap
from tamis_joiner.core.tuples.tuple_store import TupleStore

FORMAT = 1
META = "meta"
NEWER = "newer"


class Group:
    """The state of output partition `partition` of `partitions`, from `load` to the end of `process`."""

    def __init__(self, partition: int, partitions: int, file_access: FileAccess = NO_ACCESS) -> None:
        self.partition = partition
        self.partitions = partitions
        self.token = ""
        self._compiled: CompiledPlan | None = None
        self._frontiers = Frontiers()
        self._store = TupleStore()
        self._standing = StandingQueries(partition, file_access)
        self._pending = PendingRecords()
        self._newer_plans = PendingRecords(kind=NEWER)
        self._retry_plans = False  # this process hasn't tried to read the newer plans yet
        self._missing: frozenset[str] = frozenset()  # alerts that call functions which aren't installed here
        self._errors: dict[str, str] = {}  # by alert, why a join isn't evaluated
        self._began = 0  # when the state began, wall clock; 0 until its first batch
        self._fences: dict[str, dict[str, int]] = {}  # by topic and shard, the number of the last fence
        self._completeness = Completeness()
        self._evaluated: dict[str, int] = {}  # frontiers at the last evaluation of what frontiers decide
        self._shed = ShedSpans()
        self._counters = Counters()
        self._delayed_report: bytes | None = None  # it waits until the alarms before it are in Kafka
        self._published_report: bytes | None = None  # the one before it; None in a group that was loaded

    @property
    def plan_version(self) -> int:
        """The version of the plan that the group obeys, 0 before the first one."""
        return self._compiled.plan.version if self._compiled else 0

    @property
    def _plan(self) -> Plan | None:
        return self._compiled.plan if self._compiled else None

    @property
    def _topics(self) -> dict[str, Topic]:
        return self._compiled.topics if self._compiled else {}

    @property
    def _partners(self) -> Mapping[str, frozenset[str]]:
        return self._compiled.partners if self._compiled else {}

    @property
    def _definitions(self) -> Sequence[Definition]:
        return self._compiled.plan.definitions if self._compiled else ()

    # ---- state

    @staticmethod
    def load(
        partition: int,
        partitions: int,
        state: StateMap,
        cached: Group | None = None,
        file_access: FileAccess = NO_ACCESS,
    ) -> Group:
        """The group that `state` describes.

        `cached` is the last group of this partition in this process. It may be from a failed attempt or from
        an earlier time, so only those of its parts are used that are proved to be equal. `file_access`: the
        files that tables may name.
        """
        blob = state.get(META)
        if blob is None:
            return Group(partition, partitions, file_access)
        meta = orjson.loads(blob)
        if meta["format"] != FORMAT:
            raise RefusedError(
                f"the state has format {meta['format']}; this joiner reads {FORMAT}",
                hint="start with a new checkpoint",
            )
        if cached is not None and cached.token == meta["token"]:
            cached._store.begin_batch(cached._frontiers)
            cached._evaluated = cached._frontiers.reached()
            return cached
        self = Group(partition, partitions, file_access)
        self._read(meta, state)
        same_plan = cached is not None and cached.plan_version == self.plan_version
        store = cached._store if cached is not None and same_plan else None
        self._store = TupleStore.load(self._topics, self._frontiers, meta["slices"], state, store)
        return self

    def _read(self, meta: Mapping[str, Any], state: StateMap) -> None:
        if meta["partitions"] != self.partitions:
            raise RefusedError(
                f"the state belongs to a fleet with {meta['partitions']} partitions;"
                f" this fleet has {self.partitions}",
                hint="start with a new checkpoint",
            )
        self.token = meta["token"]
        if meta["plan"]:
            blob = state.get(f"plan/{meta['plan']}")
            assert blob is not None  # the same commit wrote the number
            self._set_plan(compile_plan(blob))
            # An error is reported until the alert is evaluated without one.
            alerts = {definition.alert for definition in self._definitions}
            before = {alert: why for alert, why in meta.get("unable", {}).items() if alert in alerts}
            self._errors = before | self._errors
        self._frontiers = Frontiers.from_json(meta["frontiers"], self._plan)
        self._evaluated = self._frontiers.reached()
        self._completeness = Completeness(meta.get("complete"))  # state of an older version has none
        self._began = meta.get("began", 0)  # state of an older version has none
        self._fences = meta.get("fences", {})
        if self._compiled:
            self._completeness.obey(self._compiled.plan)
            self._standing.load(self._compiled.plan, meta.get("standing", {}), state)
        self._pending = PendingRecords(meta["parked"])
        self._newer_plans = PendingRecords(meta.get("newer"), NEWER)  # state of an older version has none
        self._retry_plans = bool(self._newer_plans)
        self._shed = ShedSpans(meta.get("shed"))  # state of an older version has none
        self._counters = Counters.from_json(meta["counts"])
        self._delayed_report = meta["report"].encode() if meta["report"] else None

    def _write_meta(self, state: StateMap, token: str) -> None:
        self.token = token
        meta = {
            "format": FORMAT,
            "token": token,
            "partitions": self.partitions,
            "plan": self.plan_version,
            "frontiers": self._frontiers.to_json(),
            "complete": self._completeness.to_json(),
            "fences": self._fences,
            "began": self._began,
            "slices": self._store.to_json(),
            "standing": self._standing.to_json(),
            "parked": self._pending.to_json(),
            "newer": self._newer_plans.to_json(),
            "shed": self._shed.to_json(),
            "counts": self._counters.to_json(),
            "unable": self._errors,
            "report": self._delayed_report.decode() if self._delayed_report else None,
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
        """Process a batch and write what has changed to `state`.

        `plans` are records of the plan topic, `records` those of stream topics, one `Records` for each topic.
        `now` is the wall clock in microseconds. `token` is random and was never used before. After an
        exception this object can't be used any more, and `state` must not be committed.
        """
        out = Output()
        self._began = self._began or now
        before = self._delayed_report or self._published_report or self._report(self._mark_needed(), now)
        again = self._newer_plans.take_all(state) if self._retry_plans else []
        self._retry_plans = False
        for part in (*again, *plans):
            for row in range(len(part.values)):
                self._obey(part, row, state, out)
        self._take(self._read_all(records, out.dead_letters, arrived=True), state, out)
        self._counters.dead.update(letter.reason.value for letter in out.dead_letters)
        needed = self._mark_needed()
        self._shed.trim(self._definitions, self._frontiers)
        self._store.write(state, token)
        self._standing.write(state)
        report = self._report(needed, now)
        if out.alarms:
            # They are only in Kafka when this batch has ended: the report waits for the next one, which the
            # registry causes if no record comes.
            out.frontier, self._delayed_report = with_next(before), report
            self._published_report = None
        else:
            out.frontier, self._delayed_report, self._published_report = report, None, report
        self._write_meta(state, token)
        return out

    def _mark_needed(self) -> dict[str, Counter[str]]:
        return self._store.mark_needed(self._frontiers, self._plan.retiring if self._plan else {})

    def _report(self, needed: Mapping[str, Counter[str]], now: int) -> bytes:
        return frontier_report(
            partition=self.partition,
            plan=self._plan,
            topics=self._topics,
            frontiers=self._frontiers,
            store=self._store,
            needed=needed,
            standing=self._standing,
            counters=self._counters,
            pending=len(self._pending),
            errors=self._errors,
            began=self._began,
            now=now,
        )

    def _obey(self, plans: Records, row: int, state: StateMap, out: Output) -> None:
        """Obey the plan at `row` where it is newer and of this fleet.

        A plan of a newer format is kept, since it doesn't come again: after an upgrade the joiner obeys it.
        """
        try:
            compiled = compile_plan(plans.values[row])
        except InputError as error:
            if isinstance(error, NewerFormatError):
                self._newer_plans.add([plans.pick([row])], state)
            out.dead_letters.append(plans.dead_letter(row, Reason.UNDECODABLE, str(error)))
            return
        plan = compiled.plan
        if plan.partitions != self.partitions:
            why = f"the plan is for {plan.partitions} partitions, this fleet has {self.partitions}"
            out.dead_letters.append(plans.dead_letter(row, Reason.FOREIGN, why))
            return
        if plan.version <= self.plan_version:
            return
        if self._compiled:
            state.remove(f"plan/{self.plan_version}")
        for gone in self._topics.keys() - compiled.topics.keys():
            self._fences.pop(gone, None)
        state.put(f"plan/{plan.version}", plans.values[row])
        self._set_plan(compiled)
        self._frontiers.obey(plan)
        self._completeness.obey(plan)
        self._store.obey(compiled.topics, state)
        self._standing.obey(plan, state)
        # Those of them that can't be read became dead letters when they came.
        self._take(self._read_all(self._pending.take_all(state), []), state, out)
        self._frontiers.advance(compiled.partners)
        self._add_alarms(self._standing.advance(self._frontiers, plan.version), out)

    def _set_plan(self, compiled: CompiledPlan) -> None:
        self._compiled = compiled
        self._errors = missing_functions(compiled.functions)
        self._missing = frozenset(self._errors)

    def _read_all(
        self, records: Sequence[Records], dead: list[DeadLetter], *, arrived: bool = False
    ) -> list[Envelopes]:
        """`arrived`: they have just come; fences shut out some of them."""
        found = []
        for part in records:
            fences = self._fences.get(part.topic, {}) if arrived else None
            topic = self._topics.get(part.topic)
            if topic is None:
                found.append(read_envelopes(part, self.plan_version, dead, fences=fences))
            else:
                columns = columns_of(topic.schema, topic.fields)
                envelopes = read_envelopes(
                    part,
                    self.plan_version,
                    dead,
                    with_positions=topic.counted,
                    layout=topic.layout,
                    columns=columns,
                    time=topic.time,
                    fences=fences,
                )
                found.append(envelopes)
            if fences:
                self._fences[part.topic] = fences
        return found

    def _take(self, found: Sequence[Envelopes], state: StateMap, out: Output) -> None:
        """Take the spans of shed tuples, then tuples, then progress and final records. Records above the
        plan's version are stored until their plan arrives.
        """
        pending = [envelopes.records.pick(envelopes.pending) for envelopes in found if envelopes.pending]
        if pending:
            self._pending.add(pending, state)
        progress = [(envelopes.records.topic, record) for envelopes in found for record in envelopes.progress]
        for topic, record in progress:
            if record.shed is not None:
                self._shed.add(topic, record.shed)
        self._take_tuples(found, out)
        for topic, record in progress:
            self._completeness.take(topic, record, self._frontiers)
            self._frontiers.take(topic, record, self._partners)
            self._standing.take_progress(topic, record)
        if progress:
            self._frontiers.advance(self._partners)
            self._add_alarms(self._standing.advance(self._frontiers, self.plan_version), out)
        self._evaluate_existence(out)

    def _take_tuples(self, found: Sequence[Envelopes], out: Output) -> None:
        joined: list[tuple[str, TupleColumns]] = []
        counted: list[ArrivedTuples] = []
        cuts: list[ArrivedCut] = []
        for envelopes in found:
            topic = self._topics.get(envelopes.records.topic)
            if topic is None:
                continue
            cuts += self._read_cuts(envelopes, out)
            if not (envelopes.documents or envelopes.usual):
                continue
            tuples = tuple_columns(envelopes, topic.schema, topic.time, out.dead_letters, topic.fields)
            if not len(tuples.times):
                continue
            self._counters.late += int(tuples.late.sum())
            if topic.time:
                self._frontiers.note_tuples(topic.name, int(tuples.times.max()))
            if topic.joined:
                joined.append((topic.name, tuples))
            if topic.counted:
                counted.append(ArrivedTuples(topic.name, tuples, topic.counting))
        late, disordered = self._standing.late(), self._standing.disordered()
        self._add_alarms(self._standing.take(counted, self.plan_version), out)
        self._standing.take_cuts(cuts)
        self._counters.missed += self._standing.late() - late
        self._counters.disordered += self._standing.disordered() - disordered
        changed = self._store.add(joined)
        if self._compiled:
            alarms = evaluate_joins(
                self._compiled,
                self._store,
                changed,
                shed=self._shed,
                missing=self._missing,
                errors=self._errors,
            )
            for alert, raised in alarms:
                self._add_alarms({alert: raised}, out)

    def _read_cuts(self, envelopes: Envelopes, out: Output) -> list[ArrivedCut]:
        """The cuts of a topic with their rows. Those that can't be read become dead letters."""
        arrived, records = [], envelopes.records
        for record in envelopes.cuts:
            try:
                arrived.append(arrived_cut(records.topic, record))
            except InputError as error:
                why = f"a cut with rows that can't be read: {error}"
                out.dead_letters.append(records.dead_letter(record.row, Reason.UNDECODABLE, why))
        return arrived

    def _evaluate_existence(self, out: Output) -> None:
        """Raise the alarms of EXISTS and NOT EXISTS, over the new tuples and frontiers. Then no tuple is new
        any more.
        """
        if self._compiled and self._compiled.tests_existence:
            alarms = evaluate_existence(
                self._compiled,
                self._store,
                Moved(self._evaluated, self._frontiers, self._completeness),
                shed=self._shed,
                missing=self._missing,
                errors=self._errors,
                late=self._counters.missed,
            )
            for alert, raised in alarms:
                self._add_alarms({alert: raised}, out)
            self._store.settle()
        self._evaluated = self._frontiers.reached()

    def _add_alarms(self, alarms: Mapping[str, list[KeyValue]], out: Output) -> None:
        for alert, raised in alarms.items():
            out.alarms += raised
            self._counters.alarms[alert] += len(raised)
