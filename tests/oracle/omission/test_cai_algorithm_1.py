"""Algorithm 1 as published: contract tests of every store, and comparisons of the stores and brute force."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.sorted_store import SORTED_LIST
from tests.oracle.omission.cai_algorithm_1 import (
    LINKED_LIST,
    NONE,
    RED_BLACK_TREE,
    SKIP_LIST,
    Store,
    ThresholdSorter,
)
from tests.oracle.omission.store_checks import Check, Tried, checks
from tests.oracle.random_cases import SEED

from tamis.omission import retained

READINGS = Path(__file__).parents[3] / "demo" / "data" / "suthaharan-single-hop.csv"
STORES: tuple[Store[Any], ...] = (LINKED_LIST, SKIP_LIST, RED_BLACK_TREE, SORTED_LIST)
Ints = npt.NDArray[np.int64]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name.replace(" ", "-"))
@pytest.mark.parametrize("check", list(checks()), ids=lambda check: check.__name__)
def test_store(check: Check, store: Store[Any]) -> None:
    check(store)


def test_no_store_differs_on_disordered_walks() -> None:
    """Thousands of tuples, equal times and plateaus among them, batch by batch with punctuations."""
    random_ = np.random.default_rng(SEED)
    for disorder, steps in ((0, (0, 1, 2)), (30, (1,)), (400, (0, 1, 9))):
        times = np.cumsum(random_.choice(steps, 4000))
        values = np.cumsum(random_.integers(-1, 2, 4000)).astype(np.float64)
        arrival = np.argsort(times + random_.normal(0, disorder, 4000), kind="stable")
        to_come = np.minimum.accumulate(times[arrival][::-1])[::-1]
        answers = []
        for store in STORES:
            sorter, left = ThresholdSorter(store, 60), []
            for start in range(0, 4000, 500):
                part = arrival[start : start + 500]
                left += sorter.punctuate(int(to_come[start])).tolist()
                sorter.offer(times[part], values[part], part)
            answers.append(left + sorter.finish().tolist())
        assert all(answer == answers[0] for answer in answers), (SEED, disorder)
        kept = np.flatnonzero(retained(times, values, 60, ties="strict"))
        assert len(answers[0]) == len(kept)
        assert set(zip(times[kept], values[kept], strict=True)) == set(
            zip(times[answers[0]], values[answers[0]], strict=True)
        )


@pytest.mark.parametrize("interval", [12, 720])
def test_no_store_differs_on_real_readings(interval: int) -> None:
    table = np.loadtxt(READINGS, delimiter=",", skiprows=1)
    mine = table[table[:, 1] == 1]
    times, values = mine[:, 0].astype(np.int64), mine[:, 4]
    kept = np.flatnonzero(retained(times, values, interval, ties="strict"))
    for store in STORES:
        sorter = ThresholdSorter(store, interval)
        sorter.offer(times, values, np.arange(len(times)))
        assert sorter.finish().tolist() == kept.tolist()


def test_red_black_tree_stays_balanced() -> None:
    """No red row below a red one, and as many black ones on every way down (Bayer 1972)."""
    r = random.Random(f"balance {SEED}")
    tried = Tried(RED_BLACK_TREE, 150)
    nodes, root = tried.ts.nodes, tried.ts.root

    def black(row: int, above_red: bool) -> int:
        if row == NONE:
            return 1
        red = bool(nodes[row]["red"])
        assert not (red and above_red)
        left, right = (black(int(nodes[row][side]), red) for side in ("left", "right"))
        assert left == right
        return left + (not red)

    for _ in range(3000):
        tried.change(r)
        assert not nodes[NONE]["red"]
        black(int(root[0]), True)


def test_skip_list_has_the_same_order_on_every_level() -> None:
    r = random.Random(f"levels {SEED}")
    tried = Tried(SKIP_LIST, 200)
    nodes, ahead, back = tried.ts.nodes, tried.ts.ahead, tried.ts.back
    for _ in range(1000):
        tried.change(r)
        for level in range(ahead.shape[1]):
            high = [tried.rows[key] for key in tried.expected if nodes[tried.rows[key]]["height"] > level]
            ring = [NONE, *high, NONE]
            for row, after in itertools.pairwise(ring):
                assert ahead[row, level] == after and back[after, level] == row
