"""What may be retained at all: a quick pass that leaves only the tuples that no bracket lets go.

**The rule.** On one side (above), let l be the last tuple before i that is greater than i, and r the first
one after it that isn't less. If r - l is at most the interval, i isn't retained because of this side: every
window with i in it has l or r in it too, and where r equals i, `sweep` takes the last tuple that will do. A
tuple that neither side retains is a *bracketed* one, and nothing else depends on it: what it brackets is
bracketed by l and r (cai-2021, Theorem 3.1 and Lemma 3.2). So it goes, and where no two values are equal
all others are retained: they are the greatest or the least of some window. Where some are equal, or come at
one time, the others are put to `sweep`, which has the whole rule.

**The pass.** A tuple greater than the one before it, its *predecessor*, takes tuples off the stack of what
is ever less, and the predecessor comes to lie on the stack of what is ever greater; a lesser one, the other
way round. So each tuple changes one stack by one push, and the other by taking off what it exceeds: of
independent values none in half of all cases, and one, two, three ... in half as many each. Which of the
stacks, and how many, no processor foresees, and each wrong guess would cost as much as all else. Hence both
are computed, not branched on: the values of the one stack are negated, so that all is the same for both, and
the three tuples that lie on top are compared in any case. Each gets a verdict, whether it is taken off or
not: a later verdict replaces it, and what is never taken off is retained.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.omission.columns import Bools, Flags, Floats, Int64s, Sides

# One array has all that the pass works on, in the first and second level of cache, so that one register
# points at it. Sections: of the slots of both stacks the value (a whole number in the value's order, negated
# on the lower stack), time since the run's start, and the place of the verdict; of the rows that are looked
# at now, value and time. A stack's length is four pages and some: a processor takes places whole pages apart
# for one at first, and a load for one of what was just stored.
_SLOTS, _ROWS = 2133, 508
_LOWER = _SLOTS
_TIME = 2 * _SLOTS
_VERDICT = 2 * _TIME
_NEW_VALUE = 3 * _TIME
_NEW_TIME = _NEW_VALUE + _ROWS
_SIZE = _NEW_TIME + _ROWS
# Under each stack, greater than all and older than the interval: it ends every search.
_FLOOR = 4
_ABOVE_ALL = np.int64(2**63 - 1)
_MINUS_ZERO = np.int64(-(2**63))
# Longest span of a run whose times can be subtracted as int64.
_LONGEST = np.uint64(2**62)

# Slots in use from which on making room pays, and with which there is none for other rows.
_ENOUGH, _MOST = 2 * _ROWS, _SLOTS - _FLOOR - _ROWS

_ONE, _TWO = np.uint64(1), np.uint64(2)


@njit(cache=True)
def _take_in(times: Int64s, bits: Int64s, start: np.int64, work: Int64s) -> bool:
    """Put rows where `_settle` finds them; `bits`: of their values. Whether two of them have one time."""
    rows = len(bits)
    value, time = work[_NEW_VALUE : _NEW_VALUE + rows], work[_NEW_TIME : _NEW_TIME + rows]
    for i in range(rows):
        time[i] = times[i] - start
        number = np.int64(0) if bits[i] == _MINUS_ZERO else bits[i]
        # Negative floats, taken as whole numbers, have their order reversed.
        value[i] = number ^ (_ABOVE_ALL if number < 0 else np.int64(0))
    same = False
    for i in range(_ONE, np.uint64(rows)):
        same |= time[i] == time[i - _ONE]
    return same


@njit(cache=True, error_model="numpy")
def _settle(
    work: Int64s,
    rows: int,
    row: np.uint64,
    interval: np.int64,
    strict: bool,
    verdicts: Flags,
    near: np.uint64,
    far: np.uint64,
    less: bool,
) -> tuple[np.uint64, np.uint64, bool]:
    """Take all but the first of `rows` rows, which is number `row`, and was taken before.

    `near`, `far`: the tops of the stack that was taken from last and of the other one; `less`: whether the
    former is the lower one. Returns these as they are then.
    """
    place = _TWO * row
    last, before = work[_NEW_VALUE], work[_NEW_TIME]
    for i in range(_ONE, np.uint64(rows)):
        value, now = work[i + np.uint64(_NEW_VALUE)], work[i + np.uint64(_NEW_TIME)]
        reach = now - interval
        turned = less
        less = value < last
        turned ^= less
        negated = -np.int64(less)
        signed = value ^ negated
        near, far = (far if turned else near), (near if turned else far) + _ONE
        side = np.uint64(less)
        work[far] = ~(last ^ negated)
        work[far + np.uint64(_TIME)] = before
        work[far + np.uint64(_VERDICT)] = place + _ONE - side
        verdicts[place + side] = work[near + np.uint64(_TIME)] < reach
        third = True
        while third:
            first, second = work[near] <= signed, work[near - _ONE] <= signed
            third = work[near - _TWO] <= signed
            for slot in range(3):
                verdicts[np.uint64(work[near + np.uint64(_VERDICT - slot)])] = (
                    work[near + np.uint64(_TIME - 1 - slot)] < reach
                )
            near -= np.uint64(first) + np.uint64(second) + np.uint64(third)
        if value == last:
            # It takes its predecessor's place on both sides; of one time the first is retained.
            far -= _ONE
            verdicts[place + _ONE - side] = work[far + np.uint64(_TIME)] < reach
            verdicts[-1] = 1
            if strict or now == before:
                verdicts[place] = verdicts[place + _ONE] = 1
        elif work[near + _ONE] == signed:
            verdicts[-1] = 1
            if strict or work[near + np.uint64(_TIME + 1)] == now:
                verdicts[np.uint64(work[near + np.uint64(_VERDICT + 1)])] = 1
        last, before = value, now
        place += _TWO
    return near, far, less


@njit(cache=True)
def _forget(work: Int64s, floor: int, top: np.uint64, reach: np.int64, verdicts: Flags) -> np.uint64:
    """Make room on a stack: what comes before `reach` is too old to bracket, and can't be bracketed any
    more.
    """
    live = np.uint64(floor)
    while live <= top and work[live + np.uint64(_TIME)] < reach:
        verdicts[np.uint64(work[live + np.uint64(_VERDICT)])] = 1
        live += _ONE
    count = top + _ONE - live
    for section in (np.uint64(0), np.uint64(_TIME), np.uint64(_VERDICT)):
        for slot in range(count):
            work[np.uint64(floor) + section + slot] = work[live + section + slot]
    return np.uint64(floor) + count - _ONE


@njit(cache=True)
def _sift(
    times: Int64s,
    bits: Int64s,
    starts: Int64s,
    interval: np.int64,
    strict: bool,
    work: Int64s,
    verdicts: Flags,
) -> None:
    upper, lower = _FLOOR, _LOWER + _FLOOR
    for floor in (upper, lower):
        work[floor - _FLOOR : floor] = _ABOVE_ALL
        work[_TIME + floor - _FLOOR : _TIME + floor] = -interval - 1
        work[_VERDICT + floor - _FLOOR : _VERDICT + floor] = len(verdicts) - 2
    for run in range(len(starts) - 1):
        row, end = starts[run], starts[run + 1]
        verdicts[2 * end - 2 : 2 * end] = 1
        if np.uint64(times[end - 1]) - np.uint64(times[row]) >= _LONGEST:
            verdicts[2 * row : 2 * end] = 1
            verdicts[-1] = 1
            continue
        start = times[row]
        near, far, less = np.uint64(upper - 1), np.uint64(lower - 1), False
        while row < end - 1:
            rows = min(_ROWS, end - row)
            if _take_in(times[row : row + rows], bits[row : row + rows], start, work):
                verdicts[-1] = 1
            near, far, less = _settle(work, rows, np.uint64(row), interval, strict, verdicts, near, far, less)
            row += rows - 1
            reach = times[row] - start - interval
            above, below = (far, near) if less else (near, far)
            if above > upper + _ENOUGH:
                above = _forget(work, upper, above, reach, verdicts)
            if below > lower + _ENOUGH:
                below = _forget(work, lower, below, reach, verdicts)
            if row == end - 1 or above > upper + _MOST or below > lower + _MOST:
                # All that is left has no bracket on the right; or would have one, but there is no room.
                verdicts[-1] |= row < end - 1
                above = _forget(work, upper, above, _ABOVE_ALL, verdicts)
                below = _forget(work, lower, below, _ABOVE_ALL, verdicts)
            near, far = (below, above) if less else (above, below)


def sift(
    times: Int64s, values: Floats, starts: Int64s, interval: np.uint64, sides: Sides, strict: bool
) -> tuple[Bools, bool]:
    """Which rows may be retained, and whether just these are; `sweep` decides otherwise.

    Rows are ordered by key and time; `starts`: the first row of each key, and the number of rows.
    """
    rows = len(times)
    # Two a row; one for what lies under the stacks; and whether there is something that brackets don't say.
    verdicts = np.zeros(2 * rows + 2, np.uint8)
    _sift(
        times,
        values.view(np.int64),
        starts,
        np.int64(min(interval, _LONGEST)),
        strict,
        np.zeros(_SIZE, np.int64),
        verdicts,
    )
    if sides == "both":
        may: Bools = verdicts[:-2].view(np.uint16) > 0
    else:
        may = verdicts[sides == "below" : -2 : 2] > 0
    return may, not verdicts[-1]
