"""Samples that an edge reports: the error of their shares, the times of reports, and the values left out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.plan.model import StreamColumn, StreamPlan
from tamis.predicates.sketch import SIZE, Sketch
from tamis_edge.core.sampling import LEAST, MOST, Sampler

TYPES = {
    "k": Type.VARCHAR, "ts": Type.TIMESTAMP, "x": Type.DOUBLE, "twice": Type.DOUBLE, "n": Type.INT,
    "on": Type.BOOLEAN,
}  # fmt: skip


def stream(types: dict[str, Type]) -> StreamPlan:
    columns = tuple(StreamColumn(name, kind, False, None) for name, kind in types.items())
    return StreamPlan("air", columns, "ts", 0, None, None, 1, ())


def batch(r: np.random.Generator, count: int) -> dict[str, Vector]:
    x = r.normal(20, 5, count)
    x[r.random(count) < 0.02] = np.inf
    return {
        "k": Vector(np.array(["secret"] * count, np.object_)),
        "ts": Vector(np.arange(count)),
        "x": Vector(x, r.random(count) < 0.1),
        "twice": Vector(2 * x),
        "n": Vector(r.poisson(2, count).astype(np.int32)),
        "on": Vector(r.random(count) < 0.3),
    }


def test_shares_are_those_of_all_readings_and_rows_are_not_told() -> None:
    r = np.random.default_rng(5)
    sampler, batches, told = Sampler(stream(TYPES), r), [], []
    for count in (0, 3, *r.integers(1, 400, 300).tolist()):
        batches.append(batch(r, count))
        sampler.take(batches[-1], count)
        if sampler.due:
            told.append(Sketch.from_bytes(sampler.report()))
            assert not sampler.due
    assert told[0].count >= LEAST
    assert all(after.count >= 2 * before.count for before, after in pairwise(told))
    last = told[-1]
    assert set(last.values) == {"x", "twice", "n", "on"} and len(last.numbers) == SIZE
    upto, seen = [], 0
    for one in batches:
        if seen >= last.count:
            break
        upto.append(one)
        seen += len(one["n"])
    assert seen == last.count
    whole = {name: Vector.concat([one[name] for one in upto]) for name in TYPES}
    spread = last.distributions()
    null = np.asarray(whole["x"].null) | ~np.isfinite(whole["x"].data)
    assert spread["x"].null == pytest.approx(null.mean(), abs=0.08)
    for cut in (12.0, 20.0, 24.0):
        below = (~null & (whole["x"].data < cut)).mean()
        assert spread["x"].below((0, cut)) - spread["x"].null == pytest.approx(below, abs=0.08)
    assert spread["n"].below((0, 2)) == pytest.approx((whole["n"].data < 2).mean(), abs=0.08)
    assert spread["on"].below((0, True)) == pytest.approx((~whole["on"].data).mean(), abs=0.08)
    pairs = zip(last.values["x"], last.values["twice"], strict=True)
    together = [(a, b) for a, b in pairs if a is not None and b is not None]
    assert sum(2 * a == b for a, b in together) < len(together) / 20


def test_streams_of_texts_have_nothing_to_tell_and_wide_ones_not_all() -> None:
    r = np.random.default_rng(6)
    texts = Sampler(stream({"k": Type.VARCHAR, "ts": Type.TIMESTAMP}), r)
    texts.take(batch(r, 2 * LEAST), 2 * LEAST)
    assert not texts.due
    names = [f"x{number}" for number in range(MOST + 5)]
    wide = Sampler(stream(dict.fromkeys(names, Type.DOUBLE)), r)
    wide.take({name: Vector(r.random(LEAST)) for name in names}, LEAST)
    data = wide.report()
    assert list(Sketch.from_bytes(data).values) == names[:MOST] and len(data) < 400_000
