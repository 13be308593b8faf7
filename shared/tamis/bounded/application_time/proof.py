"""Proof that a query in application time is unbounded, and the growth of memory with its witness."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.application_time.decide import Failure
from tamis.bounded.application_time.synopses.evaluator import Evaluator
from tamis.bounded.application_time.translate import Alternative
from tamis.bounded.application_time.witness import Witness, states, tells_apart, witnesses
from tamis.bounded.conjunctive.difference_bounds import Bound
from tamis.bounded.timeless.proof import COUNTED, GROWING, SHOWN, Growth


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
    relations = _relations(one)
    return iter(()) if relations is None else witnesses(one.timed, failure, relations, tuples)


def _relations(one: Alternative) -> Mapping[int, Sequence[Mapping[int, int]]] | None:
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
