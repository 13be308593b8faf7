"""The different numbers of an array whose numbers are close together."""

from __future__ import annotations

import numpy as np

from tamis_joiner.core.tuples.stored_tuples import Ints


def distinct(numbers: Ints) -> Ints:
    """The different numbers, ascending.

    Codes of keys and numbers of slices are close together, so marking them is faster than sorting or hashing
    a million of them.

    >>> distinct(np.array([7, 5, 7])).tolist()
    [5, 7]
    """
    if not len(numbers):
        return numbers
    least = int(numbers.min())
    if int(numbers.max()) - least > len(numbers):
        return np.unique(numbers)
    found = np.zeros(int(numbers.max()) - least + 1, np.bool_)
    found[numbers - least] = True
    return np.flatnonzero(found) + least
