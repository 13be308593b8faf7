"""Inner loops of running aggregates: compiled for 64-bit numbers, interpreted for larger ones and text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.kernels import njit

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Integers = NDArray[Any]


@njit(cache=True)
def running_sums(
    state: Integers, at: Ints, new: Integers, after: Integers
) -> None:  # pragma: no cover - compiled
    """Add each number to the sum at its index, and note the sum after it."""
    for row in range(len(at)):
        state[at[row]] += new[row]
        after[row] = state[at[row]]


@njit(cache=True)
def running_extremes(  # noqa: PLR0917 - compiled, it takes no names
    state: Integers, known: Mask, at: Ints, new: Integers, some: Mask, greatest: bool, after: Integers
) -> None:  # pragma: no cover - compiled
    """For the rows in the mask `some`, keep the greatest or the least value at each row's index, and note it
    after each row.
    """
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
def touched_groups(  # type: ignore[no-untyped-def]
    places: Ints, group: Ints, seen: Ints, first: Ints, last: Ints
):  # pragma: no cover - compiled
    """Number the groups that each tuple touches, in order: writes their `first` and `last` rows. `places`:
    the position of each row's tuple. `seen` has -1 for each group. Returns the number of pairs of tuple and
    group.
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
def running_percentiles(  # noqa: PLR0917 - compiled, it takes no names  # pragma: no cover - compiled
    above: int,
    below_line: int,
    continuous: bool,
    value: Ints,
    amount: Integers,
    lower: Ints,
    upper: Ints,
    middle: Ints,
    below: Integers,
    total: Integers,
    group: Ints,
    which: Ints,
    weight: Integers,
    low: Ints,
    high: Ints,
) -> None:
    """Add values to groups, and note the two values of the group between which the percentile lies after each
    row (-1 if it has none). They are the same for the discrete percentile.

    The fraction of the percentile is `above / below_line`. A value of a group has a number, an `amount` (how
    often the group has it), and the numbers of the next `lower` and `upper` values of its group. A group has
    its lower one of the two values in `middle`, the amount `below` it, and the total. A row adds a value
    (`which`, or -1 for none) to a group, `weight` times.
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
            if continuous:
                rank = (total[own] - 1) * above // below_line
            else:
                rank = max(-(-total[own] * above // below_line), 1) - 1
            while rank < below[own]:
                at = lower[at]
                below[own] -= amount[at]
            while rank >= below[own] + amount[at]:
                below[own] += amount[at]
                at = upper[at]
            middle[own] = at
        low[row] = high[row] = at
        # Rounded up, the rank may be that of the next value.
        up = -(-(total[own] - 1) * above // below_line) if continuous else 0
        if at >= 0 and up >= below[own] + amount[at]:
            high[row] = upper[at]
