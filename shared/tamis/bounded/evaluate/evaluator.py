"""A bounded conjunction, tuple by tuple: arasu-2004, section 7."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.bounded.closure import Closure
from tamis.bounded.coordinates import cells
from tamis.bounded.evaluate.columns import Columns, Mask, TakenIn
from tamis.bounded.evaluate.filters import Filter
from tamis.bounded.evaluate.join import Condition, Join
from tamis.bounded.evaluate.synopsis import Entry, Synopsis, Values
from tamis.bounded.keyed import told
from tamis.bounded.normal_form import Conjunction

Row = tuple[tuple[object, ...], int]  # the payloads by occurrence, and how many rows these stand for


class Evaluator:
    """Evaluates one conjunction without contradiction. `holds` is a condition beyond its differences; `asked`
    is the query with what else is asked of its tuples (see `extremes`), by which they are kept.

    The synopses are bounded where `decide.violation` finds none; the results are right in any case.
    """

    def __init__(
        self,
        query: Conjunction,
        closure: Closure,
        holds: Condition | None = None,
        asked: tuple[Conjunction, Closure] | None = None,
    ) -> None:
        self.query, self.holds = query, holds
        wider = asked or (query, closure)
        self._join = Join(query, closure)
        self.synopses = [
            Synopsis(
                cells(*wider, i) if len(query.streams) > 1 else (),
                query.distinct,
                told(*wider, i),
                tuple(sorted(self._join.indexes(i))),
            )
            for i in range(len(query.streams))
        ]
        self._taken_in = [TakenIn(one.layouts, one.needed) for one in self.synopses]
        self._filters = [Filter(query, closure, i) for i in range(len(query.streams))]

    @property
    def entries(self) -> int:
        """How many entries the synopses have now."""
        return sum(map(len, self.synopses))

    def push(self, occurrence: int, values: Values, payload: object) -> Iterator[Row]:
        """A tuple at one occurrence: what it adds to the result. `values` stand at its nodes' numbers (others
        are not read), None for NULL; a NULL that the query compares must be left out before.

        Take all rows before the next tuple is pushed. A tuple of a self-join is pushed at each occurrence.
        """
        if not self._filters[occurrence].passes(values):
            return
        new = Entry(values, payload)
        for chosen in self._join.rows(occurrence, new, self.synopses):
            if self.holds is None or self.holds(chosen):
                count = 1
                for entry in chosen:
                    count *= entry.count
                yield tuple(entry.payload for entry in chosen), count
        self.synopses[occurrence].insert(values, payload)

    def told_by(self, occurrence: int) -> set[int]:
        """The nodes whose values say which tuples must be pushed, under DISTINCT."""
        return self._taken_in[occurrence].nodes

    def moving(self, occurrence: int, columns: Columns, rows: int) -> Mask:
        """Which tuples of a batch must be pushed, under DISTINCT, of those that keep all conditions on their
        occurrence: the others add nothing to the result, nor to what is kept, once those that were named
        before are pushed. `columns` are those of `told_by`, in which a value has the same number in every
        batch.
        """
        return self._taken_in[occurrence].of(columns, rows)
