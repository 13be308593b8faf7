"""Simulation, by discrete events, of the queues between edges, Kafka and the joiner, beside formulas.

The formulas are those of docs/scale.md. The simulation knows none of them: edges send progress, records take
time on their way, and the joiner takes batches. All times are seconds, all counts are tuples.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass

import simpy

from benchmarks.harness import Cell, Goal, Result, Say
from tamis.sizing.figures import unit_costs

NAME = "scale.queues"
COLUMNS = ("what", "of", "simulated", "formula", "simulated / formula")
# The time that a batch takes without any tuple: planning, commits of offsets and state.
FIXED = 0.4
# The default of the joiner for the most rows of a batch.
MOST_ROWS = 100_000
# Progress is sent once in this time for each shard and partition.
PERIOD = 1 / unit_costs()["progress_records_per_second"]
# The time from an edge to the joiner: exponential, with this mean.
ON_THE_WAY = 0.2
MAX_STALL = 60.0
# How far a simulated mean may be from its formula.
EXACT = 0.1

Events = Generator[simpy.Event, None, None]


def run(quick: bool, say: Say) -> Result:
    """Simulate each queue for a range of its parameter."""
    rows: list[dict[str, Cell]] = []
    goals: list[Goal] = []

    def add(what: str, of: str, simulated: float, formula: float, *, limit: bool = False) -> None:
        """`limit`: the formula is the most that can be, not the mean."""
        ratio = simulated / formula
        rows.append(dict(zip(COLUMNS, (what, of, simulated, formula, ratio), strict=True)))
        least = None if limit else 1 - EXACT
        goals.append(Goal(f"{what}, {of}", ratio, "times the formula", least, 1.0 if limit else 1 + EXACT))

    seconds = 200.0 if quick else 2_000.0
    for shards in (1, 10, 100) if quick else (1, 10, 100, 1_000, 10_000):
        say(f"frontier of {shards:,} shards")
        lag = frontier_lag(shards, min(seconds, 2e6 / shards), random.Random(1))
        add("mean lag of the frontier, s", f"{shards:,} shards", lag, most_lag(shards), limit=True)
    for stall in (10.0, 50.0, 600.0):
        say(f"a silence of {stall:.0f} s")
        peak = state_in_a_silence(1_000.0, span=10.0, silence=stall)
        # The last progress may be a period old, and the state is trimmed once in a batch.
        formula = 1_000.0 * (10.0 + min(stall, MAX_STALL) + PERIOD + FIXED) + 1
        add("most tuples in state", f"a source silent for {stall:.0f} s", peak, formula, limit=True)
    each = unit_costs()["joiner_cpu_us_per_tuple"] / 1e6
    for busy in (0.1, 0.5, 0.8, 0.9):
        say(f"batches at {busy:.0%} of the joiner's rate")
        found = latency(busy / each, each, seconds, random.Random(2))
        add("mean time in a batch, s", f"{busy:.0%} busy", found, batch_latency(busy))
    for busy in (0.3, 0.5) if quick else (0.3, 0.5, 0.7):
        for outage in (600.0,) if quick else (600.0, 3_600.0):
            say(f"an outage of {outage:.0f} s at {busy:.0%}")
            found = catch_up(busy, outage, each)
            formula = catch_up_time(busy, outage, each)
            add("time to catch up, s", f"{outage:.0f} s without Kafka, {busy:.0%} busy", found, formula)
    return Result(
        NAME,
        "Queues: simulation beside formulas",
        COLUMNS,
        rows,
        {"seconds": seconds, "quick": quick},
        (
            f"progress is sent every {PERIOD:.2g} s, and is {ON_THE_WAY} s on its way on average",
            f"a batch takes {FIXED} s and {each * 1e6:.3g} µs a tuple, on one core; it has at most"
            f" {MOST_ROWS:,} tuples",
            f"max_stall is {MAX_STALL:.0f} s",
        ),
        goals,
    )


def most_lag(shards: int) -> float:
    """The mean lag of a frontier behind the clock is at most this: a period, and the mean of the greatest of
    so many exponential delays, which is the mean times the harmonic number.
    """
    return PERIOD + ON_THE_WAY * sum(1 / number for number in range(1, shards + 1))


def batch_latency(busy: float) -> float:
    """The mean time from a tuple's arrival to the end of its batch: half a batch of waiting, and a batch. A
    batch that takes T has the tuples of the T before it, so T = FIXED + busy * T.
    """
    return 1.5 * FIXED / (1 - busy)


def catch_up_time(busy: float, outage: float, each: float) -> float:
    """The time that the backlog of an outage takes, with full batches. `busy`: the share of a core that the
    tuples need in normal operation; `each`: seconds a tuple.
    """
    full = MOST_ROWS / (FIXED + each * MOST_ROWS)
    rate = busy / each
    return outage * rate / (full - rate)


def frontier_lag(shards: int, seconds: float, r: random.Random) -> float:
    """The mean lag of the frontier, looked at once a second. A shard's watermark is the clock."""
    env = simpy.Environment()
    newest = [0.0] * shards
    lags: list[float] = []

    def shard(number: int) -> Events:
        yield env.timeout(r.uniform(0, PERIOD))
        while True:
            env.process(record(number, env.now))
            yield env.timeout(PERIOD)

    def record(number: int, watermark: float) -> Events:
        yield env.timeout(r.expovariate(1 / ON_THE_WAY))
        newest[number] = max(newest[number], watermark)

    def look() -> Events:
        yield env.timeout(10 * PERIOD)
        while True:
            yield env.timeout(1.0)
            lags.append(env.now - min(newest))

    for number in range(shards):
        env.process(shard(number))
    env.process(look())
    env.run(seconds)
    return sum(lags) / len(lags)


