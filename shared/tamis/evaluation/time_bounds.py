"""What a definition's time bounds imply: the tightest bound between any two inputs, and how long a tuple is
needed.

The bounds are difference constraints lo <= t_left - t_right <= hi over integers, so that all that follows
from them are shortest paths (Floyd, Warshall).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.planning.plan import Definition

# Stands for "no bound". Far above every sum of real bounds, and a time (within 2^53) plus it is an int64.
UNBOUNDED = 2**61

Matrix = NDArray[np.int64]


def closure(definition: Definition) -> Matrix | None:
    """The greatest t_i - t_j that bounds and window allow, for all inputs i, j (shape (n, n), microseconds).

    `UNBOUNDED` where nothing bounds it; None where the bounds contradict each other and nothing ever joins.
    """
    number = {source.alias: i for i, source in enumerate(definition.inputs)}
    size = len(number)
    apart = UNBOUNDED if definition.window is None else definition.window.size - 1
    most = [[0 if i == j else apart for j in range(size)] for i in range(size)]
    for bound in definition.bounds:
        left, right = number[bound.left], number[bound.right]
        if bound.hi is not None:
            most[left][right] = min(most[left][right], bound.hi)
        if bound.lo is not None:
            most[right][left] = min(most[right][left], -bound.lo)
    for via in range(size):
        for i in range(size):
            for j in range(size):
                if most[i][via] < UNBOUNDED and most[via][j] < UNBOUNDED:
                    most[i][j] = min(most[i][j], most[i][via] + most[via][j])
    if any(most[i][i] < 0 for i in range(size)):
        return None
    return np.array(most, dtype=np.int64).reshape(size, size)


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
