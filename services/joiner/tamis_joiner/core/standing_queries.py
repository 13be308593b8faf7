"""Standing queries of one output partition: queries that count tuples, and so must take each tuple once.

The tuples of one shard and topic that pass a query's filter arrive in the order of their positions in the
shard's source, except for tuples that are sent again after a restart. So one position for each shard and
topic is enough to find duplicates: all tuples up to it were already taken. docs/exactly-once.md describes the
whole way of a tuple from its source to here.

The state has the synopses of a query, as the query dumps them, under `standing/<alert>@<version>`. The
positions of the tuples that were taken and the number of the next row are in `meta`, which changes in the
same commit as the synopses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.backfill import raw_name
from tamis.declarations.file_access import FileAccess
from tamis.errors import TamisError
from tamis.expressions.evaluate import holds
from tamis.operators.build import operator
from tamis.operators.contract import CountsLate, Rows, StandingEvaluator
from tamis.operators.time_join.filter_dispatch import Dispatch, FilterResults
from tamis.plan.model import Input, Plan, StandingQuery
from tamis_joiner.core.alarms import KeyValue, Numbering, standing_alarms
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.records.envelopes import BEGINNING_OF_TIME, ProgressRecord
from tamis_joiner.core.records.tuple_columns import TupleColumns
from tamis_joiner.core.state import StateMap

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Rows, with the event times and the arrivals of the tuples that completed them.
Found = tuple[Rows, Ints, Ints | None] | None

Alarms = list[KeyValue]


@dataclass(frozen=True)
class ArrivedTuples:
    """Tuples of one topic in the order of their offsets. `dispatch`: the compiled filters of the standing
    queries that read the topic.
    """

    topic: str
    tuples: TupleColumns
    dispatch: Dispatch

    def passing(self, source: Input) -> Bools:
        """A mask of the tuples that pass the filter of an input. Raises FunctionError if a function that
        the filter calls has failed.
        """
        row = self.dispatch.find(source.filter)
        if row is None:
            # A running query keeps its first filter, which a later release may write in another form.
            count = len(self.tuples.times)
            columns = {("", name): column for name, column in self.tuples.columns.items()}
            return np.ones(count, np.bool_) if source.filter is None else holds(source.filter, columns, count)
        if row in self._held.failed:
            raise self._held.failed[row]
        found: Bools = self._held.found[row]
        return found

    @cached_property
    def _held(self) -> FilterResults:
        return self.dispatch.over(self.tuples.columns, len(self.tuples.times))


@dataclass
class QueryProgress:
    """Progress of a query; it is stored in `meta` as JSON under these names.

    `rows`: the number of rows so far. `taken`: by topic and shard, the greatest position that was taken.
    `advanced`: by topic, the last frontier that the query was advanced to. `latest`: the greatest event time
    that was taken.
    """

    rows: int = 0
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    advanced: dict[str, int] = field(default_factory=dict)
    latest: int = BEGINNING_OF_TIME


class RunningQuery:
    """A standing query with its synopses and its progress."""

    def __init__(self, query: StandingQuery, progress: QueryProgress, file_access: FileAccess) -> None:
        """Raises TamisError if the query can't be evaluated here."""
        self.query = query
        self.progress = progress
        # The version of the plan that replaced the query: tuples of that plan belong to its successor.
        self.until: int | None = None
        self.changed = True
        self.saved: bytes | None = None
        self._file_access = file_access
        self._set(operator(query.node, file_access))

    def _set(self, evaluator: StandingEvaluator) -> None:
        self._evaluator = evaluator
        self._late_counter = evaluator if isinstance(evaluator, CountsLate) else None

    @property
    def entries(self) -> int:
        """The number of live entries of the synopses."""
        return self._evaluator.entries()

    @property
    def size(self) -> int:
        """The size of the last dump in bytes."""
        return len(self.saved or b"")

    @property
    def late(self) -> int:
        """The number of tuples that arrived too late for at least one of the windows or rows to which they
        belong.
        """
        return self._late_counter.late if self._late_counter else 0

    def load(self, blob: bytes | None) -> None:
        """Continue from a dump; None leaves the query at its beginning."""
        if blob is not None:
            self._evaluator.load(blob)
            self.saved, self.changed = blob, False

    def dump(self) -> bytes:
        """The synopses as bytes, for `load`."""
        self.saved, self.changed = self._evaluator.dump(), False
        return self.saved

    def restore(self) -> None:
        """Go back to the last dump after an error. The tuples taken since then are not counted."""
        self._set(operator(self.query.node, self._file_access))
        self.load(self.saved)

    def take(self, source: Input, arrived: ArrivedTuples) -> Found:
        """Take the tuples of one topic; return the rows that they complete."""
        # The filter comes first: tuples that a topic carries for other queries have positions in another
        # order.
        keep = arrived.passing(source)
        if not keep.any():
            return None
        tuples = arrived.tuples
        keep = keep & self._of_own_version(tuples.versions) & (tuples.positions >= 0)
        at = self._not_taken(source.topic, np.flatnonzero(keep), tuples)
        when = tuples.times if source.time else tuples.arrived
        if len(at) == 0:
            return None
        self.changed = True
        self.progress.latest = max(self.progress.latest, int(when[at].max()))
        batch = {name: column.take(at) for name, column in tuples.columns.items()}
        rows = self._evaluator.take(raw_name(source.stream), batch, len(at))
        completed = at[rows.completed]
        return rows, when[completed], tuples.arrived[completed]

    def advance(self, source: Input, frontier: int) -> Found:
        """Advance a topic to its frontier; return the rows that this completes."""
        if not source.time or frontier <= self.progress.advanced.get(source.topic, BEGINNING_OF_TIME):
            return None
        self.progress.advanced[source.topic] = frontier
        self.changed = True
        rows = self._evaluator.advance(raw_name(source.stream), frontier)
        # The frontier of a stream that has ended is the end of time: its last rows get its last event time.
        latest = min(frontier, self.progress.latest)
        times = np.full(len(rows), latest) if rows.times is None else rows.times
        return rows, times, None

    def take_progress(self, topic: str, record: ProgressRecord) -> None:
        """Note up to which position all tuples of a shard have arrived."""
        if record.position is not None and self._of_own_version(np.array([record.version]))[0]:
            taken = self.progress.taken.setdefault(topic, {})
            taken[record.shard] = max(taken.get(record.shard, -1), record.position - 1)

    def _of_own_version(self, versions: Ints) -> Bools:
        found: Bools = versions >= self.query.version
        return found if self.until is None else found & (versions < self.until)

    def _not_taken(self, topic: str, at: Ints, tuples: TupleColumns) -> Ints:
        """The rows of `at` that weren't taken before; they count as taken from now on."""
        taken = self.progress.taken.setdefault(topic, {})
        keep = np.zeros(len(at), np.bool_)
        shards = tuples.shards[at]
        for shard in dict.fromkeys(shards.tolist()):
            of_shard = np.flatnonzero(shards == shard)
            positions = tuples.positions[at[of_shard]]
            reached = np.maximum.accumulate(np.append(taken.get(shard, -1), positions))
            keep[of_shard] = positions > reached[:-1]
            taken[shard] = int(reached[-1])
        return at[keep]


