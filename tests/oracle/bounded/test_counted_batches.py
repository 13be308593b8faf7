"""Queries that count duplicates: batches against single tuples, and against DuckDB.

A batch of tuples gives what its tuples give one by one, row by row in the same order, wherever batches are
cut and states are taken over. In the end that is DuckDB's result.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import duckdb
import pytest
from tests.operators import standing_evaluator
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing.piecewise_runs import Row, cut
from tests.oracle.operators.standing.test_timeless_groups import same
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.operators.contract import StandingEvaluator

SHAPES = (
    "SELECT {shown} FROM {sources} WHERE {joined}",
    "SELECT {shown} FROM {sources} WHERE {joined} AND ({one} OR {other})",
    "SELECT {whole} AS o FROM {sources} WHERE {joined} UNION ALL SELECT s.a FROM s WHERE s.b = 1",
    "SELECT {shown} FROM {sources} WHERE {joined} AND {beyond}",
    "SELECT {keys}, {calls} FROM {sources} WHERE {joined} GROUP BY {by}",
    "SELECT {keys}, {calls} FROM {sources} WHERE {joined} GROUP BY {by} HAVING {having}",
    "SELECT {calls} FROM {sources} WHERE {joined} AND ({one} OR {other})",
    "SELECT {keys}, {calls} FROM {sources} WHERE {joined} AND {beyond} GROUP BY {by}",
)
ALONE, TWO, THREE = (
    (["s x"],),
    (["s x", "t y"], ["s x", "s y"]),
    (["s x", "t y", "s z"], ["t x", "s y", "t z"]),
)
CALLS = ("sum({0})", "avg({0})", "min({0})", "max({0})", "median({0})", "count({0})")


@pytest.mark.parametrize("times", also_long(30))
def test_batches_that_count_give_what_tuples_give_one_by_one(times: int) -> None:
    r = random.Random(SEED)
    reference = queries.reference()
    tried = max(3 * len(SHAPES), cases(0.0015) * times)
    productive = 0
    for number in range(tried):
        shape = SHAPES[number % len(SHAPES)]
        sources = r.choice((*TWO, *THREE) if "{beyond}" in shape else (*ALONE, *TWO, *TWO, *THREE))
        sql, grouped = _query(r, shape, sources)
        used = sorted(
            {one.split()[0] for one in sources} | {"s"} if "UNION" in sql else {one[0] for one in sources}
        )
        tuples = [_tuple(r, r.choice(used)) for _ in range(r.choice((12, 40, 80)) // len(sources))]
        make = partial(_standing, sql)
        alone, query = cut(r, make, queries.COLUMNS, tuples, (1,))
        together, again = cut(r, make, queries.COLUMNS, tuples)
        assert together == alone, (SEED, sql, tuples, together, alone)
        assert again.dump() == query.dump(), (SEED, sql, tuples)
        _compare(reference, sql, tuples, (alone, grouped))
        productive += bool(alone)
    assert productive > tried // 2


def _standing(sql: str) -> StandingEvaluator:
    return standing_evaluator(
        f"{queries.STREAMS} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q"
    )


def _query(r: random.Random, shape: str, sources: list[str]) -> tuple[str, int | None]:
    """A query, and how many columns make its groups, if it has any."""
    whole, flags, texts, numbers = queries.columns_of(sources)
    alike = (whole, flags, texts, numbers)
    joined = [
        _join(r, r.choice((whole, whole, *alike)), sources[r.randrange(i)], sources[i], whole)
        for i in range(1, len(sources))
    ]
    by = r.sample([*whole, *flags, *texts], r.randint(1, 2))
    calls = [one.format(r.choice([*whole, *numbers])) for one in r.sample(CALLS, r.randint(1, 4))]
    calls += r.sample(
        [f"count(DISTINCT {r.choice([*whole, *texts])})", f"min({texts[0]})", f"max({texts[-1]})"], 1
    )
    having = (
        f"count(*) < {r.randint(2, 9)}",
        f"sum({whole[0]}) > 0",
        f"max({numbers[-1]}) < 3 OR count(*) = 4",
    )
    far = r.sample(sources, min(2, len(sources)))
    left, right = (r.choice(_of(whole, one)) for one in far) if len(far) > 1 else ("", "")
    conditions = (
        f"{whole[0]} = {r.randint(-1, 1)}",
        flags[-1],
        f"{texts[0]} IN ('x', 'y')",
        f"{whole[-1]} > 0",
    )
    one, other = r.sample(conditions, 2)
    sql = shape.format(
        shown=", ".join(
            f"{c} AS o{i}" for i, c in enumerate(r.sample([*whole, *flags, *texts, *numbers], 2))
        ),
        whole=r.choice(whole),
        sources=", ".join(sources),
        joined=" AND ".join(joined or [f"{whole[0]} < 9"]),
        beyond=r.choice((f"{left} * {right} <= 1", f"({left} = 1 OR {right} = 0)")),
        one=one,
        other=other,
        by=", ".join(by),
        keys=", ".join(f"{c} AS k{i}" for i, c in enumerate(by)),
        calls=", ".join(f"{c} AS n{i}" for i, c in enumerate(["count(*)", *calls])),
        having=r.choice(having),
    )
    return sql, len(by) if "GROUP BY" in sql else 0 if "count(*)" in sql else None


def _join(r: random.Random, columns: list[str], one: str, other: str, whole: list[str]) -> str:
    """A condition between two sources."""
    op = r.choice(("=", "=", "<=", "!=")) if columns is whole else "="
    return f"{r.choice(_of(columns, one))} {op} {r.choice(_of(columns, other))}"


def _of(columns: list[str], source: str) -> list[str]:
    return [one for one in columns if one.startswith(f"{source.split()[1]}.")]


def _tuple(r: random.Random, name: str) -> tuple[str, tuple[object, ...]]:
    """With few values, so that many join."""
    number = r.choice((0.1, -1.5, 3.0))
    values = [r.randint(-1, 1), r.randint(-1, 2), r.random() < 0.5, r.choice(queries.TEXTS), number]
    return name, tuple(None if r.random() < 0.05 else value for value in values)


def _compare(
    reference: duckdb.DuckDBPyConnection,
    sql: str,
    tuples: queries.Tuples,
    found: tuple[list[Row], int | None],
) -> None:
    rows, grouped = found
    reference.execute("DELETE FROM s; DELETE FROM t")
    for name, one in tuples:
        reference.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", one)
    wanted = reference.execute(sql).fetchall()
    if grouped is None:
        assert Counter(row[1:] for row in rows) == Counter(wanted), (SEED, sql, tuples)
        return
    last = {row[1 : 1 + grouped]: row[1:] for row in rows}
    if "HAVING" in sql:
        last = {key: row[:-1] for key, row in last.items() if not row[-1]}
    if not grouped and wanted[0][0] == 0:
        wanted = []
    assert same(last, {row[:grouped]: row for row in wanted}), (SEED, sql, tuples, last, wanted)
