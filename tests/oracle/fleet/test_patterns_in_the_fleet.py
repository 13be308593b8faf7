"""Alerts with similar() and window functions through the cores of edge and joiner, against `tamis verify`.

Readings come out of order. Tuples are omitted where the planner proves that they may be. Edges restart from
their commits, and the joiner from its state.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.oracle.fleet.test_windows_in_the_fleet import Fleet
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.offline.recordings import watched_recording
from tamis.planning.build import first_plan
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording, read_recording
from tamis.verification.compare import alarms_of, compare
from tamis.verification.reference import plain_join
from tamis.verification.watched_columns import checked_recording

LONG = also_long(40)
FIRST = SEED * 10_000_000 + 7_000_000
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
STREAMS = """
CREATE STREAM vib (
  machine INT KEY, ts TIMESTAMP, value DOUBLE CHECK (value BETWEEN -100 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND
) WITH (max_ahead = '0');
CREATE STREAM load (
  machine INT KEY, ts TIMESTAMP, percent DOUBLE CHECK (percent BETWEEN 0 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND
) WITH (max_ahead = '0');
CREATE PATTERN rise VALUES (0, 1, 3) WITH (max_gap = '10 seconds');
CREATE PATTERN peak VALUES (0, 2, 2, 0) WITH (max_gap = '6 seconds');
"""
NEAR = "v.machine = l.machine AND ABS(v.ts - l.ts) <= INTERVAL '5' SECOND"
ALERTS = {
    "joined": "SELECT v.ts, similarity(v.value, 'rise') AS d, l.percent FROM vib v JOIN load l ON {near}"
    " WHERE similar(v.value, 'rise', {epsilon}) AND l.percent > {least}",
    # The value of the readings that match is compared with the partner's.
    "compared": "SELECT v.ts, v.value, l.percent FROM vib v JOIN load l ON {near}"
    " WHERE similar(v.value, 'peak', {epsilon}, scale => (0.2, NULL)) AND v.value + l.percent > {least}",
    # So is the distance.
    "near": "SELECT v.ts, l.percent FROM vib v JOIN load l ON {near}"
    " WHERE similar(v.value, ANY, {epsilon}) AND 100 * similarity(v.value, ANY) + l.percent < {least}",
    "unlike": "SELECT v.ts, l.percent FROM vib v JOIN load l ON {near}"
    " WHERE NOT similar(v.value, 'rise', {epsilon}) AND v.value - l.percent > 4 - {least}",
    "rising": "SELECT v.ts, l.percent FROM vib v JOIN load l ON {near} WHERE v.value - lag(v.value) OVER"
    " (PARTITION BY v.machine ORDER BY v.ts) > {least} - 2 AND l.percent > {least}",
    # The mean of the readings before is compared with the partner's value.
    "higher": "SELECT v.ts, l.percent FROM (SELECT *, avg(value) OVER (PARTITION BY machine ORDER BY ts ROWS"
    " BETWEEN 3 PRECEDING AND 1 PRECEDING) AS mean FROM vib) v JOIN load l ON {near}"
    " WHERE l.percent - v.mean > 4 - {epsilon}",
    "many": "SELECT v.ts, v.value, count(*) OVER w AS n FROM vib v WINDOW w AS (PARTITION BY v.machine"
    " ORDER BY v.ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) QUALIFY n > {least}",
    "alone": "SELECT v.ts, pattern(v.value, ANY) AS p FROM vib v WHERE similar(v.value, ANY, {epsilon})",
}


def rows(r: random.Random, name: str, delay: int) -> list[dict[str, Any]]:
    """Readings of three machines. Times and values tell all of them apart."""
    found, base = [], START
    for number in range(r.randint(60, 250)):
        base += r.choice((0, 1, 1, 2)) * SECOND + (r.random() < 0.02) * 20 * SECOND
        at = base - r.randint(0, delay) * SECOND + number
        value: float | None = r.randint(0, 5) + number / 4096
        if name == "vib" and r.random() < 0.03:
            value = None
        found.append(
            {
                "machine": r.choice((1, 1, 1, 2, 2, 3)),
                "ts": at,
                "value" if name == "vib" else "percent": value,
            }
        )
    return found


def loaded(r: random.Random, folder: Path) -> tuple[str, Catalog, dict[str, Recording]]:
    """Some alerts, and recordings of all streams that they read."""
    delay = r.choice((0, 3, 6))
    chosen = r.sample(sorted(ALERTS), r.randint(1, 3))
    sql = STREAMS.format(delay=delay + 1) + "".join(
        f"CREATE ALERT {name} AS {ALERTS[name]};\n".format(
            near=NEAR, epsilon=r.choice((0.2, 0.4, 0.6)), least=r.randint(2, 6)
        )
        for name in chosen
    )
    catalog = catalog_of(sql)
    recordings = {}
    for name in ("vib", "load"):
        path = folder / f"{name}.ndjson"
        path.write_bytes(b"\n".join(map(orjson.dumps, rows(r, name, delay))))
        recordings[name] = read_recording(catalog.streams[name], [str(path)], as_arrived=True)
    for stream in catalog.streams.values():
        if stream.base is not None:
            recordings[stream.name] = watched_recording(recordings[stream.base], stream)
    return sql, catalog, recordings


@pytest.mark.parametrize("times", LONG)
def test_nothing_is_missed_and_nothing_extra(times: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    files = cases(0.0005) * times
    for seed in range(FIRST, FIRST + files):
        r = random.Random(seed)
        sql, catalog, recordings = loaded(r, tmp_path)
        plan = first_plan(catalog, shards={f"{name}:e/file": name for name in ("vib", "load")})
        fleet = Fleet(plan, recordings, r)
        fleet.play()
        checked = {name: checked_recording(one) for name, one in recordings.items()}
        for definition in plan.definitions:
            query = catalog.alerts[definition.alert].query
            raised = [alarm for alarm in fleet.alarms.values() if alarm["alert"] == definition.alert]
            verdict = compare(
                definition.alert,
                query,
                definition=definition,
                recordings=recordings,
                reference=plain_join(query, checked),
                alarms=alarms_of(query, recordings, [alarm["tuples"] for alarm in raised]),
                retained=0,
                checked=checked,
            )
            assert verdict.same, f"seed {seed}: {verdict}\n{sql}"
            seen[definition.alert] += len(raised)
            seen["omitted"] += any(source.interval for source in definition.inputs)
    assert min(seen[name] for name in ALERTS) > files // 4, seen
    assert seen["omitted"] > files // 8, seen
