"""Temporal join of n streams in columns: finds every combination of tuples with at least one new tuple.

The inputs take turns. In the turn of an input, each of its new tuples starts combinations. Inputs that had
their turn take part with their old tuples only, and the others with all tuples. So each combination with a
new tuple arises exactly once.

A combination is extended by one input after the other. Rows are sorted by (key, time), so the partners of a
row are one range, which is found by binary search. All ranges of a block are expanded at once. The ranges are
computed from the closure of the time bounds and from the windows that the chosen tuples share, so neither has
to be checked afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import WINDOW_END, WINDOW_START, Window
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Call, Expr, Type, conjunction
from tamis.expressions.vectors import Mask, Vector
from tamis.identity_cache import IdentityCache
from tamis.kernels import njit
from tamis.operators.time_join.exact_threshold import ExactCheck
from tamis.operators.time_join.time_bounds import UNBOUNDED, Matrix, closure, shared_windows
from tamis.plan.model import Absence, Definition, Input

Ints = NDArray[np.int64]

Rows = NDArray[np.int64]

# Combinations that are looked at in one go. At 65,536 the index arrays of a block stay in a core's cache, and
# a condition over a dozen columns takes some 10 MB.
BLOCK = 65_536


@njit(cache=True)
def windows(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    keys: Ints, times: Ints, probe: Ints, lo: Ints, hi: Ints
):
    """The half-open range (start, stop) of rows with the key and a time in [lo, hi], for each probe."""
    size = len(keys)
    start = np.empty(len(probe), np.int64)
    stop = np.empty(len(probe), np.int64)
    for row in range(len(probe)):
        key = probe[row]
        a, b = 0, size
        while a < b:
            middle = (a + b) >> 1
            if keys[middle] < key or (keys[middle] == key and times[middle] < lo[row]):
                a = middle + 1
            else:
                b = middle
        start[row] = a
        b = size
        while a < b:
            middle = (a + b) >> 1
            if keys[middle] < key or (keys[middle] == key and times[middle] <= hi[row]):
                a = middle + 1
            else:
                b = middle
        stop[row] = a
    return start, stop


@njit(cache=True)
def expand(start: Ints, stop: Ints):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """All pairs (probe, row) of the ranges: two arrays as long as the ranges together."""
    total = 0
    for row in range(len(start)):
        total += stop[row] - start[row]
    left = np.empty(total, np.int64)
    right = np.empty(total, np.int64)
    at = 0
    for row in range(len(start)):
        for match in range(start[row], stop[row]):
            left[at] = row
            right[at] = match
            at += 1
    return left, right


@dataclass(frozen=True)
class Tuples:
    """The tuples of one topic as columns of equal length, sorted by (key, time).

    `keys` are the codes of the partition key, the same for all topics of a join; a tuple with NULL in its key
    has a negative code. `times` are microseconds, at most 2^53 in size; `versions` the plan versions under
    which the tuples were sent. `new` marks the tuples that no earlier call has seen.
    """

    times: NDArray[np.int64]
    keys: NDArray[np.int64]
    versions: NDArray[np.int64]
    new: NDArray[np.bool_]
    columns: Mapping[str, Vector]

    def __len__(self) -> int:
        return len(self.times)


def combinations(
    definition: Definition,
    tuples: Mapping[str, Tuples],
    passed: Sequence[Rows] | None = None,
    block: int = BLOCK,
    *,
    until: int | None = None,
) -> Iterator[tuple[Rows, ...]]:
    """The combinations with at least one new tuple for which `definition` raises an alarm, each once.

    `tuples` are by alias (two aliases of one topic may share one object). `passed` has the row numbers of the
    tuples that pass each input's filter, ascending, if they are known; tuples with other keys than those of
    new tuples may be left out. Yields blocks of row numbers, one array for each input in the definition's
    order. The condition must be true as computed, or possibly true in exact arithmetic (see
    `exact_threshold`).

    A combination counts if the least version of its tuples is at least the definition's version. If another
    definition has replaced this one, the least version must also be below `until`, the version of the other
    (protocol.md, rule 8). Tuples with NULL keys count only in definitions with a single input. A combination
    in several windows of the definition is returned once (`window_rows` has one row for each window).
    """
    most = closure(definition)
    if most is None:
        return
    inputs = [tuples[source.alias] for source in definition.inputs]
    if passed is None:
        pairs = zip(definition.inputs, inputs, strict=True)
        passed = [np.flatnonzero(passing(source, mine)) for source, mine in pairs]
    rows_of = [_may_join(definition, mine, rows) for rows, mine in zip(passed, inputs, strict=True)]
    if not all(map(len, rows_of)):
        return
    if until is not None and not any(
        (mine.versions[picked] < until).any() for mine, picked in zip(inputs, rows_of, strict=True)
    ):
        return
    new = [mine.new[picked] for mine, picked in zip(inputs, rows_of, strict=True)]
    every = [SortedRows.of(mine, picked) for mine, picked in zip(inputs, rows_of, strict=True)]
    old = [SortedRows.of(mine, p[~n]) for mine, p, n in zip(inputs, rows_of, new, strict=True)]
    check = cached_check(definition)
    # Each combination is found once, by its first input with a new tuple: those before it take old tuples
    # only.
    for i in range(len(inputs)):
        if not new[i].any():
            continue
        chain = _JoinChain(inputs, old[:i] + every[i:], most, definition.window, block)
        for chosen in chain.extend({i: rows_of[i][new[i]]}, _join_order(i, most)):
            rows = tuple(chosen[j] for j in range(len(inputs)))
            if until is not None:
                rows = _below_version(inputs, rows, until)
            if check is not None and len(rows[0]):
                kept = check.met(JoinedColumns(definition.inputs, tuples, rows), len(rows[0]))
                rows = tuple(r[kept] for r in rows)
            if len(rows[0]):
                yield rows


def _below_version(inputs: Sequence[Tuples], rows: tuple[Rows, ...], until: int) -> tuple[Rows, ...]:
    """The combinations whose least version is below `until`."""
    versions = [mine.versions[picked] for mine, picked in zip(inputs, rows, strict=True)]
    kept = np.flatnonzero(np.min(versions, axis=0) < until)
    return tuple(picked[kept] for picked in rows)


class JoinedColumns(Mapping[tuple[str, str], Vector]):
    """Columns by alias and name, taken at the rows of combinations when they are first read.

    If there is a window, its columns are included; they are the same for all inputs. `starts`: the start of
    the window for each combination.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        tuples: Mapping[str, Tuples],
        rows: Sequence[Rows],
        window: Window | None = None,
        starts: Rows | None = None,
    ) -> None:
        self._tuples = tuples
        self._rows = {source.alias: picked for source, picked in zip(inputs, rows, strict=True)}
        self._taken: dict[tuple[str, str], Vector] = {}
        if window is not None and starts is not None:
            for alias in self._rows:
                self._taken[alias, WINDOW_START] = Vector(starts, None)
                self._taken[alias, WINDOW_END] = Vector(starts + window.size, None)

    def __getitem__(self, name: tuple[str, str]) -> Vector:
        if name not in self._taken:
            alias, column = name
            self._taken[name] = self._tuples[alias].columns[column].take(self._rows[alias])
        return self._taken[name]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((alias, name) for alias in self._rows for name in self._tuples[alias].columns)

    def __len__(self) -> int:
        return sum(len(self._tuples[alias].columns) for alias in self._rows)


