"""The comparison of fault tests finds an alarm that is missed, extra or doubled."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
from tests.faults.load import DIFFERENCE, HOT, SECOND, Load, Row
from tests.faults.reference import INTERVAL, Combination, closed_episodes, compare, expected
from tests.faults.windows import Reading, judge_windows


def alarm(alert: str, id_: str, found: Combination) -> dict[str, Any]:
    station, a, s = found
    tuples = {"a": {"station": station, "ts": a}, "s": {"station": station, "ts": s}}
    key = "air"
    return {"alert": alert, "id": id_, "tuples": {key: tuples["a"]} if s is None else tuples}


def stands_for(alarm: Combination, other: Combination) -> bool:
    assert alarm[2] is not None and other[2] is not None
    times = ((alarm[1], other[1]), (alarm[2], other[2]))
    return alarm[0] == other[0] and all(abs(a - b) <= INTERVAL for a, b in times)


def readings(seed: int, seconds: int) -> dict[str, list[Row]]:
    load = Load(seed)
    load.end()
    return {
        stream: [row for second in range(seconds) for row in load.walk(stream, second)]
        for stream in load.posted
    }


def test_the_reference_is_the_plain_join() -> None:
    posted = readings(1, 40)
    wanted = expected(posted)
    assert wanted.alarms["warm"] == {
        (k, a, s)
        for k, a, hot in posted["air"]
        for j, s, cold in posted["surface"]
        if j == k and abs(a - s) <= 5 * SECOND and hot - cold > DIFFERENCE
    }
    assert wanted.alarms["hot"] == {(k, at, None) for k, at, temp in posted["air"] if temp > HOT}
    assert len(wanted.alarms["warm"]) > 20 and len(wanted.alarms["hot"]) > 5


def test_a_missed_an_extra_and_a_doubled_alarm_are_found() -> None:
    wanted = expected(readings(2, 40)).alarms
    records = [
        alarm(name, f"{name}{number}", one)
        for name, combinations in wanted.items()
        for number, one in enumerate(sorted(combinations, key=str))
    ]
    assert compare(wanted, records).right
    again = compare(wanted, [*records, records[0]])
    assert again.right and again.repeated == 1
    hot = next(record for record in records if record["alert"] == "hot")
    assert compare(wanted, [record for record in records if record is not hot]).missed == 1
    alone = [
        one for one in wanted["warm"] if not any(stands_for(other, one) for other in wanted["warm"] - {one})
    ]
    assert alone
    for one in alone[:3]:
        others = [record for record in records if record != alarm("warm", record["id"], one)]
        assert compare(wanted, others).missed == 1
    (first, *_) = (one for one in wanted["warm"] if one not in alone)
    others = [record for record in records if record != alarm("warm", record["id"], first)]
    assert compare(wanted, others).right, "another alarm stands for it"
    assert compare(wanted, [*records, records[0] | {"id": "other"}]).doubled == 1
    assert compare(wanted, [*records, alarm("warm", "new", (1, 2, 3))]).extra == 1


def test_episodes_are_split_by_gaps() -> None:
    times = [0, 9, 19, 30, 50]  # the gap is 10 s: three alarms, then one, then one
    posted = {"air": [(7, at * SECOND, HOT + 1) for at in times], "surface": [(7, 0, 0.0)]}
    wanted = {(7, 0, 19 * SECOND, 3), (7, 30 * SECOND, 30 * SECOND, 1), (7, 50 * SECOND, 50 * SECOND, 1)}
    assert expected(posted).episodes == wanted
    told = [
        {
            "alert": "hot",
            "event": event,
            "episode": str(one),
            "key": [7],
            "start": one[1],
            "end": one[2],
            "alarms": one[3],
        }
        for one in wanted
        for event in ("opened", "closed", "closed")
    ]
    assert closed_episodes(told) == Counter(wanted)
    assert closed_episodes(told[3:]) != Counter(wanted)


WINDOWS = """SELECT '{name}', station, later + {slide} * place AS window_end, count(*) AS n, min(ts), max(ts),
    sum(16 ** (ts // 1000000 % 10))
    FROM (SELECT *, ts // {slide} * {slide} + {slide} AS later FROM readings), range({places}) AS t(place)
    GROUP BY ALL"""


def window_rows(readings: list[Reading]) -> list[dict[str, Any]]:
    """The alarms of all windows, by DuckDB."""
    names = ("station", "window_end", "n", "first", "last", "digits")
    with duckdb.connect() as base:
        base.execute("CREATE TABLE readings (station VARCHAR, ts BIGINT)")
        base.executemany("INSERT INTO readings VALUES (?, ?)", readings)
        rows = [
            row
            for name, slide in (("tumbled", 10 * SECOND), ("hopped", 5 * SECOND))
            for row in base.execute(
                WINDOWS.format(name=name, slide=slide, places=10 * SECOND // slide)
            ).fetchall()
        ]
    return [
        {"alert": name, "id": f"{name} {row[:2]}", "row": dict(zip(names, row, strict=True))}
        for name, *row in rows
    ]


def test_a_reading_that_a_window_lacks_or_counts_twice_is_found() -> None:
    air = [(str(station), ts) for station, ts, _ in readings(3, 40)["air"] if station < 3]
    rows, passed = window_rows(air), 100 * SECOND
    whole = judge_windows(air, [], rows, passed)
    assert whole.right and whole.readings == len(air) and whole.windows == 3 * (4 + 9)
    assert judge_windows(air, [], [*rows, rows[0]], passed).right, "a record that comes again"
    for lost in air[::20]:
        others = [reading for reading in air if reading != lost]
        assert len(judge_windows(air, [], window_rows(others), passed).wrong) == 3
        assert len(judge_windows(air, [], window_rows([*air, lost]), passed).wrong) == 3
        # Without an answer, both are right.
        assert judge_windows(others, [lost], window_rows(others), passed).right
        assert judge_windows(others, [lost], rows, passed).right
        assert len(judge_windows(others, [lost], window_rows([*air, lost]), passed).wrong) == 3
    # One reading is lost and another one is doubled: the count is right.
    assert judge_windows(air, [], window_rows([*air[3:], *air[3:6]]), passed).wrong
    assert judge_windows(air, [], rows[1:], passed).missed
    assert judge_windows(air[1:], [], window_rows([("9", 5)]), passed).extra
    assert judge_windows(air, [], [*rows, rows[0] | {"id": "other"}], passed).doubled
    changed = rows[0] | {"row": rows[0]["row"] | {"n": 0}}
    assert judge_windows(air, [], [*rows, changed], passed).doubled
    assert judge_windows(air, [], [changed, *rows[1:]], passed).wrong
    assert judge_windows(air, [], [], 0).right, "windows that nobody has passed"
