"""Verdicts on random aggregates over joins against what must be kept, found by search over few values.

A greatest value of a group is at least z exactly if some combination gives at least z. So the answer of a
tuple has, for each tuple of the other stream and each aggregate, all z up to the value that both give. With n
tuples of which no answer lies in the union of the others, later tuples distinguish 2^n states. Counts
distinguish tuples as soon as their answers differ.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.oracle.bounded.representatives.necessary_tuples import (
    answers,
    domain,
    greatest_irredundant,
    sizes,
)
from tests.oracle.bounded.representatives.random_aggregates import COUNTS, Aggregate, Grouped, grouped
from tests.oracle.bounded.representatives.random_queries import KINDS
from tests.oracle.bounded.representatives.test_aggregate_rows import parsed
from tests.oracle.bounded.representatives.trees import Values, column, of
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.timeless.verdict import memory_verdict
from tamis.query.model import TimelessSelect
from tamis.query.parse import catalog_of


@pytest.mark.parametrize("times", also_long(100))
def test_no_bound_is_less_than_the_necessary_number_of_entries(times: int) -> None:
    r = random.Random(SEED)
    verdicts: Counter[str] = Counter()
    for number in range(cases(0.005) * times):
        asked = grouped(r, tuple(KINDS)[number % len(KINDS)], tiny=True)
        if asked.having is not None or any(one.function in COUNTS for one in asked.shown):
            continue  # HAVING may hide differences
        catalog, query = parsed(asked)
        memory = memory_verdict(query, catalog)
        verdicts[memory.verdict] += 1
        if memory.verdict == "unknown":
            continue
        found = [_necessary(asked, size) for size in sizes(_read(asked))]
        if memory.verdict == "bounded":
            assert memory.bound is not None
            assert memory.bound >= max(found), (SEED, asked.sql(), memory, found)
        elif len(found) > 1:
            # With factors such as 3 few values give few thresholds.
            assert found[-1] > found[0] or _necessary(asked, 8) > found[0], (SEED, asked.sql(), found)
    assert verdicts["bounded"] and verdicts["unbounded"], verdicts
    print(verdicts)


def test_counts_and_rows_without_distinct_are_unbounded_only_if_answers_differ() -> None:
    r = random.Random(SEED)
    verdicts: Counter[str] = Counter()
    for number in range(cases(0.005)):
        asked = replace(grouped(r, tuple(KINDS)[number % len(KINDS)], tiny=True), shown=(), having=None)
        sql, sources = asked.sql(), asked.query
        counted = sql.replace(" FROM", ", count(*) AS n FROM", 1)
        rows = f"SELECT {sql.removeprefix('SELECT ').rpartition(' GROUP BY')[0]}"
        catalog = catalog_of(
            f"{sources.declarations()} CREATE ALERT q AS {rows}; CREATE ALERT c AS {counted};"
        )
        plain, groups = catalog.alerts["q"].query, catalog.alerts["c"].query
        assert isinstance(plain, TimelessSelect)
        both = {memory_verdict(plain, catalog).verdict, memory_verdict(groups, catalog).verdict}  # type: ignore[arg-type]
        verdicts.update(both)
        assert len(both - {"unknown"}) < 2, (SEED, sql, both)
        found = [_different(asked, size) for size in sizes(sources)]
        if "unbounded" in both and len(found) > 1:
            # Small values may give no rows at all.
            assert found[-1] > found[0] or not found[-1], (SEED, sql, found)
    assert verdicts["unbounded"], verdicts
    print(verdicts)


X, Y = (column("a", "x"), column("b", "x")), (column("a", "y"), column("b", "y"))


@pytest.mark.parametrize(
    ("function", "argument", "conditions", "grows"),
    [
        ("max", of("+", *X), [], False),
        ("max", X[0], [of(">", of("+", *X), 0)], False),
        ("min", X[0], [of(">", of("+", *X), 0)], True),
        ("max", Y[0], [of(">", of("+", *X), 0)], True),
        ("max", of("abs", of("-", *X)), [], False),
        ("max", of("+", *Y), [of("<", *X)], True),
    ],
)
def test_the_search_knows_known_aggregates(
    function: str, argument: Any, conditions: Any, grows: bool
) -> None:
    base = grouped(random.Random(1), "sum", tiny=True).query
    same = of("=", column("a", "k"), column("b", "k"))
    query = replace(base, conditions=(same, *conditions), shown=(column("a", "k"),))
    asked = Grouped(query, (Aggregate(function, argument),))
    few, many = (_necessary(asked, size) for size in (4, 6))
    assert (many > few) == grows, (few, many)
    catalog, made = parsed(asked)
    memory = memory_verdict(made, catalog)
    assert memory.verdict == ("unbounded" if grows else "bounded")
    assert memory.bound is None or memory.bound == many


def _read(asked: Grouped) -> Any:
    """The query as one that reads what the aggregates read."""
    read = [tree for one in asked.shown for tree in (one.argument, one.only) if tree is not None]
    return replace(asked.query, conditions=(*asked.query.conditions, *read))


def _pairs(asked: Grouped, size: int) -> Iterator[tuple[int, int, Values]]:
    """Numbers of the tuples that join, with their values."""
    (one, _), (other, _) = asked.query.sources
    conditions = [each.meaning() for each in asked.query.conditions]
    read = _read(asked)
    for (i, left), (j, right) in itertools.product(
        enumerate(domain(read, one, size)), enumerate(domain(read, other, size))
    ):
        values = {one: left, other: right}
        if all(is_true(values) is True for is_true in conditions):
            yield i, j, values


def _necessary(asked: Grouped, size: int) -> int:
    """The sizes of the greatest irredundant sets of both streams, and the number of groups."""
    given: list[tuple[int, int, Hashable]] = []
    groups = set()
    pairs = list(_pairs(asked, size))
    every: list[Sequence[Any]] = [
        sorted({value for _, _, values in pairs for value in _values(one, values)}) for one in asked.shown
    ]
    keys = [one.meaning() for one in asked.query.shown]
    for i, j, values in pairs:
        key = tuple(one(values) for one in keys)
        groups.add(key)
        given.append((i, j, key))
        for place, (aggregate, known) in enumerate(zip(asked.shown, every, strict=True)):
            for value in _values(aggregate, values):
                given += ((i, j, (key, place, z)) for z in known if _reaches(aggregate, value, z))
    return (
        greatest_irredundant(answers((i, (j, part)) for i, j, part in given))
        + greatest_irredundant(answers((j, (i, part)) for i, j, part in given))
        + len(groups)
    )


def _values(aggregate: Aggregate, values: Values) -> list[Any]:
    """The value that a combination adds to an aggregate; none for NULL."""
    if aggregate.only is not None and aggregate.only.meaning()(values) is not True:
        return []
    value = aggregate.argument.meaning()(values)
    return [] if value is None else [value]


def _reaches(aggregate: Aggregate, value: Any, z: Any) -> bool:
    if aggregate.function == "distinct":
        return bool(value == z)
    return bool(value >= z if aggregate.function in ("max", "bool_or") else value <= z)


def _different(asked: Grouped, size: int) -> int:
    """The number of different answers of the tuples of both streams."""
    keys = [one.meaning() for one in asked.query.shown]
    pairs = [(i, j, tuple(one(values) for one in keys)) for i, j, values in _pairs(asked, size)]
    found = answers((i, (j, key)) for i, j, key in pairs), answers((j, (i, key)) for i, j, key in pairs)
    return sum(map(len, found))
