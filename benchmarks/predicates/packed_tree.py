"""Packed R-tree over boxes that are known in advance, compiled (kuntschke-2006, section 4.2).

This is the evaluation of the paper at its best. Nodes have up to ten entries, as in the paper. They are
packed by halving at medians, so that they overlap little.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CAPACITY = 10


class PackedTree:
    """Closed boxes of shape (boxes, d); see `benchmarks.predicates.evaluators.Paper` for the variants."""

    def __init__(
        self, lower: Floats, upper: Floats, short_circuit: bool, levels: int | None, dimensions: int | None
    ) -> None:
        self._short_circuit = short_circuit
        # The dimensions whose ranges are narrowest on the whole tell most items apart.
        widths = (upper - lower).mean(axis=0) if len(lower) else np.zeros(lower.shape[1])
        self._dimensions = np.argsort(widths, kind="stable")[:dimensions]
        order = _packed(lower[:, self._dimensions], upper[:, self._dimensions], np.arange(len(lower)))
        self._lower, self._upper = lower[order], upper[order]
        tops = [(self._lower[:, self._dimensions], self._upper[:, self._dimensions])]
        while len(tops[-1][0]) > 1:
            low, high = tops[-1]
            starts = np.arange(0, len(low), CAPACITY)
            tops.append((np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)))
        # Leaves first: the entries of node i of a level are the ten of the level below from 10 i on.
        self._begins = np.cumsum([0, *(len(low) for low, _ in tops)])
        self._lows = np.concatenate([low for low, _ in tops])
        self._highs = np.concatenate([high for _, high in tops])
        self._stop = 0 if levels is None else max(len(tops) - levels, 0)

    def any(self, points: Floats) -> Bools:
        """Which points, of shape (n, all dimensions), some box holds."""
        out = np.zeros(len(points), np.bool_)
        if len(self._lower):
            _any(
                points,
                self._lower,
                self._upper,
                self._dimensions,
                self._lows,
                self._highs,
                self._begins,
                self._stop,
                self._short_circuit,
                out,
            )
        return out


def _packed(lower: Floats, upper: Floats, rows: Int64s) -> Int64s:
    """Rows in the order of their leaves: halved at whole leaves along the widest dimension."""
    if len(rows) <= CAPACITY:
        return rows
    middles = lower[rows] + upper[rows]
    widest = int(np.ptp(middles, axis=0).argmax())
    rows = rows[np.argsort(middles[:, widest], kind="stable")]
    size = CAPACITY
    while size * CAPACITY < len(rows):
        size *= CAPACITY
    half = max(size, (len(rows) // 2 + size - 1) // size * size)
    return np.concatenate([_packed(lower, upper, rows[:half]), _packed(lower, upper, rows[half:])])


@numba.njit(cache=True, nogil=True)
def _any(
    points: Floats,
    lower: Floats,
    upper: Floats,
    dimensions: Int64s,
    lows: Floats,
    highs: Floats,
    begins: Int64s,
    stop: int,
    short_circuit: bool,
    out: Bools,
) -> None:
    top = len(begins) - 2
    stack = np.empty((CAPACITY * (top + 2), 2), np.int64)
    for i in range(len(points)):
        n, hit = 1, False
        stack[0, 0], stack[0, 1] = top, 0
        while n:
            n -= 1
            level, node = stack[n, 0], stack[n, 1]
            at = begins[level] + node
            inside = True
            for k in range(len(dimensions)):
                value = points[i, dimensions[k]]
                if value < lows[at, k] or value > highs[at, k]:
                    inside = False
                    break
            if not inside:
                continue
            if level in (0, stop):
                if level == 0:
                    for d in range(points.shape[1]):
                        if points[i, d] < lower[node, d] or points[i, d] > upper[node, d]:
                            inside = False
                            break
                hit = hit or inside
                if hit and short_circuit:
                    break
                continue
            below = begins[level] - begins[level - 1]
            for entry in range(node * CAPACITY, min((node + 1) * CAPACITY, below)):
                stack[n, 0], stack[n, 1] = level - 1, entry
                n += 1
        out[i] = hit