def passing(source: Input, tuples: Tuples) -> Mask:
    """The mask of the tuples that pass the filter of `source`."""
    rows = np.arange(len(tuples))
    if source.filter is None:
        return np.ones(len(rows), np.bool_)
    return holds(source.filter, JoinedColumns((source,), {source.alias: tuples}, (rows,)), len(rows))


def _may_join(definition: Definition, tuples: Tuples, rows: Rows) -> Rows:
    """Those of `rows` with at least the definition's version and, if there are several inputs, with a key."""
    mask = tuples.versions[rows] >= definition.version
    if len(definition.inputs) > 1:
        mask &= tuples.keys[rows] >= 0
    return rows[mask]


@dataclass(frozen=True)
class SortedRows:
    """Rows of one input that may take part, in the order of (key, time), with their keys and times."""

    rows: Rows
    keys: NDArray[np.int64]
    times: NDArray[np.int64]

    @staticmethod
    def of(tuples: Tuples, rows: Rows) -> SortedRows:
        """The tuples with these row numbers, which are ascending."""
        return SortedRows(rows, tuples.keys[rows], tuples.times[rows])


def cached_check(definition: Definition) -> ExactCheck | None:
    """The residual condition of combinations whose keys and times match, always the same object."""
    return _CHECKS.one(definition, partial(residual_check, definition))


