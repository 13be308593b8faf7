"""Random readings of a few keys, in the order of their arrival and in batches, with watermarks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tamis.spark.steps import BEGINNING

SECOND = 1_000_000
# No reading comes after it.
END = 10**9 * SECOND


@dataclass(frozen=True)
class Reading:
    """A reading; `number` tells it from all others."""

    key: str | None
    time: int  # seconds
    value: float
    number: int


def readings(r: np.random.Generator, most: int) -> list[Reading]:
    """Readings in the order of their event times, with ties and gaps."""
    count, keys = int(r.integers(1, most)), "abc"[: int(r.integers(1, 4))]
    times = np.cumsum(r.choice([0, 0, 1, 1, 2, 5, 30], count))
    values = r.integers(0, int(r.integers(2, 9)), count)
    return [
        Reading(str(r.choice(list(keys))), int(t), float(v), n)
        for n, (t, v) in enumerate(zip(times, values, strict=True))
    ]


def arrivals(r: np.random.Generator, given: list[Reading], disorder: int) -> list[Reading]:
    """The readings in an order of arrival in which none comes more than `disorder` seconds late."""
    late = r.choice([0, disorder, int(r.integers(0, disorder + 1))], len(given))
    # In random order where they are equal, so that a reading may be as late as it can be.
    order = np.lexsort((r.random(len(given)), [one.time for one in given] + late))
    return [given[i] for i in order]


def batches(
    r: np.random.Generator, arrived: list[Reading], delay: int
) -> Iterator[tuple[list[Reading], int, int]]:
    """Each batch with the watermark, in microseconds, before it and behind it; the last watermark is `END`.

    As in Spark, the watermark of a batch follows from the batches before it, and some batches without
    readings only bring a new watermark.
    """
    cuts = sorted(int(cut) for cut in r.integers(0, len(arrived) + 1, int(r.integers(0, 8))))
    before, newest = BEGINNING, None
    for start, stop in zip([0, *cuts], [*cuts, len(arrived)], strict=True):
        watermark = before if newest is None else max(before, (newest - delay) * SECOND)
        if r.random() < 0.5:
            yield [], before, watermark
            before = watermark
        yield arrived[start:stop], before, watermark
        before = watermark
        times = [one.time for one in arrived[start:stop]]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
    yield [], before, END


def table(given: list[Reading], value: str = "v") -> pa.Table:
    """The readings as a table with the columns key, time, value and number."""
    return pa.table(
        {
            "k": pa.array([one.key for one in given], pa.string()),
            "ts": pa.array([one.time * SECOND for one in given], pa.timestamp("us", "UTC")),
            value: pa.array([one.value for one in given], pa.float64()),
            "n": pa.array([one.number for one in given], pa.int64()),
        }
    )


def greatest_count(given: list[Reading], per: int) -> int:
    """The greatest number of readings of one key in a closed span of less than `per` seconds."""
    return max(
        (
            sum(other.key == one.key and one.time <= other.time < one.time + per for other in given)
            for one in given
        ),
        default=1,
    )
