"""The kernels that the set-up compiles are those that the services run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from tests.operators import standing_evaluator

from tamis import row_order
from tamis.compile_kernels import remove_stale_caches, warm
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.omission import (
    blocks_of_16_bits,
    bracket_prefilter,
    bracket_sweep,
    nearest_neighbours,
    retained,
    retained_by_key,
    stream_kernel,
    window_batch,
)
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.operators.aggregates import kernels as timeless
from tamis.operators.synopses import counting_kernels as counting
from tamis.operators.synopses import kernels as synopses
from tamis.operators.synopses.row_numbering import BucketMaxima
from tamis.operators.time_join import temporal_join


def test_the_filter_and_the_join_need_no_further_compilation() -> None:
    warm()
    compiled: list[Any] = [
        stream_kernel.advance,
        window_batch.extremes,
        temporal_join.windows,
        temporal_join.expand,
    ]
    compiled += [synopses.rising, synopses.numbered, synopses.entered, counting.joined, counting.restored]
    compiled += [
        timeless.running_sums,
        timeless.running_extremes,
        timeless.touched_groups,
        timeless.running_percentiles,
    ]
    compiled += [row_order._ordered, row_order._ascending, row_order._radix_sort, row_order._count_sort]
    compiled += [
        nearest_neighbours._compare_keys,
        blocks_of_16_bits.encode,
        bracket_prefilter._prefilter_keys,
        bracket_sweep.sweep,
    ]
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
    ledger = BucketMaxima(2)
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
    row_order.by_key_and_time(disordered % 7, disordered)
    keys = np.array([1, 1, 2])
    temporal_join.expand(*temporal_join.windows(keys, keys, keys[:1].copy(), keys[:1] - 1, keys[:1] + 1))
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
        query = standing_evaluator(f"{streams} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
        for rows in (1, 40):
            k, texts = random.integers(0, 9, rows), Vector.from_list([*"xy" * rows][:rows], Type.VARCHAR)
            batches = {
                "s": {"k": Vector(k), "v": texts, "x": Vector(random.normal(size=rows))},
                "t": {"j": Vector(k), "b": Vector(k)},
            }
            for stream in query.streams:
                query.take(stream, batches[stream], rows)
                query.take(stream, {name: one.take(np.arange(0)) for name, one in batches[stream].items()}, 0)
        again = standing_evaluator(f"{streams} CREATE ALERT q WITH (allow_unbounded = true) AS {sql};", "q")
        again.load(query.dump())
        assert again.dump() == query.dump()


def test_kernels_that_call_a_changed_kernel_of_another_file_are_compiled_again(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    written = {
        "called.py": ("from numba import njit\n", 30),
        "caller.py": ("from numba import njit\n", 10),
        "plain.py": ("import numpy\n", 50),
        "__pycache__/caller.nbi": ("", 20),
        "__pycache__/caller.1.nbc": ("", 20),
        "__pycache__/called.nbi": ("", 40),
        "__pycache__/caller.cpython-311.pyc": ("", 20),
    }
    for name, (text, time) in written.items():
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (time, time))
    assert remove_stale_caches(tmp_path) == 2
    assert sorted(file.name for file in cache.iterdir()) == ["called.nbi", "caller.cpython-311.pyc"]
    assert remove_stale_caches(tmp_path) == 0
