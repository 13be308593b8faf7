"""`x IN (SELECT …)` and `x NOT IN (SELECT …)`: the rows are those of DuckDB for the same text, with NULLs."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import duckdb
from tests.oracle.random_cases import SEED, cases

from tamis.cli.common.recordings import read_recordings
from tamis.operators.time_join.replay import replay
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

STREAM = (
    "CREATE STREAM {} (k VARCHAR NOT NULL KEY, ts TIMESTAMP NOT NULL, x DOUBLE, n INT NOT NULL,"
    " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (keys = 3, rate = '9/s');"
)
START = 1_700_000_000
# The tested value, and the column that it is compared with.
COMPARED = {
    **{"k IN": "k", "k NOT IN": "k", "NOT k IN": "k", "n NOT IN": "n", "NOT n IN": "n"},
    **{"x IN": "x", "n IN": "n", "p.n + 1 IN": "n"},
}
Row = tuple[object, ...]


def test_the_rows_are_those_of_duckdb(tmp_path: Path) -> None:
    r = random.Random(SEED)
    seen: Counter[str] = Counter()
    for number in range(cases(0.0025)):
        tested = r.choice([*COMPARED])
        sql = _query(r, tested)
        catalog = catalog_of(f"{STREAM.format('a')}{STREAM.format('c')}CREATE ALERT q AS {sql};")
        rows = {name: _recording(r) for name in "ac"}
        duck = duckdb.connect()
        files = {}
        for name, own in rows.items():
            duck.execute(f"CREATE TABLE {name} (k VARCHAR, ts TIMESTAMP, x DOUBLE, n INT)")
            duck.executemany(
                f"INSERT INTO {name} VALUES (?, make_timestamp(CAST(? AS BIGINT) * 1000000), ?, ?)", own
            )
            path = tmp_path / f"{number}-{name}.ndjson"
            path.write_text("".join(json.dumps(_named(row)) + "\n" for row in own))
            files[name] = [str(path)]
        expected = {(k, int(second), x, n) for k, second, x, n in duck.execute(sql).fetchall()}
        plan = first_plan(catalog)
        recordings = read_recordings(catalog, [catalog.alerts["q"]], files, None, as_arrived=True)
        found = replay(plan.definitions[0], plan.streams, recordings)
        listed = [recordings["a"].columns[name].to_list() for name in ("k", "ts", "x", "n")]
        tuples = list(zip(*listed, strict=True))
        chosen = [tuples[at] for at in found.rows["p"].tolist()]
        got = {(k, int(str(ts)) // 1_000_000, x, n) for k, ts, x, n in chosen}
        (interval,) = (one.interval or 0 for one in plan.definitions[0].inputs if one.alias == "p")
        assert got <= expected, (SEED, number, sql, got - expected)
        lost = [
            row
            for row in expected - got
            if not any(_near(row, one, interval, COMPARED[tested]) for one in got)
        ]
        assert not lost, (SEED, number, sql, lost)
        seen["negated" if "NOT" in tested else "plain"] += bool(got)
        seen["all"] += 1
    assert min(seen["negated"], seen["plain"]) > seen["all"] // 8, seen


def _near(one: Row, other: Row, interval: int, column: str) -> bool:
    """True if a row may stand for another one: of the same key, which is the compared column."""
    key = {"k": 0, "x": 2, "n": 3}[column]
    return one[key] == other[key] and abs(int(str(one[1])) - int(str(other[1]))) * 1_000_000 <= interval


def _query(r: random.Random, tested: str) -> str:
    low, high = sorted(r.sample(range(-6, 5), 2))
    where = [
        f"c.ts >= p.ts + INTERVAL '{low} seconds' AND c.ts <= p.ts + INTERVAL '{high} seconds'",
        *r.sample([f"c.x > {r.randint(0, 3)}", f"c.n <> {r.randint(0, 3)}", "c.k = p.k"], r.randint(0, 2)),
    ]
    column = COMPARED[tested]
    outer = r.choice(("", "", f" AND p.x > {r.randint(0, 3)}"))
    return (
        f"SELECT p.k, CAST(extract(epoch FROM p.ts) AS BIGINT) AS s, p.x, p.n FROM a p"
        f" WHERE {tested} (SELECT c.{column} FROM c WHERE {' AND '.join(where)}){outer}"
    )


def _recording(r: random.Random) -> list[Row]:
    times = sorted(r.randint(0, 40) for _ in range(r.choice((6, 15, 25))))
    return [
        (r.choice("uv"), START + time, None if r.random() < 0.15 else float(r.randint(0, 4)), r.randint(0, 4))
        for time in times
    ]


def _named(row: Row) -> dict[str, object]:
    k, second, x, n = row
    return {"k": k, "ts": int(str(second)) * 1_000_000, "x": x, "n": n}
