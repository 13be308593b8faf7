"""Catalogues from SQL, for the tests of the planner."""

from __future__ import annotations

from tamis.planning.join_verdict import JoinVerdict, judge
from tamis.query.parse import catalog_of

TWO = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, pos DOUBLE CHECK (pos BETWEEN 0.1 AND 100),
  n INT, big BIGINT, mode VARCHAR, flag BOOLEAN, k2 INT, expiry TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, pos DOUBLE CHECK (pos BETWEEN 0.1 AND 100),
  n INT, big BIGINT, mode VARCHAR, flag BOOLEAN, k2 INT, expiry TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
CREATE STREAM c (k INT KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);
"""
NEAR = "a.k = b.k AND a.ts - b.ts BETWEEN INTERVAL '-5' SECOND AND INTERVAL '5' SECOND"
SECOND = 1_000_000


def verdict_of(
    condition: str,
    *,
    on: str = NEAR,
    sources: str = "a JOIN b",
    streams: str = TWO,
    select: str = "a.k",
) -> JoinVerdict:
    """The verdict on an alert over `sources` with this WHERE."""
    where = f" WHERE {condition}" if condition else ""
    clause = f" ON {on}" if "JOIN" in sources else ""
    catalog = catalog_of(streams, f"CREATE ALERT q AS SELECT {select} FROM {sources}{clause}{where}")
    return judge(catalog.alerts["q"], catalog)
