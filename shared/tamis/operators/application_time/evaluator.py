"""Evaluator of a query in application time, tuple by tuple (execution model of schiff-2020)."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tamis.difference_bounds import Bound
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.partial_combinations import Part, components, parts
from tamis.operators.application_time.store import Entry, Index, Key, Shown, Store
from tamis.operators.synopses.evaluator import Filter

Check = tuple[int, int, int]  # left - right <= bound, of nodes

Values = list[Bound | None]


@dataclass(frozen=True)
class Stage:
    """One part, or static relation, that a tuple is joined with: by equality with nodes that are known
    already (each node in `mine` has the value of the node in `theirs` plus an offset), and by `checks`.
    """

    occurrences: tuple[int, ...]
    nodes: tuple[int, ...]
    mine: tuple[int, ...]
    theirs: tuple[tuple[int, int], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Plan:
    """The stages that a tuple is joined with. The result is the part `whole`, or rows of the result if
    `whole` is None.
    """

    whole: tuple[int, ...] | None
    stages: tuple[Stage, ...]


def plans(timed: TimedQuery, kept: Sequence[Part], occurrence: int) -> tuple[Plan, ...]:
    """All ways in which a tuple at an occurrence completes a part or a row, larger ones first."""
    stored = {part.members for part in kept}
    found = []
    for members in [timed.streams, *sorted(stored, key=len, reverse=True)]:
        if occurrence not in members:
            continue
        rest = components(timed, (x for x in members if x != occurrence))
        if not all(one in stored for one in rest):
            continue
        last = members == timed.streams
        groups = [*rest, *((x,) for x in timed.statics)] if last else list(rest)
        found.append(Plan(None if last else members, _stages(timed, occurrence, groups)))
    return tuple(found)


def _stages(timed: TimedQuery, occurrence: int, groups: Sequence[tuple[int, ...]]) -> tuple[Stage, ...]:
    query, closure = timed.query, timed.closure
    seen = list(query.own(occurrence))
    left, stages = list(groups), []
    while left:
        # Groups that an equality finds come first.
        best = max(left, key=lambda group: len(_equalities(timed, group, seen)))
        left.remove(best)
        nodes = tuple(node for x in best for node in query.own(x))
        equal = _equalities(timed, best, seen)
        checks = []
        for a in nodes:
            for b in seen:
                if a in timed.times and b in timed.times:
                    continue
                for one, other in ((a, b), (b, a)):
                    bound = closure.between(one, other)
                    if bound < closure.upper(one) - closure.lower(other):
                        checks.append((one, other, int(bound)))
        stages.append(Stage(best, nodes, tuple(equal), tuple(equal.values()), tuple(checks)))
        seen += nodes
    return tuple(stages)


def _equalities(timed: TimedQuery, group: tuple[int, ...], seen: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Nodes of a group at a fixed distance from a known node, neither of which may be NULL: the known node
    and the distance.
    """
    found = {}
    skipped = timed.times | {at for at, node in enumerate(timed.query.nodes, 1) if node.nullable}
    for x in group:
        for a in timed.query.own(x):
            for b in seen:
                if a in skipped or b in skipped or not timed.closure.fixed(a, b):
                    continue
                found[a] = (b, int(timed.closure.between(a, b)))
                break
    return found


@dataclass(frozen=True)
class Condition:
    """A condition over several occurrences that is no difference."""

    occurrences: frozenset[int]
    holds: Callable[[Sequence[Shown]], bool]


