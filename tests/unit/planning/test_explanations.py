"""Explanations in plain words: the greatest share that omission leaves out, and advice that is true."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tamis.planning.explain import explain
from tamis.planning.explanations.advice import advice
from tamis.planning.explanations.measured import measured
from tamis.planning.explanations.text import text
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording

STREAM = """CREATE STREAM {name} (
  k INT KEY, ts TIMESTAMP, {column} DOUBLE{check}, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (keys = 3, rate = '{rate}');
"""
NEAR = "ABS(a.ts - b.ts) <= INTERVAL '{span}' SECOND"
CONDITIONS = ("a.x - b.y > 0.9", "ABS(a.x - b.y) > 0.9", "a.x > 0.2 AND b.y > 0.2")


def streams(*, rate: str = "2/s", check: str = "") -> str:
    return "".join(
        STREAM.format(name=name, column=column, check=check.format(column=column), rate=rate)
        for name, column in (("a", "x"), ("b", "y"), ("d", "z"))
    )


def joined(condition: str, more: str = "") -> str:
    return (
        f"CREATE ALERT q AS SELECT a.k FROM a JOIN b ON a.k = b.k AND {NEAR.format(span=5)}{more}"
        f" WHERE {condition};"
    )


def slow(options: str) -> str:
    """An alert over one stream with a function of Python."""
    return (
        "CREATE FUNCTION slow(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow' MONOTONE INCREASING;"
        f"CREATE ALERT q {options} AS SELECT ts FROM a WHERE slow(x) > 3"
    )


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_recording_at_the_declared_rate_loses_more_than_the_greatest_share(
    tmp_path: Path, condition: str, windowed: bool, seed: int
) -> None:
    sql = streams() + joined(condition)
    if windowed:
        window = "TUMBLE({0}, ts, INTERVAL '5' SECOND) {0}"
        sql = streams() + (
            f"CREATE ALERT q AS SELECT a.k FROM {window.format('a')} JOIN {window.format('b')}"
            f" ON a.k = b.k AND a.window_start = b.window_start WHERE {condition};"
        )
    catalog = catalog_of(sql)
    random = np.random.default_rng(seed)
    file = tmp_path / "a.csv"
    # Two tuples in any second: in pairs or evenly, with values that are noise, constant or slow.
    times = np.repeat(np.arange(200) * 1_000_001, 2) if seed % 2 else np.arange(400) * 500_001
    values = (random.random(400), np.ones(400), np.linspace(0, 1, 400), np.abs(np.sin(np.arange(400))))[seed]
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows(
            [("k", "ts", "x"), *((1, int(t), float(v)) for t, v in zip(times, values, strict=True))]
        )
    recording = read_recording(catalog.streams["a"], [str(file)])
    most = explain(catalog, "q").streams[0].most_omitted
    assert most is not None
    passed = int((values > 0.2).sum()) if "0.2" in condition else 400
    found = measured(catalog.alerts["q"], catalog, {"a": recording})["a"]
    assert found.tuples == 400
    omitted = found.dropped - (400 - passed)
    assert 0 <= omitted <= most * passed
    assert omitted > 0 or seed == 2


def test_calls_that_omission_saves_on_a_recording_are_counted(tmp_path: Path) -> None:
    catalog = catalog_of(
        "CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE FUNCTION slow(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow' MONOTONE INCREASING;"
        "CREATE ALERT q WITH (within = '1 second') AS SELECT ts FROM a WHERE slow(x) > 3 AND y > 0;"
        "CREATE ALERT shown WITH (within = '1 second') AS SELECT slow(x) AS s FROM a WHERE x > 1 AND y > 0;"
        "CREATE ALERT plain WITH (within = '1 second') AS SELECT ts FROM a WHERE x > 3 AND y > 0;"
    )
    file = tmp_path / "a.csv"
    # Of the six readings that pass y > 0, those with x = 2 and the second 1 lie between two higher ones.
    readings = [(1, 1), (9, 0), (2, 1), (3, 1), (1, 1), (2, 1), (4, 1)]
    rows = [f"1,{second * 100_000},{x},{y}" for second, (x, y) in enumerate(readings)]
    file.write_text("\n".join(["k,ts,x,y", *rows]))
    recording = read_recording(catalog.streams["a"], [str(file)])
    found = measured(catalog.alerts["q"], catalog, {"a": recording})["a"]
    assert found.document() == {"tuples": 7, "dropped": 3, "calls": 6, "calls_saved": 2}
    explained = explain(catalog, "q")
    (source,) = explained.streams
    said = text(replace(explained, streams=(replace(source, measured=found),)))
    assert "calls of functions: for 4 tuples instead of 6 (33.3 % saved)" in said
    found = measured(catalog.alerts["shown"], catalog, {"a": recording})["a"]
    assert found.document() == {"tuples": 7, "dropped": 5, "calls": 4, "calls_saved": 2}
    found = measured(catalog.alerts["plain"], catalog, {"a": recording})["a"]
    assert found.document() == {"tuples": 7, "dropped": 6}


@pytest.mark.parametrize(
    ("sql", "alias", "change", "changed"),
    [
        (
            streams() + joined("a.x / b.y > 3"),
            "a",
            "declare b.y CHECK (y BETWEEN 1 AND 100)",
            streams(check=" CHECK ({column} BETWEEN 1 AND 100)") + joined("a.x / b.y > 3"),
        ),
        (
            streams() + joined("a.x IS NULL OR a.x - b.y > 3"),
            "a",
            "declare a.x NOT NULL",
            streams(check=" NOT NULL") + joined("a.x IS NULL OR a.x - b.y > 3"),
        ),
        (
            streams()
            + joined(
                "a.x + b.y + d.z > 3", " JOIN d ON d.k = a.k AND ABS(a.ts - d.ts) <= INTERVAL '5' SECOND"
            ),
            "a",
            "such as AND ABS(b.ts - d.ts) <= INTERVAL '5' SECOND: tuples of a within 5 s can",
            streams()
            + joined(
                "a.x + b.y + d.z > 3 AND ABS(b.ts - d.ts) <= INTERVAL '5' SECOND",
                " JOIN d ON d.k = a.k AND ABS(a.ts - d.ts) <= INTERVAL '5' SECOND",
            ),
        ),
        (
            streams() + slow(""),
            "a",
            "write WITH (within = '30 s') if one alarm of each key in any span of this length is enough",
            streams() + slow("WITH (within = '30 s')"),
        ),
    ],
    ids=["a domain", "NOT NULL", "a bound between partners", "one alarm within a span"],
)
def test_a_change_that_is_proposed_allows_omission(sql: str, alias: str, change: str, changed: str) -> None:
    catalog, after = catalog_of(sql), catalog_of(changed)
    (said,) = advice(catalog.alerts["q"], catalog)[alias]
    assert change in said
    (before,) = (one for one in explain(catalog, "q").streams if one.alias == alias)
    (then,) = (one for one in explain(after, "q").streams if one.alias == alias)
    assert (before.interval, bool(then.interval)) == (None, True)
    assert alias not in advice(after.alerts["q"], after)


@pytest.mark.parametrize(
    "condition", ["a.x > 3", "slow(a.x, a.k) > 3", "slow(a.x, 1) > 3 AND slow(2, a.k) > 3"]
)
def test_within_is_not_proposed_where_it_saves_no_calls(condition: str) -> None:
    made = "CREATE FUNCTION slow(x DOUBLE, y DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'slow'"
    catalog = catalog_of(
        f"{streams()}{made} MONOTONE INCREASING; CREATE ALERT q AS SELECT a.ts FROM a WHERE {condition}"
    )
    assert advice(catalog.alerts["q"], catalog) == {}


def test_nothing_is_proposed_that_does_not_help() -> None:
    catalog = catalog_of(streams() + joined("a.x * b.y + a.k > 3 AND a.x <> b.y + a.k"))
    assert advice(catalog.alerts["q"], catalog) == {}
    assert {source.interval for source in explain(catalog, "q").streams} == {None}


def test_a_recording_of_another_stream_measures_nothing(tmp_path: Path) -> None:
    catalog = catalog_of(streams() + joined("a.x - b.y > 0.9"))
    file = tmp_path / "d.csv"
    file.write_text("k,ts,z\n1,0,1\n")
    recording = read_recording(catalog.streams["d"], [str(file)])
    assert measured(catalog.alerts["q"], catalog, {"d": recording}) == {}
