"""Alerts whose HAVING no group can meet are refused, with the greatest or least possible value."""

from __future__ import annotations

import pytest

from tamis.planning.explain import explain
from tamis.query.parse import catalog_of

AIR = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN -20 AND 100),
  n INT NOT NULL CHECK (n BETWEEN 1 AND 5), ok BOOLEAN, wide DOUBLE CHECK (wide BETWEEN -2e15 AND 2e15),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 3, rate = '10/s');
CREATE STREAM bids (item INT CHECK (item IN (1, 2)), price INT CHECK (price BETWEEN 0 AND 9));
"""


@pytest.mark.parametrize(
    ("where", "having", "reason"),
    [
        ("", "avg(x) > 500 AND count(*) < 0", "HAVING count(*) < 0 is never true: count(*) is at least 1"),
        ("", "avg(x) > 500", "HAVING avg(air.x) > 500 is never true: avg(air.x) is at most 100"),
        ("", "max(x) = NULL", "HAVING max(air.x) = NULL is never true, as every comparison with NULL"),
        ("WHERE x < 10", "max(x) > 10.5", "HAVING max(air.x) > 10.5 is never true: max(air.x) is at most 10"),
        (
            "",
            "min(x) > 50 AND max(x) < 40",
            "no group meets all of min(air.x) > 50, max(air.x) < 40 in HAVING",
        ),
        (
            "",
            "sum(n) FILTER (WHERE ok) < 1",
            "HAVING sum(air.n) FILTER (WHERE air.ok) < 1 is never true:"
            " sum(air.n) FILTER (WHERE air.ok) is at least 1",
        ),
        ("", "avg(x) > 99.9 AND count(*) < 2", None),
        ("", "count(x) < 1", None),
        ("", "stddev(x) > 84", None),
        ("", f"variance({' * '.join(['wide'] * 11)}) > 3", None),
        ("", f"count(*) > 1 AND stddev_pop({' * '.join(['wide'] * 21)}) > 3", None),
    ],
)
def test_having_of_windows(where: str, having: str, reason: str | None) -> None:
    sql = (
        "CREATE ALERT q AS SELECT k, window_end, avg(x) AS mean FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)"
        f" {where} GROUP BY k, window_end HAVING {having};"
    )
    found = explain(catalog_of(AIR + sql), "q")
    assert found.accepted == (reason is None)
    assert reason is None or found.reason == f"{reason}, so the query never has a row"


def test_having_over_rows_of_aggregates_and_without_time() -> None:
    outer = (
        "CREATE STREAM means AS SELECT k, window_end, avg(x) AS mean FROM"
        " TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY k, window_end HAVING min(x) < -20;"
        "CREATE ALERT q AS SELECT k, mean FROM means WHERE mean > 3;"
        "CREATE ALERT t AS SELECT item, max(price) AS p FROM bids GROUP BY item HAVING max(price) >= 10;"
    )
    catalog = catalog_of(AIR + outer)
    assert explain(catalog, "q").reason.startswith("HAVING min(air.x) < -20 is never true")
    assert not explain(catalog, "t").accepted
