"""Queries with similar(…) over the readings of four motes, run and verified."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long
from tests.oracle.watching.brute_force import Reading, outcomes
from tests.oracle.watching.test_watched_recordings import agrees, columns_of

from tamis.cli.common.recordings import read_recordings
from tamis.declarations.watches import pattern_watches
from tamis.offline.verify import verify
from tamis.query.parse import catalog_of

READINGS = Path(__file__).parents[3] / "demo" / "data" / "suthaharan-single-hop.csv"
START = 1_700_000_000
SECOND = 1_000_000
STREAM = """
CREATE STREAM motes (mote INT KEY, ts TIMESTAMP, humidity DOUBLE, temperature DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '15' SECOND) WITH (keys = 4, rate = '1/s');
"""
# Humidity rises like steam does, and the temperature of the same or of another mote changes within minutes.
ALERTS = """
CREATE ALERT steam AS
SELECT a.mote, a.ts, similarity(a.humidity, 'steam') AS distance, scale(a.humidity, 'steam') AS scale
FROM motes a WHERE similar(a.humidity, 'steam', {0}, scale => (0.2, 5)) AND a.temperature > 25;
CREATE ALERT spread AS
SELECT a.mote, b.mote AS other, a.ts, b.ts AS since
FROM motes a, motes b
WHERE similar(a.humidity, ANY, {0}, scale => (0.5, 2)) AND similar(b.temperature, 'warm', {1})
  AND ABS(a.ts - b.ts) <= INTERVAL '2' MINUTE;
CREATE ALERT hourly AS
SELECT window_end, mote, count(*) AS n, min(similarity(humidity, 'steam')) AS nearest
FROM TUMBLE(motes, ts, INTERVAL '1' HOUR) WHERE similar(humidity, 'steam', {0}, scale => (0.2, 5))
GROUP BY window_end, mote;
"""
Row = tuple[int, int, float, float]


def readings(random: np.random.Generator) -> list[Row]:
    """Mote, time in seconds, humidity and temperature; some arrive later than others, and some are late."""
    with READINGS.open() as file:
        rows = [
            (int(r[1]), START + 5 * int(r[0]), float(r[3]), float(r[4])) for r in list(csv.reader(file))[1:]
        ]
    behind = np.where(random.random(len(rows)) < 0.1, random.integers(0, 26, len(rows)), 0)
    order = np.argsort([row[1] for row in rows] + behind, kind="stable")
    return [rows[at] for at in order]


def pattern(name: str, values: list[float]) -> str:
    return f"CREATE PATTERN {name} VALUES ({', '.join(map(repr, values))}) WITH (max_gap = '30 s');\n"


def window(random: np.random.Generator, values: list[float]) -> list[float]:
    """Six readings that aren't all but constant."""
    while True:
        at = int(random.integers(0, len(values) - 6))
        found = values[at : at + 6]
        if np.ptp(found) > 0.2:
            return found


@pytest.mark.parametrize("times", also_long(20))
def test_alarms_are_those_of_direct_computation(times: int, tmp_path: Path) -> None:
    alarms = matches = 0
    for seed in range(SEED, SEED + times):
        random = np.random.default_rng(seed)
        rows = readings(random)
        path = tmp_path / "motes.csv"
        lines = [f"{mote},{ts * SECOND},{h!r},{t!r}" for mote, ts, h, t in rows]
        path.write_text("\n".join(["mote,ts,humidity,temperature", *lines]) + "\n")
        humidity = [h for mote, _, h, _ in rows if mote == 1]
        steam = window(random, humidity)
        warm = window(random, [t for mote, _, _, t in rows if mote == 2])
        sql = STREAM + pattern("steam", steam) + pattern("warm", warm)
        sql += ALERTS.format(0.5 * float(np.std(steam)), 0.3 * float(np.std(warm)))
        catalog = catalog_of(sql)
        recordings = read_recordings(
            catalog, list(catalog.alerts.values()), {"motes": [str(path)]}, None, as_arrived=True
        )
        for verdict in verify(catalog, recordings):
            assert verdict.same, verdict
            alarms += verdict.reference_alarms
        (watched,) = catalog.alerts["steam"].query.watched
        (watch,) = pattern_watches(watched.watches)
        # Exact arithmetic takes a while: some hours of one mote.
        part = [n for n, row in enumerate(rows) if row[0] == 1][: 600 * times]
        series = [Reading(0, 1, rows[n][1] * SECOND, rows[n][2]) for n in part]
        late = recordings[watched.name].late
        found = columns_of(watch, recordings[watched.name])
        in_time = [at for at, n in enumerate(part) if not late[n]]
        possible = outcomes(watch, [series[at] for at in in_time], 10 * 3600 * SECOND)
        matches += sum(others[0].name is not None for others in possible)
        for at, others in zip(in_time, possible, strict=True):
            assert agrees(found[part[at]], others), (seed, part[at])
    assert alarms > 30 * times
    assert matches
