"""Many predicates over batches of columns: index and scan against value by value, cut by cut."""

from __future__ import annotations

import math
import random
import sys

import numpy as np
import numpy.typing as npt
import pytest
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import Type
from tamis.predicates.evaluation import Dispatcher
from tamis.predicates.predicate import Predicate
from tamis.predicates.ranges import HIGH, LOW, NULL, Range, above, below

TYPES = {"x": Type.DOUBLE, "n": Type.BIGINT, "s": Type.VARCHAR, "f": Type.BOOLEAN}
EDGE = [-(2**63), -(2**63) + 1, -(2**63) + 2, 2**63 - 1, 2**63 - 2, -1, 0, 1, 5]
CONSTANTS: dict[Type, list[float | int | str | bool]] = {
    Type.DOUBLE: [0.0, 0.1, -2.5, 1e308, -1e308, 5e-324, 7.0],
    Type.BIGINT: list(EDGE),
    Type.VARCHAR: ["", "a", "a\0", "b", "ba", "zz"],
    Type.BOOLEAN: [False, True],
}
BLOCKS = 4


def range_of(r: random.Random, kind: Type) -> Range | None:
    cuts = [NULL, LOW, HIGH]
    cuts += [r.choice((below, above))(r.choice(CONSTANTS[kind]), kind) for _ in range(3)]
    first, behind = sorted(r.sample(cuts, 2))
    return (first, behind) if first < behind else None


def predicate(r: random.Random, most: int) -> Predicate:
    boxes = []
    for _ in range(r.randint(0, most)):
        named = r.sample(sorted(TYPES), r.randint(0, 3))
        ranges = {name: range_of(r, TYPES[name]) for name in named}
        boxes.append({name: found for name, found in ranges.items() if found is not None})
    return Predicate(tuple(boxes), TYPES)


def column(r: random.Random, kind: Type, size: int) -> npt.NDArray[np.generic]:
    """Values at and beside the constants, and NULLs."""
    found: list[object] = []
    for _ in range(size):
        value = r.choice(CONSTANTS[kind])
        if kind is Type.DOUBLE:
            value = r.choice((value, float(np.nextafter(value, r.choice((-1, 1)) * np.inf)), np.inf, -0.0))
        found.append(None if r.random() < 0.1 else value)
    if kind is Type.DOUBLE:
        return np.array([np.nan if v is None else v for v in found], np.float64)
    return np.array(found, np.object_)


def holds(
    predicate: Predicate, columns: dict[str, npt.NDArray[np.generic]], size: int
) -> npt.NDArray[np.bool_]:
    """Each value against each range, by the order of cuts: a cut is just below its value."""
    result = np.zeros(size, np.bool_)
    for box in predicate.boxes:
        inside = np.ones(size, np.bool_)
        for name, (lower, upper) in box.items():
            values = columns[name].tolist()
            null = [v is None or (isinstance(v, float) and not math.isfinite(v)) for v in values]
            least = {
                Type.DOUBLE: -sys.float_info.max,
                Type.BIGINT: -(2**63),
                Type.VARCHAR: "",
                Type.BOOLEAN: False,
            }
            cuts = [
                NULL if missing else max(LOW, (0, v)) if v != least[TYPES[name]] else LOW
                for v, missing in zip(values, null, strict=True)
            ]
            inside &= np.array([lower <= cut < upper for cut in cuts], np.bool_)
        result |= inside
    return result


@pytest.mark.parametrize("block", range(BLOCKS))
def test_any_and_which_are_what_each_predicate_says(block: int) -> None:
    for case in range(cases(1 / 40 / BLOCKS)):
        seed = SEED * 1_000_003 + block * 100_003 + case
        r = random.Random(seed)
        predicates = [predicate(r, r.choice((1, 3, 40))) for _ in range(r.randint(1, 5))]
        dispatcher = Dispatcher(predicates)
        size = r.choice((0, 1, 50, 400))
        columns = {name: column(r, kind, size) for name, kind in TYPES.items()}
        wanted = np.array([holds(p, columns, size) for p in predicates], np.bool_).T.reshape(
            size, len(predicates)
        )
        assert np.array_equal(dispatcher.which(columns), wanted), f"seed {seed}"
        assert np.array_equal(dispatcher.any(columns), wanted.any(axis=1)), f"seed {seed}"
