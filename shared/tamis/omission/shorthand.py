"""A block's values and times in 16 bits each, so that one instruction compares sixteen tuples.

**Values.** A code is a value's place between the least and the greatest of the block, rounded down: of two
values the greater has the greater code or the same one. Where codes differ they say all; where they are
equal, the values have to be asked.

**Times.** Ticks since the block's start, without their lowest bits where the block is too long for 15. If
the codes of two times are g apart, the times are more than (g - 1) 2^shift and less than (g + 1) 2^shift
apart. So there are two limits: a gap less than `enough` surely isn't longer than the interval, and one
greater than `surely` surely is. Without a shift there is nothing between them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tamis.omission.columns import Floats, Int64s

Codes = npt.NDArray[np.int16]
Ticks = npt.NDArray[np.uint16]

# What lies beyond a run's ends: less than every value's code, and out of reach of all times.
NO_CODE = np.int16(-(2**15))
LONG_AGO, NEVER_YET = np.uint16(0), np.uint16(2**16 - 1)

_ONE = np.uint64(1)
_FIRST, _SPAN = np.uint64(2**14), np.uint64(2**15)
# Both limits of an interval are less than the gap to what is out of reach.
_INTERVAL = _FIRST - np.uint64(2)
_LEAST_CODE, _CODES = np.int32(1 - 2**15), 2.0**16 - 3


@njit(cache=True, error_model="numpy")
def encode(
    times: Int64s,
    values: Floats,
    first: np.uint64,
    end: np.uint64,
    interval: np.uint64,
    codes: Codes,
    ticks: Ticks,
    at: np.uint64,
) -> tuple[bool, np.uint16, np.uint16]:
    """Put rows `first` to `end`, at least one, whose times span less than 2^63, into `codes` and `ticks`
    from `at`.

    Returns whether that can be used, `enough` and `surely`. It can't where times don't ascend or are equal,
    where a value is NaN or infinite, and where all are equal.
    """
    least = greatest = values[first]
    for i in range(first, end):
        value = values[i]
        least = value if value < least else least
        greatest = value if value > greatest else greatest
    scale = _CODES / (greatest - least)
    if not 0.0 < scale < np.inf:
        return False, np.uint16(0), np.uint16(0)
    start = times[first]
    span = np.uint64(times[end - _ONE] - start)
    longest = max(min(interval, span), _ONE)
    shift = np.uint64(0)
    while span >> shift >= _SPAN or longest >> shift >= _INTERVAL:
        shift += _ONE
    wrong = False
    for i in range(end - first):
        place = (values[first + i] - least) * scale
        wrong |= not place >= 0.0
        codes[at + i] = np.int16(np.int32(place) + _LEAST_CODE)
    ticks[at] = _FIRST
    for i in range(_ONE, end - first):
        time = times[first + i]
        wrong |= time <= times[first + i - _ONE]
        ticks[at + i] = np.uint16((np.uint64(time - start) >> shift) + _FIRST)
    return not wrong, np.uint16((longest + _ONE) >> shift), np.uint16(((longest - _ONE) >> shift) + _ONE)