def state_in_a_silence(rate: float, span: float, silence: float) -> float:
    """The most tuples in the joiner's state of a stream whose partner is silent for a time: `rate` tuples a
    second come, and each is kept until the partner's frontier has passed it by `span`.
    """
    env = simpy.Environment()
    kept: list[float] = []  # event times
    most = 0
    partner = Partner()

    def readings() -> Events:
        while True:
            yield env.timeout(1 / rate)
            kept.append(env.now)

    def progress() -> Events:
        """A silent source's frontier stays, until it is behind by max_stall; then it follows the clock."""
        while True:
            if not 100.0 <= env.now < 100.0 + silence:
                partner.frontier = env.now
            partner.frontier = max(partner.frontier, env.now - MAX_STALL)
            yield env.timeout(PERIOD)

    def trim() -> Events:
        nonlocal most
        while True:
            yield env.timeout(FIXED)
            most = max(most, len(kept))
            needed = 0
            while needed < len(kept) and kept[needed] < partner.frontier - span:
                needed += 1
            del kept[:needed]

    for process in (readings, progress, trim):
        env.process(process())
    env.run(200.0 + min(silence, 2 * MAX_STALL))
    return float(most)


@dataclass
class Partner:
    """The other stream of a join."""

    frontier: float = 0.0


def latency(rate: float, each: float, seconds: float, r: random.Random) -> float:
    """The mean time from a tuple's arrival to the end of its batch. Tuples come in a Poisson process of
    packets, of which each has a hundredth of a second's tuples on average.
    """
    env = simpy.Environment()
    packet = max(1.0, rate / 100)
    waiting: list[float] = []
    times: list[float] = []

    def arrivals() -> Events:
        while True:
            yield env.timeout(r.expovariate(rate / packet))
            waiting.append(env.now)

    def batches() -> Events:
        while True:
            taken, waiting[:] = list(waiting), []
            yield env.timeout(FIXED + each * packet * len(taken))
            if env.now > seconds / 10:
                times.extend(env.now - arrived for arrived in taken)

    env.process(arrivals())
    env.process(batches())
    env.run(seconds)
    return sum(times) / len(times)


def catch_up(busy: float, outage: float, each: float) -> float:
    """The time from the end of an outage until a batch is no longer full."""
    env = simpy.Environment()
    rate = busy / each
    store = simpy.Container(env, init=rate * outage)

    def arrivals() -> Events:
        while True:
            yield env.timeout(0.1)
            yield store.put(rate * 0.1)

    def batches() -> Events:
        while True:
            count = min(store.level, MOST_ROWS)
            yield store.get(count)
            yield env.timeout(FIXED + each * count)
            if count < MOST_ROWS:
                done.succeed()
                return

    done = env.event()
    env.process(arrivals())
    env.process(batches())
    env.run(done)
    return float(env.now)
