"""The standing queries of one output partition: each tuple is shown to each query once, and its rows are
numbered.

    standing/<alert>@<version>   the query's synopses, as the query dumps them

Of one shard and topic the tuples that pass a query's filter come in the order of their places, but for those
that come again after a restart; so what was taken is told by one place, and all up to it are doubles. The
places, and the number of the next row, are in `meta`: they change in the same commit as the synopses.
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

from tamis.errors import TamisError
from tamis.evaluation.dispatch import Dispatch, Held
from tamis.evaluation.standing import CountsLate, Rows, Standing, standing
from tamis.expressions.evaluate import holds
from tamis.planning.plan import Input, Plan, StandingQuery
from tamis.query.reach import Reach
from tamis_joiner.core.decode import NOTHING_YET, Fresh, Mark
from tamis_joiner.core.frontiers import Frontiers
from tamis_joiner.core.row_alarms import row_alarms
from tamis_joiner.core.state import StateMap

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Alarms = list[tuple[bytes, bytes]]
Found = tuple[Rows, Ints, Ints | None] | None  # rows, with the times and arrivals of what completed them


@dataclass(frozen=True)
class Arrived:
    """Tuples that came on a topic, in the order of their offsets. `dispatch` has the filters of all that are
    standing.
    """

    topic: str
    tuples: Fresh
    dispatch: Dispatch

    def passing(self, source: Input) -> Bools:
        """Which pass the filter of an input. Raises FunctionError where that can't be told."""
        row = self.dispatch.find(source.filter)
        if row is None:
            # A query goes on as it was begun, and a later release may have written its filter otherwise.
            count = len(self.tuples.times)
            columns = {("", name): column for name, column in self.tuples.columns.items()}
            return np.ones(count, np.bool_) if source.filter is None else holds(source.filter, columns, count)
        if row in self._held.failed:
            raise self._held.failed[row]
        found: Bools = self._held.found[row]
        return found

    @cached_property
    def _held(self) -> Held:
        return self.dispatch.over(self.tuples.columns, len(self.tuples.times))


@dataclass
class Counts:
    """What is remembered of one query beside its synopses. `rows`: how many it has given; `taken`: the
    greatest place by topic and shard; `advanced`: by topic, up to which event time it was told that nothing
    more will come; `latest`: the greatest time taken.
    """

    rows: int = 0
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    advanced: dict[str, int] = field(default_factory=dict)
    latest: int = NOTHING_YET


class Running:
    """One standing query at work."""

    def __init__(self, query: StandingQuery, counts: Counts, reach: Reach) -> None:
        """Raises TamisError where it can't be evaluated here."""
        self.query = query
        self._reach = reach
        self.counts = counts
        self.until: int | None = None  # the version of the plan that replaced it, whose tuples aren't its own
        self.changed = True
        self.saved: bytes | None = None
        self._set(standing(query.sql, query.alert, reach))

    def _set(self, evaluator: Standing) -> None:
        self._evaluator = evaluator
        self._counting_late = evaluator if isinstance(evaluator, CountsLate) else None

    @property
    def entries(self) -> int:
        """Live entries."""
        return self._evaluator.entries()

    @property
    def size(self) -> int:
        """Bytes of the last dump."""
        return len(self.saved or b"")

    def load(self, blob: bytes | None) -> None:
        """Go on from a dump."""
        if blob is not None:
            self._evaluator.load(blob)
            self.saved, self.changed = blob, False

    def dump(self) -> bytes:
        """The synopses, for `load`."""
        self.saved, self.changed = self._evaluator.dump(), False
        return self.saved

    def restore(self) -> None:
        """Go back to the last dump: something failed half way. What was taken since is not counted."""
        self._set(standing(self.query.sql, self.query.alert, self._reach))
        self.load(self.saved)

    @property
    def late(self) -> int:
        """How many tuples came too late for some of what they belong to."""
        return self._counting_late.late if self._counting_late else 0

    def take(self, source: Input, arrived: Arrived) -> Found:
        """The rows that tuples of one topic make, with the time of the tuple that completed each and when it
        arrived.
        """
        # Before doubles are told: what a topic carries for other queries has places in another order.
        keep = arrived.passing(source)
        if not keep.any():
            return None
        tuples = arrived.tuples
        keep = keep & self._own(tuples.versions) & (tuples.places >= 0)
        at = self._fresh(source.topic, np.flatnonzero(keep), tuples)
        when = tuples.times if source.time else tuples.arrived
        if len(at) == 0:
            return None
        self.changed = True
        self.counts.latest = max(self.counts.latest, int(when[at].max()))
        batch = {name: column.take(at) for name, column in tuples.columns.items()}
        rows = self._evaluator.take(source.stream, batch, len(at))
        completed = at[rows.completed]
        return rows, when[completed], tuples.arrived[completed]

    def advance(self, source: Input, frontier: int) -> Found:
        """The rows that follow from how far a topic has come."""
        if not source.time or frontier <= self.counts.advanced.get(source.topic, NOTHING_YET):
            return None
        self.counts.advanced[source.topic] = frontier
        self.changed = True
        rows = self._evaluator.advance(source.stream, frontier)
        # What has ended has come to the end of time: its last rows are of its last tuple.
        times = np.full(len(rows), min(frontier, self.counts.latest)) if rows.times is None else rows.times
        return rows, times, None

    def passed(self, topic: str, mark: Mark) -> None:
        """A shard has said up to which place all of it is there."""
        if mark.place is not None and self._own(np.array([mark.version]))[0]:
            taken = self.counts.taken.setdefault(topic, {})
            taken[mark.shard] = max(taken.get(mark.shard, -1), mark.place - 1)

    def _own(self, versions: Ints) -> Bools:
        found: Bools = versions >= self.query.version
        return found if self.until is None else found & (versions < self.until)

    def _fresh(self, topic: str, at: Ints, tuples: Fresh) -> Ints:
        """Those that weren't taken before."""
        taken = self.counts.taken.setdefault(topic, {})
        keep = np.zeros(len(at), np.bool_)
        shards = tuples.shards[at]
        for shard in dict.fromkeys(shards.tolist()):
            mine = np.flatnonzero(shards == shard)
            places = tuples.places[at[mine]]
            reached = np.maximum.accumulate(np.append(taken.get(shard, -1), places))
            keep[mine] = places > reached[:-1]
            taken[shard] = int(reached[-1])
        return at[keep]


