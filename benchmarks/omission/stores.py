"""Table 1 of cai-2021: the kernels of Tamis beside Algorithm 1 over four tuple stores.

The streams are in order and out of order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import kendalltau
from tests.oracle.omission.cai_algorithm_1 import (
    LINKED_LIST,
    RED_BLACK_TREE,
    SKIP_LIST,
    Store,
    ThresholdSorter,
)

from benchmarks import plots
from benchmarks.harness import BUDGET, Cell, Result, Say, medians
from benchmarks.omission.streams import (
    Ints,
    Stream,
    arrival,
    s_unif,
    s_wiener,
    stream_form,
    watermarks,
)
from benchmarks.sorted_store import SORTED_LIST
from tamis.omission import retained

NAME = "omission.stores"
INTERVAL = 100
# Less than 100 puts fewer than one pair in a million out of order.
SIGMAS = (0, 1, 10, 100, 1_000, 10_000, 100_000)
STORES: tuple[Store[Any], ...] = (LINKED_LIST, SKIP_LIST, RED_BLACK_TREE, SORTED_LIST)
OURS = ("kernel", "stream form")
COLUMNS = (
    "stream",
    "sigma",
    "inversions",
    *OURS,
    *(store.name for store in STORES),
    "fastest store / kernel",
    "skip list / kernel",
    "skip list / stream form",
    "retained",
    "retained by stream form",
)


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    tuples, repeats = (20_000, 1) if quick else (1_000_000, 5)
    random = np.random.default_rng(1)
    say("compiling")
    _row("few", s_unif(1_000, random), 0, 1, random)
    rows: list[dict[str, Cell]] = []
    for name, make in (("s-unif", s_unif), ("s-wiener", s_wiener)):
        stream = make(tuples, random)
        for sigma in SIGMAS[::6] if quick else SIGMAS:
            say(f"{name}, sigma {sigma:,}")
            rows.append(_row(name, stream, sigma, repeats, random))
    return Result(
        NAME,
        "Table 1: kernels and tuple stores",
        COLUMNS,
        rows,
        {"tuples": tuples, "repeats": repeats, "interval": INTERVAL, "rule": "strict", "quick": quick},
        (
            "columns from kernel to sorted list: CPU microseconds per tuple on one core, median of"
            f" {repeats} runs; the methods alternate",
            f"a method that takes more than {BUDGET:.0f} s (the linked list at sigma 100,000) runs once",
            f"each method gets {tuples:,} tuples, with two exceptions: the sorted list, which is in Python,"
            f" gets {_fewer(SORTED_LIST, 0, tuples):,}, and the linked list gets"
            f" {_fewer(LINKED_LIST, 100_000, tuples):,} where sigma is 10,000 or more",
            "inversions: share of all pairs of tuples that arrive in the wrong order",
            "kernel: decides the whole recording at once; its time includes sorting",
            "stream form: gets batches of 10,000; the watermark after each batch is the highest that makes no"
            " tuple late",
            "retained: share of all tuples; the kernel and all stores retain the same tuples",
        ),
        publish=lambda: plots.stores(rows),
    )


def _row(name: str, stream: Stream, sigma: int, repeats: int, random: np.random.Generator) -> dict[str, Cell]:
    tuples = len(stream.times)
    order = arrival(stream.times, sigma, random) if sigma else np.arange(tuples)
    come = stream.arriving(order)
    works: dict[str, Callable[[], Ints]] = {
        "kernel": partial(_kernel, come),
        "stream form": partial(_stream_form, come, watermarks(come.times)),
    }
    sizes = dict.fromkeys(works, tuples)
    # In time the first ones of the same stream, in the same disorder.
    parts = {size: come.arriving(np.flatnonzero(order < size)) for size in _sizes(sigma, tuples)}
    for store in STORES:
        sizes[store.name] = _fewer(store, sigma, tuples)
        works[store.name] = partial(_store, store, parts[sizes[store.name]])
    found = medians(works, repeats)
    for store in STORES:
        expected = _kernel(parts[sizes[store.name]])
        if not np.array_equal(np.sort(found[store.name][1]), expected):
            raise AssertionError(f"the {store.name} retains other tuples than the kernel at sigma {sigma}")
    cost = {form: 1e6 * seconds / sizes[form] for form, (seconds, _) in found.items()}
    return {
        "stream": name,
        "sigma": sigma,
        "inversions": _inversions(come.times),
        **cost,
        "fastest store / kernel": min(cost[store.name] for store in STORES) / cost["kernel"],
        "skip list / kernel": cost[SKIP_LIST.name] / cost["kernel"],
        "skip list / stream form": cost[SKIP_LIST.name] / cost["stream form"],
        "retained": len(found["kernel"][1]) / tuples,
        "retained by stream form": len(found["stream form"][1]) / tuples,
    }


def _fewer(store: Store[Any], sigma: int, tuples: int) -> int:
    """The number of tuples that a store gets: no run should take much longer than a second."""
    if store is SORTED_LIST:
        return tuples // 100
    return tuples // 10 if store is LINKED_LIST and sigma >= 10_000 else tuples


def _sizes(sigma: int, tuples: int) -> set[int]:
    return {_fewer(store, sigma, tuples) for store in STORES}


def _kernel(stream: Stream) -> Ints:
    return np.flatnonzero(retained(stream.times, stream.values, INTERVAL, ties="strict"))


def _stream_form(stream: Stream, marks: Ints) -> Ints:
    return stream_form(stream, INTERVAL, marks)[0]


def _store(store: Store[Any], stream: Stream) -> Ints:
    sorter = ThresholdSorter(store, INTERVAL, room=len(stream.times))
    sorter.offer(stream.times, stream.values, np.arange(len(stream.times)))
    return sorter.finish()


def _inversions(times: Ints) -> float:
    """The share of all pairs that are out of order. Without equal times it follows from Kendall's τ."""
    tau = float(kendalltau(np.arange(len(times)), times).statistic)
    return max(0.0, (1 - tau) / 2)