class Evaluator:
    """Evaluates one conjunction without contradiction. Tuples must come in order of time, and the rows of
    static relations before all of them.

    The entries are bounded if `decide.failures` finds nothing; the rows are right in any case.
    """

    def __init__(self, timed: TimedQuery, conditions: Sequence[Condition] = ()) -> None:
        self.timed = timed
        self.now: Bound = -float("inf")
        kept = parts(timed)
        self.stores = {part.members: Store(timed, part) for part in kept}
        self.statics: dict[int, dict[Key, Entry]] = {i: {} for i in timed.statics}
        self._static_indexes: dict[tuple[int, tuple[int, ...]], Index] = {}
        self._plans = {i: plans(timed, kept, i) for i in timed.streams}
        self._conditions = conditions
        occurrences = range(len(timed.query.streams))
        self._filters = [Filter(timed.query, timed.closure, i) for i in occurrences]
        self._changes: list[tuple[Bound, int, tuple[int, ...], int, Key]] = []
        self._number = itertools.count()
        for of_occurrence in self._plans.values():
            for plan in of_occurrence:
                for stage in plan.stages:
                    self._prepare(stage)

    @property
    def entries(self) -> int:
        """The number of entries that are kept now."""
        return sum(map(len, self.stores.values())) + sum(map(len, self.statics.values()))

    def add_relation_row(self, occurrence: int, values: Values, shown: Shown) -> None:
        """Add one row of a static relation."""
        if not self._filters[occurrence].passes(values):
            return
        key = (*(values[node] for node in self.timed.query.own(occurrence)), shown)
        entries = self.statics[occurrence]
        if key in entries:
            entries[key].count += 1
            return
        every: list[Shown] = [None] * len(self.timed.query.streams)
        every[occurrence] = shown
        entries[key] = entry = Entry(values, every)
        for (of, _), index in self._static_indexes.items():
            if of == occurrence:
                index.add(entry)

    def advance(self, now: Bound) -> None:
        """Advance time to `now`: no tuple before it will come any more."""
        if now <= self.now:
            return
        self.now = now
        while self._changes and self._changes[0][0] <= now:
            _, _, members, cell, key = heapq.heappop(self._changes)
            entry = self.stores[members].remove(cell, key)
            if entry is not None:
                self._keep(members, entry)

    def push(self, occurrence: int, values: Values, shown: Shown) -> Iterator[tuple[list[Shown], int]]:
        """Take a tuple at one occurrence, not before `now`, and yield the rows that it completes, each with
        its count.

        `values` stand at the numbers of its nodes, with None for NULL; a tuple with a NULL that is compared
        must not be pushed. Take all rows before the next tuple is pushed. Push a tuple of a self-join at each
        occurrence.
        """
        if not self._filters[occurrence].passes(values):
            return
        time = self.timed.arrivals[occurrence].time
        at = values[time] if time else None
        every: list[Shown] = [None] * len(self.timed.query.streams)
        every[occurrence] = shown
        new = Entry(values, every)
        grown: list[tuple[tuple[int, ...], Entry]] = []
        for plan in self._plans[occurrence]:
            for entry in self._joined(plan, occurrence, new, at):
                if plan.whole is None:
                    yield entry.shown, entry.count
                else:
                    grown.append((plan.whole, entry))
        for members, entry in grown:
            self._keep(members, entry)

    def restore(self, members: tuple[int, ...], entry: Entry) -> None:
        """Put back an entry that was kept."""
        self._keep(members, entry)

    def _prepare(self, stage: Stage) -> None:
        if stage.occurrences in self.stores:
            self.stores[stage.occurrences].index(stage.mine)
        elif stage.mine:
            self._static_indexes.setdefault((stage.occurrences[0], stage.mine), Index(stage.mine))

    def _keep(self, members: tuple[int, ...], entry: Entry) -> None:
        for change, cell, key in self.stores[members].insert(entry, self.now):
            heapq.heappush(self._changes, (change, next(self._number), members, cell, key))

    def _joined(self, plan: Plan, occurrence: int, new: Entry, at: Bound | None) -> Iterator[Entry]:
        """The combinations of a new tuple with entries of the stages."""
        conditions = self._conditions_by_stage(plan, occurrence)
        if not plan.stages:
            if all(one.holds(new.shown) for one in conditions[0]):
                yield Entry(new.values, new.shown)
            return

        def grow(stage: int, so_far: Entry) -> Iterator[Entry]:
            if stage == len(plan.stages):
                yield so_far
                return
            one = plan.stages[stage]
            for entry in self._candidates(one, so_far.values):
                if at is not None and not entry.fits(occurrence, at):
                    continue
                values = so_far.values[:]
                for node in one.nodes:
                    values[node] = entry.values[node]
                # Compared values are never NULL: tuples with NULL there were filtered out.
                if any(values[a] - values[b] > bound for a, b, bound in one.checks):  # type: ignore[operator]
                    continue
                shown = so_far.shown[:]
                for x in one.occurrences:
                    shown[x] = entry.shown[x]
                if all(condition.holds(shown) for condition in conditions[stage + 1]):
                    yield from grow(stage + 1, Entry(values, shown, so_far.count * entry.count))

        if all(one.holds(new.shown) for one in conditions[0]):
            yield from grow(0, new)

    def _conditions_by_stage(self, plan: Plan, occurrence: int) -> list[list[Condition]]:
        """For each stage, the conditions that can be tested there for the first time."""
        seen = {occurrence}
        left = list(self._conditions)
        by_stage: list[list[Condition]] = []
        for joined in [(), *(stage.occurrences for stage in plan.stages)]:
            seen |= set(joined)
            by_stage.append([one for one in left if one.occurrences <= seen])
            left = [one for one in left if not one.occurrences <= seen]
        return by_stage

    def _candidates(self, stage: Stage, values: Values) -> list[Entry]:
        key = tuple(values[b] + offset for b, offset in stage.theirs)  # type: ignore[operator]
        if stage.occurrences in self.stores:
            return self.stores[stage.occurrences].candidates(stage.mine, key)
        occurrence = stage.occurrences[0]
        if stage.mine:
            return self._static_indexes[occurrence, stage.mine].matching(key)
        return list(self.statics[occurrence].values())
