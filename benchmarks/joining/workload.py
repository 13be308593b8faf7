"""Plans and records of two joined streams, for the joiner's core alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import orjson
from tests.stream_records import progress_record

from benchmarks.readings import SECOND
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, conjunction
from tamis.messaging.topics import PLANS, stream_topic
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Definition, Input, Plan, StreamColumn, StreamPlan, TimeBound, TopicPlan
from tamis_joiner.core.records.envelopes import Records

STREAMS = ("a", "b")
ATTRIBUTES = ("x", "y", "z")  # uniform in [0, 1)
# A tuple passes about this many filters of its stream, if there are more alerts.
PASSED = 2
MOST_FILLED = 50_000


@dataclass(frozen=True)
class Size:
    """The size of a workload: tuples are of both streams together, `live` is what the joiner holds."""

    keys: int
    alerts: int
    batch: int
    live: int


def plan(size: Size) -> Records:
    """The plan of all alerts: the streams joined by key and time, a random box of each stream as its filter.
    The threshold lies where few combinations exceed it.
    """
    random = np.random.default_rng(1)
    columns = [("k", Type.VARCHAR), ("ts", Type.TIMESTAMP), *((name, Type.DOUBLE) for name in ATTRIBUTES)]
    streams = tuple(
        StreamPlan(
            name,
            tuple(StreamColumn(column, type_, False, None) for column, type_ in columns),
            "ts",
            0,
            None,
            None,
            3600 * SECOND,
            (TopicPlan(stream_topic(name, 1), ("k",), ATTRIBUTES, ()),),
        )
        for name in STREAMS
    )
    made = Plan(
        1,
        1,
        streams,
        tuple(_alert(number, size, random) for number in range(size.alerts)),
        {f"e/{name}": 1 for name in STREAMS},
        {f"e/{name}": name for name in STREAMS},
    )
    zero = np.zeros(1, np.int64)
    return Records(PLANS, 0, [encode_plan(made)], zero, zero)


def reach(size: Size) -> int:
    """The bounds of all joins, microseconds: a batch has a second of event time, and the live tuples are
    those of this time.
    """
    return size.live * SECOND // size.batch


def _alert(number: int, size: Size, random: np.random.Generator) -> Definition:
    most = reach(size)
    values = [Column(name, "x", Type.DOUBLE) for name in STREAMS]
    side = min(1.0, PASSED / size.alerts) ** (1 / len(ATTRIBUTES))
    inputs, corners = [], []
    for name in STREAMS:
        corner = random.uniform(0, 1 - side, len(ATTRIBUTES)).tolist()
        corners.append(corner[0])
        conditions = [
            Call("and", (_compare(column, ">=", first), _compare(column, "<=", first + side)), Type.BOOLEAN)
            for column, first in zip(
                [Column(name, attribute, Type.DOUBLE) for attribute in ATTRIBUTES], corner, strict=True
            )
        ]
        box = conjunction(tuple(conditions)) if size.alerts > PASSED else None
        inputs.append(Input(name, name, stream_topic(name, 1), "ts", ("k",), box, 0))
    above = _compare(Call("-", tuple(values), Type.DOUBLE), ">", corners[0] - corners[1] + 0.95 * side)
    bound = TimeBound(*STREAMS, -most, most)
    return Definition(f"q{number}", 1, tuple(inputs), (), (bound,), above, (("x", values[0]),))


def _compare(expr: Expr, operator: str, value: float) -> Expr:
    return Call(operator, (expr, Literal(value, Type.DOUBLE)), Type.BOOLEAN)


class Source:
    """The records of both streams in order of event time. A batch has `size.batch` tuples in a second."""

    def __init__(self, size: Size) -> None:
        self._size, self._random = size, np.random.default_rng(2)
        self._keys = [f"machine-{number:07d}" for number in range(size.keys)]
        self._start, self._offset = 10**15, 0

    def fill(self) -> Iterator[list[Records]]:
        """Large batches with as many tuples as the joiner is to hold."""
        left = self._size.live
        while left > 0:
            some = min(left, MOST_FILLED)
            yield self.batch(some)
            left -= some

    def batch(self, tuples: int) -> list[Records]:
        """The next `tuples` tuples, and progress behind them."""
        random, each = self._random, tuples // 2
        span = tuples * SECOND // self._size.batch
        found = []
        for name in STREAMS:
            envelope = {"shard": f"e/{name}", "plan": 1, "activation": 0}
            keys = random.integers(0, self._size.keys, each).tolist()
            times = (self._start + np.sort(random.integers(0, span, each))).tolist()
            attributes = random.random((each, len(ATTRIBUTES))).round(6).tolist()
            values = [
                orjson.dumps({"k": self._keys[key], "ts": time, "x": x, "y": y, "z": z, "_": envelope})
                for key, time, (x, y, z) in zip(keys, times, attributes, strict=True)
            ]
            values.append(progress_record(f"e/{name}", 1, 0, self._start + span))
            offsets = np.arange(self._offset, self._offset + len(values))
            found.append(Records(stream_topic(name, 1), 0, values, offsets, offsets))
        self._offset, self._start = self._offset + each + 1, self._start + span
        return found
