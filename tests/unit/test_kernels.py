"""What the set-up compiles is what the services run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.bounded.evaluate import counted_kernels as counted
from tamis.bounded.evaluate import kernels as synopses
from tamis.bounded.evaluate.ledger import Ledger
from tamis.evaluation import kernels
from tamis.evaluation.standing import standing
from tamis.evaluation.standing.timeless import kernels as timeless
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.fleet.kernels import warm
from tamis.omission import neighbours, order, panes, retained, retained_by_key, settle, shorthand, sift, sweep
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState


def test_the_filter_and_the_join_need_no_further_compilation() -> None:
    warm()
    compiled: list[Any] = [settle.advance, panes.extremes, kernels.windows, kernels.expand]
    compiled += [synopses.rising, synopses.numbered, synopses.entered, counted.joined, counted.restored]
    compiled += [timeless.summed, timeless.outdone, timeless.touched, timeless.middles]
    compiled += [order._ordered, order._ascending, order._radix_sort, order._count_sort]
    compiled += [neighbours._compare, shorthand.encode, sift._sift, sweep.sweep]
    before = [list(kernel.signatures) for kernel in compiled]
    random = np.random.default_rng(1)
    for sides, delay in (("above", None), ("below", 5), ("both", 0)):
        for state in (OmissionState(4, sides, delay), WindowState(2, 4, sides, delay)):  # type: ignore[arg-type]
            for start in range(0, 60, 20):
                times = np.arange(start, start + 20)
                state.offer(random.integers(0, 3, 20), times, random.normal(size=20), times, now=start)
                state.decide(start + 15, now=start + 10)
                state.note_published(times[:3])
            state.flush()
    ledger = Ledger(2)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(5):
        rows, leads = random.integers(-50, 50, (60, 2)), random.integers(-9, 9, 60)
        wanted = []
        for row, lead in zip(map(tuple, rows.tolist()), leads.tolist(), strict=True):
            wanted.append(row not in seen or lead > seen[row])
            if wanted[-1]:
                seen[row] = lead
        assert ledger.rising(rows, leads).tolist() == wanted
    _count(random)
    disordered = random.permutation(2_000)
    order.by_key_and_time(disordered % 7, disordered)
    keys = np.array([1, 1, 2])
    kernels.expand(*kernels.windows(keys, keys, keys[:1].copy(), keys[:1] - 1, keys[:1] + 1))
    for size in (3, 500):
        times = np.arange(size)
        for ties in ("fewest", "strict"):
            retained(times, random.integers(0, 3, size), 9, ties=ties)
            retained_by_key(times % 2, times, random.normal(size=size), 9, max_delay=3)
    assert [list(kernel.signatures) for kernel in compiled] == before


def _count(random: np.random.Generator) -> None:
    """Other queries that join and count, three streams and texts among them."""
    streams = "CREATE STREAM s (k INT, v VARCHAR, x DOUBLE); CREATE STREAM t (j INT, b BIGINT);"
    for sql in (
        "SELECT k, t.b FROM s, t, t u WHERE k = t.j AND k BETWEEN 0 AND 9 AND t.b <= u.b",
        "SELECT v, sum(x) AS n, max(b) AS m, median(x) AS d FROM s, t WHERE k <= j GROUP BY v",
        "SELECT count(DISTINCT v) AS n, min(v) AS l, min(x) AS m FROM s HAVING avg(x) > 0",
    ):
        query = standing(f"{streams} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
        for rows in (1, 40):
            k, texts = random.integers(0, 9, rows), Vector.from_list([*"xy" * rows][:rows], Type.VARCHAR)
            batches = {
                "s": {"k": Vector(k), "v": texts, "x": Vector(random.normal(size=rows))},
                "t": {"j": Vector(k), "b": Vector(k)},
            }
            for stream in query.streams:
                query.take(stream, batches[stream], rows)
                query.take(stream, {name: one.take(np.arange(0)) for name, one in batches[stream].items()}, 0)
        again = standing(f"{streams} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
        again.load(query.dump())
        assert again.dump() == query.dump()
