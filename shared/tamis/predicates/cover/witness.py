"""Witness that a box is not covered: a tuple in the box and in no other, found by random search.

Conditions such as `a < b + 0.1` contain rounded sums of DOUBLEs, and those such as `a + b > 3` linear forms.
For them, `zones` can prove that a box is covered, but not that it isn't covered. A witness proves this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.predicates.boxes import Box
from tamis.predicates.cover.splitting import compress
from tamis.predicates.differences import ComputedDimension, Difference, Form
from tamis.predicates.linear_forms import LinearForm
from tamis.predicates.ranges import ANYTHING, HIGH, LOW, NULL, Cut, Range

Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]  # of float64 or int64

POINTS, ROUNDS = 4096, 24
# Integers are only tried where no difference overflows. Sums of linear forms may.
FAR = 2**61


def outside(box: Box, others: Sequence[Box], numeric: frozenset[str]) -> dict[str, float | int] | None:
    """A tuple that satisfies `box` and none of `others`, as the values of `numeric`, the compared attributes
    that aren't NULL.

    None if none was found. The same tuples are tried every time.
    """
    with np.errstate(all="ignore"):  # sums may overflow, and what follows the greatest DOUBLE is infinite
        return _Search((box, *others), numeric).run()


class _Search:
    """Points as columns: values of compared attributes, numbers of cuts of all others."""

    def __init__(self, boxes: Sequence[Box], numeric: frozenset[str]) -> None:
        self._boxes = boxes
        made = {name for box in boxes for name in box if isinstance(name, ComputedDimension)}
        self._made = sorted(name for name in made if numeric.issuperset(name.attributes))
        self._kinds: dict[str, Type] = {}
        for name in self._made:
            if isinstance(name, LinearForm):
                self._kinds |= {column.name: column.type for column in name.coefficients}
            elif isinstance(name, Difference):
                self._kinds |= dict.fromkeys(name.attributes, name.kind)
        self._cuts = {name: sorted({*cuts, *ANYTHING}) for name, cuts in compress(boxes).cuts.items()}
        self._r = np.random.default_rng(1)
        self._points = {
            name: self._first(name)
            for name in sorted({*self._cuts, *self._kinds})
            if not isinstance(name, ComputedDimension)
        }

    def run(self) -> dict[str, float | int] | None:
        """Change attributes step by step until a point is outside of the others."""
        for _ in range(ROUNDS):
            self._clip()
            left = self._holds(self._boxes[0])
            for other in self._boxes[1:]:
                left &= ~self._holds(other)
            if left.any():
                first = int(left.argmax())
                return {name: self._points[name][first].item() for name in self._kinds}
            self._step()
        return None

    def _first(self, name: str) -> Column:
        """Starting values: ends, their neighbours, offsets and numbers of all sizes."""
        cuts = self._cuts.get(name, [])
        kind = self._kinds.get(name)
        if kind is None:
            return self._r.integers(0, max(len(cuts) - 1, 1), POINTS)
        values = [cut[1] for cut in cuts if len(cut) == 2]
        if kind is Type.DOUBLE:
            offsets = (made.offset for made in self._made if isinstance(made, Difference))
            pool = np.array([0.0, *values, *offsets])
            near = self._r.choice([-np.inf, 0.0, np.inf], POINTS)
            ends = np.nextafter(self._r.choice(pool, POINTS), np.where(near == 0, 0.0, near))
            sizes = 10.0 ** self._r.uniform(-3, 18, POINTS) * self._r.choice([-1.0, 1.0], POINTS)
            doubles: Column = np.where(self._r.random(POINTS) < 0.5, ends, sizes)
            return doubles
        subtracted = any(isinstance(made, Difference) and name in made.attributes for made in self._made)
        ends = (0, *values) if subtracted else (0, *values, -2 * FAR, 2 * FAR)
        far = FAR if subtracted else 2 * FAR
        pool = np.array([min(max(int(value), -far), far) for value in ends], np.int64)
        whole: Column = self._r.choice(pool, POINTS) + self._r.integers(-3, 4, POINTS)
        return whole

    def _step(self) -> None:
        """In half of the points, one attribute gets the value at which a comparison with another one changes,
        or nearly.
        """
        made = self._made[self._r.integers(len(self._made))]
        ends = [cut[1] for cut in self._cuts[made] if len(cut) == 2]
        end = float(self._r.choice(ends)) if ends else 0.0
        name, new = self._at_form(made, end) if isinstance(made, LinearForm) else self._at_offset(made, end)
        if self._kinds[name] is Type.DOUBLE:
            for _ in range(2):
                new = np.nextafter(new, self._r.choice([-np.inf, np.inf], POINTS))
        else:
            new = np.clip(new, -FAR, FAR).astype(np.int64) + self._r.integers(-2, 3, POINTS)
        self._points[name] = np.where(self._r.random(POINTS) < 0.5, self._points[name], new)

    def _at_offset(self, made: ComputedDimension, end: float) -> tuple[str, Column]:
        """Values of one side of a difference at which it is the offset, or the end of a range."""
        assert isinstance(made, Difference)
        left, right = self._points[made.left], self._points[made.right]
        offset = end if made.form is Form.ROUNDED else made.offset
        return (made.left, right + offset) if self._r.random() < 0.5 else (made.right, left - offset)

    def _at_form(self, form: LinearForm, end: float) -> tuple[str, Column]:
        """Values of one attribute at which a linear form is nearly the end of a range."""
        columns = sorted(form.coefficients, key=lambda column: column.name)
        column = columns[self._r.integers(len(columns))]
        away = end - self._values(form)
        return column.name, self._points[column.name] + away / form.coefficients[column]

    def _values(self, form: LinearForm) -> Column:
        """The values of a linear form; NaN for NULL."""
        points = {("", c.name): Vector(self._points[c.name]) for c in form.coefficients}
        found = evaluate(form.expr, points, POINTS)
        return found.data if found.null is None else np.where(found.null, np.nan, found.data)

    def _clip(self) -> None:
        """Move the points into the ranges of the first box, as far as possible."""
        for name, (lower, upper) in self._boxes[0].items():
            if name in self._kinds:
                column = self._points[name]
                if len(lower) == 2:
                    column = np.maximum(column, lower[1])
                if len(upper) == 2:
                    last = (
                        np.nextafter(upper[1], -np.inf) if self._kinds[name] is Type.DOUBLE else upper[1] - 1
                    )
                    column = np.minimum(column, last)
                self._points[name] = column

    def _holds(self, box: Box) -> Bools:
        holds = np.ones(POINTS, np.bool_)
        for name, found in box.items():
            if isinstance(name, ComputedDimension) and name not in self._made:
                return np.zeros(POINTS, np.bool_)  # one of its attributes is NULL
            if isinstance(name, LinearForm):
                holds &= _in_range(self._values(name), found)
            elif isinstance(name, Difference):
                left, right = self._points[name.left], self._points[name.right]
                if name.form is Form.ORDER:
                    holds &= _in_range(_order(left, right + name.offset), found)
                else:
                    holds &= _in_range(left - right, found)
            elif name in self._kinds:
                holds &= _in_range(self._points[name], found) & (found[1] != LOW)
            else:
                numbers = {cut: at for at, cut in enumerate(self._cuts[name])}
                at = self._points[name]
                holds &= (at >= numbers[found[0]]) & (at < numbers[found[1]])
        for name, kind in self._kinds.items():
            if kind is Type.DOUBLE:
                holds &= np.isfinite(self._points[name])
        return holds


def _order(left: Column, right: Column) -> Column:
    return np.where(np.isfinite(right), (left > right).astype(np.int64) - (left < right), np.nan)


def _in_range(values: Column, found: Range) -> Bools:
    """For each value, True if it is in the range. A value that isn't finite is NULL, and in no range."""
    lower, upper = found
    holds: Bools = np.isfinite(values)
    if lower not in (NULL, LOW):
        holds &= values >= _end(lower)
    if upper not in (LOW, HIGH):
        holds &= values < _end(upper)
    return holds


def _end(cut: Cut) -> float | int:
    value: float | int = cut[1]
    return value
