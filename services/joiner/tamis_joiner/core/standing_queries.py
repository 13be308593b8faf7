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
from operator import attrgetter
from typing import Any

from tamis.declarations.file_access import FileAccess
from tamis.errors import TamisError
from tamis.plan.model import Plan, StandingQuery
from tamis_joiner.core.alarms import KeyValue, Numbering, standing_alarms
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.query_progress import QueryProgress
from tamis_joiner.core.records.cut_records import ArrivedCut
from tamis_joiner.core.records.envelopes import ProgressRecord
from tamis_joiner.core.running_query import ArrivedTuples, Found, RunningQuery
from tamis_joiner.core.state import StateMap

Alarms = list[KeyValue]

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
            self._begin(query, QueryProgress.from_json(meta.get(_name(query), {})), state)
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

    def take_cuts(self, cuts: Iterable[ArrivedCut]) -> None:
        """Take the partial aggregates of a batch, those of a topic in the order of their offsets. Rows come
        with the frontiers.
        """
        arrived = sorted(cuts, key=attrgetter("topic"))
        self._evaluate(
            0,
            lambda running: (
                running.take_cut(cut)
                for cut in arrived
                if any(source.topic == cut.topic for source in running.query.inputs)
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

    def disordered(self) -> Counter[str]:
        """By alert, the cuts that didn't follow the one before, since its running queries began."""
        found: Counter[str] = Counter()
        for running in self._running.values():
            found[running.query.alert] += running.progress.disordered
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
        return {name: progress.to_json() for name, progress in (running | self._suspended).items()}

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
        for running in list(self._running.values()):
            query, raised = running.query, alarms.setdefault(running.query.alert, [])
            try:
                for rows, times, arrived in filter(None, steps(running)):
                    numbering = Numbering(plan, self._partition, running.progress.rows)
                    running.progress.rows += len(rows)
                    raised += standing_alarms(query, numbering, rows, times, arrived)
                    self.errors.pop(query.alert, None)
            except TamisError as error:
                self.errors[query.alert] = str(error)
                self._restore(running)
        return alarms

    def _restore(self, running: RunningQuery) -> None:
        """Restore a query after an error; where this fails too, since the file of a table has changed, the
        query is suspended.
        """
        try:
            running.restore()
        except TamisError as error:
            self.errors[running.query.alert] = str(error)
            name = _name(running.query)
            self._suspended[name] = self._running.pop(name).progress


def _name(query: StandingQuery) -> str:
    return f"{query.alert}@{query.version}"


def _state_name(name: str) -> str:
    return f"standing/{name}"
