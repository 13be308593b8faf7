"""A failing condition as a proof: inputs on which any evaluator must tell ever more states apart, and how the
memory for them grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tamis.bounded.closure import Bound, Closure
from tamis.bounded.decide import Violation, violations
from tamis.bounded.evaluate.evaluator import Evaluator
from tamis.bounded.normal_form import Conjunction
from tamis.bounded.witness import (
    Tuple,
    Witness,
    construct,
    keeps_keys,
    shown_as_they_are,
    states,
    tuples_of,
)

# 2^n plain joins run a witness: eight states show how it goes on.
SHOWN = 3
# As many combinations as one of these joins may try: only self-joins of more than five get there.
_LARGEST_JOIN = 2000
# Numbers of tuples for which the states are counted, as far as that many combinations are tried at most.
COUNTED, _LARGEST_RUN = range(1, 9), 300_000
# Then only what is kept is counted.
GROWING = (16, 64, 256, 1024)


@dataclass(frozen=True)
class Growth:
    """What `tuples` tuples of one stream, which the plain join keeps all, need: how many states there are
    that any evaluator must tell apart (None where they weren't counted), and how many entries the synopses
    have.
    """

    stream: str
    tuples: int
    states: int | None
    entries: int


@dataclass(frozen=True)
class Proof:
    """A query without limits on keys, a closure in which those of the filled stream are fixed, and the
    condition that fails in it.
    """

    query: Conjunction
    closure: Closure
    failing: Violation

    def witness(self, tuples: int = SHOWN) -> Witness | None:
        """Inputs of a size; None where they contradict the query."""
        return construct(self.query, self.closure, self.failing, tuples)

    def growth(self) -> Iterator[Growth]:
        """More and more tuples, the witness of each size run by itself."""
        for tuples in (*COUNTED, *GROWING):
            counted = tuples in COUNTED
            tried = 2**tuples * 2 * tuples * (tuples + 1) ** most_alike(self.query) if counted else 0
            witness = self.witness(tuples) if tried <= _LARGEST_RUN else None
            if witness is not None:
                told = states(self.query, witness) if counted else None
                yield Growth(witness.stream, tuples, told, self._entries(witness))

    def _entries(self, witness: Witness) -> int:
        """What is kept after the stored tuples, the rows that were given included."""
        # Of a DOUBLE a witness has only the order of its values, not the interval in which they lie.
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
    """The proof that a failing condition is, with one value of each key of the stream that is filled; None
    where it isn't one.
    """
    stream = query.streams[found.occurrence]
    keys = [n for one in query.keyed for n in one.nodes if query.streams[query.occurrence(n)] == stream]
    made = Proof(replace(query, keyed=()), closure.copy(), found)
    if keys:
        values = closure.solution()
        if not all(made.closure.fix(node, values[node]) for node in keys):
            return None
        again = [one for one in violations(made.query, made.closure) if one.occurrence == found.occurrence]
        if not again:
            return None
        made = replace(made, failing=again[0])
    witness = made.witness()
    if witness is None or (SHOWN + 1) ** most_alike(query) > _LARGEST_JOIN:
        return None
    if not (keeps_keys(query, witness) and shown_as_they_are(query, tuples_of(witness))):
        return None
    return made if states(made.query, witness) == 2**SHOWN else None


def most_alike(query: Conjunction) -> int:
    """How often the stream occurs that occurs most often."""
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
