"""Two linear conditions between two streams that need unlimited memory.

For `s.x + t.x > 150 AND s.y + t.y > 90` take tuples of s with x rising and y falling by the same step, and
tuples of t with x falling and y rising. With the first condition the k-th tuple of s joins the i-th one of t
only if k >= i, and with the second only if k <= i. So each tuple of t tells whether one tuple of s was there,
for any number of tuples, with values that grow only with this number. An evaluator with a limited number of
values has too few states.

For the step, take directions d of s and e of t with `a1.d = n1`, `a2.d = -n2`, `b1.e = -n1`, `b2.e = n2`, for
the coefficients a and b of the two conditions and some n1, n2 > 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.examples.proof import admitted
from tamis.bounded.examples.rows_as_written import RowsAsWritten
from tamis.bounded.examples.sql_values import SqlTuple
from tamis.bounded.representatives.linear import positive
from tamis.certificates.scalars import constant
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, Type, aliases, columns
from tamis.expressions.vectors import Value
from tamis.query.model import Catalog, TimelessSelect

# The example is run with so many tuples of each stream: three show the step, eight that it goes on.
_RUNS = (3, 8)
_DEFAULTS: Mapping[Type, Value] = {Type.BOOLEAN: False, Type.VARCHAR: "x", Type.DOUBLE: 1.0}


@dataclass(frozen=True)
class Staircase:
    """Tuples of two streams, of which the k-th one of the first joins the k-th one of the second alone."""

    stream: str
    columns: tuple[str, ...]  # those of the first stream that differ
    stored: tuple[Mapping[str, Value], ...]
    other: str

    def scenario(self) -> str:
        """The example for people."""
        shown = ", ".join(
            "(" + ", ".join(str(one[name]) for name in self.columns) + ")" for one in self.stored
        )
        return (
            f"any number of tuples of {self.stream} with ({', '.join(self.columns)}) = {shown}, …: later"
            f" tuples of {self.other} give different rows for each subset of these"
        )


def staircase(query: TimelessSelect, catalog: Catalog) -> Staircase | None:
    """The example by which a join of two streams with DISTINCT is unbounded; None if it has none of this
    form, or if the conditions as they are written don't hold for it.
    """
    streams = [catalog.streams[source.stream] for source in query.sources]
    if not query.distinct or len({one.name for one in streams}) != 2 or len(streams) != 2:
        return None
    first, second = (source.alias for source in query.sources)
    parts = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    linear = [one for part in parts if (one := _linear(part, first, second)) is not None]
    for left, right in ((a, b) for at, a in enumerate(linear) for b in linear[at + 1 :]):
        found = _steps(left, right, first, second)
        if found is None or not _free(found, query, catalog):
            continue
        made = [_tuples(found, streams, query, size) for size in _RUNS]
        if all(_apart(query, catalog, size, tuples) for size, tuples in zip(_RUNS, made, strict=True)):
            names = tuple(sorted({column.name for column in found.step if column.alias == first}))
            stored = tuple(values for _, values in made[0][: _RUNS[0]])
            return Staircase(streams[0].name, names, stored, streams[1].name)
    return None


@dataclass(frozen=True)
class _Linear:
    """`sum(factors) + offset > 0`."""

    factors: Mapping[Column, int]
    offset: int

    def of(self, alias: str) -> dict[Column, int]:
        """The factors of one source's columns."""
        return {column: factor for column, factor in self.factors.items() if column.alias == alias}


@dataclass(frozen=True)
class _Steps:
    """The conditions, the first values of all their columns, and the step from tuple to tuple."""

    conditions: tuple[_Linear, _Linear]
    base: Mapping[Column, int]
    step: Mapping[Column, int]


def _linear(part: Expr, first: str, second: str) -> _Linear | None:
    found = positive(part) if aliases(part) == {first, second} else None
    if found is None:
        return None
    factors: dict[Column, int] = {}
    offset = 0
    for factor, term in found:
        value = constant(term)
        if value is not None and (factor * value).denominator == 1:
            offset += int(factor * value)
        elif isinstance(term, Column):
            factors[term] = factors.get(term, 0) + int(factor)
        else:
            return None
    factors = {column: factor for column, factor in factors.items() if factor}
    return _Linear(factors, offset) if {one.alias for one in factors} == {first, second} else None


def _steps(left: _Linear, right: _Linear, first: str, second: str) -> _Steps | None:
    """The steps by two conditions; None if one value of a stream decides both."""
    own, its = (left.of(first), right.of(first)), (left.of(second), right.of(second))
    ratios = {ratio for pair in (own, its) if (ratio := _ratio(*pair)) is not None}
    if len(ratios) > 1 or any(ratio > 0 for ratio in ratios):
        return None
    share = -next(iter(ratios), Fraction(-1))
    away = _solved(*own, Fraction(1), -share), _solved(*its, Fraction(-1), share)
    step = {column: value for one in away for column, value in one.items()}
    base = _base(left, right, own, its)
    if base is None:
        return None
    whole = math.lcm(*(value.denominator for value in (*step.values(), share)))
    starts = [_at(one, base) for one in (left, right)]
    far = max(math.ceil(start / size) for start, size in zip(starts, (Fraction(1), share), strict=True))
    scaled = {column: int(value * whole * max(1, far)) for column, value in step.items() if value}
    return _Steps((left, right), base, scaled)


