"""Window functions of a shard under random schedules, compared with a direct computation over all readings.

The schedules are those of `test_watched`: the shard crashes between any two steps and continues from its last
commit. The oracle reads the whole log once, without batches, commits and crashes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.unit.edge.core.test_watched import (
    RISE,
    SEED,
    Reading,
    World,
    batch,
    counted_once,
    make_log,
    offsets,
    on_time,
    play,
    similar,
    watch,
    with_watched,
)
from tests.unit.edge.core.test_watched import watched as with_patterns
from tests.unit.edge.plans import TEMP, air, compare, entry, topic

from tamis.declarations.watches import Frame, WindowFunction, watched_name
from tamis.expressions.nodes import Expr, Type
from tamis.operators.time_join import key_table
from tamis.plan.model import StreamColumn, StreamPlan
from tamis_edge.core.commit import Commit
from tamis_edge.core.shard_run import ShardRun

LAG = WindowFunction("lag", TEMP, Frame(1, 1, 15), Type.DOUBLE)
THIRD = WindowFunction("lag", TEMP, Frame(3, 3, 60), Type.DOUBLE, TEMP)
MOST = WindowFunction("max", TEMP, Frame(4, 1, 25), Type.DOUBLE)
RECENT = WindowFunction("count", TEMP, Frame(None, 0, 9), Type.BIGINT)
MEAN = WindowFunction("avg", TEMP, Frame(None, 0, 30), Type.DOUBLE)


def watched(
    functions: Sequence[WindowFunction],
    number: int,
    delay: int,
    *,
    filter_: Expr | None = None,
    interval: int = 0,
    counted: bool = False,
) -> StreamPlan:
    base, name = air([], delay), watched_name("air", tuple(functions))
    made = topic(
        [entry(interval, filter=filter_, sides="above")],
        f"tamis.stream.{name}.{number}",
        columns=("temp", *(one.column.name for one in functions)),
        counted=counted,
    )
    added = (StreamColumn(one.column.name, one.column.type, False, None) for one in functions)
    return replace(
        base,
        name=name,
        columns=(*base.columns, *added),
        topics=(made,),
        base="air",
        series_key=("station",),
        window_functions=tuple(functions),
    )


def values(function: WindowFunction, log: Sequence[Reading], delay: int) -> dict[int, Any]:
    """The value at each reading that is on time, by offset."""
    found: dict[int, Any] = {}
    series: dict[str, list[Reading]] = {}
    frame = function.frame
    for reading in sorted(on_time(log, delay), key=lambda r: (r.time, r.offset)):
        mine = series.setdefault(reading.station, [])
        mine.insert(0, reading)
        rows = mine[frame.last : None if frame.first is None else frame.first + 1]
        inside = [one.temp for one in rows if reading.time - one.time <= frame.span]
        known = [one for one in inside if one is not None]
        if function.function == "lag":
            default = reading.temp if function.default is not None else None
            found[reading.offset] = inside[0] if inside else default
        elif function.function == "count":
            found[reading.offset] = len(known)
        elif not known:
            found[reading.offset] = None
        else:
            # Sums of so few digits are exact.
            found[reading.offset] = max(known) if function.function == "max" else sum(known) / len(known)
    return found


def check(
    found: Sequence[dict[str, Any]], functions: Sequence[WindowFunction], world: World, delay: int
) -> int:
    """Check the values of published tuples; returns the number of values that aren't NULL."""
    timely = [one for one in found if "late" not in one["_"] and one["temp"] is not None]
    right = [values(one, world.log, delay) for one in functions]
    count = 0
    for one, offset in zip(timely, offsets(timely, world.log), strict=True):
        for function, expected in zip(functions, right, strict=True):
            assert one[function.column.name] == expected[offset], (function, world.log[offset])
            count += expected[offset] is not None
    return count


@pytest.mark.parametrize("counted", [False, True])
def test_all_values_are_those_of_one_pass_over_all_readings(counted: bool) -> None:
    reread = known = 0
    for seed in range(SEED, SEED + 40):
        r = random.Random(seed)
        delay = r.choice([0, 3, 9])
        log = make_log(r, delay, r.randint(20, 250))
        functions = r.sample([LAG, THIRD, MOST, RECENT, MEAN], r.randint(1, 3))
        stream = watched(functions, 1, delay, counted=counted)
        beside = with_patterns(watch(RISE), similar(watch(RISE)), 2, delay)
        chosen = [stream, beside] if r.random() < 0.5 else [stream]
        world = World(r, log, r.random() < 0.5, with_watched(chosen, delay))
        play(world, 150)
        reread += world.most_reread
        found = counted_once(world, stream) if counted else world.published(stream.topics[0].name)
        known += check(found, functions, world, delay)
        timely = [one for one in found if "late" not in one["_"] and one["temp"] is not None]
        wanted = {one.offset for one in on_time(log, delay) if one.temp is not None}
        assert set(offsets(timely, log)) == wanted, seed
        assert not counted or len(timely) == len(wanted), seed
    assert known > 4000
    assert reread > 500


