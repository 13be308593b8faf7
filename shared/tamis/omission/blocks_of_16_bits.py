"""Quantise a block's values and times to 16 bits each, so that one instruction compares sixteen tuples.

**Values.** The code of a value is its position between the least and the greatest value of the block, rounded
down. A greater value never has a lesser code. So if two codes differ, they decide the comparison. If two
codes are equal, the values themselves must be compared.

**Times.** The code of a time is the number of ticks since the start of the block. If the block is too long
for 15 bits, the lowest `shift` bits are removed. If two codes differ by g, the times differ by more than (g -
1) 2^shift and by less than (g + 1) 2^shift. So two limits are needed: if the codes differ by less than
`lower`, the times differ by at most the interval; if the codes differ by more than `upper`, the times differ
by more than the interval. Between the limits, the times themselves must be compared. If `shift` is 0, nothing
is between the limits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.kernels import njit
from tamis.omission.columns import Floats, Int64s

Codes = npt.NDArray[np.int16]
Ticks = npt.NDArray[np.uint16]

# Codes beyond the ends of a key's rows: less than the code of every value, and out of reach of every time.
NO_CODE = np.int16(-(2**15))
BEFORE_ALL, AFTER_ALL = np.uint16(0), np.uint16(2**16 - 1)

_ONE = np.uint64(1)
_FIRST, _SPAN = np.uint64(2**14), np.uint64(2**15)
# Both limits of an interval are less than the gap to a time that is out of reach.
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
    """Encode rows `first` to `end` (at least one, with times that span less than 2^63) into `codes` and
    `ticks`, from index `at` on.

    Returns whether the codes can be used, and the limits `lower` and `upper`. The codes can't be used where
    times don't ascend or two are equal, where a value is NaN or infinite, or where all values are equal.
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
        position = (values[first + i] - least) * scale
        wrong |= not position >= 0.0
        codes[at + i] = np.int16(np.int32(position) + _LEAST_CODE)
    ticks[at] = _FIRST
    for i in range(_ONE, end - first):
        time = times[first + i]
        wrong |= time <= times[first + i - _ONE]
        ticks[at + i] = np.uint16((np.uint64(time - start) >> shift) + _FIRST)
    return not wrong, np.uint16((longest + _ONE) >> shift), np.uint16(((longest - _ONE) >> shift) + _ONE)
