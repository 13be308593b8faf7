"""Verdicts on random queries against the number of tuples that must be kept, found by search over few values.

A bound is never less than this number, which grows with the number of values if the query is unbounded.
"""

from __future__ import annotations

import random

import pytest
from tests.oracle.bounded.representatives.necessary_tuples import necessary, sizes
from tests.oracle.bounded.representatives.random_queries import KINDS, Maker, Query
from tests.oracle.bounded.representatives.trees import Tree, column, of
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.timeless.verdict import memory_verdict
from tamis.query.model import TimelessSelect
from tamis.query.parse import catalog_of


@pytest.mark.parametrize("times", also_long(100))
def test_no_bound_is_less_than_the_necessary_number_of_entries(times: int) -> None:
    r = random.Random(SEED)
    bounded = unbounded = 0
    for number in range(cases(0.005) * times):
        query = Maker(r, tuple(KINDS)[number % len(KINDS)], tiny=True).query()
        catalog = catalog_of(f"{query.declarations()} CREATE ALERT q AS {query.sql()};")
        asked = catalog.alerts["q"].query
        assert isinstance(asked, TimelessSelect)
        memory = memory_verdict(asked, catalog)
        if memory.verdict == "unknown":
            continue
        found = [necessary(query, size) for size in sizes(query)]
        if memory.verdict == "bounded":
            assert memory.bound is not None
            assert memory.bound >= max(found), (SEED, query.sql(), memory.bound, found)
            bounded += 1
        elif len(found) > 1:
            assert found[-1] > found[0], (SEED, query.sql(), found)
            unbounded += 1
    assert bounded and unbounded


X, Y = (column("a", "x"), column("b", "x")), (column("a", "y"), column("b", "y"))


@pytest.mark.parametrize(
    ("conditions", "entries"),
    [
        ([of(">", of("+", *X), 0)], [0, 3, 3]),
        ([of("<", *X)], [3, 3, 3]),
        ([of("!=", *X)], [5, 5, 5]),
        ([of(">", of("abs", of("-", *X)), 1)], [0, 5, 5]),
        ([of("=", of("%", X[0], 2), of("%", X[1], 2))], [5, 7, 7]),
        ([of("=", *X)], [5, 9, 17]),
        ([of("!=", *X), of("!=", *Y)], [9, 9, 9]),
        ([of("!=", *X), of("<", *Y)], [5, 5, 5]),
        ([of("or", of("<", *X), of("<", *Y))], [5, 5, 5]),
        ([of("<", *X), of(">", *Y)], [3, 5, 7]),
    ],
)
def test_the_search_finds_the_numbers_of_known_conditions(conditions: list[Tree], entries: list[int]) -> None:
    same = of("=", column("a", "k"), column("b", "k"))
    (key, *values) = Maker(random.Random(1), "sum", tiny=True).query().streams["s"]
    one_key = type(key)(key.name, key.type, key.declared, (0,), limited=True)
    streams = dict.fromkeys("st", (one_key, *values))
    query = Query(streams, 1, (("a", "s"), ("b", "t")), (same, *conditions), (column("a", "k"),), frozenset())
    assert [necessary(query, size) for size in sizes(query)] == entries
