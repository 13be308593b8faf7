"""Filters of derived streams that other filters imply, against DuckDB's rows over all tuples of a small grid.

The grid has NULLs, whole numbers, and numbers between all constants. If a filter of comparisons with
constants implies another one on the grid, it implies it for all tuples.
"""

from __future__ import annotations

import itertools
import random

import duckdb
from tests.oracle.random_cases import SEED, cases
from tests.rows_for_duckdb import insert

from tamis.expressions.nodes import Expr, Type
from tamis.query.condition import read_condition
from tamis.sharing.topic_assignment import implies_filter

HALVES = [None, *(at / 2 for at in range(-1, 8))]
GRID = list(itertools.product(HALVES, HALVES, [None, *range(-1, 5)], [None, "", "a", "aa", "b", "c"]))
TYPES = {"x": Type.DOUBLE, "y": Type.DOUBLE, "n": Type.BIGINT, "s": Type.VARCHAR}


def comparison(r: random.Random) -> str:
    low = r.randint(0, 3)
    return r.choice(
        (
            f"{r.choice('xyn')} {r.choice(('<', '<=', '>', '>=', '=', '<>'))} {low}",
            f"{r.choice('xyn')} BETWEEN {low} AND {r.randint(low, 3)}",
            f"n IN ({low}, {r.randint(0, 3)})",
            f"{r.choice('xyns')} IS {r.choice(('', 'NOT '))}NULL",
            f"s {r.choice(('=', '<>', '<'))} '{r.choice('ab')}'",
            f"NOT (x > {low} AND y < {r.randint(0, 3)})",
        )
    )


def arithmetic(r: random.Random) -> str:
    """A condition that isn't a comparison of one column with a constant."""
    return r.choice(
        (f"x + y > {r.randint(0, 4)}", "x < y", f"x * 2 > {r.randint(0, 4)}", "x > n", "x / y > 1")
    )


def clause(r: random.Random, mixed: bool) -> str:
    parts = [
        arithmetic(r) if mixed and r.random() < 0.3 else comparison(r) for _ in range(r.choice((1, 1, 2, 3)))
    ]
    return f"({' OR '.join(parts)})"


def clauses(r: random.Random, mixed: bool) -> list[str]:
    return [clause(r, mixed) for _ in range(r.choice((1, 1, 2, 3)))]


def parsed(parts: list[str]) -> Expr:
    return read_condition(" AND ".join(parts), TYPES)


def test_a_filter_implies_another_if_its_tuples_pass_the_other() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE grid (x DOUBLE, y DOUBLE, n BIGINT, s VARCHAR)")
    insert(connection, "grid", GRID)
    found = {True: 0, False: 0}
    for case in range(cases(1 / 60)):
        seed = f"{SEED} {case}"
        r = random.Random(seed)
        mixed = r.random() < 0.5
        wide = clauses(r, mixed)
        # Often some of the same conditions, so that one often implies the other.
        narrow = [*clauses(r, mixed), *r.sample(wide, r.randint(0, len(wide)))]
        r.shuffle(narrow)
        implied = implies_filter(parsed(narrow), parsed(wide))
        query = (
            f"SELECT count(*) FROM grid WHERE ({' AND '.join(narrow)}) AND ({' AND '.join(wide)}) IS NOT TRUE"
        )
        row = connection.execute(query).fetchone()
        assert row is not None
        if implied or not mixed:
            assert implied == (row[0] == 0), f"seed {seed}: {narrow} and {wide}"
        found[implied] += 1
    assert min(found.values()) > 50


def test_linear_filters_imply_each_other() -> None:
    assert implies_filter(parsed(["x + y > 190"]), parsed(["x + y > 150"]))
    assert implies_filter(parsed(["x > 100", "y > 60"]), parsed(["x + y > 150"]))
    assert implies_filter(parsed(["2 * x > 300"]), parsed(["x > 150"]))
    assert not implies_filter(parsed(["x + y > 150"]), parsed(["x + y > 190"]))


def test_no_filter_is_implied_by_all_and_implies_none() -> None:
    some = parsed(["x > 1"])
    assert implies_filter(some, None) and implies_filter(None, None)
    assert not implies_filter(None, some)
