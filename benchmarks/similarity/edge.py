"""Readings a second of an edge that compares 1,000 keys with 1,000 patterns, and of one without patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import orjson

from benchmarks.harness import Cell, Result, Say, medians
from benchmarks.similarity.workloads import series, walks
from tamis.declarations.watches import NamedPattern, Watch, watched_name
from tamis.expressions.nodes import Call, Column, Type
from tamis.messaging.topics import stream_topic
from tamis.plan.model import Plan, StreamColumn, StreamPlan, TopicPlan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.decode.decoder import Decoder
from tamis_edge.source_fields import FieldMap

NAME = "similarity.edge"
LENGTH = 128
EPSILON = 0.1
BATCH = 10_000
PARTITIONS = 4
START = 1_700_000_000_000_000
SQL = """
CREATE STREAM vibration (
  machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
);
CREATE ALERT shaken AS SELECT machine, ts, value FROM vibration WHERE value > 1e6;
"""
COLUMNS = (
    "patterns",
    "watched streams",
    "readings/s",
    "µs a reading",
    "matches",
    "published",
    "bytes per key",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    count, keys, each = (20, 20, 300) if quick else (1000, 1000, 400)
    repeats = 1 if quick else 3
    patterns = walks(count, LENGTH, seed=1)
    patterns /= patterns.std(axis=1, keepdims=True)
    named = [NamedPattern(f"p{i}", tuple(values.tolist())) for i, values in enumerate(patterns)]
    value = Column("", "value", Type.DOUBLE)
    together = [Watch(value, "ANY", tuple(named), EPSILON)]
    apart = [Watch(value, one.name, (one,), EPSILON) for one in named]
    plain = first_plan(catalog_of(SQL), partitions=PARTITIONS, shards={"vibration": "vibration"})
    plans = {
        (0, 0): plain,
        (count, 1): _with_watches(plain, together),
        (count, count): _with_watches(plain, apart),
    }
    say(f"{keys * each:,} readings of {keys:,} keys")
    payloads = _payloads(patterns, keys, each)
    found = medians({str(case): partial(_decide, plan, payloads) for case, plan in plans.items()}, repeats)
    rows = [_row(case, *found[str(case)], keys * each) for case in plans]
    if rows[1]["matches"] != rows[2]["matches"]:
        raise AssertionError(f"one alert finds {rows[1]['matches']} matches, many find {rows[2]['matches']}")
    return Result(
        NAME,
        "An edge with patterns",
        COLUMNS,
        rows,
        {"keys": keys, "length": LENGTH, "readings": keys * each, "repeats": repeats, "quick": quick},
        (
            f"CPU time of one core, medians of {repeats} runs in turn, without Kafka: decode JSON, compare,"
            " filter, encode what is published, and commit",
            "one watched stream: one alert compares with all patterns (ANY); many: an alert for each pattern",
            f"patterns of {LENGTH} readings, epsilon {EPSILON:g} of their deviation, any scale and shift",
            f"random walks in which changed patterns stand; keys come in turn, in micro-batches of {BATCH:,}",
        ),
    )


def _row(case: tuple[int, int], seconds: float, run: tuple[int, int, int], readings: int) -> dict[str, Cell]:
    matches, published, size = run
    return {
        "patterns": case[0],
        "watched streams": case[1],
        "readings/s": readings / seconds,
        "µs a reading": seconds / readings * 1e6,
        "matches": matches,
        "published": published,
        "bytes per key": size,
    }


def _with_watches(plan: Plan, watches: Sequence[Watch]) -> Plan:
    (base,) = plan.streams
    watched = (_watched(base, watch) for watch in watches)
    return replace(plan, streams=(base, *watched))


def _watched(base: StreamPlan, watch: Watch) -> StreamPlan:
    """The stream that `similar(value, …)` reads, with one entry without omission."""
    name = watched_name(base.name, (watch,))
    similar = Call("not", (Call("is_null", (watch.distance,), Type.BOOLEAN),), Type.BOOLEAN)
    (known,) = base.topics
    columns = ("value", watch.distance.name, watch.pattern_column.name)
    topic: TopicPlan = replace(
        known,
        name=stream_topic(name, 1),
        columns=columns,
        entries=(replace(known.entries[0], filter=similar),),
    )
    added = tuple(StreamColumn(column.name, column.type, False, None) for column in watch.columns)
    return replace(
        base,
        name=name,
        columns=(*base.columns, *added),
        topics=(topic,),
        base=base.name,
        series_key=("machine",),
        watches=(watch,),
    )


def _payloads(patterns: np.ndarray, keys: int, each: int) -> list[list[bytes]]:
    """Readings of all keys in turn, once a second, as micro-batches of JSON."""
    values = series(keys * each, patterns, EPSILON).reshape(keys, each)
    found = [
        orjson.dumps(
            {"machine": f"m{key}", "ts": START + second * 1_000_000, "value": float(values[key, second])}
        )
        for second in range(each)
        for key in range(keys)
    ]
    return [found[start : start + BATCH] for start in range(0, len(found), BATCH)]


def _decide(plan: Plan, payloads: Sequence[Sequence[bytes]]) -> tuple[int, int, int]:
    """Matches, published tuples, and bytes of state for each key."""
    (shard,) = plan.since
    decoder = Decoder(plan.streams[0], FieldMap())
    run = ShardRun(shard, "vibration", Commit(), plan)
    offset = published = 0
    for part in payloads:
        decoded = decoder.payloads(part, 2 * START)
        offsets = np.arange(offset, offset + len(part))
        offset += len(part)
        run.take(Batch(decoded.columns, decoded.times, offsets, offsets), 0)
        while run.out:
            token = run.out.popleft().token
            published += run.carries_tuple(token)
            run.safe(token)
        run.commit()
        run.committed(0)
    size = run.watched.bytes // max(run.watched.series, 1)
    return run.watched.take_matches().total(), published, size
