"""Point sets of constraint texts by brute force: the text is evaluated at every point of a grid.

It shares no code with `tamis.constraints`: a text becomes a NumPy expression by regular expressions. Numbers
are exact, since all constants and coordinates are multiplied by `SCALE` and are integers then; that needs
atoms with coefficients 1 and -1. Symbols are the codes of their strings.

A grid is exact for a projection if it is fine and wide enough. Constants are multiples of 1/2 here and the
points that are asked about multiples of 1/2, too. If there is a value for one dropped variable, then there is
one among the multiples of 1/4: the bounds on it are multiples of 1/2, and between two of them lies a multiple
of 1/4. For two dropped variables multiples of 1/6 suffice, since both may lie between the same two bounds, in
either order. Such values needn't be farther from all constants and coordinates than the largest constant
and 1, for each dropped variable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

SCALE = 12
Points = Mapping[str, NDArray[np.int64]]
Mask = NDArray[np.bool_]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)(?:\s*/\s*(?P<divisor>\d+))?|'(?P<symbol>[^']*)'|(?P<word>[A-Za-z]\w*)"
    r"|(?P<sign><=|>=|<>|[<>=()+-]))"
)
_OPERATORS = {"=": "==", "<>": "!="}


def evaluated(text: str, points: Points) -> Mask:
    """Where a text holds, by point."""
    out: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        assert match, text[at:]
        at = match.end()
        if match["number"]:
            value = Fraction(match["number"]) / int(match["divisor"] or 1) * SCALE
            assert value.denominator == 1
            out.append(str(value.numerator))
        elif match["symbol"] is not None:
            out.append(str(code(match["symbol"])))
        elif match["word"] in ("AND", "OR", "NOT"):
            out.append({"AND": ") & (", "OR": ")) | ((", "NOT": "~"}[match["word"]])
        elif match["word"] in ("TRUE", "FALSE"):
            out.append(f"everywhere == {match['word'] == 'TRUE'}")
        elif match["word"]:
            out.append(match["word"])
        else:
            sign = match["sign"]
            out.append({"(": "(((", ")": ")))"}.get(sign, _OPERATORS.get(sign, sign)))
    shape = np.broadcast_shapes(*(column.shape for column in points.values()))
    everywhere = np.ones(shape, dtype=bool)
    found = eval(f"(({' '.join(out)}))", {"everywhere": everywhere, **points})
    return np.broadcast_to(found, shape)


def code(symbol: str) -> int:
    """The number of a symbol of one letter."""
    return ord(symbol)


def axis(low: int, high: int, steps: int) -> NDArray[np.int64]:
    """The multiples of 1/steps from low to high, times `SCALE`."""
    return np.arange(low * SCALE, high * SCALE + 1, SCALE // steps)


def grid(axes: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """The columns of all points with coordinates from the axes; dimension i is axis i."""
    return dict(zip(axes, np.meshgrid(*axes.values(), indexing="ij", sparse=True), strict=True))


def projected(mask: Mask, names: Sequence[str], kept: Sequence[str]) -> Mask:
    """The mask over the kept axes, in their order: true where some point over them is in `mask`."""
    dropped = tuple(index for index, name in enumerate(names) if name not in kept)
    left = [name for name in names if name in kept]
    return np.asarray(mask.any(axis=dropped)).transpose([left.index(name) for name in kept])
