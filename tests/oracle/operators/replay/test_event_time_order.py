"""A recording in any order gives the rows and verdicts of one in event-time order, in all queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.cli.common.recordings import read_recordings
from tamis.offline.explain import explained
from tamis.offline.run import rows_of
from tamis.offline.verify import verify
from tamis.offline.wording import COMMAND
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording

SQL = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100),
  n INT CHECK (n BETWEEN 0 AND 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 3, rate = '1/s', max_stall = '1 minute');
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 100),
  n INT CHECK (n BETWEEN 0 AND 3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 3, rate = '1/s', max_stall = '1 minute');
CREATE PATTERN peak VALUES (0, 4, 0);
CREATE ALERT omitted AS SELECT a.k, a.ts, b.ts AS other FROM a JOIN b ON a.k = b.k
  AND b.ts BETWEEN a.ts - INTERVAL '9' SECOND AND a.ts + INTERVAL '9' SECOND WHERE a.v - b.v > 50;
CREATE ALERT delayed WITH (max_delay = '5 seconds') AS SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k
  AND ABS(a.ts - b.ts) <= INTERVAL '9' SECOND WHERE a.v + b.v > 150;
CREATE ALERT high AS SELECT k, ts, v FROM a WHERE v > 90;
CREATE ALERT before AS SELECT k, ts, v - lag(v) OVER w AS rise
  FROM a WINDOW w AS (PARTITION BY k ORDER BY ts) QUALIFY rise > 40;
CREATE ALERT framed AS SELECT k, ts, v, avg(v) OVER (PARTITION BY k ORDER BY ts
  RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW) AS mean FROM a QUALIFY v > mean + 30;
CREATE ALERT beside AS SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '3' SECOND
  WHERE lag(a.v) OVER (PARTITION BY a.k ORDER BY a.ts) < 20 AND b.v > 70;
CREATE ALERT shaped AS SELECT k, ts, similarity(v, 'peak') AS distance FROM a WHERE similar(v, 'peak', 0.5);
CREATE ALERT tumbled AS SELECT window_end, k, count(*) AS c, sum(v) AS total, last(v ORDER BY ts) AS newest
  FROM TUMBLE(a, ts, INTERVAL '10' SECOND) GROUP BY window_end, k;
CREATE ALERT sessions AS SELECT k, window_start, window_end, count(*) AS c
  FROM SESSION(a, ts, INTERVAL '4' SECOND) GROUP BY k, window_start, window_end;
CREATE ALERT latest AS SELECT a.k, a.ts, b.v FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts
  AND b.ts >= a.ts - INTERVAL '30' SECOND WHERE a.v > b.v;
CREATE ALERT absent AS SELECT a.k, a.ts FROM a WHERE a.v > 50 AND NOT EXISTS (SELECT 1 FROM b
  WHERE b.k = a.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND);
CREATE ALERT present AS SELECT a.k, a.ts FROM a WHERE a.v > 50 AND EXISTS (SELECT 1 FROM b
  WHERE b.k = a.k AND b.v < 20 AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND);
CREATE ALERT several AS SELECT a.k, a.ts FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) JOIN b ON a.k = b.k
  AND ABS(a.ts - b.ts) <= INTERVAL '4' SECOND GROUP BY a.k, a.ts, window_start HAVING count(*) > 1;
CREATE ALERT distinct_values AS SELECT DISTINCT a.n, b.n AS m FROM a, b WHERE a.n = b.n;
CREATE STREAM means AS SELECT window_end, k, avg(v) AS mean FROM TUMBLE(a, ts, INTERVAL '10' SECOND)
  GROUP BY window_end, k;
CREATE ALERT nested AS SELECT m.k, m.window_end, a.ts FROM means m JOIN a ON m.k = a.k
  AND a.ts BETWEEN m.window_end - INTERVAL '5' SECOND AND m.window_end WHERE a.v > m.mean + 20;
"""
_FORMS = ("csv", "ndjson")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return catalog_of(SQL)


Reading = tuple[str, int, float, int]


def _readings(random: Random) -> list[Reading]:
    """Readings in order of event time. No two readings of a key have one time, so their order is certain."""
    found = []
    for second in range(80):
        for key in "xyz":
            if random.random() < 0.4:
                found.append(
                    (
                        key,
                        1_700_000_000_000_000 + second * 1_000_000 + ord(key),
                        random.uniform(0, 100),
                        random.randrange(4),
                    )
                )
    return found


def _orders(random: Random, readings: list[Reading]) -> Iterator[list[Reading]]:
    yield sorted(readings)  # by device
    yield readings[::-1]  # the newest first
    yield random.sample(readings, len(readings))


def _read(catalog: Catalog, folder: Path, files: dict[str, list[Reading]], form: str) -> dict[str, Recording]:
    paths = {}
    for name, readings in files.items():
        path = folder / f"{name}.{form}"
        if form == "csv":
            lines = ["k,ts,v,n", *(f"{k},{ts},{v!r},{n}" for k, ts, v, n in readings)]
        else:
            lines = [f'{{"k": "{k}", "ts": {ts}, "v": {v!r}, "n": {n}}}' for k, ts, v, n in readings]
        path.write_text("\n".join(lines) + "\n")
        paths[name] = [str(path)]
    queries: list[AlertDef | DerivedDef] = [*catalog.alerts.values(), *catalog.derived.values()]
    return read_recordings(catalog, queries, paths, None)


def _answers(catalog: Catalog, recordings: dict[str, Recording]) -> dict[str, object]:
    said: list[str] = []
    found: dict[str, object] = {}
    for name, alert in catalog.alerts.items():
        read = {source.stream for source in alert.query.sources}
        own = {stream: one for stream, one in recordings.items() if stream in read}
        found[name] = rows_of(alert, catalog, own, wording=COMMAND, notify=said.append).to_pydict()
    found["verdicts"] = [verdict.to_json() for verdict in verify(catalog, recordings)]
    found["explained"] = explained(list(catalog.alerts.values()), catalog, [], recordings).document()
    assert not said
    return found


@pytest.mark.parametrize("times", also_long(40))
def test_the_order_of_a_recording_changes_no_answer(catalog: Catalog, times: int, tmp_path: Path) -> None:
    for seed in range(SEED, SEED + times * cases(1 / 12_000)):
        random = Random(seed)
        ordered = {name: _readings(random) for name in "ab"}
        expected = _answers(catalog, _read(catalog, tmp_path, ordered, "csv"))
        verdicts = expected["verdicts"]
        assert isinstance(verdicts, list)
        assert all(one["missed"] == one["extra"] == one["late"] == 0 for one in verdicts), seed
        assert all(one["reference_alarms"] for one in verdicts), [
            v["query"] for v in verdicts if not v["reference_alarms"]
        ]
        for number, files in enumerate(zip(*(_orders(random, ordered[name]) for name in "ab"), strict=True)):
            shuffled = dict(zip("ab", files, strict=True))
            found = _answers(catalog, _read(catalog, tmp_path, shuffled, _FORMS[number % 2]))
            for name, answer in expected.items():
                assert found[name] == answer, f"{name} depends on order {number}, seed {seed}"
