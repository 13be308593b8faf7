"""Readings that edges publish of queries with DISTINCT over streams without event time, beside the bound."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Cell, Goal, Result, Say
from tamis.expressions.vectors import Vector
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun

NAME = "bounded.publishing"
READINGS = 12_000  # of each stream
KEYS = 5
BATCH = 500
SEEDS = range(1, 21)
GOAL = 1.2
LAYOUTS = ((1, 0), (3, 1))  # shards of a stream, and restarts of each
COLUMNS = ("query", "shards", "restarts", "readings", "published", "bound", "readings/s", "all published")
SQL = f"""
CREATE STREAM s (k INT KEY, x INT NOT NULL, g INT NOT NULL CHECK (g BETWEEN 0 AND 3)) WITH (keys = {KEYS});
CREATE STREAM t (k INT KEY, x INT NOT NULL, g INT NOT NULL CHECK (g BETWEEN 0 AND 3)) WITH (keys = {KEYS});
CREATE ALERT q {{options}}AS SELECT DISTINCT {{rest}};
"""


class Case(NamedTuple):
    """A query over streams of uniform values. A shard publishes, each time that it begins, `most` readings
    for each key; or of n readings of a key the records on this many `sides`, which are ln(n) + 0.58 each.
    """

    rest: str
    most: int | None
    sides: int = 0

    def bound(self, readings: float) -> float:
        """The readings of a shard and key that are published since it began."""
        return self.sides * (math.log(readings) + 0.58) if self.most is None else self.most


CASES = (
    Case("s.k FROM s WHERE s.x > 50", 1),
    Case("s.k FROM s, t WHERE s.k = t.k AND s.x + t.x > 1900000", None, 1),
    Case("s.k FROM s, t WHERE s.k = t.k AND abs(s.x - t.x) > 999000", None, 2),
    Case("s.k FROM s, t WHERE s.k = t.k AND s.g + t.g > 3", 4),
    Case("s.k FROM s, t WHERE s.k = t.k AND s.x != t.x AND s.g != t.g", 4),
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: it has too few seeds for figures."""
    seeds = SEEDS[:2] if quick else SEEDS
    found: list[dict[str, Cell]] = []
    goals = []
    for case, (shards, restarts) in product(CASES, LAYOUTS):
        say(f"{case.rest}, {shards} shards, {restarts} restarts")
        plan = _plan(case, "")
        streams = [stream.name for stream in plan.streams if stream.topics]
        ways = [_published(plan, stream, seed, shards, restarts) for stream in streams for seed in seeds]
        raw = _plan(case, "WITH (edge = 'raw') ")
        whole = [_published(raw, stream, seed, shards, restarts) for stream in streams for seed in seeds]
        begun = shards * (restarts + 1)
        bound = begun * KEYS * case.bound(READINGS / begun / KEYS) * len(streams)
        published = sum(count for count, _ in ways) / len(seeds)
        readings = READINGS * len(streams)
        what = f"published beside the bound: {case.rest}; {shards} shards, {restarts} restarts"
        goals.append(Goal(what, published / bound, f"{bound:,.1f} readings", most=GOAL))
        found.append(
            {
                "query": case.rest,
                "shards": shards,
                "restarts": restarts,
                "readings": readings,
                "published": published,
                "bound": bound,
                "readings/s": readings * len(seeds) / sum(seconds for _, seconds in ways),
                "all published": readings * len(seeds) / sum(seconds for _, seconds in whole),
            }
        )
    return Result(
        NAME,
        "Readings that edges publish of queries without time",
        COLUMNS,
        found,
        {"batch": BATCH, "seeds": len(seeds), "quick": quick},
        (
            f"each stream has {READINGS:,} readings of {KEYS} keys; x is uniform below 1,000,000, g one of 4"
            f" values; published: the mean over the seeds {seeds[0]} to {seeds[-1]}",
            "bound: for each key, shard and beginning, 1 without a value, the number of values or of tuples"
            " for !=, or on average ln(n) + 0.58 of n readings in random order, twice that for both sides",
            "readings/s: of the core of an edge without decoding and Kafka, for CPU time; all published: the"
            " same with WITH (edge = 'raw')",
        ),
        goals,
    )


def _plan(case: Case, options: str) -> Plan:
    plan = first_plan(catalog_of(SQL.format(options=options, rest=case.rest)))
    streams = tuple(replace(stream, representatives=1) for stream in plan.streams)
    return replace(plan, streams=streams, since=dict.fromkeys(map(_shard, "st"), plan.version))


def _shard(stream: str) -> str:
    return f"{stream}:edge/http"


def _published(plan: Plan, stream: str, seed: int, shards: int, restarts: int) -> tuple[int, float]:
    """The readings that shards publish, and the CPU seconds that this takes."""
    published, seconds = 0, 0.0
    for number in range(shards):
        commit = Commit()
        for batches in _batches(seed, number, shards, restarts + 1):
            began = time.process_time()
            shard = ShardRun(_shard(stream), stream, commit, plan)
            for batch in batches:
                shard.take(batch, 0)
                # Nothing is in Kafka, and all of it is safe.
                published += sum(one.key is not None for one in shard.out)
                shard.safe(*(one.token for one in shard.out))
                shard.out.clear()
            made = shard.commit()
            assert made is not None
            shard.committed(0)
            commit = made
            seconds += time.process_time() - began
    return published, seconds


def _batches(seed: int, number: int, shards: int, parts: int) -> Iterator[Sequence[Batch]]:
    """The readings of a shard, in parts between which its edge restarts."""
    r = np.random.default_rng((seed, number))
    first = 0
    for _ in range(parts):
        batches = []
        end = first + READINGS // shards // parts
        while first < end:
            size = min(BATCH, end - first)
            columns = {
                "k": Vector(r.integers(0, KEYS, size)),
                "x": Vector(r.integers(0, 1_000_000, size)),
                "g": Vector(r.integers(0, 4, size)),
            }
            at = np.arange(first, first + size)
            batches.append(Batch(columns, np.zeros(size, np.int64), at, np.zeros(size, np.int64)))
            first += size
        yield batches
