"""The windows that match a pattern of a watch, or may match it, by direct computation of every window.

The least distance of a pattern to a window is computed in long doubles or in fractions. A window S matches a
pattern Q by the least sqrt(mean((Q - (a S + b))²)) over scales a > 0 and shifts b in their ranges. This is a
convex function of (a, b). So its least value is where its gradient is 0, on an edge of the rectangle, or in a
corner. All of these are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.watches import Watch
from tamis.expressions.vectors import Vector
from tamis.verification.watched_series import Floats, Int64s, Series

# Distances this close, as a share of the greater of epsilon and the pattern's deviation, are equal up to
# rounding. The same goes for scales and shifts.
NEAR = 1e-9
# The share of the greater of epsilon and the pattern's deviation by which a distance may exceed epsilon.
TOLERANCE = 1e-12
# Greater scales and shifts are NULL.
GREATEST_FIT = 1e100
# The filter computes in doubles; its results are closer to the exact ones than this.
_FILTER = 1e-6
# A window with a smaller variance counts as constant.
LEAST_VARIANCE = 1e-300
_EPSILON = np.finfo(np.longdouble).eps

Mask = NDArray[np.bool_]
LongDoubles = NDArray[np.longdouble]
Limits = tuple[float, float]


class WindowMatches(NamedTuple):
    """Windows that match a pattern or may match it, as arrays of one length.

    `place`: of the pattern in the watch; `row`: of the reading that ends the window. `distance` is at most
    epsilon, and wrong by less than `near`. `sure`: the window matches whatever is rounded; `holds`: it
    matches as computed. `alike`: the columns of Tamis have this pattern and, up to rounding, the same values.
    """

    place: Int64s
    row: Int64s
    distance: Floats
    scale: Floats
    shift: Floats
    near: Floats
    sure: Mask
    holds: Mask
    alike: Mask


@dataclass(frozen=True)
class Computed:
    """The columns of a watch as Tamis computed them: the place of the pattern (-1 for NULL), and distance,
    scale and shift with NaN for NULL; arrays of shape (readings,).
    """

    place: Int64s
    distance: Floats
    scale: Floats
    shift: Floats

    @staticmethod
    def of(watch: Watch, vectors: Sequence[Vector]) -> Computed:
        """Read the four columns, in the order of `Watch.columns`."""
        distance, scale, shift, names = vectors
        places = {pattern.name: place for place, pattern in enumerate(watch.patterns)}
        place = np.array([-1 if name is None else places[str(name)] for name in names.to_list()], np.int64)
        return Computed(place, *(_with_nan(vector) for vector in (distance, scale, shift)))


def window_matches(watch: Watch, series: Series, ours: Computed) -> WindowMatches:
    """All of them over the series of the watch's value. Of equal patterns only the first is compared."""
    first: dict[tuple[tuple[float, ...], int], int] = {}
    for place, pattern in enumerate(watch.patterns):
        first.setdefault((pattern.values, pattern.max_gap), place)
    groups: dict[tuple[int, int], list[int]] = {}
    for place in first.values():
        pattern = watch.patterns[place]
        groups.setdefault((len(pattern.values), pattern.max_gap), []).append(place)
    parts = [_none()]
    for (length, max_gap), places in groups.items():
        shapes = [_Shape.of(watch, place) for place in places]
        for rows, windows in series.windows(length, max_gap, len(places)):
            for shape, close in zip(shapes, _close(shapes, windows).T, strict=True):
                if close.any():
                    parts.append(shape.matches(rows[close], windows[close], ours))
    return WindowMatches._make(map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class _Shape:
    """A pattern with the limits of its watch. `size`: the greater of epsilon and the pattern's deviation."""

    place: int
    values: Floats
    epsilon: float
    scale: Limits
    shift: Limits
    size: float

    @staticmethod
    def of(watch: Watch, place: int) -> _Shape:
        values = np.array(watch.patterns[place].values)
        size = max(watch.epsilon, float(values.std()))
        return _Shape(
            place, values, watch.epsilon, limits_of(watch.scale, 0.0), limits_of(watch.shift, -np.inf), size
        )

    def matches(self, rows: Int64s, windows: Floats, ours: Computed) -> WindowMatches:
        """The windows among these that match, or may match."""
        pairs = Pairs(self.values, windows)
        fits = least_fits(pairs, self.scale, self.shift)
        near, limit = NEAR * self.size, self.epsilon + TOLERANCE * self.size
        distance, error = fits.distance.astype(np.float64), fits.error.astype(np.float64)
        for at in np.flatnonzero((np.abs(distance - limit) <= near + error) & (error > near / 10)):
            distance[at] = exact_distance(self.values.tolist(), windows[at].tolist(), self.scale, self.shift)
        shown = np.minimum(distance, self.epsilon)
        alike = (ours.place[rows] == self.place) & (np.abs(ours.distance[rows] - shown) <= near + error)
        alike &= self._same_fit(pairs, fits, ours.scale[rows], ours.shift[rows], distance + near + error)
        found = WindowMatches(
            np.full(len(rows), self.place),
            rows,
            shown,
            fits.scale.astype(np.float64),
            fits.shift.astype(np.float64),
            near + error,
            # Windows that are exactly similar match also with an epsilon of 0.
            distance <= max(limit - near, TOLERANCE / 10 * self.size),
            distance <= limit,
            alike,
        )
        possible = distance <= limit + near
        return WindowMatches._make(column[possible] for column in found)

    def _same_fit(self, pairs: Pairs, fits: Fits, a: Floats, b: Floats, most: Floats) -> Mask:
        """True where a scale and shift that Tamis computed are those of `fits`, up to rounding, and have a
        distance of at most `most`. The scale of a constant window may be any.
        """
        with np.errstate(all="ignore"):
            mean = np.abs(pairs.s_mean)
            scale_error = np.abs(fits.scale) + self.values.std() / np.sqrt(pairs.variance)
            shift_error = np.where(mean > 0, scale_error * mean, 0) + np.abs(fits.shift) + abs(pairs.q_mean)
            same = _alike(a, fits.scale, NEAR * scale_error) & _alike(b, fits.shift, NEAR * shift_error)
            known = np.isfinite(a) & np.isfinite(b)
            inside = (a > 0) & (a >= self.scale[0]) & (a <= self.scale[1])
            inside &= (b >= self.shift[0]) & (b <= self.shift[1])
            # The best scale may lie between two doubles.
            between = 1e-15 * (np.abs(a) * (mean + np.abs(pairs.s).max(axis=1)) + np.abs(b))
            given = np.where(known, a, 0).astype(np.longdouble)
            offset = pairs.offset(given, np.where(known, b, 0))
            reached = pairs.distance(given, offset) <= most + between
        found: Mask = same & (~known | (reached & inside))
        return found


def _alike(given: Floats, expected: LongDoubles, near: LongDoubles) -> Mask:
    """True where values are equal up to rounding; NaN stands for a magnitude that is too great."""
    great = np.isnan(given) & (np.abs(expected) > GREATEST_FIT * (1 - NEAR))
    found: Mask = great | (np.abs(given) <= GREATEST_FIT) & (np.abs(given - expected) <= near)
    return found


def _close(shapes: Sequence[_Shape], windows: Floats) -> Mask:
    """The pairs that may match, of shape (windows, patterns), by an expansion of the square in doubles.

    All shapes have one length and the same limits.
    """
    q = np.array([shape.values for shape in shapes])
    q_mean = q.mean(axis=1)
    q = q - q_mean[:, None]
    limit = np.array([shape.epsilon + _FILTER * shape.size for shape in shapes])
    scale, shift = shapes[0].scale, shapes[0].shift
    s = windows - windows[:, -1:]
    means = s.mean(axis=1)
    s -= means[:, None]
    mean, variance = (means + windows[:, -1])[:, None], (s * s).mean(axis=1)[:, None]
    cross = s @ q.T / q.shape[1]
    rest = (q * q).mean(axis=1)
    found = np.zeros(cross.shape, np.bool_)
    with np.errstate(all="ignore"):
        tried = [cross / variance, *(np.full(cross.shape, end) for end in (1.0, *scale))]
        tried += [(cross + mean * (q_mean - end)) / (variance + mean * mean) for end in shift]
        for a in tried:
            best = np.clip(np.where(np.isfinite(a), a, 1.0), *scale)
            b = np.clip(q_mean - best * mean, *shift)
            square = rest - 2 * best * cross + best * best * variance + (best * mean + b - q_mean) ** 2
            most = limit + 1e-14 * (np.abs(best * mean) + np.abs(b) + np.abs(q_mean))
            found |= ~(square > most * most)
    return found


def _with_nan(vector: Vector) -> Floats:
    null = np.zeros(len(vector), np.bool_) if vector.null is None else vector.null
    return np.where(null, np.nan, vector.data)


def _none() -> WindowMatches:
    whole, doubles, mask = np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
    return WindowMatches(whole, whole, doubles, doubles, doubles, doubles, mask, mask, mask)


class Fits(NamedTuple):
    """Least distances, and the scales and shifts where they are; arrays of shape (windows,).

    `error` bounds the rounding error of the distance.
    """

    distance: LongDoubles
    scale: LongDoubles
    shift: LongDoubles
    error: LongDoubles


def limits_of(ends: tuple[float | None, float | None] | None, least: float) -> Limits:
    """A range with numbers for the ends that are left open."""
    low, high = ends or (None, None)
    return max(least, -inf if low is None else low), inf if high is None else high


class Pairs:
    """A pattern of shape (n,) with each of the windows of shape (windows, n), in long doubles."""

    def __init__(self, pattern: Floats, windows: Floats) -> None:
        shape = pattern.astype(np.longdouble) - pattern[0]
        self.q = shape - shape.mean()
        self.q_mean = shape.mean() + pattern[0]
        # A large offset cancels before anything is summed.
        rest: LongDoubles = windows.astype(np.longdouble) - windows[:, -1:]
        means: LongDoubles = rest.mean(axis=1)
        self.s = rest - means[:, None]
        self.s_mean = means + windows[:, -1]
        variance: LongDoubles = (self.s * self.s).mean(axis=1)
        self.s[variance < LEAST_VARIANCE] = 0
        self.variance: LongDoubles = np.where(variance < LEAST_VARIANCE, 0, variance)

    def distance(self, a: LongDoubles, offset: LongDoubles) -> LongDoubles:
        """The distance for a scale of each window, and the mean of the mapped window less the pattern's."""
        residual = self.q - a[:, None] * self.s
        found: LongDoubles = np.sqrt((residual * residual).mean(axis=1) + offset * offset)
        return found

    def offset(self, a: LongDoubles, b: LongDoubles) -> LongDoubles:
        """The mean of a window, mapped by scale and shift, less the mean of the pattern."""
        found: LongDoubles = a * self.s_mean + b - self.q_mean
        return found


def least_fits(pairs: Pairs, scale: Limits, shift: Limits) -> Fits:
    """The least distance of each window; inf if it is only approached as the scale falls to 0."""
    cross: LongDoubles = (pairs.s * pairs.q).mean(axis=1)
    means, count = pairs.s_mean, len(pairs.s)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        tried = [cross / pairs.variance, np.ones(count, np.longdouble)]
        tried += [
            (cross + means * (pairs.q_mean - end)) / (pairs.variance + means * means)
            for end in shift
            if isfinite(end)
        ]
        tried += [np.full(count, end, np.longdouble) for end in scale if isfinite(end)]
        best = np.full((3, count), np.inf, np.longdouble)
        for column in tried:
            a = np.clip(np.where(np.isfinite(column), column, 1), *scale)
            wanted = pairs.q_mean - a * means
            b = np.clip(wanted, *shift)
            found = np.where(a > 0, pairs.distance(a, b - wanted), np.inf)
            best = np.where(found < best[0], np.array([found, a, b]), best)
        distance, a, b = best
        size = np.abs(pairs.q).max() + np.abs(a) * np.abs(pairs.s).max(axis=1)
        # Only a shift at an end of its range leaves an offset, whose parts are rounded.
        at_end = (b == shift[0]) | (b == shift[1])
        size += np.where(at_end, np.abs(a * means) + np.abs(b) + abs(pairs.q_mean), 0)
        error = np.where(np.isfinite(distance), 64 * _EPSILON * size, 0)
    return Fits(distance, a, b, error)


def exact_distance(pattern: Sequence[float], window: Sequence[float], scale: Limits, shift: Limits) -> float:
    """The least distance of one window from exact arithmetic, rounded once; inf as in `least_fits`."""
    q, s = [Fraction(v) for v in pattern], [Fraction(v) for v in window]
    n = len(q)
    q_mean, s_mean = _sum(q) / n, _sum(s) / n
    variance = _sum((y - s_mean) ** 2 for y in s) / n
    cross = _sum((x - q_mean) * (y - s_mean) for x, y in zip(q, s, strict=True)) / n
    if variance < LEAST_VARIANCE:
        variance = cross = Fraction(0)
    rest = _sum((x - q_mean) ** 2 for x in q) / n
    squares = variance + s_mean**2
    tried = [Fraction(1), *(Fraction(end) for end in scale if isfinite(end))]
    tried += [cross / variance] if variance else []
    tried += [
        (cross + s_mean * (q_mean - Fraction(end))) / squares for end in shift if isfinite(end) and squares
    ]
    best: Fraction | None = None
    for a in (_clip(one, scale) for one in tried):
        offset = a * s_mean + _clip(q_mean - a * s_mean, shift) - q_mean
        found = rest - 2 * a * cross + a * a * variance + offset**2
        if a > 0 and (best is None or found < best):
            best = found
    return inf if best is None else sqrt(best)


def _sum(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def _clip(value: Fraction, ends: Limits) -> Fraction:
    if value < ends[0]:
        return Fraction(ends[0])
    return Fraction(ends[1]) if value > ends[1] else value
