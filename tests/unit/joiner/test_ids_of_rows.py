"""Ids of the rows of standing queries: the same after the state was lost, where a row comes only once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
import pytest

from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows
from tamis.plan.model import StandingQuery
from tamis.plan.nodes import gives_rows_once
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_joiner.core.alarms import Numbering, standing_alarms

STREAMS = """
CREATE STREAM s (k INT KEY, x INT NOT NULL) WITH (keys = 5);
CREATE STREAM t (k INT KEY, x INT NOT NULL) WITH (keys = 5);
"""


@pytest.mark.parametrize(
    ("sql", "once"),
    [
        ("SELECT DISTINCT k FROM s WHERE x > 5", True),
        ("SELECT DISTINCT s.k FROM s, t WHERE s.k = t.k AND s.x + t.x > 5", True),
        ("SELECT k FROM s WHERE x < 5 UNION SELECT k FROM s WHERE x > 7", True),
        ("SELECT k, count(*) AS n FROM s GROUP BY k", False),
        ("SELECT k FROM s WHERE x < 5 UNION ALL SELECT k FROM s WHERE x > 7", False),
    ],
)
def test_the_number_tells_rows_apart_only_where_a_row_may_come_again(sql: str, once: bool) -> None:
    (query,) = first_plan(catalog_of(STREAMS, f"CREATE ALERT q AS {sql};")).standing
    assert gives_rows_once(query.node) is once
    columns = {name: Vector(np.array([7, 8])) for name in ("k", "n")[: 1 if "count" not in sql else 2]}
    rows, times = Rows(columns, np.arange(2)), np.array([1, 2])
    found = [ids(query, Numbering(1, 0, first), rows, times) for first in (0, 30)]
    assert (found[0] == found[1]) is once
    assert not set(found[0]) & set(ids(replace(query, version=9), Numbering(1, 0, 0), rows, times))


def ids(query: StandingQuery, numbering: Numbering, rows: Rows, times: np.ndarray) -> list[str]:
    alarms = standing_alarms(query, numbering, rows, times, None)
    return [orjson.loads(value)["id"] for _, value in alarms]
