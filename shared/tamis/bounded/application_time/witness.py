"""Witnesses in application time: inputs that need unlimited memory in every evaluator.

A witness of size n has n groups of *stored* tuples, one group after the other, and then a *completion*: the
missing tuples for one of these groups. A group has a tuple for each occurrence of a part
that fails a condition (see `decide`). The values of different groups are far apart. If the number of rows
that DISTINCT remembers is the problem, each group completes a row, and the completion repeats the group. The
tuples of finite streams come before all others.

Take any two subsets of the groups as input. Some completion must add different rows for them. So an evaluator
needs a different state for each of the 2^n subsets. `tells_apart` checks this by brute force.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.application_time.decide import Failure
from tamis.bounded.application_time.translate import Alternative
from tamis.bounded.timeless.proof import COUNTED, GROWING, SHOWN, Growth
from tamis.bounded.timeless.witness import (
    Tuple,
    blocks,
    equal_in_expressions,
    new_rows,
    nodes_of,
    plain_join,
    spacing,
)
from tamis.difference_bounds import Bound, Closure
from tamis.operators.application_time.arrivals import TimedQuery
from tamis.operators.application_time.evaluator import Evaluator

Rows = Mapping[int, Sequence[Mapping[int, int]]]  # of static relations: occurrence, rows, values by node
Named = tuple[str, Tuple]  # a stream, and a tuple of it

# The most choices of rows of static relations, and combinations in all joins of a witness, that are tried.
MOST_CHOICES = 20
LARGEST_RUN = 32_000


@dataclass(frozen=True)
class Witness:
    """Inputs in three stages: `relations` (static relations and finite streams) come first, then `stored` (n
    groups of tuples, one after the other), then one of the `completions`. `key` has the nodes by whose values
    the groups differ.
    """

    relations: tuple[Named, ...]
    stored: tuple[tuple[Named, ...], ...]
    completions: tuple[tuple[Named, ...], ...]
    key: tuple[int, ...]


def witnesses(timed: TimedQuery, failure: Failure, rows: Rows, count: int) -> Iterator[Witness]:
    """Candidate witnesses of a failing condition with `count` stored groups, with different rows of static
    relations, and in either order.

    `tells_apart` checks a candidate.
    """
    for chosen in itertools.islice(itertools.product(*rows.values()), MOST_CHOICES):
        start = timed.closure.copy()
        if all(start.fix(node, value) for row in chosen for node, value in row.items()):
            for rising in (True, False):
                found = _fill(timed, failure, start, count, rising)
                if found is not None:
                    yield replace(found, relations=(*_relations(timed, rows), *found.relations))


def _relations(timed: TimedQuery, rows: Rows) -> Iterator[Named]:
    """The rows of each relation. For a relation that is read twice, each occurrence has its own rows."""
    for i, own in rows.items():
        for row in own:
            yield _names(timed)[i], _tuple(timed, i, row)


def _names(timed: TimedQuery) -> tuple[str, ...]:
    """The streams by occurrence. Each occurrence of a relation has a name of its own."""
    return tuple(
        stream if i in timed.streams else f"relation {i}" for i, stream in enumerate(timed.query.streams)
    )


def _fill(timed: TimedQuery, failure: Failure, start: Closure, count: int, rising: bool) -> Witness | None:
    query, part = timed.query, failure.part
    kept = timed.streams if part is None else tuple(x for x in part.members if x not in part.spans)
    # What ends has come before, once for all.
    ended = tuple(x for x in timed.streams if timed.end(x) != math.inf)
    filled = tuple(x for x in kept if x not in ended)
    rest = tuple(x for x in timed.streams if x not in ended and (part is None or x not in filled))
    own = {node for x in kept for node in query.own(x)}
    collapsed = replace(
        query,
        nodes=tuple(replace(node, occurrence=int(at not in own)) for at, node in enumerate(query.nodes, 1)),
        streams=("filled", "rest"),
    )
    broken = replace(failure.violation, occurrence=0)
    named = nodes_of(broken)
    room = spacing(query, named, timed.times)
    stored: list[tuple[Named, ...]] = []
    completions: list[tuple[Named, ...]] = []
    before: Mapping[int, int] = {}
    for number in range(count):
        whole = start.copy()
        if not all(whole.fix(n, before[n]) for x in ended for n in query.own(x) if before):
            return None
        for node, block in blocks(collapsed, timed.closure, broken, number, count).items():
            center = block * 16 * room
            if node in timed.times:
                continue  # times rise anyway
            if not (whole.add(node, 0, center + 2 * room) and whole.add(0, node, 2 * room - center)):
                return None
        times = _Times(timed)
        if not (
            times.by(whole, ended, 0) and times.at(whole, filled, 1 + (number if rising else count - number))
        ):
            return None
        if part is not None and not times.at(whole, rest, count + 2):
            return None
        values = later = whole.solution()
        before = before or values
        if part is None:
            # The same values again, at a later time.
            again = start.copy()
            same = [n for n in range(1, query.size) if n not in timed.times or query.occurrence(n) in ended]
            if not (all(again.fix(n, values[n]) for n in same) and times.at(again, rest, count + 2)):
                return None
            later = again.solution()
        stored.append(tuple((query.streams[x], _tuple(timed, x, values)) for x in filled))
        completions.append(tuple((query.streams[x], _tuple(timed, x, later)) for x in rest))
    key = tuple(dict.fromkeys(node for node in named if node in own))
    prefix = tuple((query.streams[x], _tuple(timed, x, before)) for x in ended)
    return Witness(prefix, tuple(stored), tuple(completions), key)


class _Times:
    """Blocks of time that are further apart than all offsets together."""

    def __init__(self, timed: TimedQuery) -> None:
        self.timed = timed
        compared = [one for one in timed.query.differences if {one.left, one.right} <= timed.times]
        self.room = 10 + sum(abs(one.bound) for one in compared)
        lowest = [timed.closure.lower(time) for time in timed.times]
        self.base = max((int(low) for low in lowest if low != -math.inf), default=0)

    def at(self, closure: Closure, occurrences: Sequence[int], block: int) -> bool:
        """Put occurrences into a block."""
        center = self.base + block * 16 * self.room
        return self.by(closure, occurrences, block) and all(
            closure.add(0, time, 2 * self.room - center) for time in self._own(occurrences)
        )

    def by(self, closure: Closure, occurrences: Sequence[int], block: int) -> bool:
        """Put occurrences into a block or before it."""
        center = self.base + block * 16 * self.room
        return all(closure.add(time, 0, center + 2 * self.room) for time in self._own(occurrences))

    def _own(self, occurrences: Sequence[int]) -> Iterator[int]:
        return (self.timed.arrivals[x].time for x in occurrences if self.timed.arrivals[x].time)


def _tuple(timed: TimedQuery, occurrence: int, values: Mapping[int, int]) -> Tuple:
    return {timed.query.nodes[node - 1].column: values[node] for node in timed.query.own(occurrence)}


def tells_apart(timed: TimedQuery, witness: Witness) -> bool:
    """True if every two subsets of the stored tuples differ in the rows that some completion adds."""
    return states(timed, witness) == 1 << len(witness.stored)


def states(timed: TimedQuery, witness: Witness) -> int | None:
    """The number of subsets that differ in this way, by 2^n plain joins for each completion.

    None if that is too much to try, if the witness has more keys than there are, or if tuples differ in
    values that SELECT shows only within expressions.
    """
    query = replace(timed.query, streams=_names(timed))
    tuples = [*witness.relations, *itertools.chain(*witness.stored), *witness.completions[0]]
    for group in query.key_limits:
        stream = query.streams[query.occurrence(group.nodes[0])]
        columns = [query.nodes[node - 1].column for node in group.nodes]
        keys = {tuple(one.get(c, 0) for c in columns) for name, one in tuples if name == stream}
        if len(keys) > group.keys:
            return None
    every = [*witness.relations, *itertools.chain(*witness.stored, *witness.completions)]
    if not equal_in_expressions(query, every):
        return None
    tried = math.prod(sum(name == stream for name, _ in tuples) for stream in query.streams)
    if tried * 2 ** len(witness.stored) > LARGEST_RUN:
        return None
    seen: set[object] = set()
    for chosen in itertools.product((False, True), repeat=len(witness.stored)):
        picked = [one for one, taken in zip(witness.stored, chosen, strict=True) if taken]
        base = [*witness.relations, *itertools.chain(*picked)]
        before = plain_join(query, base)
        seen.add(
            tuple(
                frozenset(new_rows(query, plain_join(query, [*base, *more]), before).items())
                for more in witness.completions
            )
        )
    return len(seen)


@dataclass(frozen=True)
class Proof:
    """An alternative, the condition that fails, and the number (`variant`) of the witness that shows it."""

    alternative: Alternative
    failure: Failure
    variant: int

    @property
    def witness(self) -> Witness:
        """The witness that was run."""
        found = self.sized(SHOWN)
        assert found is not None, "it was found before"
        return found

    def sized(self, tuples: int) -> Witness | None:
        """The witness with another number of tuples."""
        return next(
            itertools.islice(_witnesses(self.alternative, self.failure, tuples), self.variant, None), None
        )

    def growth(self) -> Iterator[Growth]:
        """The memory for more and more tuples; the witness of each size is run."""
        for tuples in (*COUNTED, *GROWING):
            witness = self.sized(tuples)
            told = states(self.alternative.timed, witness) if witness and tuples in COUNTED else None
            if witness is not None and (told is not None or tuples in GROWING):
                streams = " and ".join(dict.fromkeys(stream for stream, _ in witness.stored[0]))
                yield Growth(streams, tuples, told, self._entries(witness))

    def _entries(self, witness: Witness) -> int:
        """The number of entries after all stored tuples, with the rows that DISTINCT remembers."""
        # A witness only has the order of a DOUBLE's values, not the interval in which they lie.
        timed = replace(self.alternative.timed, query=replace(self.alternative.timed.query, ranges=()))
        query = timed.query
        evaluator = Evaluator(timed)
        given: set[tuple[Bound | None, ...]] = set()
        times = {query.streams[i]: query.nodes[timed.arrivals[i].time - 1].column for i in timed.streams}
        for occurrence, rows in self.alternative.rows.items():
            for at in range(len(rows.places)):
                values = _none(query.size)
                for node, own in rows.values.items():
                    values[node] = own[at]
                evaluator.add_relation_row(occurrence, values, tuple(values))
        tuples = [one for one in (*witness.relations, *itertools.chain(*witness.stored)) if one[0] in times]
        for stream, one in sorted(tuples, key=lambda named: named[1].get(times[named[0]], 0)):
            for occurrence in timed.streams:
                if query.streams[occurrence] != stream:
                    continue
                values = _none(query.size)
                for node in query.own(occurrence):
                    values[node] = one.get(query.nodes[node - 1].column, 0)
                time = timed.arrivals[occurrence].time
                if time:
                    evaluator.advance(values[time] or 0)
                for shown, _ in evaluator.push(occurrence, values, tuple(values)):
                    row = [shown[query.occurrence(node)] or () for node in query.projected]
                    given.add(tuple(own[n] for own, n in zip(row, query.projected, strict=True)))  # type: ignore[misc]
        return evaluator.entries + (len(given) if query.distinct else 0)


def proof(failing: Sequence[tuple[Alternative, Failure]]) -> Proof | None:
    """The proof that the query is unbounded, from one of its failing conditions; None if no example was
    found.
    """
    for one, failure in failing:
        if one.timed.query.caveats:
            continue
        for variant, witness in enumerate(_witnesses(one, failure, SHOWN)):
            if tells_apart(one.timed, witness):
                return Proof(one, failure, variant)
    return None


def _witnesses(one: Alternative, failure: Failure, tuples: int) -> Iterator[Witness]:
    relations = _relation_rows(one)
    return iter(()) if relations is None else witnesses(one.timed, failure, relations, tuples)


def _relation_rows(one: Alternative) -> Mapping[int, Sequence[Mapping[int, int]]] | None:
    """The different rows of static relations; None if one has NULL, since a witness has no NULL."""
    found = {}
    for occurrence, rows in one.rows.items():
        if any(None in values for values in rows.values.values()):
            return None
        whole = [
            {node: int(values[at] or 0) for node, values in rows.values.items()}
            for at in range(len(rows.places))
        ]
        found[occurrence] = list({tuple(row.items()): row for row in whole}.values())
    return found


def _none(size: int) -> list[Bound | None]:
    return [None] * size
