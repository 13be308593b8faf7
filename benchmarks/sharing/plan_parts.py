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
from tamis.messaging.plans import TAIL
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis.plan.parts import NewestParts, PartRecord, cut, parts

NAME = "sharing.plan_parts"
STEPS = (10, 2_000, 10_000)
DRAWN = 10  # alerts that are planned; the others are copies of them under other names
PARTITIONS = 8
COLUMNS = (
    "alerts of others",
    "plan, KB",
    "read whole, KB",
    "read as a part, KB",
    "decoding whole, ms",
    "cutting and decoding, ms",
    "decoding the part, ms",
    "registry: all parts, ms",
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
            "read: a record of Kafka compressed by zstd, at each version; at its start an edge reads up to"
            f" {TAIL // 2} of them",
            "cutting and decoding: a whole plan, as an edge that reads no parts; after the part,"
            " whose records are known then",
            "registry: all parts: what the registry needs for the parts of all streams of a version",
            "times are CPU time of the first plan of a process; memory is the growth of the process, the"
            " text of the plan not included",
        ),
    )


def _decoded(count: int, whole: bool) -> dict[str, Cell]:
    collect_seldom()
    document = encode_plan(_repeated(count))
    began = time.process_time()
    found = {} if whole else parts(document)
    all_parts = 1000 * (time.process_time() - began)
    record = b"" if whole else PartRecord([2 * count] * PARTITIONS, found["c"]).encode()
    before, began = resident(), time.process_time()
    text = document if whole else _part(record)
    plan = decode_plan(text)
    spent, size = 1000 * (time.process_time() - began), (resident() - before) / 1e6
    assert plan.stream("c") is not None
    if whole:
        return {"decoding whole, ms": spent, "whole plan in memory, MB": size}
    began = time.process_time()
    assert decode_plan(cut(document, {"c"})) == plan
    cutting = 1000 * (time.process_time() - began)
    return {
        "alerts of others": count,
        "plan, KB": len(document) / 1024,
        "read whole, KB": _compressed(document),
        "read as a part, KB": _compressed(record),
        "cutting and decoding, ms": cutting,
        "decoding the part, ms": spent,
        "registry: all parts, ms": all_parts,
        "part in memory, MB": size,
        "part on disk, KB": len(text) / 1024,
    }


def _part(record: bytes) -> bytes:
    """The plan of the edge from the record that it has read."""
    newest = NewestParts({"c"})
    newest.take("c", record)
    return newest.plan()


def _compressed(value: bytes) -> float:
    return len(pa.compress(value, codec="zstd", asbytes=True)) / 1024


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
