"""The count of tuples for which omission saves calls of Python functions in the joiner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.edge.core.test_shard_run import SHARD, batch, started, temps

from tamis.expressions import python_functions
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of

SQL = """
CREATE STREAM air (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE,
  WATERMARK FOR ts AS ts - INTERVAL '0.000002' SECOND);
CREATE FUNCTION wear(load DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'wear' MONOTONE INCREASING;
CREATE ALERT worn WITH (within = '10 us') AS SELECT station, ts FROM air WHERE wear(temp) > 3 AND temp > 0;
"""


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(python_functions.SETTING, "tests.fixtures.installed")
    python_functions.clear_caches()
    yield
    python_functions.clear_caches()


@pytest.mark.parametrize("more", ["", "CREATE ALERT warm AS SELECT station, ts FROM air WHERE temp > 1;"])
def test_omitted_tuples_that_pass_the_filter_are_counted(more: str) -> None:
    run = started(first_plan(catalog_of(SQL + more), shards={SHARD: "air"}))
    readings = [("s", time, temp) for time, temp in enumerate([5.0, 1.0, -1.0, 2.0, 1.0, 6.0, 3.0])]
    run.take(batch(0, *readings), 0)
    # Too late: it is published, and no call is saved.
    run.take(batch(7, ("s", 1, 4.0)), 0)
    run.finish()
    run.settle(0)
    assert run.commit() is not None
    published = temps(run)
    counts = run.take_counts()
    # 1, 2 and 1 lie between 5 and 6; of these, the other alert needs 2.
    assert sorted(published) == sorted([5.0, 6.0, 3.0, 4.0, *([2.0] if more else [])])
    assert counts.saved_calls == (2 if more else 3)
    assert run.take_counts().saved_calls == 0