Steps = Callable[[RunningQuery], Iterable[Found]]


class StandingQueries:
    """The standing queries of the plan in output partition `partition`. `file_access`: the files that tables
    may name. `errors`: by alert, the reason why a query isn't evaluated.
    """

    def __init__(self, partition: int, file_access: FileAccess) -> None:
        self.errors: dict[str, str] = {}
        self._partition = partition
        self._file_access = file_access
        self._running: dict[str, RunningQuery] = {}
        # Progress of queries that can't be evaluated here: they continue from it when they can.
        self._suspended: dict[str, QueryProgress] = {}

    def load(self, plan: Plan, meta: Mapping[str, Any], state: StateMap) -> None:
        """Continue from the state; `meta` is the result of `to_json`."""
        for query in plan.standing:
            self._begin(query, QueryProgress(**meta.get(_name(query), {})), state)
        self._set_until(plan)

    def obey(self, plan: Plan, state: StateMap) -> None:
        """Begin the queries that are new in the plan, and remove queries that the plan doesn't have."""
        names = {_name(query) for query in plan.standing}
        for removed in (self._running.keys() | self._suspended.keys()) - names:
            state.remove(_state_name(removed))
            self._running.pop(removed, None)
            self._suspended.pop(removed, None)
        self.errors = {}
        for query in plan.standing:
            if _name(query) not in self._running:
                self._begin(query, self._suspended.pop(_name(query), QueryProgress()), state)
        self._set_until(plan)

    def take(self, arrived: Iterable[ArrivedTuples], plan: int) -> dict[str, Alarms]:
        """Take the tuples of a batch; return the alarms by alert. `plan` is the version in use."""
        # Spark may give the topics of a repeated batch in another order, and rows must get the same numbers.
        parts = sorted(arrived, key=attrgetter("topic"))
        return self._evaluate(
            plan,
            lambda running: (
                running.take(source, part)
                for part in parts
                for source in running.query.inputs
                if source.topic == part.topic
            ),
        )

    def advance(self, frontiers: Frontiers, plan: int) -> dict[str, Alarms]:
        """Advance all queries to the frontiers; return the alarms by alert."""
        return self._evaluate(
            plan,
            lambda running: (running.advance(s, frontiers.of(s.topic)) for s in running.query.inputs),
        )

    def take_progress(self, topic: str, record: ProgressRecord) -> None:
        """Take a progress record of a topic."""
        for running in self._running.values():
            if any(source.topic == topic for source in running.query.inputs):
                running.take_progress(topic, record)

    def late(self) -> Counter[str]:
        """By alert, the tuples that arrived too late for its running queries since these began."""
        found: Counter[str] = Counter()
        for running in self._running.values():
            found[running.query.alert] += running.late
        return found

    def entries(self) -> dict[str, int]:
        """Live entries of the synopses, by "alert@version"."""
        return {name: running.entries for name, running in self._running.items()}

    def sizes(self) -> dict[str, int]:
        """The size of the synopses in the state in bytes, by "alert@version"."""
        return {name: running.size for name, running in self._running.items()}

    def bounds(self) -> dict[str, int]:
        """Proven bounds of the entries over all partitions, by "alert@version"; queries without one are left
        out.
        """
        bounds = {name: running.query.bound for name, running in self._running.items()}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def write(self, state: StateMap) -> None:
        """Write the synopses that have changed. If a query was only advanced, most of its synopses are the
        same as before.
        """
        for name, running in self._running.items():
            saved = running.saved
            if running.changed and (dumped := running.dump()) != saved:
                state.put(_state_name(name), dumped)

    def to_json(self) -> dict[str, Any]:
        """The progress of all queries, for `load`."""
        running = {name: running.progress for name, running in self._running.items()}
        return {name: vars(progress) for name, progress in (running | self._suspended).items()}

    def _begin(self, query: StandingQuery, progress: QueryProgress, state: StateMap) -> None:
        try:
            running = RunningQuery(query, progress, self._file_access)
            running.load(state.get(_state_name(_name(query))))
        except TamisError as error:
            self.errors[query.alert] = str(error)
            self._suspended[_name(query)] = progress
        else:
            self._running[_name(query)] = running

    def _set_until(self, plan: Plan) -> None:
        for name, running in self._running.items():
            running.until = plan.retiring.get(name)

    def _evaluate(self, plan: int, steps: Steps) -> dict[str, Alarms]:
        """Perform the steps of every query. A query that fails is restored; the others continue."""
        alarms: dict[str, Alarms] = {}
        for running in self._running.values():
            query, raised = running.query, alarms.setdefault(running.query.alert, [])
            try:
                for rows, times, arrived in filter(None, steps(running)):
                    numbering = Numbering(plan, self._partition, running.progress.rows)
                    running.progress.rows += len(rows)
                    raised += standing_alarms(query, numbering, rows, times, arrived)
                    self.errors.pop(query.alert, None)
            except TamisError as error:
                running.restore()
                self.errors[query.alert] = str(error)
        return alarms


def _name(query: StandingQuery) -> str:
    return f"{query.alert}@{query.version}"


def _state_name(name: str) -> str:
    return f"standing/{name}"
