"""The rows of a query over a few tuples, exactly as it is written.

Every combination of tuples is tried once, and the rows of any part of the tuples are read from that.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from fractions import Fraction

import numpy as np

from tamis.bounded.examples.sql_values import SqlTuple
from tamis.declarations.aggregates import Aggregate
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Type, columns
from tamis.expressions.vectors import Value, Vector
from tamis.query.computed_columns import meaning
from tamis.query.model import Catalog, Query, grouping_of, is_distinct, selects_of

Row = tuple[Value | Fraction, ...]
Combination = tuple[frozenset[int], Row]

# The most combinations of tuples that are tried.
LARGEST_RUN = 50_000
_ORDERED = ("median", "percentile_cont", "percentile_disc")
_SPREADS = ("stddev_pop", "stddev_samp", "var_pop", "var_samp")
_FUNCTIONS = ("count", "sum", "avg", "min", "max", *_ORDERED, *_SPREADS)


class RowsAsWritten:
    """The rows of a query, a SELECT or a union of them, over any of `tuples`."""

    def __init__(self, query: Query, catalog: Catalog, tuples: Sequence[SqlTuple]) -> None:
        self._query = query
        self._combinations = [
            one for member in selects_of(query) for one in _combinations(member, catalog, tuples)
        ]

    def added(self, before: Set[int], more: Set[int]) -> frozenset[tuple[Row, int]]:
        """The rows that the tuples numbered `more` add to those over the tuples `before`, and how often; of
        groups, their new rows.
        """
        old, new = self._rows(before), self._rows(before | more)
        if grouping_of(self._query) is not None or is_distinct(self._query):
            return frozenset((row, 1) for row in new if row not in old)
        return frozenset((new - old).items())

    def _rows(self, present: Set[int]) -> Counter[Row]:
        found = [row for used, row in self._combinations if used <= present]
        grouping = grouping_of(self._query)
        if grouping is None:
            return Counter(found)
        size = len(grouping.by)
        groups: dict[Row, list[Row]] = {}
        for row in found:
            groups.setdefault(row[:size], []).append(row[size:])
        return Counter(_group_rows(self._query, groups))


def can_run(query: Query, catalog: Catalog, tuples: Sequence[SqlTuple]) -> bool:
    """True if the query has no other aggregates than those that are computed here, and few combinations."""
    grouping = grouping_of(query)
    if grouping is not None and any(one.function not in _FUNCTIONS for one in grouping.aggregates):
        return False
    counts = Counter(stream for stream, _ in tuples)
    known = all(source.stream in catalog.streams for source in query.sources)
    tried = sum(math.prod(counts[source.stream] for source in member.sources) for member in selects_of(query))
    return known and tried <= LARGEST_RUN


def _combinations(query: Query, catalog: Catalog, tuples: Sequence[SqlTuple]) -> Iterator[Combination]:
    """The combinations of tuples that fulfil WHERE, each with the numbers of its tuples, and its row; with a
    grouping the row has the values of the groups' columns, and then of the aggregated columns.
    """
    numbers = [[at for at, (name, _) in enumerate(tuples) if name == one.stream] for one in query.sources]
    tried = list(itertools.product(*numbers))
    if not tried:
        return
    read: dict[tuple[str, str], Vector] = {}
    for place, source in enumerate(query.sources):
        for column in catalog.streams[source.stream].columns:
            if column.computed is None:
                values = [tuples[chosen[place]][1].get(column.name) for chosen in tried]
                read[source.alias, column.name] = Vector.from_list(values, column.type)
    keep = np.ones(len(tried), np.bool_)
    for conjunct in query.conjuncts:
        keep &= holds(conjunct.expr, read, len(tried))
    grouping = grouping_of(query)
    shown = (
        [output.expr for output in query.select]
        if grouping is None
        else [
            *(meaning(column, query) for column in grouping.by),
            *(meaning(one.column, query) for one in grouping.aggregates if one.column is not None),
        ]
    )
    outputs = [evaluate(expr, read, len(tried)).to_list() for expr in shown]
    for at in np.flatnonzero(keep).tolist():
        yield frozenset(tried[at]), tuple(own[at] for own in outputs)


def _group_rows(query: Query, groups: Mapping[Row, Sequence[Row]]) -> Iterator[Row]:
    grouping = grouping_of(query)
    assert grouping is not None
    for key, rows in groups.items():
        read = {
            (column.alias, column.name): Vector.from_list([value], column.type)
            for column, value in zip(grouping.by, key, strict=True)
        }
        place = 0
        exact: list[Value | Fraction] = []
        for number, one in enumerate(grouping.aggregates):
            own = None if one.column is None else [row[place] for row in rows]
            place += one.column is not None
            value = _aggregated(one, own, len(rows))
            exact.append(value)
            column = grouping.value(number)
            rounded = float(value) if isinstance(value, Fraction) and column.type is Type.DOUBLE else value
            rounded = int(rounded) if isinstance(rounded, Fraction) else rounded
            read[column.alias, column.name] = Vector.from_list([rounded], column.type)
        if grouping.having is not None and not holds(grouping.having, read, 1)[0]:
            continue
        # Sums that differ by less than their rounding are the same row for users.
        assert all((c.alias, c.name) in read for output in query.select for c in columns(output.expr))
        yield tuple(evaluate(output.expr, read, 1).to_list()[0] for output in query.select)


def _aggregated(one: Aggregate, values: Sequence[Value | Fraction] | None, rows: int) -> Value | Fraction:
    if values is None:
        return rows
    known = [value for value in values if value is not None]
    if one.distinct:
        known = list(dict.fromkeys(known))
    if one.function == "count":
        return len(known)
    if not known:
        return None
    if one.function in ("min", "max"):
        return min(known) if one.function == "min" else max(known)
    numbers = sorted(Fraction(value) for value in known if not isinstance(value, str))
    if one.function in _ORDERED:
        return _quantile(one, numbers) if len(numbers) == len(known) else None
    total = sum(numbers, Fraction(0))
    if one.function in ("sum", "avg"):
        return total if one.function == "sum" else total / len(known)
    return _spread(one.function, numbers)


def _quantile(one: Aggregate, numbers: Sequence[Fraction]) -> Fraction:
    """Of numbers in ascending order."""
    place = (one.fraction if one.fraction is not None else Fraction(1, 2)) * (len(numbers) - 1)
    if one.function == "percentile_disc":
        share = (one.fraction or Fraction(0)) * len(numbers)
        return numbers[max(math.ceil(share), 1) - 1]
    low = math.floor(place)
    high = min(low + 1, len(numbers) - 1)
    return numbers[low] + (numbers[high] - numbers[low]) * (place - low)


def _spread(function: str, numbers: Sequence[Fraction]) -> Value:
    """A variance or standard deviation."""
    count = len(numbers) - function.endswith("samp")
    if not count:
        return None
    mean = sum(numbers, Fraction(0)) / len(numbers)
    variance = sum(((one - mean) ** 2 for one in numbers), Fraction(0)) / count
    return float(variance) if function.startswith("var") else math.sqrt(variance)
