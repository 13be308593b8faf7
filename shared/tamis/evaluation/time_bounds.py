"""What a definition's time bounds imply: the tightest bound between any two inputs, and how long a tuple is
needed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from tamis.planning import topology
from tamis.planning.plan import Definition
from tamis.planning.remembered import MOST, Remembered
from tamis.planning.times import window_bounds

# Stands for "no bound". Far above every sum of real bounds, and a time (within 2^53) plus it is an int64.
UNBOUNDED = 2**61

Matrix = NDArray[np.int64]


def closure(definition: Definition) -> Matrix | None:
    """The greatest t_i - t_j that bounds and window allow, for all inputs i, j (shape (n, n), microseconds):
    to be read only.

    `UNBOUNDED` where nothing bounds it; None where the bounds contradict each other and nothing ever joins.
    """
    return _CLOSURES.one(definition, partial(_closure, definition))


# Of thousands of definitions most are the same objects in the next plan, and in the next batch all.
_CLOSURES = Remembered[Matrix | None](MOST)


def _closure(definition: Definition) -> Matrix | None:
    names = tuple(source.alias for source in definition.inputs)
    found = topology.closure(names, (*definition.bounds, *window_bounds(definition.window, names)))
    if found.contradictory:
        return None
    most = [found.upper.get((i, j), UNBOUNDED) for i in names for j in names]
    return np.array(most, dtype=np.int64).reshape(len(names), len(names))


def reaches(definition: Definition) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each input i the pairs (j, w): a tuple of i at t can still meet a new tuple of j while j's frontier
    is at most t + w. A tuple that none of its pairs can reach any more is of no use to the definition: every
    combination that is still to come has a new tuple in some other input, whose time is at or above that
    input's frontier.

    Single inputs and contradictory bounds have no pairs: nothing of them need be stored.
    """
    most = closure(definition)
    if most is None:
        return tuple(() for _ in definition.inputs)
    size = len(definition.inputs)
    return tuple(tuple((j, int(most[j, i])) for j in range(size) if j != i) for i in range(size))
