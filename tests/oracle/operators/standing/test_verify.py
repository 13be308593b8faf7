"""`tamis verify` of queries that keep synopses, on random SQL: nothing is missed or extra.

Rows that are removed, doubled or changed are detected.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.operators import run_query
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.operators.standing import test_application_time as timed
from tests.oracle.operators.standing import test_timeless_groups as grouped
from tests.oracle.operators.standing import test_timeless_rows as plain
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows
from tamis.planning.explain import explain
from tamis.query.model import AlertDef, Catalog, GroupByQuery, InApplicationTime, Query
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import with_group_keys
from tamis.verification.standing import compare_standing

MOST = 60  # tuples of a stream


@pytest.mark.parametrize("times", also_long(30))
def test_rows_without_time(times: int) -> None:
    r = random.Random(SEED)
    catalog = catalog_of(queries.STREAMS)
    seen: Counter[str] = Counter()
    while seen["tried"] < cases(0.0012) * times:
        sql = plain.random_query(r) if r.random() < 0.5 else grouped.random_query(r)[0]
        alert = queries.alert_of(catalog, sql)
        if explain(catalog, alert).memory.verdict != "bounded":
            continue
        read = dict.fromkeys(source.stream for source in alert.query.sources)
        rows = {name: [queries.tuple_of(r, name) for _ in range(r.randint(0, MOST))] for name in read}
        recordings = {
            name: recording(catalog.streams[name], own, queries.COLUMNS[name]) for name, own in rows.items()
        }
        check(r, alert, catalog, recordings, seen)
    assert min(seen.values()) > seen["tried"] / 10, seen


@pytest.mark.parametrize("times", also_long(30))
def test_rows_in_application_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    monkeypatch.chdir(tmp_path)
    r = random.Random(SEED)
    Path("r.csv").write_text("id,name,z\n1,p,0.5\n2,q,1.5\n2,p,\n,o,-2.0\n")
    catalog = catalog_of(timed.STREAMS)
    seen: Counter[str] = Counter()
    while seen["tried"] < cases(0.0012) * times:
        sql, used = timed.random_sql(r)
        alert = queries.alert_of(catalog, sql)
        if not isinstance(alert.query, InApplicationTime):
            continue
        if explain(catalog, alert).memory.verdict != "bounded":
            continue
        recordings = {
            name: recording(
                catalog.streams[name],
                [timed._tuple(r, name, r.randint(0, 15)) for _ in range(r.randint(1, 20))],
                timed.COLUMNS[name],
            )
            for name in dict.fromkeys(used)
            if name != "r"
        }
        check(r, alert, catalog, recordings, seen)
    assert min(seen.values()) > seen["tried"] / 10, seen


def recording(stream: StreamDef, rows: list[Any], columns: tuple[tuple[str, Type], ...]) -> Recording:
    """Rows as they would be read from a file."""
    found = {
        name: Vector.from_list([row[at] for row in rows], kind) for at, (name, kind) in enumerate(columns)
    }
    return Recording(stream, found, np.zeros(len(rows), np.bool_), {}, 0)


def check(
    r: random.Random,
    alert: AlertDef,
    catalog: Catalog,
    recordings: dict[str, Recording],
    seen: Counter[str],
) -> None:
    query = alert.query
    keyed = with_group_keys(query) if isinstance(query, GroupByQuery) else query
    rows = run_query(keyed, catalog, recordings).rows
    given = {**query_inputs(query, catalog).relations, **recordings}

    def found(columns: Any) -> tuple[int, int]:
        verdict = compare_standing("q", query, given, columns)
        return verdict.missed, verdict.extra

    verdict = compare_standing("q", query, given, rows.columns)
    assert (verdict.missed, verdict.extra) == (0, 0), (SEED, alert.sql)
    seen["tried"] += 1
    # A row that is there by a hair may be missing, or there once more.
    if not len(rows) or verdict.at_threshold:
        return
    seen["rows"] += 1
    if isinstance(query, GroupByQuery):
        # Whatever came last of a group is what counts.
        last = np.array([len(rows) - 1])
        seen["groups"] += found(without(rows, last).columns) != (0, 0)
        return
    at = np.array([r.randrange(len(rows))])
    assert found(without(rows, at).columns) == (1, 0), (SEED, alert.sql)
    assert found(Rows.concat([rows, rows.take(at)]).columns) == (0, 1), (SEED, alert.sql)
    changed = changes(query, rows)
    if changed is not None:
        seen["changed"] += 1
        assert found(changed.columns) == (len(rows), len(rows)), (SEED, alert.sql)


def without(rows: Rows, at: Any) -> Rows:
    return rows.take(np.delete(np.arange(len(rows)), at))


def changes(query: Query, rows: Rows) -> Rows | None:
    """The rows with all whole numbers of a column beyond what tuples have; None without such a column."""
    for one in query.select:
        vector = rows.columns[one.name]
        if one.expr.type.integral and vector.null is None:
            columns = {**rows.columns, one.name: Vector(vector.data + 1_000)}
            return Rows(columns, rows.completed, rows.times)
    return None
