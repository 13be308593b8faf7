"""Plans of thousands of alerts of others: what an edge reads, decodes and keeps of them."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pyarrow as pa

from benchmarks.harness import Cell, Result, Say
from benchmarks.sharing.filters import stream
from benchmarks.sharing.growth import DIMENSIONS, SHARE, grown, resident
from tamis.garbage_collection import collect_seldom
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.plan.slices import cut

NAME = "sharing.plan_parts"
STEPS = (10, 2_000, 10_000)
DRAWN = 10  # alerts that are planned; the others are copies of them under other names
PARTITIONS = 8
COLUMNS = (
    "alerts of others",
    "plan, KB",
    "read of Kafka before, KB",
    "read now, KB",
    "decoding whole, ms",
    "cutting and decoding the part, ms",
    "whole plan in memory, MB",
    "part in memory, MB",
    "part on disk, KB",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    rows: list[dict[str, Cell]] = []
    for count in STEPS[:1] if quick else STEPS:
        found: dict[bool, dict[str, Cell]] = {}
        for whole in (True, False):
            # Each in a process of its own, whose memory is that of the plan.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found[whole] = pool.submit(_decoded, count, whole).result()
        rows.append(found[True] | found[False])
        say(f"{count:,} alerts of others")
    return Result(
        NAME,
        "Plans of others' alerts at an edge",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "share": SHARE, "drawn": DRAWN, "partitions": PARTITIONS, "quick": quick},
        (
            f"the edge has one stream, with one alert; the others are joins over two other streams, {DRAWN}"
            " of them drawn at random and the rest copies under other names",
            f"read of Kafka: the plan compressed by zstd; before, from each of {PARTITIONS} partitions",
            "times are CPU time of the first plan of a process; memory is the growth of the process, the"
            " text of the plan not included",
        ),
    )


def _decoded(count: int, whole: bool) -> dict[str, Cell]:
    collect_seldom()
    document = encode_plan(_repeated(count))
    before, began = resident(), time.process_time()
    text = document if whole else cut(document, {"c"})
    plan = decode_plan(text)
    spent, size = 1000 * (time.process_time() - began), (resident() - before) / 1e6
    assert plan.stream("c") is not None
    if whole:
        return {"decoding whole, ms": spent, "whole plan in memory, MB": size}
    packed = len(pa.compress(document, codec="zstd", asbytes=True)) / 1024
    return {
        "alerts of others": count,
        "plan, KB": len(document) / 1024,
        "read of Kafka before, KB": PARTITIONS * packed,
        "read now, KB": packed,
        "cutting and decoding the part, ms": spent,
        "part in memory, MB": size,
        "part on disk, KB": len(text) / 1024,
    }


def _repeated(count: int) -> Plan:
    """A plan of so many joins over streams a and b, and of one alert over stream c."""
    registry, change, _ = next(grown("joins", (DRAWN,)))
    change = registry.apply(
        f"{stream('c', DIMENSIONS)} CREATE ALERT mine AS SELECT k FROM c WHERE x0 > 90;", 0
    )[1]
    assert change.plan is not None
    plan = change.plan
    times = count // DRAWN
    definitions = [
        replace(one, alert=f"{one.alert}_{number}")
        for one in plan.definitions
        for number in range(times if one.alert != "mine" else 1)
    ]
    streams = [
        replace(
            one,
            topics=tuple(
                replace(
                    topic,
                    entries=tuple(
                        replace(entry, serves=entry.serves + number)
                        for entry in topic.entries
                        for number in range(times if one.name != "c" else 1)
                    ),
                )
                for topic in one.topics
            ),
        )
        for one in plan.streams
    ]
    return replace(plan, streams=tuple(streams), definitions=tuple(definitions))
