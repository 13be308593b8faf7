"""Times of the tuples of a definition: implied bounds, how long a tuple is needed, and windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tamis.declarations.definitions import Window
from tamis.identity_cache import IdentityCache
from tamis.plan import time_distances
from tamis.plan.model import Definition
from tamis.plan.time_distances import Joined, window_bounds

# Means "no bound". It is far above every sum of real bounds, and a time (within 2^53) plus it fits in int64.
UNBOUNDED = 2**61

Matrix = NDArray[np.int64]

Times = NDArray[np.int64]


def closure(definition: Definition) -> Matrix | None:
    """The greatest t_i - t_j that bounds and window allow, for all inputs i, j (shape (n, n), microseconds).

    `UNBOUNDED` where no bound exists; None if the bounds contradict each other and no tuples ever join. For
    inputs under EXISTS or NOT EXISTS it is `Joined.reach`. The caller must not change the matrix.
    """
    return _CLOSURES.one(definition, partial(_closure, definition))


# Most of thousands of definitions are the same objects in the next plan, and all are in the next batch.
_CLOSURES = IdentityCache[Matrix | None]()


def _closure(definition: Definition) -> Matrix | None:
    names = tuple(source.alias for source in definition.inputs)
    if definition.exists or definition.absences:
        found = joined(definition)
        if found.base.contradictory:
            return None
        most = [found.reach(i, j) for i in names for j in names]
    else:
        upper = time_distances.closure(names, (*definition.bounds, *window_bounds(definition.window, names)))
        if upper.contradictory:
            return None
        most = [upper.upper.get((i, j)) for i in names for j in names]
    found_or_not = [UNBOUNDED if one is None else one for one in most]
    return np.array(found_or_not, dtype=np.int64).reshape(len(names), len(names))


def joined(definition: Definition) -> Joined:
    """The time bounds of a definition, apart for each of its absences; it has no window."""
    return _JOINED.one(definition, partial(_joined, definition))


_JOINED = IdentityCache[Joined]()


def _joined(definition: Definition) -> Joined:
    absent = {alias for absence in definition.absences for alias in absence.aliases}
    names = [source.alias for source in definition.inputs if source.alias not in absent]
    return time_distances.joined(
        names,
        definition.exists,
        definition.bounds,
        [(absence.aliases, absence.bounds) for absence in definition.absences],
    )


def reaches(definition: Definition) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The pairs (j, w) for each input i: a tuple of i at t can join a new tuple of j while j's frontier is at
    most t + w.

    If no pair of a tuple reaches any more, the definition no longer needs the tuple: every future combination
    has a new tuple in some other input, at or above that input's frontier. Single inputs and contradictory
    bounds have no pairs, so none of their tuples need to be stored. An input under EXISTS or NOT EXISTS has a
    pair with itself (`Joined.reach`).
    """
    most = closure(definition)
    if most is None:
        return tuple(() for _ in definition.inputs)
    size = len(definition.inputs)
    hidden = {*definition.exists, *(alias for absence in definition.absences for alias in absence.aliases)}
    itself = [source.alias in hidden for source in definition.inputs]
    return tuple(tuple((j, int(most[j, i])) for j in range(size) if j != i or itself[i]) for i in range(size))


def shared_windows(window: Window, earliest: Times, latest: Times) -> tuple[Times, Times]:
    """Starts of the first and the last window that contain both times. If last < first, no window contains
    both.

    >>> first, last = shared_windows(Window(10, 30), np.array([25]), np.array([31]))
    >>> first.tolist(), last.tolist()
    ([10], [20])
    """
    slide, offset = window.slide, window.offset
    first = ((latest - offset - window.size) // slide + 1) * slide
    return first + offset, (earliest - offset) // slide * slide + offset


def window_rows(window: Window, times: Sequence[Times]) -> tuple[NDArray[np.int64], Times]:
    """One row for each combination and each window that contains all of its tuples: the number of the
    combination, and the start of the window. `times`: those of the combinations' tuples, one array per input.

    >>> which, start = window_rows(Window(10, 30), [np.array([25, 60]), np.array([31, 60])])
    >>> which.tolist(), start.tolist()
    ([0, 0, 1, 1, 1], [10, 20, 40, 50, 60])
    """
    first, last = shared_windows(window, np.min(times, axis=0), np.max(times, axis=0))
    count = np.maximum((last - first) // window.slide + 1, 0)
    which = np.repeat(np.arange(len(first)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, first[which] + place * window.slide


def last_end(window: Window, times: Times) -> Times:
    """The end (not included) of the last window that contains each time."""
    return (times - window.offset) // window.slide * window.slide + window.offset + window.size
