"""Tallies of columns: exact sums, rounded once."""

from __future__ import annotations

from collections import Counter

from tamis.evaluation.standing.timeless.tallies import Group, Tally
from tamis.expressions.nodes import Column, Type
from tamis.query.model import Aggregate

PRICE = Column("s", "x", Type.DOUBLE)
COLUMN = ("s", "x")


def _group(*values: object) -> Group:
    tally = Tally()
    for value in values:
        tally.add(Tally.of(value))
    return Group(len(values), {COLUMN: tally}, {COLUMN: Counter(v for v in values if v is not None)})


def _value(group: Group, function: str, type_: Type = Type.DOUBLE) -> object:
    return group.value(Aggregate(function, PRICE, False, type_))


def test_sums_of_doubles_are_rounded_once() -> None:
    group = _group(1e20, 0.1, 0.2, -1e20)
    assert _value(group, "sum") == 0.30000000000000004
    assert _value(group, "avg") == 0.07500000000000001
    assert _value(group, "median") == 0.15000000000000002


def test_null_is_left_out_and_alone_gives_null() -> None:
    group = _group(None, 4, None)
    assert group.value(Aggregate("count", None, False, Type.BIGINT)) == 3
    assert _value(group, "count", Type.BIGINT) == 1
    assert _value(group, "avg") == 4.0
    empty = _group(None)
    for function in ("sum", "avg", "min", "max", "median"):
        assert _value(empty, function) is None
    assert _value(empty, "count") == 0


def test_a_sum_beyond_64_bits_is_null_and_its_mean_is_not() -> None:
    group = _group(2**62, 2**62)
    assert _value(group, "sum", Type.BIGINT) is None
    assert _value(group, "avg") == 2.0**62


def test_a_tally_counts_as_often_as_it_is_taken() -> None:
    first, later = Tally.of(3), Tally.of(5)
    first.add(later, 4)
    assert (first.count, first.total, first.least, first.greatest) == (5, 23, 3, 5)
    first.add(Tally(), 7)
    assert first.count == 5
