"""The inner loops of `running`, `values` and `groups`: compiled for numbers of 64 bits, and as they stand
(`py_func`) for what has more, or is text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Whole = NDArray[Any]


@njit(cache=True)
def summed(state: Whole, at: Ints, new: Whole, after: Whole) -> None:  # pragma: no cover - compiled
    """Add each number to the sum at its place, and note the sum then."""
    for row in range(len(at)):
        state[at[row]] += new[row]
        after[row] = state[at[row]]


@njit(cache=True)
def outdone(  # noqa: PLR0917 - compiled, it takes no names
    state: Whole, known: Mask, at: Ints, new: Whole, some: Mask, greatest: bool, after: Whole
) -> None:  # pragma: no cover - compiled
    """Keep the greatest or the least value of each place, of rows that have `some`, and note it then."""
    for row in range(len(at)):
        place = at[row]
        if some[row]:
            if not known[place]:
                state[place] = new[row]
                known[place] = True
            elif new[row] > state[place] if greatest else new[row] < state[place]:
                state[place] = new[row]
        after[row] = state[place]


@njit(cache=True)
def touched(  # type: ignore[no-untyped-def]
    places: Ints, group: Ints, seen: Ints, first: Ints, last: Ints
):  # pragma: no cover - compiled
    """Number the groups that each place touches, in the order in which it does: their `first` rows and their
    `last`. `seen` has -1 for each group. Returns how many there are.
    """
    count = 0
    for row in range(len(places)):
        number = seen[group[row]]
        if number < 0 or places[first[number]] != places[row]:
            number = count
            count += 1
            seen[group[row]] = number
            first[number] = row
        last[number] = row
    for row in range(len(places)):
        seen[group[row]] = -1
    return count


@njit(cache=True)
def middles(  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    value: Ints,
    amount: Whole,
    lower: Ints,
    upper: Ints,
    middle: Ints,
    below: Whole,
    total: Whole,
    group: Ints,
    which: Ints,
    weight: Whole,
    low: Ints,
    high: Ints,
) -> None:
    """Add values to groups, and note the two middle ones of the group then (-1 where it has none).

    A value of a group, by its number, has an `amount`, and the next `lower` and `upper` ones of its group. A
    group has its lower middle one, the amount `below` that, and the total. Rows say which value, or -1, is
    added to which group how often.
    """
    for row in range(len(group)):
        own, new = group[row], which[row]
        at = middle[own]
        if new >= 0:
            if at < 0:
                middle[own] = at = new
            elif amount[new] == 0:
                if value[new] < value[at]:
                    while lower[at] >= 0 and value[lower[at]] > value[new]:
                        at = lower[at]
                    lower[new], upper[new] = lower[at], at
                else:
                    while upper[at] >= 0 and value[upper[at]] < value[new]:
                        at = upper[at]
                    lower[new], upper[new] = at, upper[at]
                if lower[new] >= 0:
                    upper[lower[new]] = new
                if upper[new] >= 0:
                    lower[upper[new]] = new
            amount[new] += weight[row]
            total[own] += weight[row]
            at = middle[own]
            if value[new] < value[at]:
                below[own] += weight[row]
            while (total[own] - 1) // 2 < below[own]:
                at = lower[at]
                below[own] -= amount[at]
            while (total[own] - 1) // 2 >= below[own] + amount[at]:
                below[own] += amount[at]
                at = upper[at]
            middle[own] = at
        low[row] = high[row] = at
        if at >= 0 and total[own] // 2 >= below[own] + amount[at]:
            high[row] = upper[at]
