"""`tamis verify` finds each fault in the alarms and rows that it compares, for every kind of query.

Tamis evaluates the query as always; the fault is put into what it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.operators import run_query

import tamis.offline.verify
from tamis.cli.common.recordings import read_recordings
from tamis.expressions.vectors import Vector
from tamis.offline.standing_runs import run_query_by_cuts
from tamis.offline.verify import verify
from tamis.operators.contract import WITHDRAWN, RecordedRun, Rows
from tamis.operators.time_join.replay import Replay, replay
from tamis.query.parse import catalog_of
from tamis.verification.compare import Verdict

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026
STREAMS = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, n INT, WATERMARK FOR ts AS ts) WITH (keys = 3);
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, n INT, WATERMARK FOR ts AS ts) WITH (keys = 3);
CREATE STREAM p (k VARCHAR KEY, n INT CHECK (n BETWEEN 0 AND 9)) WITH (keys = 3);
CREATE STREAM q (k VARCHAR KEY, n INT CHECK (n BETWEEN 0 AND 9)) WITH (keys = 3);
CREATE TABLE r (k VARCHAR, factor DOUBLE) WITH (path = 'r.csv');
"""
NEAR = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts + INTERVAL '2' SECOND"
A, B = (f"TUMBLE({name}, ts, INTERVAL '10' SECOND)" for name in "ab")
COMBINATIONS = {
    "join": f"SELECT a.k, a.ts, a.x - b.x AS v FROM a JOIN b ON {NEAR} WHERE a.x - b.x > -9",
    "join of three": "SELECT a.k, a.ts, a.x - b.x + c.x AS v FROM a, b, a AS c WHERE a.k = b.k AND a.k = c.k"
    " AND a.ts = c.ts AND ABS(a.ts - b.ts) <= INTERVAL '2' SECOND AND a.x - b.x + c.x > -9",
    "windows": f"SELECT a.k, a.window_end, a.x - b.x AS v FROM {A} a, {B} b"
    " WHERE a.k = b.k AND a.window_start = b.window_start AND a.x - b.x > -9",
    "EXISTS": f"SELECT a.k, a.ts, a.x AS v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {NEAR})",
    "NOT EXISTS": f"SELECT a.k, a.ts, a.x AS v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {NEAR}"
    " AND b.n = 1)",
    "NO READING": "SELECT a.k, a.ts, a.x AS v FROM a WHERE NO READING FOR INTERVAL '5' SECOND",
    "one stream": "SELECT a.k, a.ts, a.x AS v FROM a WHERE a.x > 0",
    "lag": "SELECT a.k, a.ts, a.x - lag(a.x) OVER (PARTITION BY k ORDER BY ts) AS v FROM a",
}
ROWS = {
    "aggregates": f"SELECT k, window_end, sum(x) AS v FROM {A} GROUP BY k, window_end",
    "sessions": "SELECT k, window_end, count(*) AS v FROM SESSION(a, ts, INTERVAL '3' SECOND)"
    " GROUP BY k, window_end",
    "aggregates of a join": f"SELECT a.k, window_end, sum(a.x - b.x) AS v FROM {A} a"
    f" JOIN b ON {NEAR} GROUP BY a.k, window_end",
    "nested": f"SELECT n.k, n.ts, n.v FROM (SELECT k, window_end AS ts, sum(x) AS v FROM {A}"
    " GROUP BY k, window_end) n WHERE n.v > 0",
    "latest": "SELECT a.k, a.ts, a.x - b.x AS v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "table": "SELECT a.k, a.ts, a.x * r.factor AS v FROM a JOIN r ON a.k = r.k",
    "application time": "SELECT a.k, a.ts, b.n AS v FROM a, b WHERE a.ts > b.ts AND b.n IN (1, 2)",
    "timeless": "SELECT p.k, p.n AS v FROM p WHERE p.n > 1",
    "timeless join": "SELECT p.k, p.n, q.n AS v FROM p, q WHERE p.k = q.k AND p.n = q.n",
    "groups": "SELECT p.k, sum(p.n) AS v FROM p GROUP BY p.k",
    "DISTINCT": "SELECT DISTINCT p.k, p.n AS v FROM p WHERE p.n BETWEEN 1 AND 4",
    "UNION ALL": "SELECT p.k, p.n AS v FROM p WHERE p.n > 3"
    " UNION ALL SELECT q.k, q.n AS v FROM q WHERE q.n < 5",
}
# Faults of combinations of tuples: an alarm in place of the right ones.
ALARMS: dict[str, Callable[[Replay], Replay]] = {
    "drop": lambda found: _alarms(found, np.arange(1, len(found))),
    "drop the last": lambda found: _alarms(found, np.arange(len(found) - 1)),
    "double": lambda found: _alarms(found, np.append(np.arange(len(found)), 0)),
    "double all": lambda found: _alarms(found, np.tile(np.arange(len(found)), 2)),
    "another tuple": lambda found: _moved(found, 2),
    "a tuple of another key": lambda found: _moved(found, 1),
    "value": lambda found: replace(found, selected=_changed(found.selected, "v", 1e-6)),
    "key": lambda found: replace(found, selected=_changed(found.selected, "k", "?")),
    "none": lambda found: _alarms(found, np.arange(0)),
}
FAULTS: dict[str, Callable[[Rows], Rows]] = {
    "drop": lambda rows: rows.take(np.arange(len(rows) - 1)),
    "double": lambda rows: rows.take(np.append(np.arange(len(rows)), len(rows) - 1)),
    "double all": lambda rows: rows.take(np.repeat(np.arange(len(rows)), 2)),
    "shift": lambda rows: _with(rows, _changed(rows.columns, _time(rows), 1)),
    "value": lambda rows: _with(rows, _changed(rows.columns, _value(rows), 1e-6)),
    "count": lambda rows: _with(rows, _changed(rows.columns, _value(rows), 1)),
    "key": lambda rows: _with(rows, _changed(rows.columns, _key(rows), "?")),
    "NULL": lambda rows: _with(rows, _changed(rows.columns, _value(rows), None)),
    "none": lambda rows: rows.take(np.arange(0)),
}
COUNT = 12  # readings of each key


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings: readings of two keys so far apart that no alarm stands for another one."""
    found = tmp_path_factory.mktemp("faults")
    for name in "ab":
        rows = [
            f"{key},{START + (10 * at + (name == 'b')) * SECOND},{1.25 * at + (key == 'm')},{at % 4}"
            for at in range(COUNT)
            for key in "mn"
        ]
        (found / f"{name}.csv").write_text("\n".join(["k,ts,x,n", *rows, ""]))
    for name in "pq":
        rows = [f"{'mn'[at % 2]},{(at * at + (name == 'q')) % 7}" for at in range(COUNT)]
        (found / f"{name}.csv").write_text("\n".join(["k,n", *rows, ""]))
    (found / "r.csv").write_text("k,factor\nm,1.5\nn,2\n")
    return found


@pytest.mark.parametrize("fault", ALARMS)
@pytest.mark.parametrize("kind", COMBINATIONS)
def test_faults_of_alarms(kind: str, fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    right = _verified(COMBINATIONS[kind])
    assert right.same and right.reference_alarms == right.alarms > 2, right
    monkeypatch.setattr(tamis.offline.verify, "replay", lambda *args: ALARMS[fault](replay(*args)))
    found = _verified(COMBINATIONS[kind])
    assert not found.same, found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", ROWS)
def test_faults_of_rows(kind: str, fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    right = _verified(ROWS[kind])
    assert right.same and right.alarms > 1, right

    for run in (run_query, run_query_by_cuts):
        monkeypatch.setattr(tamis.offline.verify, run.__name__, _faulty(run, FAULTS[fault]))
    found = _verified(ROWS[kind])
    assert not found.same, found


def _faulty(run: Callable[..., RecordedRun], fault: Callable[[Rows], Rows]) -> Callable[..., RecordedRun]:
    def faulty(*args: Any) -> RecordedRun:
        made = run(*args)
        return replace(made, rows=fault(made.rows))

    return faulty


def _verified(sql: str) -> Verdict:
    catalog = catalog_of(f"{STREAMS} CREATE ALERT alert WITH (allow_unbounded = true) AS {sql};")
    alerts = list(catalog.alerts.values())
    read = {source.stream for alert in alerts for source in alert.query.sources} & set("abpq")
    read |= {name for name in "abpq" if f" {name} " in f"{sql} ".replace("(", " ").replace(",", " ")}
    recordings = read_recordings(catalog, alerts, {name: [f"{name}.csv"] for name in sorted(read)}, None)
    (verdict,) = verify(catalog, recordings)
    return verdict


def _alarms(found: Replay, at: Any) -> Replay:
    return replace(
        found,
        rows={alias: rows[at] for alias, rows in found.rows.items()},
        selected={name: vector.take(at) for name, vector in found.selected.items()},
        starts=None if found.starts is None else found.starts[at],
    )


def _moved(found: Replay, by: int) -> Replay:
    """With another tuple in the first alarm, and the columns of SELECT as they were."""
    alias = next(iter(found.rows))
    rows = found.rows[alias].copy()
    rows[0] = (rows[0] + by) % (2 * COUNT)
    return replace(found, rows={**found.rows, alias: rows})


def _changed(columns: Mapping[str, Vector], name: str, by: float | str | None) -> dict[str, Vector]:
    """The columns with another last value in one of them."""
    values: list[Any] = columns[name].to_list()
    values[-1] = None if by is None else by if values[-1] is None else values[-1] + by
    data = np.array([0 if value is None else value for value in values], columns[name].data.dtype)
    null = np.array([value is None for value in values], np.bool_)
    if isinstance(by, float) and data.dtype.kind == "i":
        data[-1] += 1
    return {**columns, name: Vector(data, null if null.any() else None)}


def _with(rows: Rows, columns: dict[str, Vector]) -> Rows:
    return Rows(columns, rows.completed, rows.times)


def _names(rows: Rows) -> list[str]:
    return [name for name in rows.columns if name != WITHDRAWN]


def _key(rows: Rows) -> str:
    return next(name for name in _names(rows) if rows.columns[name].data.dtype == np.object_)


def _value(rows: Rows) -> str:
    return _names(rows)[-1]


def _time(rows: Rows) -> str:
    """The last whole number that isn't the value, or else the value."""
    names = [name for name in _names(rows) if rows.columns[name].data.dtype == np.int64]
    return [*names[:-1], _value(rows)][-1] if _value(rows) in names else [_value(rows), *names][-1]
