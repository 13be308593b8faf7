"""Random queries in application time as difference bounds, tuples for them, and their rows by brute force."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tamis.operators.application_time.arrivals import Arrival, TimedQuery
from tamis.plan.conjunction import Conjunction, Difference, Node

Values = list[int]
Event = tuple[int, Values]  # an occurrence, and the values of its nodes at their numbers
LATEST = 12
PER_STEP = 2  # tuples of a stream at one time


@dataclass(frozen=True)
class Case:
    """A query, the rows of its static relations, and its tuples in order of time."""

    timed: TimedQuery
    relations: list[Event]
    events: list[Event]

    def rows(self, count: int) -> Counter[tuple[int, ...]]:
        """All rows after so many tuples, each combination tried."""
        query = self.timed.query
        seen = [*self.relations, *self.events[:count]]
        by_occurrence = [[values for of, values in seen if of == i] for i in range(len(query.streams))]
        found: Counter[tuple[int, ...]] = Counter()
        for chosen in itertools.product(*by_occurrence):
            values = [0, *(chosen[node.occurrence][at] for at, node in enumerate(query.nodes, 1))]
            if all(values[d.left] - values[d.right] <= d.bound for d in query.differences):
                found[tuple(values[node] for node in query.projected)] += 1
        return found


def case(r: random.Random, *, most_streams: int = 4, most_events: int = 14) -> Case | None:
    """A random case; None where the query contradicts itself."""
    count = r.choice((1, 2, 2, 2, 3, 3, most_streams))
    static = [i > 0 and r.random() < 0.2 for i in range(count)]
    timeless = [not static[i] and r.random() < 0.12 for i in range(count)]
    nodes: list[Node] = []
    times = [0] * count
    for i in range(count):
        if not static[i] and not timeless[i]:
            nodes.append(Node(i, f"{'stuv'[i]}.ts", "ts"))
            times[i] = len(nodes)
        nodes += [Node(i, f"{'stuv'[i]}.{c}", c) for c in r.choice(("a", "a", "ab", ""))]
    size = len(nodes) + 1
    plain = [n for n in range(1, size) if n not in times]
    streams = [t for t in times if t]
    found = _times(r, streams) + _values(r, plain)
    relations = [
        (i, _tuple(r, nodes, i, None, 4)) for i in range(count) if static[i] for _ in range(r.randint(1, 3))
    ]
    known = {
        n: tuple(sorted({values[n] for i, values in relations if i == nodes[n - 1].occurrence}))
        for n in plain
        if static[nodes[n - 1].occurrence]
    }
    # What is known of a relation's values holds in any case.
    limits = [d for n, v in known.items() for d in (Difference(n, 0, v[-1]), Difference(0, n, -v[0]))]
    limits += [Difference(0, t, 0) for t in streams]
    projected = tuple(n for n in range(1, size) if r.random() < (0.1 if n in times else 0.25))
    query = Conjunction(
        tuple("STUV"[:count]),
        tuple("stuv"[:count]),
        tuple(nodes),
        (*found, *limits),
        projected,
        r.random() < 0.5,
    )
    closure = query.closure()
    if closure is None:
        return None
    rows = Counter(i for i, _ in relations)
    arrivals = tuple(
        Arrival(times[i], rows[i] if static[i] else None, None if static[i] else (PER_STEP, 1))
        for i in range(count)
    )
    events = _events(r, nodes, [i for i in range(count) if not static[i]], most_events, times)
    return Case(TimedQuery(query, closure, arrivals, known), relations, events)


def _times(r: random.Random, streams: Sequence[int]) -> list[Difference]:
    found = []
    pairs = list(itertools.permutations(streams, 2))
    for _ in range(r.choice((0, 1, 1, 2, 2, 3))):
        if pairs:
            left, right = r.choice(pairs)
            found.append(Difference(left, right, r.choice((-1, -1, -1, 0, 0, 2, -3, 4))))
    for time in streams:
        if r.random() < 0.1:
            found.append(Difference(time, 0, r.randint(2, LATEST)))
    return found


def _values(r: random.Random, plain: Sequence[int]) -> list[Difference]:
    found = []
    for left, right in itertools.combinations(plain, 2):
        kind = r.random()
        a, b = r.sample((left, right), 2)
        if kind < 0.12:
            found.append(Difference(a, b, r.choice((-1, -1, 0, 1))))
        elif kind < 0.18:
            offset = r.choice((0, 0, 1))
            found += [Difference(a, b, offset), Difference(b, a, -offset)]
    for node in plain:
        if r.random() < 0.45:
            found.append(Difference(node, 0, r.randint(0, 4)))
        if r.random() < 0.45:
            found.append(Difference(0, node, r.randint(-2, 0)))
    return found


def _tuple(r: random.Random, nodes: Sequence[Node], of: int, time: int | None, widest: int) -> Values:
    values = [0] * (len(nodes) + 1)
    for at, node in enumerate(nodes, 1):
        if node.occurrence == of:
            values[at] = time if node.column == "ts" and time is not None else r.randint(-1, widest)
    return values


def _events(
    r: random.Random, nodes: Sequence[Node], streams: Sequence[int], most: int, times: Sequence[int]
) -> list[Event]:
    found = []
    time, room = 0, Counter[int]()
    for _ in range(r.randint(3, most)):
        step = r.choice((0, 0, 1, 1, 2, 5))
        if step:
            time, room = time + step, Counter()
        of = r.choice(streams)
        if times[of] and room[of] == PER_STEP:
            continue
        room[of] += 1
        found.append((of, _tuple(r, nodes, of, time, r.choice((3, 6)))))
    return found
