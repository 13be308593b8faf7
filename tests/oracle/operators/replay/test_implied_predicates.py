"""Alarms are the same with and without implied predicates: with both none is missed and none is extra."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.oracle.analysis.random_conditions import random_conditions
from tests.oracle.operators.replay.verify_runs import drop_contradictory
from tests.oracle.random_cases import also_long

from tamis.analysis import conjuncts
from tamis.analysis.implied_predicates import Implied
from tamis.cli.common.recordings import read_recordings
from tamis.offline.verify import verify
from tamis.query.parse import catalog_of
from tamis.verification.compare import Verdict

_STREAM = (
    "CREATE STREAM {0} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE{1}, w DOUBLE, n INT, m BIGINT,"
    " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 2, rate = '10/s');\n"
)
_SHAPES = (
    "ABS(a.ts - b.ts) <= {0} AND ABS(b.ts - c.ts) <= {0}",
    "ABS(a.ts - b.ts) <= {0} AND ABS(a.ts - c.ts) <= {0}",
)


def _sql(random_: random.Random) -> str:
    check = random_.choice(("", " CHECK (v BETWEEN 0 AND 20)"))
    streams = "".join(_STREAM.format(name, check) for name in ("sa", "sb", "sc"))
    bounds = random_.choice(_SHAPES).format("INTERVAL '3' SECOND")
    keys = "a.k = b.k AND b.k = c.k" + random_.choice(("", " AND c.k = 'x'", " AND a.k <> 'y'"))
    where = " AND ".join((keys, bounds, *random_conditions(random_, steps=True)))
    return f"{streams}CREATE ALERT q AS SELECT a.ts, c.v FROM sa a, sb b, sc c WHERE {where};"


def _write(random_: random.Random, file: Path) -> list[str]:
    """A recording of values with few digits, among which the conditions often hold just so."""
    lines = ["k,ts,v,w,n,m"]
    for second in range(25):
        v, w = (random_.choice(("", *(f"{random_.randint(-30, 150) / 10}" for _ in range(9)))) for _ in "vw")
        n, m = (
            random_.randint(-5, 20),
            random_.choice((random_.randint(-5, 20), 2**53 + random_.randint(0, 3))),
        )
        lines.append(f"{random_.choice('xy')},2024-03-01T00:00:{second:02}Z,{v},{w},{n},{m}")
    file.write_text("\n".join(lines) + "\n")
    return [str(file)]


def _verified(sql: str, files: dict[str, list[str]]) -> Sequence[Verdict]:
    catalog = catalog_of(sql)
    recordings = read_recordings(catalog, list(catalog.alerts.values()), files, None, as_arrived=True)
    drop_contradictory(catalog, recordings)
    return verify(catalog, recordings)


@pytest.mark.parametrize("times", also_long(80))
def test_alarms_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    random_ = random.Random(1)
    alarms = fewer = 0
    for _ in range(15 * times):
        sql = _sql(random_)
        files = {name: _write(random_, tmp_path / f"{name}.csv") for name in ("sa", "sb", "sc")}
        verified = _verified(sql, files)
        if not verified:
            continue
        (found,) = verified
        with monkeypatch.context() as context:
            context.setattr(conjuncts, "implied_predicates", lambda *_: Implied({}))
            (before,) = _verified(sql, files)
        assert found.same, sql
        assert before.same, sql
        assert found.reference_alarms == before.reference_alarms
        assert found.retained <= before.retained, sql
        alarms += found.reference_alarms > 0
        fewer += found.retained < before.retained
    assert alarms > times
    assert fewer > 3 * times