_CHECKS = IdentityCache[ExactCheck | None]()


def residual_check(definition: Definition | Absence) -> ExactCheck | None:
    """The condition of combinations whose keys and times match; None if there is none."""
    equal: list[Expr] = [Call("=", pair, Type.BOOLEAN) for pair in definition.equalities]
    condition = conjunction((*equal, *((definition.condition,) if definition.condition is not None else ())))
    return None if condition is None else ExactCheck(condition, definition.margins)


def _join_order(first: int, most: Matrix) -> list[int]:
    """The order in which the other inputs are joined: the next one is always the input with the narrowest
    time window to those chosen so far.
    """
    chosen, left = [first], [j for j in range(len(most)) if j != first]
    while left:
        width = {j: min(int(most[k, j]) + int(most[j, k]) for k in chosen) for j in left}
        best = min(left, key=lambda j: (width[j], j))
        chosen.append(best)
        left.remove(best)
    return chosen[1:]


@dataclass(frozen=True)
class _JoinChain:
    """Extends combinations by one input after the other, with about `block` of them at each step."""

    tuples: Sequence[Tuples]
    sides: Sequence[SortedRows]
    most: Matrix
    window: Window | None
    block: int

    def extend(self, chosen: dict[int, Rows], order: Sequence[int]) -> Iterator[dict[int, Rows]]:
        """Combinations of `chosen` (rows by input) with the inputs of `order`."""
        if not order:
            yield chosen
            return
        j, side = order[0], self.sides[order[0]]
        first = next(iter(chosen))
        keys = self.tuples[first].keys[chosen[first]]
        start, stop = windows(side.keys, side.times, keys, *self._window(chosen, j))
        for which, begin, end in blocks(start, stop, self.block):
            left, right = expand(begin, end)
            longer = {k: picked[which][left] for k, picked in chosen.items()}
            longer[j] = side.rows[right]
            yield from self.extend(longer, order[1:])

    def _window(self, chosen: Mapping[int, Rows], j: int) -> tuple[Rows, Rows]:
        """The least and the greatest time of input `j` for each combination."""
        size = len(next(iter(chosen.values())))
        lo = np.full(size, -UNBOUNDED, np.int64)
        hi = np.full(size, UNBOUNDED, np.int64)
        for k, picked in chosen.items():
            times = self.tuples[k].times[picked]
            if self.most[k, j] < UNBOUNDED:
                np.maximum(lo, times - self.most[k, j], out=lo)
            if self.most[j, k] < UNBOUNDED:
                np.minimum(hi, times + self.most[j, k], out=hi)
        if self.window is not None:
            stacked = [self.tuples[k].times[picked] for k, picked in chosen.items()]
            first, last = shared_windows(self.window, np.min(stacked, axis=0), np.max(stacked, axis=0))
            np.maximum(lo, first, out=lo)
            np.minimum(hi, last + self.window.size - 1, out=hi)
        return lo, hi


def blocks(start: Rows, stop: Rows, block: int) -> Iterator[tuple[Rows, Rows, Rows]]:
    """Cut ranges into groups of about `block` combinations: (which probes, their starts, their stops)."""
    which = np.flatnonzero(stop > start)
    start, stop = start[which], stop[which]
    ends = np.cumsum(stop - start)
    at = 0
    while at < len(which):
        done = int(ends[at - 1]) if at else 0
        until = int(np.searchsorted(ends, done + block, side="right"))
        if until > at:
            yield which[at:until], start[at:until], stop[at:until]
            at = until
            continue
        for begin in range(int(start[at]), int(stop[at]), block):  # a single probe has more than a block
            end = min(begin + block, int(stop[at]))
            yield which[at : at + 1], np.array([begin]), np.array([end])
        at += 1
