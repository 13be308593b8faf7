"""Warnings about joins whose rows can grow much faster than the readings; the number is never exceeded."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from tamis.operators.time_join.replay import replay
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording

STREAMS = "".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, place VARCHAR,"
    f" WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ({options});"
    for name, options in (
        ("a", "keys = 3, rate = '1/s'"),
        ("b", "keys = 3, rate = '1/s'"),
        ("c", "keys = 3, rate = '2/s'"),
        ("undeclared", "keys = 3"),
    )
)
NEAR_B = "a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '{0}' SECOND"
NEAR_C = "a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL '{1}' SECOND"
STAR = f"FROM a JOIN b ON {NEAR_B} JOIN c ON {NEAR_C}"


def warnings(query: str) -> tuple[str, ...]:
    return explain(catalog_of(f"{STREAMS}CREATE ALERT q AS {query};"), "q").warnings


def test_a_join_of_three_streams_multiplies_the_partners() -> None:
    query = f"SELECT a.k, c.x {STAR.format(20, 30)} WHERE a.x + b.x > c.x"
    (found,) = warnings(query)
    assert found == (
        "each row is an alarm, and one tuple of a can have up to 41 * 62 = 2,542 rows: at the declared rate"
        " it joins that many combinations of b and c within 40 s. SELECT has no column of b: if one alarm"
        " for each tuple of a and c is enough, write b as WHERE EXISTS (SELECT 1 FROM … WHERE …)."
        " Otherwise shorten the bounds on time"
    )


def test_an_undeclared_rate_is_said() -> None:
    star = STAR.replace("JOIN b ON", "JOIN undeclared b ON").format(20, 30)
    (found,) = warnings(f"SELECT a.x, b.x AS y, c.x AS z {star} WHERE a.x + b.x > c.x")
    assert "41 * 62 = 2,542 rows: at one reading a second of each key of b" in found
    assert "select columns of a alone and write the others as WHERE EXISTS" in found


def test_a_join_without_a_bound_on_time_joins_all_earlier_tuples() -> None:
    query = "SELECT a.ts FROM a, b WHERE a.k = b.k AND a.ts > b.ts AND a.k IN ('p', 'q')"
    (found,) = warnings(query)
    assert found == (
        "each row is an alarm, and each tuple of a joins all earlier tuples of b that meet the conditions:"
        " the number of rows of one tuple grows for ever. Bound the times, such as"
        " AND a.ts <= b.ts + INTERVAL '1' MINUTE, or write SELECT DISTINCT if each row is wanted once"
    )
    assert warnings(query.replace("SELECT", "SELECT DISTINCT")) == ()
    assert warnings(f"{query} AND a.ts <= b.ts + INTERVAL '1' MINUTE") == ()


@pytest.mark.parametrize(
    "query",
    [
        # Omission leaves few tuples of both streams.
        "SELECT b.x FROM a JOIN b ON ABS(a.ts - b.ts) <= INTERVAL '9' SECOND AND a.place = b.place",
        f"SELECT a.k FROM a JOIN b ON {NEAR_B.format(30)} WHERE a.x > 3 AND b.x > 3",
        f"SELECT a.k FROM a JOIN b ON {NEAR_B.format(30)} WHERE a.x > b.x",
        # Few partners.
        f"SELECT a.k {STAR.format(1, 1)} WHERE a.x + b.x > c.x",
        f"SELECT a.k FROM a JOIN b ON {NEAR_B.format(0)}",
        "SELECT a.k FROM a WHERE a.x > 3",
        # Refused, and without rows.
        "SELECT a.k FROM a, b WHERE a.k = b.k AND a.x = b.x AND a.ts > b.ts",
    ],
)
def test_other_queries_have_no_warning(query: str) -> None:
    assert not [one for one in warnings(query) if "each row is an alarm" in one]


@pytest.mark.parametrize("seed", range(6))
def test_no_recording_at_the_declared_rate_has_more_rows(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    condition = r.choice(("", " WHERE a.x + b.x > c.x", " WHERE a.x > 0"))
    near = r.choice((f"JOIN b ON {NEAR_B} JOIN c ON {NEAR_C}", f"JOIN c ON {NEAR_C} JOIN b ON {NEAR_B}"))
    first, second = r.randint(3, 12), r.randint(3, 12)
    query = f"SELECT a.k, a.ts, b.x, c.x AS y FROM a {near.format(first, second)}{condition}"
    catalog = catalog_of(f"{STREAMS}CREATE ALERT q AS {query};")
    recordings = {}
    for name in ("a", "b", "c"):
        file = tmp_path / f"{name}.csv"
        lines = ["k,ts,x,place"]
        for at in range(60):
            for k in "pqr":
                for _ in range(2 if name == "c" else 1):
                    x = 1.0 if seed % 2 else r.random()
                    lines.append(f"{k},{at * 1_000_000},{x},")
        file.write_text("\n".join(lines) + "\n")
        recordings[name] = read_recording(catalog.streams[name], [str(file)])
    plan = first_plan(catalog)
    found = replay(plan.definitions[0], plan.streams, recordings)
    (most,) = Counter(found.rows["a"].tolist()).most_common(1)[0][1:]
    (warning,) = warnings(query) or ("one tuple of a can have up to 10 rows",)
    number = re.search(r"([\d,]+) rows", warning)
    assert number is not None
    assert most <= int(number[1].replace(",", ""))