Steps = Callable[[Running], Iterable[Found]]


class StandingQueries:
    """All that the plan has, in output partition `partition`; `reach`: of the paths of tables. `unable`: why
    an alert isn't evaluated.
    """

    def __init__(self, partition: int, reach: Reach) -> None:
        self.unable: dict[str, str] = {}
        self._partition = partition
        self._reach = reach
        self._running: dict[str, Running] = {}

    def load(self, plan: Plan, meta: Mapping[str, Any], state: StateMap) -> None:
        """Go on from a state; `meta` is as `to_json` wrote it."""
        for query in plan.standing:
            self._begin(query, Counts(**meta.get(_id(query), {})), state)
        self._until(plan)

    def obey(self, plan: Plan, state: StateMap) -> None:
        """Begin the plan's new queries, and forget those that have gone."""
        named = {_id(query) for query in plan.standing}
        for gone in self._running.keys() - named:
            state.remove(_blob(gone))
            del self._running[gone]
        self.unable = {}
        for query in plan.standing:
            if _id(query) not in self._running:
                self._begin(query, Counts(), state)
        self._until(plan)

    def take(self, arrived: Iterable[Arrived], plan: int) -> dict[str, Alarms]:
        """The alarms of what has arrived, by alert."""
        # In an order that a batch which comes again has again: its topics come in any.
        parts = sorted(arrived, key=attrgetter("topic"))
        return self._each(
            plan,
            lambda one: (
                one.take(source, part)
                for part in parts
                for source in one.query.inputs
                if source.topic == part.topic
            ),
        )

    def advance(self, frontiers: Frontiers, plan: int) -> dict[str, Alarms]:
        """The alarms that follow from the frontiers, by alert."""
        return self._each(plan, lambda one: (one.advance(s, frontiers.of(s.topic)) for s in one.query.inputs))

    def passed(self, topic: str, mark: Mark) -> None:
        """A progress record was taken."""
        for one in self._running.values():
            if any(source.topic == topic for source in one.query.inputs):
                one.passed(topic, mark)

    def late(self) -> Counter[str]:
        """By alert, how many tuples have come too late to count since the queries began that run now."""
        found: Counter[str] = Counter()
        for one in self._running.values():
            found[one.query.alert] += one.late
        return found

    def entries(self) -> dict[str, int]:
        """Live entries by "alert@version"."""
        return {name: one.entries for name, one in self._running.items()}

    def sizes(self) -> dict[str, int]:
        """Bytes of the synopses as they were last written, by "alert@version"."""
        return {name: one.size for name, one in self._running.items()}

    def bounds(self) -> dict[str, int]:
        """The most entries that there may be over all partitions, where proven, by "alert@version"."""
        return {name: most for name, one in self._running.items() if (most := one.query.bound) is not None}

    def write(self, state: StateMap) -> None:
        """Write what has changed: of a query that was only told the time, mostly nothing."""
        for name, one in self._running.items():
            saved = one.saved
            if one.changed and (dumped := one.dump()) != saved:
                state.put(_blob(name), dumped)

    def to_json(self) -> dict[str, Any]:
        """What `load` takes."""
        return {name: vars(one.counts) for name, one in self._running.items()}

    def _begin(self, query: StandingQuery, counts: Counts, state: StateMap) -> None:
        try:
            one = Running(query, counts, self._reach)
            one.load(state.get(_blob(_id(query))))
        except TamisError as error:
            self.unable[query.alert] = str(error)
        else:
            self._running[_id(query)] = one

    def _until(self, plan: Plan) -> None:
        for name, one in self._running.items():
            one.until = plan.retiring.get(name)

    def _each(self, plan: int, steps: Steps) -> dict[str, Alarms]:
        """Do the steps of every query. Where one fails, it is told why, and the others go on."""
        alarms: dict[str, Alarms] = {}
        for one in self._running.values():
            query, raised = one.query, alarms.setdefault(one.query.alert, [])
            try:
                for found in filter(None, steps(one)):
                    rows, times, came = found
                    place = plan, self._partition, one.counts.rows
                    one.counts.rows += len(rows)
                    raised += row_alarms(query, place, rows, times, came)
                    self.unable.pop(query.alert, None)
            except TamisError as error:
                one.restore()
                self.unable[query.alert] = str(error)
        return alarms


def _id(query: StandingQuery) -> str:
    return f"{query.alert}@{query.version}"


def _blob(name: str) -> str:
    return f"standing/{name}"
