"""The topic that costs least: the compiled choice against every cost, with volumes by counting cells."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.sharing.selectivity import BoxUnion
from tamis.sharing.topic_choice import TOPIC, Candidate, CandidateTopics

GRID = 6  # boxes end at multiples of 1 / GRID
Boxes = list[tuple[tuple[int, int], ...]]


def boxes(r: random.Random, most: int, dimensions: int) -> Boxes:
    """Boxes by the grid's lines, also empty and equal ones."""
    pairs = [r.choices(range(GRID + 1), k=2) for _ in range(most * dimensions)]
    ends = [(min(pair), max(pair)) for pair in pairs]
    return [tuple(ends[at::most]) for at in range(most)]


def cells(of: Boxes, dimensions: int) -> int:
    """How many of the grid's cells one of the boxes holds."""
    return sum(
        any(all(lo <= at < hi for at, (lo, hi) in zip(cell, box, strict=True)) for box in of)
        for cell in itertools.product(range(GRID), repeat=dimensions)
    )


def union_of(of: Boxes, dimensions: int) -> BoxUnion:
    ends = np.array(of, np.float64).reshape(len(of), dimensions, 2) / GRID
    return BoxUnion.of(ends[:, :, 0], ends[:, :, 1])


def test_the_choice_costs_least() -> None:
    for case in range(cases(1 / 60)):
        seed = f"{SEED} {case}"
        r = random.Random(seed)
        dimensions = r.choice((1, 2, 3))
        need = boxes(r, r.choice((1, 1, 1, 2)), dimensions)
        topics = [boxes(r, r.choice((1, 2, 3, 9)), dimensions) for _ in range(r.randint(0, 4))]
        subscriber = r.random() < 0.7
        candidates = [
            Candidate(at, union_of(one, dimensions), r.random() < 0.5, r.choice((0, 1, 5)))
            for at, one in enumerate(topics)
        ]
        costs = [2 * cells(need, dimensions) / GRID**dimensions + TOPIC]
        for one, its in zip(candidates, topics, strict=True):
            old = cells(its, dimensions) / GRID**dimensions
            new = cells(its + need, dimensions) / GRID**dimensions
            joiner = one.joiner or not subscriber
            costs.append(new * (1 + joiner + one.subscribers + subscriber) - old * (1 + one.consumers))
        found, share, least = CandidateTopics(candidates, dimensions).choose(
            union_of(need, dimensions), subscriber
        )
        cost = costs[0] if found is None else costs[found.number + 1]
        assert cost == pytest.approx(min(costs), abs=1e-9), f"seed {seed}: {costs} {found}"
        assert least == pytest.approx(cost, abs=1e-9), f"seed {seed}: {costs} {found}"
        whole = need if found is None else need + topics[found.number]
        assert share == pytest.approx(cells(whole, dimensions) / GRID**dimensions), f"seed {seed}"
