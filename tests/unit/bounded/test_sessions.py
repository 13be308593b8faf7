"""The bound on aggregates of sessions: readings that the watermark hasn't passed, and open sessions."""

from __future__ import annotations

import pytest
from tests.unit.bounded.test_windowed import STREAMS

from tamis.bounded import sessions
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.planning.explanations.text import text as shown
from tamis.planning.queries.standing_queries import layout
from tamis.query.model import Catalog, SessionGroupBy
from tamis.query.parse import catalog_of

MINUTE = "INTERVAL '1' MINUTE"
# In air, 2 + 58 + 30 s may pass before the watermark passes a reading; 10 a second of 1,000 keys.
PENDING = 1000 * 10 * 91


def _catalog(select: str, stream: str = "air", by: str = "station, sensor", length: str = "") -> Catalog:
    session = f"SESSION({stream}, ts, {MINUTE}{length})"
    grouped = ", ".join(filter(None, ("window_end", by)))
    return catalog_of(f"{STREAMS} CREATE ALERT q AS SELECT {select} FROM {session} GROUP BY {grouped};")


def _explained(catalog: Catalog) -> Explanation:
    return explain(catalog, "q")


@pytest.mark.parametrize(
    ("select", "by", "length", "bound"),
    [
        ("count(*) AS n", "station, sensor", "", PENDING + 1000 + 1000),
        ("count(*) AS n", "station, sensor, level", "", PENDING + 1000 + 1000 * 10),
        ("median(level) AS m", "station, sensor", "", 2 * PENDING + 1000 + 1000 + 1000 * 10),
        # In ten minutes of sessions: 600 s of 10 readings a second.
        (
            "median(temp) AS m",
            "station, sensor",
            ", INTERVAL '10' MINUTE",
            2 * PENDING + 1000 + 1000 + 1000 * 10 * 600,
        ),
    ],
)
def test_the_number(select: str, by: str, length: str, bound: int) -> None:
    catalog = _catalog(select, by=by, length=length)
    found = _explained(catalog)
    assert found.accepted and found.memory.bound == bound, found.memory.formula
    query = catalog.alerts["q"].query
    assert isinstance(query, SessionGroupBy)
    kept = sessions.kept(query, catalog)
    assert kept is not None and kept.most() == bound
    assert kept.most(5_000_000) == bound + (2 if select.startswith("median") else 1) * 1000 * 10 * 5


@pytest.mark.parametrize(
    ("select", "by", "named"),
    [
        ("median(temp) AS m", "station, sensor", "air.temp"),
        ("sum(n) AS m", "station, sensor, kind", "air.kind"),
    ],
)
def test_a_session_without_a_greatest_length_may_need_memory_without_a_limit(
    select: str, by: str, named: str
) -> None:
    found = _explained(_catalog(select, by=by))
    assert (found.accepted, found.memory.verdict) == (False, "unbounded")
    assert found.reason == f"a session may last forever, and no declaration limits its values of {named}"
    assert "a greatest length: SESSION(…, gap, INTERVAL '1' DAY)" in shown(found)
    assert _explained(_catalog(select, by=by, length=", INTERVAL '1' DAY")).memory.bound is not None


def test_what_is_not_declared_gives_the_formula_and_what_to_declare() -> None:
    memory = _explained(_catalog("count(*) AS n", "loose", "station")).memory
    assert (memory.verdict, memory.bound) == ("bounded", None)
    assert "keys(loose) * rate(loose) over 60 s" in memory.formula
    assert memory.repairs == ("WITH (rate = '10/s') in stream loose and WITH (keys = 1000) in stream loose",)


def test_the_query_is_partitioned_only_by_keys_that_tell_sessions_apart() -> None:
    for partition, reason in (
        ("", "partitioned by air.station and air.sensor"),
        (" PARTITION BY (station, sensor)", "partitioned by air.station and air.sensor"),
        (" PARTITION BY sensor", "partitioned by air.sensor"),
        (" PARTITION BY kind", "evaluated in a single partition"),
    ):
        catalog = _catalog("max(temp) AS m", f"air{partition}", "station, sensor, kind")
        assert layout(catalog.alerts["q"].query, catalog).reason == reason


def test_the_text_says_the_key_the_gap_and_the_length() -> None:
    text = shown(_explained(_catalog("count(*) AS n", length=", INTERVAL '1' HOUR")), verbose=True)
    assert "sessions for each station, sensor: tuples at most 60 s apart, cut after 3600 s" in text
    assert "a group until its session has had no tuple for 60 s or is 3600 s long" in " ".join(text.split())
    assert "open sessions" in text
