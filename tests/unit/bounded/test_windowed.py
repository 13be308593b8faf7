"""The bound on aggregates of windows: groups and values of a pane times the panes that may be open."""

from __future__ import annotations

import pytest

from tamis.bounded import windows
from tamis.bounded.memory import Memory
from tamis.errors import RefusedError
from tamis.planning.explain import explain
from tamis.planning.explanations.text import text as shown
from tamis.planning.join_verdict import judge
from tamis.query.model import WindowGroupBy
from tamis.query.parse import catalog_of

STREAMS = """
CREATE STREAM air (station VARCHAR KEY, sensor INT KEY, ts TIMESTAMP, temp DOUBLE,
  level INT CHECK (level BETWEEN 1 AND 9), n BIGINT, open BOOLEAN NOT NULL, kind VARCHAR,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 1000, rate = '10/s', max_stall = '58 seconds', max_ahead = '30 seconds');
CREATE STREAM loose (station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, n BIGINT, open BOOLEAN, kind VARCHAR,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (max_stall = '58 seconds', max_ahead = '0');
CREATE STREAM single (ts TIMESTAMP, temp DOUBLE, n BIGINT, WATERMARK FOR ts AS ts)
  WITH (rate = '3/7s', max_stall = '1 minute', max_ahead = '0');
"""


def _memory(sql: str) -> Memory:
    catalog = catalog_of(f"{STREAMS} CREATE ALERT q AS {sql};")
    found = explain(catalog, "q")
    assert found.accepted
    return found.memory


def _minute(select: str, stream: str = "air", where: str = "", by: str = "") -> Memory:
    window = f"TUMBLE({stream}, ts, INTERVAL '1' MINUTE)"
    return _memory(f"SELECT window_end, {select} FROM {window} {where} GROUP BY window_end{by}")


# In air, 60 + 2 + 58 + 30 s: three windows of a minute may be open.
@pytest.mark.parametrize(
    ("select", "where", "by", "bound"),
    [
        ("count(*)", "", "", 3),
        ("sum(temp)", "", ", station", 3 * 1000),
        ("max(temp)", "", ", sensor, station", 3 * 1000),
        ("avg(temp)", "", ", station, open", 3 * 2000),
        ("avg(temp)", "", ", level, open", 3 * 10 * 2),
        ("min(n)", "WHERE kind IN ('a', 'b', 'c') AND station = 'x'", ", kind, station", 3 * 3),
        ("min(n)", "WHERE n BETWEEN 4 AND 7", ", n", 3 * 4),
        ("min(n)", "", ", n", 3 * 1000 * 10 * 60),
        ("count(DISTINCT level)", "", "", 3 * (1 + 10)),
        ("count(DISTINCT level), median(level)", "", ", open", 3 * (2 + 2 * 10)),
        ("median(temp)", "", "", 3 * (1 + 1000 * 10 * 60)),
        ("median(temp), count(DISTINCT temp), count(DISTINCT n)", "", "", 3 * (1 + 2 * 1000 * 10 * 60)),
        ("count(DISTINCT station)", "", "", 3 * (1 + 1000)),
        ("sum(temp * 2)", "", ", temp > 5", 3 * 3),
        ("avg(temp)", "", ", level / 2, station", 3 * 10 * 1000),
        ("max(n)", "", ", CASE WHEN temp > 5 THEN 'hot' WHEN temp > 1 THEN 'warm' END", 3 * 3),
        ("max(n)", "", ", CASE WHEN temp > 5 THEN 1.5 ELSE 0.5 END", 3 * 1000 * 10 * 60),
        ("median(level + 1) FILTER (WHERE temp > 5)", "WHERE temp = 1", "", 3 * (1 + 10)),
        ("count(*) FILTER (WHERE temp > 5)", "", "", 3),
        ("stddev(temp), var_pop(n), bool_or(open)", "", ", open", 3 * 2),
        ("last(temp), first(station ORDER BY n)", "", ", station", 3 * 1000),
        ("percentile_cont(0.95) WITHIN GROUP (ORDER BY level)", "", "", 3 * (1 + 10)),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY temp)", "", "", 3 * (1 + 1000 * 10 * 60)),
        ("count(DISTINCT open)", "WHERE level > 4 AND level < 2", "", 0),
    ],
)
def test_the_number(select: str, where: str, by: str, bound: int) -> None:
    memory = _minute(select, "air", where, by)
    assert (memory.verdict, memory.bound) == ("bounded", bound), memory.formula