def _ratio(a: Mapping[Column, int], b: Mapping[Column, int]) -> Fraction | None:
    """The number by which the factors `a` give `b`; None if there is none."""
    if a.keys() != b.keys():
        return None
    found = {Fraction(b[column], a[column]) for column in a}
    return found.pop() if len(found) == 1 else None


def _solved(
    a: Mapping[Column, int], b: Mapping[Column, int], x: Fraction, y: Fraction
) -> dict[Column, Fraction]:
    """Values of at most two columns with the sum `x` under the factors `a`, and `y` under `b`."""
    every = sorted({*a, *b}, key=repr)
    for one in every:
        if a.get(one) and b.get(one, 0) * x == a[one] * y:
            return {one: x / a[one]}
        for other in every:
            size = a.get(one, 0) * b.get(other, 0) - a.get(other, 0) * b.get(one, 0)
            if size:
                return {
                    one: (x * b.get(other, 0) - y * a.get(other, 0)) / size,
                    other: (y * a.get(one, 0) - x * b.get(one, 0)) / size,
                }
    raise AssertionError("factors that aren't multiples of each other have a solution")


def _base(
    left: _Linear,
    right: _Linear,
    own: tuple[Mapping[Column, int], Mapping[Column, int]],
    its: tuple[Mapping[Column, int], Mapping[Column, int]],
) -> dict[Column, int] | None:
    """Values of the columns for which both conditions hold; None if none are found."""
    zero = dict.fromkeys((*left.factors, *right.factors), 0)
    for pair in (own, its):
        if _ratio(*pair) is None:
            ones = [_solved(*pair, Fraction(1), Fraction(0)), _solved(*pair, Fraction(0), Fraction(1))]
            whole = math.lcm(*(value.denominator for one in ones for value in one.values()))
            times = [-((one.offset - 1) // whole) for one in (left, right)]
            for one, count in zip(ones, times, strict=True):
                for column, value in one.items():
                    zero[column] += int(value * whole) * count
            return zero
    # Both conditions limit one sum, from below and from above: take the least whole numbers above.
    column = next(iter(own[0]))
    size = abs(left.factors[column])
    zero[column] = (-(left.offset // size) + (1 if left.offset % size == 0 else 0)) * (
        left.factors[column] // size
    )
    if _at(left, zero) < 1:
        zero[column] += left.factors[column] // size
    return zero if _at(left, zero) > 0 and _at(right, zero) > 0 else None


def _at(one: _Linear, values: Mapping[Column, int]) -> int:
    return sum(factor * values[column] for column, factor in one.factors.items()) + one.offset


def _free(found: _Steps, query: TimelessSelect, catalog: Catalog) -> bool:
    """True if nothing else limits the columns of the two conditions."""
    moving = {*found.base}
    if any(moving & set(columns(output.expr)) for output in query.select):
        return False
    others = [part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr)]
    if sum(bool(moving & set(columns(part))) for part in others) != len(found.conditions):
        return False
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    for column in moving:
        stream = streams[column.alias]
        definition = stream.column(column.name)
        checked = {one.name for other in stream.columns if other.check for one in columns(other.check)}
        if definition is None or definition.computed is not None or column.name in {*checked, *stream.key}:
            return False
    return True


def _tuples(found: _Steps, streams: Sequence[StreamDef], query: TimelessSelect, size: int) -> list[SqlTuple]:
    made: list[SqlTuple] = []
    for source, stream in zip(query.sources, streams, strict=True):
        for number in range(size):
            values = {
                column.name: value + number * found.step.get(column, 0)
                for column, value in found.base.items()
                if column.alias == source.alias
            }
            made.append((stream.name, {**_others(stream), **values}))
    return made


def _others(stream: StreamDef) -> dict[str, Value]:
    return {one.name: _DEFAULTS.get(one.type, 1) for one in stream.columns if one.computed is None}


def _apart(query: TimelessSelect, catalog: Catalog, size: int, tuples: list[SqlTuple]) -> bool:
    """True if the query as it is written gives a row for each tuple and its partner, and for no others."""
    if not admitted(catalog, tuples):
        return False
    rows = RowsAsWritten(query, catalog, tuples)
    return all(
        bool(rows.added(frozenset((one,)), frozenset((size + other,)))) == (one == other)
        for one in range(size)
        for other in range(size)
    )
