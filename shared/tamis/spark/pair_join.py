"""Join of two inputs by key and time over one group of keys, by the evaluation of the joiner.

Each pair of rows is given once, when its later row arrives. A row is kept while the watermark leaves room for
a partner. A late row is joined with the partners that are still kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.declarations.definitions import Rate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.omission.columns import Bools, Int64s
from tamis.operators.time_join.temporal_join import Tuples, combinations
from tamis.operators.time_join.time_bounds import reaches
from tamis.plan.model import Definition
from tamis.recordings.rows import ArrowRows
from tamis.recordings.values import values_of
from tamis.spark.columns import followed_by, has_null, key_codes, most_by_rate, times_of
from tamis.spark.steps import BEGINNING, Counts, Outcome, Sides, behind

ALIASES = ("left", "right")


@dataclass(frozen=True)
class JoinedInput:
    """One input. `names`: the columns that the result has of it, each with its name there; `types`: those of
    the columns that the condition can read, by their names in the result. `lag`: how far rows may be behind
    the watermark of Spark without being late, in microseconds.
    """

    time: str
    names: tuple[tuple[str, str], ...]
    types: tuple[tuple[str, Type], ...]
    rate: Rate | None = None
    lag: int = 0


@dataclass(frozen=True)
class PairJoin:
    """The rule. `definition` has the inputs `left` and `right`, their time bound and the condition; both have
    the key columns `key`.
    """

    definition: Definition
    key: tuple[str, ...]
    inputs: tuple[JoinedInput, JoinedInput]

    @property
    def rule(self) -> str:
        """As of `Step`."""
        bound = self.definition.bounds[0]
        times = [(one.time, one.lag) for one in self.inputs]
        return f"temporal_join {bound.lo} {bound.hi} {self.key} {times}"

    def joined(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """The pairs of two whole recordings."""
        given = self.run({}, {0: left, 1: right}, BEGINNING, BEGINNING).given
        assert given is not None  # both sides are there
        return given

    def run(self, held: Sides, arrived: Sides, decided: int, watermark: int) -> Outcome:
        """As of `Step`. Gives rows only if both inputs have had some."""
        sides = [
            _rows(one, held.get(side), arrived.get(side), self.key) for side, one in enumerate(self.inputs)
        ]
        here = [side for side in sides if side is not None]
        tables = [side.table.select(list(self.key)) for side in here]
        if len(tables) == 2:
            tables[1] = tables[1].cast(tables[0].schema)
        codes = key_codes(
            list(pa.concat_tables(tables).columns) if tables else [], sum(len(one) for one in tables)
        )
        parts = np.split(codes, [len(sides[0].table) if sides[0] is not None else 0])
        given = None
        if sides[0] is not None and sides[1] is not None:
            given = self._pairs(sides[0], sides[1], parts[0], parts[1])
        reach = reaches(self.definition)
        kept: dict[int, pa.Table] = {}
        total = late = 0
        bounds: list[int] = []
        for i, side in enumerate(sides):
            one = self.inputs[i]
            late += 0 if side is None else int((side.new & (side.times < behind(decided, one.lag))).sum())
            ((j, within),) = reach[i]
            frontier = behind(watermark, self.inputs[j].lag)
            since = None if frontier == BEGINNING else frontier - within
            if side is None:
                continue
            stays = np.flatnonzero(side.times >= (BEGINNING if since is None else since))
            kept[i] = side.table.take(pa.array(stays))
            total += len(stays)
            if one.rate is not None:
                rate = one.rate
                bounds.append(most_by_rate(parts[i][stays], side.times[stays], since, rate.count, rate.per))
        counts = Counts(
            taken=sum(map(len, arrived.values())),
            given=0 if given is None else len(given),
            late=late,
            unusable=sum(side.unusable for side in here),
            held=total,
            bound=sum(bounds) if all(one.rate is not None for one in self.inputs) else None,
        )
        return Outcome(given, kept, counts)

    def _pairs(self, left: _Rows, right: _Rows, left_codes: Int64s, right_codes: Int64s) -> pa.Table:
        tuples, orders = {}, []
        pairs = zip(ALIASES, self.inputs, (left, right), (left_codes, right_codes), strict=True)
        for alias, one, side, codes in pairs:
            order = np.lexsort((side.times, codes))
            orders.append(order)
            tuples[alias] = Tuples(
                times=side.times[order],
                keys=codes[order],
                versions=np.full(len(order), self.definition.version, np.int64),
                new=side.new[order],
                columns=_vectors(one, side.table.take(pa.array(order))),
            )
        found = list(combinations(self.definition, tuples))
        built: dict[str, pa.ChunkedArray] = {}
        for i, (one, side) in enumerate(zip(self.inputs, (left, right), strict=True)):
            rows = np.concatenate([block[i] for block in found]) if found else np.empty(0, np.int64)
            picked = side.table.take(pa.array(orders[i][rows]))
            built |= {shown: picked[name] for name, shown in one.names}
        return pa.table(built)


class _Rows(NamedTuple):
    """The rows of an input that can join: with a key and a usable time. `new`: the mask of those that have
    just arrived; `unusable`: the number of those that have arrived and can't join.
    """

    table: pa.Table
    times: Int64s
    new: Bools
    unusable: int


def _rows(
    one: JoinedInput, kept: pa.Table | None, came: pa.Table | None, key: tuple[str, ...]
) -> _Rows | None:
    parts = [part for part in (kept, came) if part is not None]
    if not parts:
        return None
    table = parts[0] if len(parts) == 1 else followed_by(parts[0], parts[1])
    times, timed = times_of(table[one.time])
    usable = timed & ~has_null([table[name] for name in key], len(table))
    new = np.arange(len(table)) >= (0 if kept is None else len(kept))
    return _Rows(table.filter(pa.array(usable)), times[usable], new[usable], int((~usable).sum()))


def _vectors(one: JoinedInput, table: pa.Table) -> dict[str, Vector]:
    """The columns that the condition can read. A number that isn't finite is NULL, as in Tamis' SQL."""
    shown = {result: name for name, result in one.names}
    found = {}
    for result, kind in one.types:
        values = values_of(ArrowRows(table, "rows", textual=False), shown[result], kind)
        vector = values.vector
        if values.unusable.any():
            null = values.unusable if vector.null is None else values.unusable | vector.null
            vector = Vector(vector.data, null)
        found[result] = vector
    return found
