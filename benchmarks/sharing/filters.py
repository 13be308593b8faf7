"""Random filters over declared attributes, as in queries on a sensor stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.nodes import Expr, Type
from tamis.query.condition import read_condition

Float64s = NDArray[np.float64]

# Every attribute's declared domain.
FIRST, LAST = 0.0, 100.0


def names(dimensions: int) -> list[str]:
    """The attributes."""
    return [f"x{number}" for number in range(dimensions)]


def stream(name: str, dimensions: int) -> str:
    """The `CREATE STREAM` statement of a stream with these attributes."""
    columns = ", ".join(f"{x} DOUBLE CHECK ({x} BETWEEN {FIRST} AND {LAST})" for x in names(dimensions))
    return f"CREATE STREAM {name} (k VARCHAR KEY, ts TIMESTAMP, {columns}, WATERMARK FOR ts AS ts);"


def filter_sql(random: np.random.Generator, dimensions: int, share: float, alias: str = "") -> str:
    """SQL of a random box that contains `share` of uniformly distributed tuples. `alias` is written before
    each attribute.
    """
    return box_sql(corner(random, dimensions, share), width(dimensions, share), alias)


def width(dimensions: int, share: float) -> float:
    """The length of each side of a box that contains `share` of uniformly distributed tuples."""
    return float((LAST - FIRST) * share ** (1 / dimensions))


def corner(random: np.random.Generator, dimensions: int, share: float) -> Float64s:
    """The least value of each attribute in a random box, one for each of `dimensions` attributes."""
    return random.uniform(FIRST, LAST - width(dimensions, share), dimensions)


def box_sql(firsts: Float64s, side: float, alias: str = "") -> str:
    """SQL of the box whose sides begin at `firsts` and have length `side`."""
    return " AND ".join(
        f"{alias}{x} BETWEEN {first:.3f} AND {first + side:.3f}"
        for x, first in zip(names(len(firsts)), firsts, strict=True)
    )


def filters(random: np.random.Generator, count: int, dimensions: int, share: float) -> list[Expr]:
    """Random boxes as in `filter_sql`, as expressions over columns without alias."""
    types = dict.fromkeys(names(dimensions), Type.DOUBLE)
    return [read_condition(filter_sql(random, dimensions, share), types) for _ in range(count)]
