"""Find bracketed tuples by comparing each tuple with its nearest neighbours, sixteen tuples an instruction.

This is faster than the prefilter where few tuples lie within an interval.

**The rule** is that of `prefilter`. On one side (above), let l be the last tuple before i that is greater
than i, and r the first such tuple after i. If r - l is at most the interval, this side doesn't retain i.
All other tuples are retained, unless two equal values within an interval have no greater value between
them.

**The pass.** One of i and its predecessor is the greater. So on one side l is the predecessor, and on the
other side l must be searched: the *far* neighbour. The same holds for r and the tuples after i. The search
goes over the nearest 10, 20, ... tuples, from the farthest to the nearest. Each tuple that isn't less
replaces the one that was found before. This needs no branch, and one instruction does it for sixteen tuples
in 16-bit codes. Each block sets its own depth of search, such that only few of its tuples have more tuples
within the interval.

**The rows that remain open** are decided one by one. These are the rows where the nearest code that isn't
less is an equal one; where more tuples lie within the interval than were searched, and no far neighbour was
found; and where the codes of a gap don't decide whether it is longer than the interval.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.omission.blocks_of_16_bits import (
    AFTER_ALL,
    BEFORE_ALL,
    NO_CODE,
    Codes,
    Ticks,
    encode,
)
from tamis.omission.columns import Bools, Flags, Floats, Int64s, Sides

# Neighbours that are searched in one step, as many as registers allow; and at most: beyond, `prefilter` is as
# fast.
_STEP, _MOST = 10, 50
# Rows of a block: few enough that the codes leave few rows open and stay in the first level of cache.
_ROWS = 512
# Rows are processed in groups of this size; the last group may be padded.
_LANES = 32
# With fewer rows a key, the set-up costs more than `prefilter` does.
_MIN_ROWS = 64
# Comparisons of single rows, beyond one a row, after which `prefilter` takes over.
_SPARE_COMPARISONS = 1_000
# Longest time span of a key whose times can be subtracted as int64.
_LONGEST = np.uint64(2**62)

_HALO = _MOST + 1
_SIZE = _ROWS + 2 * _HALO
_MIDDLE, _ONE = np.uint64(_HALO), np.uint64(1)


@njit(cache=True)
def _search_depth(ticks: Ticks, upper: np.uint16, rows: np.uint64) -> int:
    """The number of neighbours to search, such that at most one row in 64 has more within the interval."""
    depth = _STEP
    while depth < _MOST:
        more = np.uint16(0)
        for i in range(rows):
            gap = np.uint16(ticks[_MIDDLE + i + np.uint64(depth + 1)] - ticks[_MIDDLE + i])
            more = np.uint16(more + np.uint16(gap <= upper))
        if more <= (rows + np.uint64(256)) >> np.uint64(6):
            break
        depth += _STEP
    return depth


@njit(cache=True)
def _search_far(
    codes: Codes,
    ticks: Ticks,
    depth: np.uint64,
    rows: np.uint64,
    before: Ticks,
    after: Ticks,
    code_before: Codes,
    code_after: Codes,
) -> None:
    """Search the far neighbours among the `_STEP` tuples from `depth` inwards, and note their times and
    codes.

    Where a lesser neighbour is searched, all bits of the codes are inverted, which reverses their order.
    """
    left, right = _MIDDLE - depth, _MIDDLE + depth - np.uint64(_STEP - 1)
    for i in range(rows):
        code = codes[_MIDDLE + i]
        mask = np.int16(-1) if codes[_MIDDLE + i - _ONE] > code else np.int16(0)
        own = np.int16(code ^ mask)
        far, its_code = before[i], code_before[i]
        for k in range(_STEP):
            other, tick = np.int16(codes[left + i + np.uint64(k)] ^ mask), ticks[left + i + np.uint64(k)]
            less = other < own
            far, its_code = far if less else tick, its_code if less else other
        before[i], code_before[i] = far, its_code
        mask = np.int16(-1) if codes[_MIDDLE + i + _ONE] > code else np.int16(0)
        own = np.int16(code ^ mask)
        far, its_code = after[i], code_after[i]
        for k in range(_STEP - 1, -1, -1):
            other, tick = np.int16(codes[right + i + np.uint64(k)] ^ mask), ticks[right + i + np.uint64(k)]
            less = other < own
            far, its_code = far if less else tick, its_code if less else other
        after[i], code_after[i] = far, its_code


@njit(cache=True)
def _classify(
    codes: Codes,
    ticks: Ticks,
    depth: np.uint64,
    rows: np.uint64,
    before: Ticks,
    after: Ticks,
    code_before: Codes,
    code_after: Codes,
    lower: np.uint16,
    upper: np.uint16,
    above: np.uint16,
    below: np.uint16,
    row: np.uint64,
    keep: Flags,
    unsure: Flags,
) -> None:
    """Set `keep` for the rows from number `row` on, and `unsure` where the codes don't decide.

    `above`, `below`: all bits where the side is asked for, else none. `lower`, `upper`: see `encode`.
    """
    for i in range(rows):
        at = _MIDDLE + i
        code, tick = codes[at], ticks[at]
        falls, rises = codes[at - _ONE] > code, codes[at + _ONE] > code
        previous, following, far_before, far_after = ticks[at - _ONE], ticks[at + _ONE], before[i], after[i]
        gap_above = np.uint16((following if rises else far_after) - (previous if falls else far_before))
        gap_below = np.uint16((far_after if rises else following) - (far_before if falls else previous))
        gap = max(np.uint16(gap_above & above), np.uint16(gap_below & below))
        more_before = np.uint16(tick - ticks[at - depth - _ONE]) <= upper
        more_after = np.uint16(ticks[at + depth + _ONE] - tick) <= upper
        more = ((far_before == BEFORE_ALL) & more_before) | ((far_after == AFTER_ALL) & more_after)
        same = code_before[i] == np.int16(~code if falls else code)
        same |= code_after[i] == np.int16(~code if rises else code)
        keep[row + i] = gap >= lower
        unsure[i] = same | ((gap >= lower) & (more | (gap <= upper)))


@njit(cache=True)
def _scan_row(
    times: Int64s, values: Floats, start: int, end: int, row: int, interval: np.int64, sign: float
) -> tuple[bool, bool, int]:
    """Decide one row on one side by its values: whether it is retained, whether an equal value is within the
    interval, and how many rows were compared.
    """
    time, value = times[row], sign * values[row]
    equal = False
    left = row - 1
    while left >= start and time - times[left] <= interval and sign * values[left] <= value:
        equal |= sign * values[left] == value
        left -= 1
    right = row + 1
    while right < end and times[right] - time <= interval and sign * values[right] <= value:
        equal |= sign * values[right] == value
        right += 1
    retained = left < start or right == end or times[right] - times[left] > interval
    return retained, equal, right - left


@njit(cache=True)
def _encode_block(
    times: Int64s,
    values: Floats,
    start: int,
    end: int,
    row: int,
    rows: int,
    interval: np.int64,
    codes: Codes,
    ticks: Ticks,
) -> tuple[bool, np.uint16, np.uint16]:
    """Encode a block's rows and their neighbours, padded beyond the key's rows `start` to `end`.

    Returns the same as `encode`.
    """
    first, last = max(start, row - _HALO), min(end, row + rows + _HALO)
    at, stop = first - row + _HALO, last - row + _HALO
    if at > 0:
        codes[:at], ticks[:at] = NO_CODE, BEFORE_ALL
    if stop < _SIZE:
        codes[stop:], ticks[stop:] = NO_CODE, AFTER_ALL
    return encode(
        times,
        values,
        np.uint64(first),
        np.uint64(last),
        np.uint64(interval),
        codes,
        ticks,
        np.uint64(at),
    )


@njit(cache=True)
def _decide_unsure(
    times: Int64s,
    values: Floats,
    start: int,
    end: int,
    row: int,
    rows: int,
    interval: np.int64,
    above: bool,
    below: bool,
    keep: Flags,
    unsure: Flags,
) -> tuple[bool, int]:
    """Decide the unsure rows of a block by their values: whether none has an equal value within the interval,
    and how many rows were compared.
    """
    settled, compared = True, 0
    groups = unsure.view(np.uint64)
    for group in range((rows + 7) // 8):
        if not groups[group]:
            continue
        for i in range(8 * group, min(8 * group + 8, rows)):
            if unsure[i]:
                keep[row + i] = 0
                for sign in (1.0, -1.0):
                    if above if sign > 0.0 else below:
                        retained, equal, steps = _scan_row(times, values, start, end, row + i, interval, sign)
                        keep[row + i] |= retained
                        settled &= not equal
                        compared += steps
    return settled, compared


@njit(cache=True)
def _compare_keys(
    times: Int64s,
    values: Floats,
    starts: Int64s,
    interval: np.int64,
    above: bool,
    below: bool,
    keep: Flags,
) -> tuple[bool, bool]:
    """Set `keep` for all rows; returns whether the keys could be decided so, and whether `keep` is final."""
    codes, ticks = np.empty(_SIZE, np.int16), np.empty(_SIZE, np.uint16)
    before, after = np.empty(_ROWS, np.uint16), np.empty(_ROWS, np.uint16)
    code_before, code_after = np.empty(_ROWS, np.int16), np.empty(_ROWS, np.int16)
    unsure = np.empty(_ROWS, np.uint8)
    settled, spare = True, _SPARE_COMPARISONS
    for key in range(len(starts) - 1):
        start, end = starts[key], starts[key + 1]
        if np.uint64(times[end - 1]) - np.uint64(times[start]) >= _LONGEST:
            return False, False
        for row in range(start, end, _ROWS):
            rows = min(_ROWS, end - row)
            usable, lower, upper = _encode_block(times, values, start, end, row, rows, interval, codes, ticks)
            if not usable:
                return False, False
            lanes = np.uint64((rows + _LANES - 1) // _LANES * _LANES)
            depth = _search_depth(ticks, upper, np.uint64(rows))
            before[:], after[:] = BEFORE_ALL, AFTER_ALL
            code_before[:], code_after[:] = NO_CODE, NO_CODE
            for part in range(depth, 0, -_STEP):
                _search_far(codes, ticks, np.uint64(part), lanes, before, after, code_before, code_after)
            _classify(
                codes,
                ticks,
                np.uint64(depth),
                lanes,
                before,
                after,
                code_before,
                code_after,
                lower,
                upper,
                np.uint16(-above),
                np.uint16(-below),
                np.uint64(row),
                keep,
                unsure,
            )
            no_equals, compared = _decide_unsure(
                times, values, start, end, row, rows, interval, above, below, keep, unsure
            )
            settled &= no_equals
            spare += rows - compared
            if spare < 0:
                return False, False
    return True, settled


def by_neighbours(
    times: Int64s, values: Floats, starts: Int64s, interval: np.uint64, sides: Sides
) -> tuple[Bools, bool] | None:
    """The result of `prefilter` for the same arguments.

    None if `prefilter` is faster, where a key's times don't ascend or two are equal, and where a value is
    NaN or infinite.
    """
    rows = len(times)
    if rows < _MIN_ROWS * (len(starts) - 1):
        return None
    keep = np.empty(rows + _LANES, np.uint8)
    usable, settled = _compare_keys(
        times, values, starts, np.int64(min(interval, _LONGEST)), sides != "below", sides != "above", keep
    )
    return (keep[:rows].view(np.bool_), settled) if usable else None
