"""Implied time bounds of a definition, and the time for which a tuple is needed for its joins."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tamis.analysis import topology
from tamis.analysis.topology import Joined, window_bounds
from tamis.identity_cache import IdentityCache
from tamis.plan.model import Definition

# Means "no bound". It is far above every sum of real bounds, and a time (within 2^53) plus it fits in int64.
UNBOUNDED = 2**61

Matrix = NDArray[np.int64]


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
        upper = topology.closure(names, (*definition.bounds, *window_bounds(definition.window, names)))
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
    return topology.joined(
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
