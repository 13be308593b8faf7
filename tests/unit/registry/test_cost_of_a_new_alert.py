"""The work for one more alert doesn't depend on the number of alerts: calls and memory are counted."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from types import FrameType

from tamis.persistent.dicts import MOST_RECENT
from tamis_registry.core.plan.change import Change
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.model import State

# Dictionaries collect their new keys after so many changes: both numbers are as far from that.
FEW, MANY = 140, 140 + MOST_RECENT
# For each alert, a stream's load has the boxes of both sources and their counts in arrays: 16 bytes for each
# box and attribute, and 8. It is copied once at a time. A copied list of references would have 8 for each
# source, a dictionary some 100.
MOST_BYTES = 64
STREAM = (
    "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN 0 AND 1000),"
    " WATERMARK FOR ts AS ts - INTERVAL '2' SECOND);"
)


def add(registry: Registry, number: int) -> Change:
    """The change by one more alert: a join with omission, and with a filter of its own."""
    text = (
        f"CREATE ALERT q{number} AS SELECT a.k, a.v FROM s a JOIN s b ON a.k = b.k AND b.ts BETWEEN a.ts -"
        f" INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND WHERE a.v - b.v > 1 AND a.v > {number}.5;"
    )
    return registry.apply(text, 0)[1]


def calls(registry: Registry) -> int:
    """The calls of functions for one more alert; the change is not kept."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        add(registry, 999)
    finally:
        sys.setprofile(None)
    return count


def allocated(registry: Registry) -> int:
    """The bytes that one more alert takes, at most at a time; the change is not kept."""
    # This also empties the interpreter's lists of free objects, whose memory would be taken without a count.
    # Tests before leave any number of them, and any number of objects until the next collection.
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kept = add(registry, 999)
        assert kept.plan is not None
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()


def test_calls_and_memory_for_one_more_alert_are_the_same_for_any_number() -> None:
    registry = Registry(PLANNER, State(4), None, 0, 0)
    registry.done(registry.begin(0), 0)
    registry.done(registry.apply(STREAM, 0)[1], 0)
    found = {}
    for number in range(MANY):
        registry.done(add(registry, number), 0)
        if number + 1 in (FEW, MANY):
            add(registry, 998)  # caches of texts and types have what they need
            found[number + 1] = calls(registry), allocated(registry)
    (few_calls, few_bytes), (many_calls, many_bytes) = found[FEW], found[MANY]
    print("calls and bytes", found)
    assert many_calls < 1.05 * few_calls
    assert many_bytes - few_bytes < MOST_BYTES * (MANY - FEW)
