"""What is retained where few tuples lie in an interval: each is compared with the nearest ones, many at once.

**The rule** is `sift`'s. On one side (above), let l be the last tuple before i that is greater than i, and r
the first such one after it. If r - l is at most the interval, i isn't retained because of this side. Where no
two equal values within an interval have nothing greater between them, all others are retained.

**The pass.** Of i and its predecessor one is the greater. So on one side l is the predecessor, and on the
other side it has to be looked for: the *far* one. With what follows i it is the same. The far ones are
looked for among the nearest 10, 20, ... tuples, from the farthest to the nearest, where each that isn't
less replaces what was found before; so nothing is branched on, and an instruction does it for sixteen
tuples, in shorthand. How many are looked at is decided block by block: so many that of few tuples more are
within the interval.

**What is open then** is looked up row by row: where the nearest code that isn't less is an equal one, where
there are more tuples within the interval and no far one was found, and where the shorthand of a gap doesn't
say whether it is longer than the interval.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.omission.columns import Bools, Flags, Floats, Int64s, Sides
from tamis.omission.shorthand import LONG_AGO, NEVER_YET, NO_CODE, Codes, Ticks, encode

# Tuples that are looked at together, as many as registers allow, and at most; beyond, `sift` is as fast.
_STEP, _MOST = 10, 50
# A block: its shorthand is fine enough that little stays open, and all of it is in the first level of cache.
_ROWS = 512
# Rows are done by so many; some behind the last are done in vain.
_LANES = 32
# Fewer rows of a key are dearer to set up than to sift.
_FEW = 64
# Comparisons of single rows, beyond one a row, after which `sift` takes over.
_PATIENCE = 1_000
# Longest span of a run whose times can be subtracted as int64.
_LONGEST = np.uint64(2**62)

_HALO = _MOST + 1
_SIZE = _ROWS + 2 * _HALO
_MIDDLE, _ONE = np.uint64(_HALO), np.uint64(1)


@njit(cache=True)
def _deep_enough(ticks: Ticks, surely: np.uint16, rows: np.uint64) -> int:
    """How many tuples to look at, so that one in 64 at most has more of them within the interval."""
    depth = _STEP
    while depth < _MOST:
        more = np.uint16(0)
        for i in range(rows):
            gap = np.uint16(ticks[_MIDDLE + i + np.uint64(depth + 1)] - ticks[_MIDDLE + i])
            more = np.uint16(more + np.uint16(gap <= surely))
        if more <= (rows + np.uint64(256)) >> np.uint64(6):
            break
        depth += _STEP
    return depth


@njit(cache=True)
def _look(
    codes: Codes,
    ticks: Ticks,
    depth: np.uint64,
    rows: np.uint64,
    before: Ticks,
    after: Ticks,
    code_before: Codes,
    code_after: Codes,
) -> None:
    """Look for the far ones in the `_STEP` places that are at most `depth` away: their times and codes.

    Codes are turned where it is the less that is looked for: all their bits, which reverses the order.
    """
    left, right = _MIDDLE - depth, _MIDDLE + depth - np.uint64(_STEP - 1)
    for i in range(rows):
        code = codes[_MIDDLE + i]
        turn = np.int16(-1) if codes[_MIDDLE + i - _ONE] > code else np.int16(0)
        turned = np.int16(code ^ turn)
        far, its_code = before[i], code_before[i]
        for k in range(_STEP):
            other, tick = np.int16(codes[left + i + np.uint64(k)] ^ turn), ticks[left + i + np.uint64(k)]
            less = other < turned
            far, its_code = far if less else tick, its_code if less else other
        before[i], code_before[i] = far, its_code
        turn = np.int16(-1) if codes[_MIDDLE + i + _ONE] > code else np.int16(0)
        turned = np.int16(code ^ turn)
        far, its_code = after[i], code_after[i]
        for k in range(_STEP - 1, -1, -1):
            other, tick = np.int16(codes[right + i + np.uint64(k)] ^ turn), ticks[right + i + np.uint64(k)]
            less = other < turned
            far, its_code = far if less else tick, its_code if less else other
        after[i], code_after[i] = far, its_code


@njit(cache=True)
def _judge(
    codes: Codes,
    ticks: Ticks,
    depth: np.uint64,
    rows: np.uint64,
    before: Ticks,
    after: Ticks,
    code_before: Codes,
    code_after: Codes,
    enough: np.uint16,
    surely: np.uint16,
    above: np.uint16,
    below: np.uint16,
    row: np.uint64,
    keep: Flags,
    unsure: Flags,
) -> None:
    """Which rows are retained, from number `row` on, and for which that isn't sure. `above`, `below`: all
    bits or none.
    """
    for i in range(rows):
        at = _MIDDLE + i
        code, tick = codes[at], ticks[at]
        falls, rises = codes[at - _ONE] > code, codes[at + _ONE] > code
        previous, following, far_before, far_after = ticks[at - _ONE], ticks[at + _ONE], before[i], after[i]
        gap_above = np.uint16((following if rises else far_after) - (previous if falls else far_before))
        gap_below = np.uint16((far_after if rises else following) - (far_before if falls else previous))
        gap = max(np.uint16(gap_above & above), np.uint16(gap_below & below))
        more_before = np.uint16(tick - ticks[at - depth - _ONE]) <= surely
        more_after = np.uint16(ticks[at + depth + _ONE] - tick) <= surely
        more = ((far_before == LONG_AGO) & more_before) | ((far_after == NEVER_YET) & more_after)
        same = code_before[i] == np.int16(~code if falls else code)
        same |= code_after[i] == np.int16(~code if rises else code)
        keep[row + i] = gap >= enough
        unsure[i] = same | ((gap >= enough) & (more | (gap <= surely)))


@njit(cache=True)
def _look_up(
    times: Int64s, values: Floats, start: int, end: int, row: int, interval: np.int64, sign: float
) -> tuple[bool, bool, int]:
    """Whether a side retains a row; whether it has an equal one in reach; and how many were compared."""
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
def _compare(
    times: Int64s,
    values: Floats,
    starts: Int64s,
    interval: np.int64,
    above: bool,
    below: bool,
    keep: Flags,
) -> tuple[bool, bool]:
    codes, ticks = np.empty(_SIZE, np.int16), np.empty(_SIZE, np.uint16)
    before, after = np.empty(_ROWS, np.uint16), np.empty(_ROWS, np.uint16)
    code_before, code_after = np.empty(_ROWS, np.int16), np.empty(_ROWS, np.int16)
    unsure = np.empty(_ROWS, np.uint8)
    eights = unsure.view(np.uint64)
    settled, patience = True, _PATIENCE
    for run in range(len(starts) - 1):
        start, end = starts[run], starts[run + 1]
        if np.uint64(times[end - 1]) - np.uint64(times[start]) >= _LONGEST:
            return False, False
        for row in range(start, end, _ROWS):
            rows = min(_ROWS, end - row)
            first, last = max(start, row - _HALO), min(end, row + rows + _HALO)
            at, stop = first - row + _HALO, last - row + _HALO
            if at > 0:
                codes[:at], ticks[:at] = NO_CODE, LONG_AGO
            if stop < _SIZE:
                codes[stop:], ticks[stop:] = NO_CODE, NEVER_YET
            usable, enough, surely = encode(
                times,
                values,
                np.uint64(first),
                np.uint64(last),
                np.uint64(interval),
                codes,
                ticks,
                np.uint64(at),
            )
            if not usable:
                return False, False
            lanes = np.uint64((rows + _LANES - 1) // _LANES * _LANES)
            depth = _deep_enough(ticks, surely, np.uint64(rows))
            before[:], after[:] = LONG_AGO, NEVER_YET
            code_before[:], code_after[:] = NO_CODE, NO_CODE
            for part in range(depth, 0, -_STEP):
                _look(codes, ticks, np.uint64(part), lanes, before, after, code_before, code_after)
            _judge(
                codes,
                ticks,
                np.uint64(depth),
                lanes,
                before,
                after,
                code_before,
                code_after,
                enough,
                surely,
                np.uint16(-above),
                np.uint16(-below),
                np.uint64(row),
                keep,
                unsure,
            )
            patience += rows
            for eight in range(lanes // np.uint64(8)):
                if not eights[eight]:
                    continue
                for i in range(8 * eight, min(8 * eight + 8, rows)):
                    if unsure[i]:
                        keep[row + i] = 0
                        for sign in (1.0, -1.0):
                            if above if sign > 0.0 else below:
                                retained, equal, steps = _look_up(
                                    times, values, start, end, row + i, interval, sign
                                )
                                keep[row + i] |= retained
                                settled &= not equal
                                patience -= steps
                if patience < 0:
                    return False, False
    return True, settled


def by_neighbours(
    times: Int64s, values: Floats, starts: Int64s, interval: np.uint64, sides: Sides
) -> tuple[Bools, bool] | None:
    """What `sift` returns for the same arguments; None where it is the better one, or where a key's times
    don't ascend or are equal, or where a value is NaN or infinite.
    """
    rows = len(times)
    if rows < _FEW * (len(starts) - 1):
        return None
    keep = np.empty(rows + _LANES, np.uint8)
    usable, settled = _compare(
        times, values, starts, np.int64(min(interval, _LONGEST)), sides != "below", sides != "above", keep
    )
    return (keep[:rows].view(np.bool_), settled) if usable else None