def test_other_window_functions_come_and_go_and_a_stream_keeps_its_values() -> None:
    known = 0
    for seed in range(SEED, SEED + 25):
        r = random.Random(seed)
        delay = r.choice([0, 5])
        log = make_log(r, delay, 200)
        first, second = watched([LAG, MEAN], 1, delay), watched([THIRD, RECENT], 2, delay)
        sets = [[first], [first, second], [second, first], [first]]
        plans = [with_watched(one, delay, version) for version, one in enumerate(sets, 1)]
        world = World(r, log, r.random() < 0.5, plans[0])
        play(world, 150, plans[1:])
        known += check(world.published(first.topics[0].name), [LAG, MEAN], world, delay)
    assert known > 3000


def test_omission_keeps_the_greatest_of_the_readings_that_pass() -> None:
    """A filter over a window function, and omission on the value itself."""
    retained = passing = 0
    for seed in range(SEED, SEED + 20):
        r = random.Random(seed)
        delay = r.choice([0, 5])
        log = make_log(r, delay, 200)
        stream = watched([RECENT], 1, delay, filter_=compare(">=", RECENT.column, 4), interval=10)
        world = World(r, log, True, with_watched([stream], delay))
        play(world, 150)
        found = [one for one in world.published(stream.topics[0].name) if "late" not in one["_"]]
        check(found, [RECENT], world, delay)
        got = {log[offset] for offset in offsets([one for one in found if one["temp"] is not None], log)}
        right = values(RECENT, log, delay)
        pass_ = {log[at] for at, count in right.items() if count >= 4 and log[at].temp is not None}
        assert got <= pass_
        for one in pass_ - got:
            # Another reading of the same key that is close in time is at least as high.
            assert any(
                other.station == one.station
                and abs(other.time - one.time) <= 10
                and (other.temp or 0) >= (one.temp or 0)
                for other in got
            ), seed
        retained += len(got)
        passing += len(pass_)
    assert 0 < retained < passing


def test_a_late_reading_has_no_values() -> None:
    run = ShardRun(SHARD, "air", Commit(), with_watched([watched([LAG, RECENT], 1, 2)], 2))
    rows = [
        Reading(0, "a", 10, 1.0),
        Reading(1, "a", 20, 2.0),
        Reading(2, "a", 12, 3.0),
        Reading(3, "a", 30, 4.0),
    ]
    run.take(batch(rows, 0), 0)
    run.finish()
    run.settle(0)
    found = [orjson.loads(record.value) for record in run.out if "_over_" in record.topic]
    got = {
        one["ts"]: (one[LAG.column.name], one[RECENT.column.name], "late" in one["_"])
        for one in found
        if "temp" in one
    }
    assert got == {10: (None, 1, False), 20: (1.0, 1, False), 12: (None, None, True), 30: (2.0, 1, False)}


SHARD = "air:source/0"


def test_memory_and_restarts_reach_back_as_far_as_frames_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_table, "MANY", 8)
    run = ShardRun(SHARD, "air", Commit(), with_watched([watched([LAG, MEAN], 1, 0)], 0))
    sizes = []
    for start in range(0, 2000, 4):
        keys = ("a", "a", "b", f"k{start}")
        rows = [Reading(start + i, key, 100 + start // 4, 1.0) for i, key in enumerate(keys)]
        run.take(batch(rows, 0), 0)
        while run.out:
            run.safe(run.out.popleft().token)
        assert run.commit() is not None
        run.committed(0)
        sizes.append(run.watched.bytes)
    # Frames reach back 30 ticks, each with four readings.
    assert run.read_again <= 4 * 32
    assert run.watched.series <= 2 * 32 + 8
    assert sizes[-1] <= 2 * sizes[60] < 100_000


def test_without_patterns_a_lag_reads_one_reading_of_each_key_again() -> None:
    run = ShardRun(SHARD, "air", Commit(), with_watched([watched([LAG], 1, 0)], 0))
    for start in range(0, 400, 2):
        rows = [Reading(start + i, key, 100 + start, 1.0) for i, key in enumerate("ab")]
        run.take(batch(rows, 0), 0)
        while run.out:
            run.safe(run.out.popleft().token)
        assert run.commit() is not None
        run.committed(0)
    assert run.read_again <= 4
