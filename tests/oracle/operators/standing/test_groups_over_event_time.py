"""Aggregates over a stream with event time and without windows: after every tuple, the rows are DuckDB's.

Tuples arrive in any order of event time, far behind the watermark too. The verdict, the bound and the node
are those of the same stream without WATERMARK, whatever rate, max_stall and max_ahead are. Readings through
the cores of edge and joiner give the same rows.

Mutations that these tests catch: an operator or the joiner leaves out tuples behind the watermark; the bound
reads the rate; the event time must not be NULL; a restart counts twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import duckdb
import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, plan_of
from tests.oracle.bounded.timeless_queries import alert_of, standing_of
from tests.oracle.operators.standing.piecewise_runs import Columns, batch, pieces, rows
from tests.oracle.operators.standing.test_timeless_groups import same
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.operators.contract import WITHDRAWN
from tamis.planning.explain import explain
from tamis.planning.physical.lowering import lowered
from tamis.query.parse import catalog_of

COLUMNS: Columns = {
    "e": (
        ("k", Type.VARCHAR),
        ("a", Type.INT),
        ("x", Type.DOUBLE),
        ("other", Type.TIMESTAMP),
        ("ts", Type.TIMESTAMP),
    )
}
DECLARED = """CREATE STREAM e (k VARCHAR KEY, a INT CHECK (a BETWEEN 0 AND 2), x DOUBLE, other TIMESTAMP,
    ts TIMESTAMP{}) WITH (keys = 3{})"""
NAMES = [name for name, _ in COLUMNS["e"]]
PLAIN = DECLARED.format("", "")
EPOCH = datetime(1970, 1, 1)
_NOW = 1_700_000_000_000_000

Row = tuple[Any, ...]
Rows = dict[Row, Row]


def timed(r: random.Random) -> str:
    """The stream with a WATERMARK."""
    delay = r.choice((0, 2, 9))
    options = r.choice(("", ", rate = '1/s'")) + r.choice(
        ("", ", max_stall = '5 s', max_ahead = 'unlimited'")
    )
    return DECLARED.format(f", WATERMARK FOR ts AS ts - INTERVAL '{delay} us'", options)


def random_query(r: random.Random) -> tuple[str, int]:
    """A query that shows its groups first, and how many columns make a group."""
    by = r.sample(
        ("k", "a", "x > 1", "a + 1", "ts IS NULL", "ts > other", "other", "ts", "x"), r.randint(0, 2)
    )
    calls = [
        *("count(*)", "count(ts)", "count(other)", "max(ts)", "min(ts)", "min(other)", "max(x)"),
        "count(DISTINCT a)",
        *(
            "sum(x)",
            "avg(x)",
            "sum(a)",
            "median(a)",
            "count(*) FILTER (WHERE ts > other)",
            "count(DISTINCT ts)",
        ),
    ]
    shown = r.sample(calls, r.randint(1, 3))
    where = r.sample(("a > 0", "x < 3", "ts >= other", "k != 'q'", "ts IS NOT NULL"), r.randint(0, 2))
    spread = "max(ts) - min(ts) > INTERVAL '4 us'"
    before = "max(ts) < TIMESTAMP '1970-01-01 00:00:00.00002'"
    having = r.choice((None, None, None, None, "count(*) > 2", "sum(x) < 3", spread, before))
    outputs = ", ".join(f"{one} AS o{i}" for i, one in enumerate([*by, *shown]))
    parts = [f"SELECT {outputs} FROM e"]
    parts += [f"WHERE {' AND '.join(where)}"] * bool(where)
    parts += [f"GROUP BY {', '.join(by)}"] * bool(by) + [f"HAVING {having}"] * bool(having)
    return " ".join(parts), len(by)


def arrivals(r: random.Random, count: int, *, null: bool) -> list[Row]:
    """Tuples in the order of their arrival, some of them late. `null`: some have no event time."""
    now, found = 0, []
    for _ in range(count):
        now += r.choice((0, 1, 1, 3, 20))
        ts = None if null and r.random() < 0.1 else now - r.choice((0, 0, 1, 5, 40, 1_000))
        a, x, other = (
            r.choice((None, 0, 1, 2)),
            r.choice((None, 0.5, 2.0, -1.25)),
            r.choice((None, ts, now - 3)),
        )
        found.append((r.choice("ppqr"), a, x, other, ts))
    return found


class Reference:
    """DuckDB over all tuples so far."""

    def __init__(self) -> None:
        self._base = duckdb.connect()
        self._base.execute("CREATE TABLE e (k VARCHAR, a INT, x DOUBLE, other TIMESTAMP, ts TIMESTAMP)")

    def add(self, one: Row) -> None:
        """One more tuple."""
        k, a, x, *times = one
        stamps = [None if time is None else EPOCH + timedelta(microseconds=time) for time in times]
        self._base.execute("INSERT INTO e VALUES (?, ?, ?, ?, ?)", [k, a, x, *stamps])

    def rows(self, sql: str, grouped: int) -> Rows:
        """The row of each group; none without GROUP BY before the first tuple is counted."""
        found = [tuple(map(_value, row)) for row in self._base.execute(sql).fetchall()]
        if not grouped:
            below = sql.partition(" FROM ")[2].partition(" HAVING ")[0]
            if not self._base.execute(f"SELECT 1 FROM {below}").fetchone():
                return {}
        return {row[:grouped]: row for row in found}


def _value(value: Any) -> Any:
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def take(last: Rows, found: Iterable[Row], grouped: int, *, withdraws: bool) -> None:
    """Take rows of changed groups: each differs from the one before, or withdraws it."""
    for one in found:
        gone, row = (one[-1], one[:-1]) if withdraws else (False, one)
        key = row[:grouped]
        assert key in last if gone else last.get(key) != row
        if gone:
            del last[key]
        else:
            last[key] = row


@pytest.mark.parametrize("times", also_long(30))
def test_rows_after_every_tuple_are_those_of_duckdb(times: int) -> None:
    r = random.Random(SEED)
    tried = productive = 0
    while tried < cases(0.0015) * times:
        catalog = catalog_of(timed(r))
        sql, grouped = random_query(r)
        alert = alert_of(catalog, sql)
        memory = explain(catalog, alert).memory
        if memory.verdict != "bounded":
            continue
        tried += 1
        fresh = partial(standing_of, alert, catalog)
        reference, query, tuples = Reference(), fresh(), arrivals(r, r.choice((5, 12, 25)), null=True)
        last: Rows = {}
        in_order: list[Row] = []
        watermark = -(2**60)
        for place, one in enumerate(tuples):
            reference.add(one)
            found = query.take("e", batch(COLUMNS, "e", [one]), 1)
            made = [tuple(row) for _, *row in rows(found)]
            in_order += [(place, *row) for row in made]
            take(last, made, grouped, withdraws=WITHDRAWN in found.columns)
            wanted = reference.rows(sql, grouped)
            assert same(last, wanted), (SEED, sql, tuples[: place + 1], last, wanted)
            assert memory.bound is None or query.entries() <= memory.bound, (SEED, sql, tuples)
            watermark = max(watermark, watermark if one[-1] is None else one[-1])
            assert not len(query.advance("e", watermark))
        in_pieces, _ = pieces(r, fresh, COLUMNS, [("e", one) for one in tuples])
        assert in_pieces == sorted(in_order, key=lambda row: (row[0], repr(row))), (SEED, sql, tuples)
        productive += bool(in_order)
    assert productive > tried // 2


def test_verdict_and_node_are_those_without_a_watermark() -> None:
    r = random.Random(SEED)
    seen = set()
    for _ in range(cases(0.002)):
        sql, _ = random_query(r)
        catalogs = [catalog_of(PLAIN), catalog_of(timed(r))]
        plain, found = (explain(one, alert_of(one, sql)).memory for one in catalogs)
        assert (found.verdict, found.bound, found.formula) == (plain.verdict, plain.bound, plain.formula), sql
        seen.add(found.verdict)
        if found.verdict == "bounded":
            without, with_watermark = (lowered(alert_of(one, sql).query, one) for one in catalogs)
            assert without == with_watermark, sql
        else:
            assert found.repairs[0] == "FROM TUMBLE(e, ts, INTERVAL '1' MINUTE) and GROUP BY window_start"
    assert seen >= {"bounded", "unbounded"}


@pytest.mark.parametrize("times", also_long(30))
def test_readings_through_edge_and_joiner(times: int) -> None:
    r = random.Random(SEED)
    tried = late = 0
    while tried < cases(0.0004) * times:
        stream, (sql, grouped) = timed(r), random_query(r)
        catalog = catalog_of(stream)
        if explain(catalog, alert_of(catalog, sql)).memory.verdict != "bounded":
            continue
        tried += 1
        fleet = InProcessFleet(plan_of(f"{stream}; CREATE ALERT q AS {sql};"))
        reference, withdraws = Reference(), "HAVING" in sql
        last: Rows = {}
        for now, one in enumerate(arrivals(r, 15, null=False)):
            known = len(fleet.records)
            reference.add(one)
            fleet.send("e", [dict(zip(NAMES, one, strict=True))], _NOW + now)
            if r.random() < 0.2:
                fleet.restart()
            made = list(fleet.records.values())[known:]
            assert all(alarm["event_time"] == one[-1] for alarm in made)
            found = [(*alarm["row"].values(), *[alarm.get("withdrawn", False)] * withdraws) for alarm in made]
            take(last, found, grouped, withdraws=withdraws)
            assert same(last, reference.rows(sql, grouped)), (SEED, sql)
        assert not fleet.dead
        assert fleet.last_frontier is not None
        assert not fleet.last_frontier.missed
        late += fleet.last_frontier.late
    assert late > tried
