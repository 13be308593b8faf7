"""Proof that a query without time is unbounded: a witness of any size, and the growth of memory with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.bounded.timeless.witness import (
    Tuple,
    Witness,
    construct,
    equal_in_expressions,
    states,
    tuples_of,
    within_key_limits,
)
from tamis.difference_bounds import Bound, Closure
from tamis.operators.synopses.decide import Violation, violations
from tamis.operators.synopses.evaluator import Evaluator
from tamis.plan.conjunction import Conjunction

# A witness of n tuples is run by 2^n plain joins: eight states show the growth.
SHOWN = 3
# The most combinations in one of these joins: only self-joins of more than five occurrences have more.
_LARGEST_JOIN = 2000
# Numbers of tuples for which the states are counted, and the most combinations that are tried for that.
COUNTED, _LARGEST_RUN = range(1, 9), 300_000
# For these numbers of tuples only the entries are counted.
GROWING = (16, 64, 256, 1024)


@dataclass(frozen=True)
class Growth:
    """The memory after `tuples` tuples of one stream: the number of states that any evaluator must
    distinguish (None if they weren't counted), and the number of entries in the synopses. The plain join
    would keep all `tuples` tuples.
    """

    stream: str
    tuples: int
    states: int | None
    entries: int


@dataclass(frozen=True)
class Proof:
    """A query without limits on keys, a closure in which the keys of the stream with the stored tuples have
    fixed values, and the condition that fails there.
    """

    query: Conjunction
    closure: Closure
    failing: Violation

    def witness(self, tuples: int = SHOWN) -> Witness | None:
        """A witness of a size; None if it contradicts the query."""
        return construct(self.query, self.closure, self.failing, tuples)

    def told(self, witness: Witness) -> int:
        """The number of subsets of the stored tuples that later tuples tell apart."""
        return states(self.query, witness)

    def growth(self) -> Iterator[Growth]:
        """The memory for more and more tuples; the witness of each size is run."""
        for tuples in (*COUNTED, *GROWING):
            counted = tuples in COUNTED
            tried = 2**tuples * 2 * tuples * (tuples + 1) ** most_occurrences(self.query) if counted else 0
            witness = self.witness(tuples) if tried <= _LARGEST_RUN else None
            if witness is not None:
                told = self.told(witness) if counted else None
                yield Growth(witness.stream, tuples, told, self._entries(witness))

    def _entries(self, witness: Witness) -> int:
        """The number of entries after all stored tuples, with the rows that DISTINCT remembers."""
        # A witness only has the order of a DOUBLE's values, not the interval in which they lie.
        query = replace(self.query, ranges=())
        evaluator = Evaluator(query, self.closure)
        given: set[tuple[Bound | None, ...]] = set()
        for one in witness.stored:
            for occurrence, stream in enumerate(query.streams):
                if stream == witness.stream:
                    values = _values(query, occurrence, one)
                    for payloads, _ in evaluator.push(occurrence, values, values):
                        given.add(tuple(_of(payloads[query.occurrence(n)], n) for n in query.projected))
        return evaluator.entries + (len(given) if query.distinct or query.grouped else 0)


def proof(query: Conjunction, closure: Closure, found: Violation) -> Proof | None:
    """The proof that a query is unbounded by a failing condition, with a single value of each key of the
    filled stream; None if the condition proves nothing.
    """
    stream = query.streams[found.occurrence]
    keys = [n for one in query.key_limits for n in one.nodes if query.streams[query.occurrence(n)] == stream]
    made = Proof(replace(query, key_limits=()), closure.copy(), found)
    if keys:
        values = closure.solution()
        if not all(made.closure.fix(node, values[node]) for node in keys):
            return None
        again = [one for one in violations(made.query, made.closure) if one.occurrence == found.occurrence]
        if not again:
            return None
        made = replace(made, failing=again[0])
    witness = made.witness()
    if witness is None or (SHOWN + 1) ** most_occurrences(query) > _LARGEST_JOIN:
        return None
    if not (within_key_limits(query, witness) and equal_in_expressions(query, tuples_of(witness))):
        return None
    return made if states(made.query, witness) == 2**SHOWN else None


def most_occurrences(query: Conjunction) -> int:
    """The number of occurrences of the stream that occurs most often."""
    return max(Counter(query.streams).values())


def _values(query: Conjunction, occurrence: int, one: Tuple) -> list[Bound | None]:
    """A tuple at the nodes of an occurrence; a column that the witness leaves open is 0."""
    found: list[Bound | None] = [None] * query.size
    for node in query.own(occurrence):
        found[node] = one.get(query.nodes[node - 1].column, 0)
    return found


def _of(values: object, node: int) -> Bound | None:
    assert isinstance(values, list)
    found: Bound | None = values[node]
    return found