def test_windows_that_hop_are_kept_in_panes_of_their_slide() -> None:
    hop = "HOP(single, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)"
    memory = _memory(f"SELECT window_start, median(n) FROM {hop} GROUP BY window_start")
    assert memory.bound == 12 * (1 + 3 * 2)
    assert memory.formula == (
        "12 (panes of 10 s in 120 s) * (1 groups + 1 * 3 * 2 (tuples of single in a pane) values)"
    )


def test_the_windows_of_cumulate_that_have_ended_are_kept_as_one_pane() -> None:
    cumulate = "CUMULATE(single, ts, INTERVAL '10' SECOND, INTERVAL '1' HOUR)"
    memory = _memory(f"SELECT window_end, median(n) FROM {cumulate} GROUP BY window_end")
    assert memory.bound == 7 * (1 + 3 * 2) + 1 + 3 * 515
    assert memory.formula == (
        "7 (panes of 10 s in 70 s) * (1 groups + 1 * 3 * 2 (tuples of single in a pane) values)"
        " + 1 groups + 1 * 3 * 515 (tuples of single in a window) values (of the windows that have begun)"
    )
    catalog = catalog_of(
        f"{STREAMS} CREATE ALERT q AS SELECT window_end, median(n) AS m FROM {cumulate} GROUP BY window_end;"
    )
    query = catalog.alerts["q"].query
    assert isinstance(query, WindowGroupBy)
    kept = windows.kept(query, catalog)
    assert kept is not None and kept.most() == memory.bound
    assert kept.most(10_000_000) == memory.bound + 7


def test_no_number_limits_readings_from_any_time_ahead() -> None:
    catalog = catalog_of(
        STREAMS.replace("max_ahead = '30 seconds'", "max_ahead = 'unlimited'"),
        "CREATE ALERT q AS SELECT window_end, count(*) AS n FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)"
        " GROUP BY window_end;",
    )
    memory = explain(catalog, "q").memory
    assert (memory.verdict, memory.bound) == ("bounded", None)
    assert "120 s + max_ahead(air)" in memory.formula
    assert memory.repairs == ("WITH (max_ahead = '10 minutes') in stream air",)


def test_what_is_not_declared_gives_the_formula_and_what_to_declare() -> None:
    memory = _minute("sum(temp)", "loose", by=", station, n")
    assert (memory.verdict, memory.bound) == ("bounded", None)
    assert "keys(loose) * rate(loose) over 60 s (tuples of loose in a pane) groups" in memory.formula
    assert "nothing limits loose.station and loose.n" in memory.reason
    assert "WITH (keys = 1000) in stream loose and the condition loose.n BETWEEN 0 AND 100" in memory.repairs


def test_groups_of_keys_are_counted_in_keys_and_not_in_tuples() -> None:
    memory = _minute("sum(temp)", "loose", by=", station")
    assert memory.bound is None
    assert memory.formula.endswith("* (keys(loose) groups)")
    values = _minute("median(temp)", "loose", by=", station").formula
    assert values.endswith(
        "* (keys(loose) groups + keys(loose) * rate(loose) over 60 s (tuples of loose in a pane) values)"
    )


def test_only_values_that_are_all_needed_want_a_rate() -> None:
    assert _minute("sum(temp), max(temp)", "loose").bound == 2
    memory = _minute("median(temp)", "loose")
    assert memory.bound is None
    assert "nothing limits loose.temp" in memory.reason
    assert memory.repairs == ("WITH (rate = '10/s') in stream loose and WITH (keys = 1000) in stream loose",)


def test_the_text_says_what_would_give_a_number() -> None:
    catalog = catalog_of(
        f"{STREAMS} CREATE ALERT q AS SELECT window_end, count(*) AS n, loose.n AS of"
        " FROM TUMBLE(loose, ts, INTERVAL '1' MINUTE) WHERE temp > 5 GROUP BY window_end, loose.n;"
    )
    text = shown(explain(catalog, "q"), verbose=True)
    assert "would have a number with: AND loose.n BETWEEN 0 AND 100" in text
    assert "of tuples with temp > 5" in text
    assert "no omission: every tuple counts" in text


def test_they_are_no_join_by_time() -> None:
    catalog = catalog_of(
        f"{STREAMS} CREATE ALERT q AS SELECT window_end, count(*)"
        " FROM TUMBLE(loose, ts, INTERVAL '1' MINUTE) GROUP BY window_end;"
    )
    with pytest.raises(RefusedError, match="isn't a join by time"):
        judge(catalog.alerts["q"], catalog).analysis.check()
