"""The verdict on memory: bounded with a number or a formula, or refused with a repair that works."""

from __future__ import annotations

import pytest
from tests.unit.certificates.catalogs import NEAR, TWO, verdict_of

from tamis.bounded.memory import Memory
from tamis.errors import RefusedError
from tamis.planning.join_bounds import kept
from tamis.planning.join_verdict import accepted, judge
from tamis.query.parse import catalog_of

DECLARED = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 100, rate = '10/s', max_stall = '60 seconds', max_ahead = '0');
CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
  WITH (keys = 100, rate = '3/m', max_stall = '30 seconds', max_ahead = '5 seconds');
CREATE STREAM whole (ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH (rate = '1/s', max_stall = '10 seconds', max_ahead = '0');
"""


def test_the_number_of_a_time_bounded_join() -> None:
    # A tuple of a waits for b: 5 s apart, 4 s of watermark, L = 10 s of holding, 30 s of stall.
    # One of b waits for a: 5 + 2 + 10 + 60 s, and may lie 5 s ahead itself.
    memory = verdict_of("a.x > b.x", streams=DECLARED).memory
    assert memory.verdict == "bounded"
    assert memory.bound == 100 * 10 * (49 + 1) + 100 * 3 * (82 // 60 + 1)
    assert memory.formula == "100 * 10 * (49 s div 1 s + 1) + 100 * 3 * (82 s div 60 s + 1)"


def test_each_source_has_its_part_of_the_number() -> None:
    def most(declared: str) -> dict[str, int | None]:
        verdict = verdict_of("a.x > b.x", streams=declared)
        found = kept(verdict.analysis, verdict.omissions)
        return {alias: one.most() if one else None for alias, one in found.items()}

    assert most(DECLARED) == {"a": 100 * 10 * (49 + 1), "b": 100 * 3 * (82 // 60 + 1)}
    assert most(DECLARED.replace("rate = '3/m', ", "")) == {"a": 100 * 10 * (49 + 1), "b": None}


def test_no_omission_no_holding() -> None:
    memory = verdict_of("a.x = b.x + 1", streams=DECLARED).memory
    assert memory.bound == 100 * 10 * (39 + 1) + 100 * 3 * (72 // 60 + 1)


def test_an_alert_that_waits_for_nothing_holds_nothing() -> None:
    sql = "CREATE ALERT q WITH (max_delay = '{}') AS SELECT a.k FROM a JOIN b ON a.k = b.k"
    sql += " AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND WHERE a.x > b.x;"
    bounds = {}
    for delay in ("0", "1 second"):
        catalog = catalog_of(DECLARED, sql.format(delay))
        bounds[delay] = judge(catalog.alerts["q"], catalog).memory.bound
    assert bounds["0"] == 100 * 10 * (39 + 1) + 100 * 3 * (72 // 60 + 1)
    assert bounds["1 second"] == 100 * 10 * (49 + 1) + 100 * 3 * (82 // 60 + 1)


def test_a_stream_without_key_columns_has_one_rate() -> None:
    on = "ABS(a.ts - whole.ts) <= INTERVAL '5' SECOND"
    memory = verdict_of("a.x > whole.x", on=on, sources="a JOIN whole", streams=DECLARED).memory
    assert memory.bound == 100 * 10 * (5 + 1 + 10 + 10 + 1) + (5 + 2 + 10 + 60 + 1)


def test_what_is_not_declared_gives_the_formula_alone() -> None:
    memory = verdict_of("a.x > b.x").memory
    assert (memory.verdict, memory.bound) == ("bounded", None)
    assert "keys(a) * rate(a) over" in memory.formula
    assert "stream a declares neither keys nor rate, and stream b" in memory.reason


def test_readings_are_10_minutes_ahead_at_most_unless_a_stream_says_otherwise() -> None:
    def memory_of(a: str) -> Memory:
        return verdict_of("a.x > b.x", streams=DECLARED.replace("max_ahead = '0'", a, 1)).memory

    # Tuples of a wait for 49 s, and may lie 600 s ahead of what they wait for.
    default = memory_of("idle_timeout = '1 s'")
    assert default.bound == 100 * 10 * (649 + 1) + 100 * 3 * (82 // 60 + 1)
    unlimited = memory_of("max_ahead = 'unlimited'")
    assert (unlimited.verdict, unlimited.bound) == ("bounded", None)
    assert "(49 s + max_ahead(a)) div 1 s" in unlimited.formula
    assert "max_ahead of stream a is 'unlimited'" in unlimited.reason


def test_a_single_stream_needs_no_memory() -> None:
    memory = verdict_of("a.x > 3", sources="a").memory
    assert (memory.verdict, memory.bound) == ("bounded", 0)


@pytest.mark.parametrize(
    ("sources", "on"),
    [
        ("a JOIN b", "a.k = b.k"),
        ("a JOIN b", "a.k = b.k AND a.ts >= b.ts"),
        ("a JOIN b", f"{NEAR} JOIN c ON a.k = c.k"),
        ("a JOIN b", "a.k = b.k JOIN c ON a.k = c.k"),
        ("a JOIN b", f"{NEAR} JOIN c ON a.ts >= c.ts AND c.ts <= b.ts"),
    ],
)
def test_a_pair_without_bound_is_refused_and_its_repair_works(sources: str, on: str) -> None:
    verdict = verdict_of("", sources=sources, on=on)
    memory = verdict.memory
    assert memory.verdict == "unbounded"
    assert verdict.refusal is not None
    (repair,) = memory.repairs
    assert memory.witness is not None
    repaired = verdict_of("", sources=sources, on=f"{on} {repair}")
    assert repaired.memory.verdict == "bounded"


def test_streams_bounded_through_a_third_are_bounded() -> None:
    on = f"{NEAR} JOIN c ON c.k = b.k AND ABS(c.ts - b.ts) <= INTERVAL '1' SECOND"
    assert verdict_of("a.x > c.x", on=on).memory.verdict == "bounded"


@pytest.mark.parametrize("count", [2, 3, 4, 6])
@pytest.mark.parametrize("omits", [False, True])
def test_joins_in_windows_of_any_number_of_streams(count: int, omits: bool) -> None:
    # Two of a window of a minute are less than a minute apart; a partner is 1 s of watermark and 29 s of
    # stall behind, and holds what it may omit for a window: 90 s less a microsecond, or 150 s.
    names = [f"s{i}" for i in range(count)]
    streams = "".join(
        f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP, x DOUBLE,"
        " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)"
        " WITH (keys = 7, rate = '3/10s', max_stall = '29 seconds', max_ahead = '0');"
        for name in names
    )
    window = "TUMBLE({0}, ts, INTERVAL '1' MINUTE) {0}"
    sources = ", ".join(window.format(name) for name in names)
    on = " AND ".join(f"s0.k = {n}.k AND s0.window_start = {n}.window_start" for n in names[1:])
    threshold = " + ".join(f"{name}.x" for name in names) + (" > 3" if omits else " = 3")
    memory = verdict_of(f"{on} AND {threshold}", sources=sources, streams=streams, select="s0.k").memory
    assert memory.verdict == "bounded"
    assert memory.bound == count * 7 * 3 * (14 + 1 if omits else 8 + 1)
    assert memory.formula.count("7 * 3 * (") == count


def test_the_refusal_names_streams_and_repair() -> None:
    catalog = catalog_of(TWO, "CREATE ALERT q AS SELECT a.k FROM a JOIN b ON a.k = b.k")
    with pytest.raises(RefusedError, match=r"alert q: .* a and b .*; add AND b\.ts BETWEEN"):
        accepted(catalog.alerts["q"], catalog)


def test_unbounded_may_be_allowed() -> None:
    catalog = catalog_of(
        TWO, "CREATE ALERT q WITH (allow_unbounded = true) AS SELECT a.k FROM a JOIN b ON a.k = b.k"
    )
    verdict = judge(catalog.alerts["q"], catalog)
    assert verdict.refusal is None
    assert verdict.memory.verdict == "unbounded"
    assert all(omission.interval == 0 for omission in verdict.omissions)


@pytest.mark.parametrize(
    ("seconds", "bounds"),
    [
        ("abs(extract(epoch FROM a.ts - b.ts)) <= 5", "abs(a.ts - b.ts) <= INTERVAL '5' SECOND"),
        (
            "extract(epoch FROM b.ts - a.ts) BETWEEN 0 AND 2.5",
            "b.ts - a.ts >= INTERVAL '0' SECOND AND b.ts - a.ts <= INTERVAL '2.5' SECOND",
        ),
        ("60 > abs(date_part('epoch', b.ts - a.ts))", "INTERVAL '1' MINUTE > abs(b.ts - a.ts)"),
    ],
)
def test_a_condition_on_seconds_is_answered_with_the_same_bound_on_times(seconds: str, bounds: str) -> None:
    refused, mended = (
        verdict_of(condition, on="a.k = b.k", sources="a JOIN b", streams=TWO)
        for condition in (seconds, bounds)
    )
    assert refused.memory.verdict == "unknown"
    assert refused.memory.reason.endswith(f"EXTRACT(EPOCH FROM …) sets no bound on times: write {bounds}")
    assert mended.memory.verdict == "bounded"


@pytest.mark.parametrize(
    "condition",
    ["abs(a.x - b.x) <= 5", "extract(epoch FROM b.ts - a.ts) < a.x", "extract(epoch FROM a.ts) > b.x"],
)
def test_other_conditions_are_not_taken_for_bounds_on_times(condition: str) -> None:
    assert "EPOCH" not in verdict_of(condition, on="a.k = b.k", sources="a JOIN b", streams=TWO).memory.reason


@pytest.mark.parametrize(
    "on",
    [
        "extract(epoch FROM a.ts - b.ts) BETWEEN 0 AND 5",
        "date_trunc('minute', a.ts) = date_trunc('minute', b.ts)",
    ],
)
def test_conditions_on_times_that_are_not_read_as_bounds_prove_nothing(on: str) -> None:
    memory = verdict_of("", sources="a JOIN b", on=f"a.k = b.k AND {on}").memory
    assert (memory.verdict, memory.witness) == ("unknown", None)
    assert "isn't read as a bound on the time between the tuples of" in memory.reason
    (repair,) = memory.repairs
    repaired = verdict_of("", sources="a JOIN b", on=f"a.k = b.k AND {on} {repair}").memory
    assert repaired.verdict == "bounded"
