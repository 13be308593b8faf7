"""Drop bracketed tuples in one branch-free pass, so that few are left for the whole omission rule.

**The rule.** Take the side *above* and a tuple i. Let l be the last tuple before i that is greater than i,
and r the first tuple after i that isn't less than i. If the time from l to r is at most the interval, every
window that contains i also contains l or r, so this side doesn't need i. (If r equals i, `sweep` retains the
last of the equal tuples that hits the window.) A tuple that neither side needs is *bracketed* and is dropped.
No other decision depends on it: l and r also bracket the tuples that it brackets (cai-2021, Theorem 3.1 and
Lemma 3.2).

If no two values are equal, every remaining tuple is the greatest or the least of some window, and is
retained. If some values are equal, or several tuples have the same time, `sweep` decides the remaining tuples
by the whole rule.

**The pass.** There are two monotonic stacks, one with descending and one with ascending values. Take a tuple
that is greater than its *predecessor*, the tuple before it. It pops all lesser tuples off one stack, and its
predecessor is pushed on the other stack. For a tuple that is less than its predecessor, the two stacks are
exchanged.

With independent values, a tuple pops no tuple in half of all cases, one in a quarter, two in an eighth, and
so on. A processor can't predict which stack is popped and how often, and a wrong prediction costs as much
time as all other work for a tuple. Therefore the pass has no branch. The values of one stack are negated, so
that the code is the same for both stacks, and the top three tuples of the stack are always compared. Each of
the three gets a verdict, even if it stays on the stack: a later verdict replaces the earlier one. A tuple
that is never popped is retained.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels import njit
from tamis.omission.columns import Bools, Flags, Floats, Int64s, Sides

# One array holds all working data, so that one register points at it and it stays in the first two levels of
# cache. Its sections are, for the slots of both stacks: value (an integer in the order of the values, negated
# on the lower stack), time since the first row of the key, and index of the verdict; and for the rows of the
# current chunk: value and time. The length of a stack isn't a multiple of a page, to avoid 4K aliasing: a
# processor delays a load from an address that is whole pages away from that of a recent store.
_SLOTS, _ROWS = 2133, 508
_LOWER = _SLOTS
_TIME = 2 * _SLOTS
_VERDICT = 2 * _TIME
_NEW_VALUE = 3 * _TIME
_NEW_TIME = _NEW_VALUE + _ROWS
_SIZE = _NEW_TIME + _ROWS
# Sentinels under each stack, greater than all values and older than the interval: they end every search.
_FLOOR = 4
_ABOVE_ALL = np.int64(2**63 - 1)
_MINUS_ZERO = np.int64(-(2**63))
# Longest time span of a key whose times can be subtracted as int64.
_LONGEST = np.uint64(2**62)

# From this many used slots on, dropping old ones pays; with more than the second, the next chunk wouldn't
# fit.
_CROWDED, _FULL = 2 * _ROWS, _SLOTS - _FLOOR - _ROWS

_ONE, _TWO = np.uint64(1), np.uint64(2)


@njit(cache=True)
def _load_rows(times: Int64s, bits: Int64s, start: np.int64, work: Int64s) -> bool:
    """Copy a chunk of rows to the working array; `bits` are the bits of the values. Returns True if two rows
    have equal times.
    """
    rows = len(bits)
    value, time = work[_NEW_VALUE : _NEW_VALUE + rows], work[_NEW_TIME : _NEW_TIME + rows]
    for i in range(rows):
        time[i] = times[i] - start
        number = np.int64(0) if bits[i] == _MINUS_ZERO else bits[i]
        # The bits of negative floats, read as integers, are in reverse order.
        value[i] = number ^ (_ABOVE_ALL if number < 0 else np.int64(0))
    same = False
    for i in range(_ONE, np.uint64(rows)):
        same |= time[i] == time[i - _ONE]
    return same


@njit(cache=True, error_model="numpy")
def _push_rows(
    work: Int64s,
    rows: int,
    row: np.uint64,
    interval: np.int64,
    strict: bool,
    verdicts: Flags,
    popped: np.uint64,
    pushed: np.uint64,
    less: bool,
) -> tuple[np.uint64, np.uint64, bool]:
    """Take the `rows` rows of the chunk except the first, which the previous call has taken; `row` is its
    number.

    `popped`, `pushed`: the tops of the stack that was popped last and of the other one. `less`: True if the
    first of these is the lower stack. Returns the values of the three after the rows.
    """
    verdict = _TWO * row
    last, before = work[_NEW_VALUE], work[_NEW_TIME]
    for i in range(_ONE, np.uint64(rows)):
        value, now = work[i + np.uint64(_NEW_VALUE)], work[i + np.uint64(_NEW_TIME)]
        reach = now - interval
        switched = less
        less = value < last
        switched ^= less
        negated = -np.int64(less)
        signed = value ^ negated
        popped, pushed = (pushed if switched else popped), (popped if switched else pushed) + _ONE
        side = np.uint64(less)
        work[pushed] = ~(last ^ negated)
        work[pushed + np.uint64(_TIME)] = before
        work[pushed + np.uint64(_VERDICT)] = verdict + _ONE - side
        verdicts[verdict + side] = work[popped + np.uint64(_TIME)] < reach
        third = True
        while third:
            first, second = work[popped] <= signed, work[popped - _ONE] <= signed
            third = work[popped - _TWO] <= signed
            for slot in range(3):
                verdicts[np.uint64(work[popped + np.uint64(_VERDICT - slot)])] = (
                    work[popped + np.uint64(_TIME - 1 - slot)] < reach
                )
            popped -= np.uint64(first) + np.uint64(second) + np.uint64(third)
        if value == last:
            # It replaces its predecessor on both sides; of equal tuples at one time the first is retained.
            pushed -= _ONE
            verdicts[verdict + _ONE - side] = work[pushed + np.uint64(_TIME)] < reach
            verdicts[-1] = 1
            if strict or now == before:
                verdicts[verdict] = verdicts[verdict + _ONE] = 1
        elif work[popped + _ONE] == signed:
            verdicts[-1] = 1
            if strict or work[popped + np.uint64(_TIME + 1)] == now:
                verdicts[np.uint64(work[popped + np.uint64(_VERDICT + 1)])] = 1
        last, before = value, now
        verdict += _TWO
    return popped, pushed, less


@njit(cache=True)
def _drop_old(work: Int64s, floor: int, top: np.uint64, reach: np.int64, verdicts: Flags) -> np.uint64:
    """Remove a stack's tuples from before `reach`: they can neither bracket nor be bracketed any more, so
    they are retained. Returns the new top.
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
def _prefilter_keys(
    times: Int64s,
    bits: Int64s,
    starts: Int64s,
    interval: np.int64,
    strict: bool,
    work: Int64s,
    verdicts: Flags,
) -> None:
    """Give each row two verdicts, one for each side: whether that side retains it."""
    upper, lower = _FLOOR, _LOWER + _FLOOR
    for floor in (upper, lower):
        work[floor - _FLOOR : floor] = _ABOVE_ALL
        work[_TIME + floor - _FLOOR : _TIME + floor] = -interval - 1
        work[_VERDICT + floor - _FLOOR : _VERDICT + floor] = len(verdicts) - 2
    for key in range(len(starts) - 1):
        row, end = starts[key], starts[key + 1]
        verdicts[2 * end - 2 : 2 * end] = 1
        if np.uint64(times[end - 1]) - np.uint64(times[row]) >= _LONGEST:
            verdicts[2 * row : 2 * end] = 1
            verdicts[-1] = 1
            continue
        start = times[row]
        popped, pushed, less = np.uint64(upper - 1), np.uint64(lower - 1), False
        while row < end - 1:
            rows = min(_ROWS, end - row)
            if _load_rows(times[row : row + rows], bits[row : row + rows], start, work):
                verdicts[-1] = 1
            popped, pushed, less = _push_rows(
                work, rows, np.uint64(row), interval, strict, verdicts, popped, pushed, less
            )
            row += rows - 1
            reach = times[row] - start - interval
            above, below = (pushed, popped) if less else (popped, pushed)
            if above > upper + _CROWDED:
                above = _drop_old(work, upper, above, reach, verdicts)
            if below > lower + _CROWDED:
                below = _drop_old(work, lower, below, reach, verdicts)
            if row == end - 1 or above > upper + _FULL or below > lower + _FULL:
                # The tuples that are left have no right bracket; or they may get one, but a stack is full.
                verdicts[-1] |= row < end - 1
                above = _drop_old(work, upper, above, _ABOVE_ALL, verdicts)
                below = _drop_old(work, lower, below, _ABOVE_ALL, verdicts)
            popped, pushed = (below, above) if less else (above, below)


def prefilter(
    times: Int64s, values: Floats, starts: Int64s, interval: np.uint64, sides: Sides, strict: bool
) -> tuple[Bools, bool]:
    """The rows that may be retained, and True if exactly these are retained. If not, `sweep` must decide
    them.

    Rows are ordered by key and time; `starts`: the first row of each key, and the number of rows.
    """
    rows = len(times)
    # Two verdicts a row, one for the sentinels, and a flag: whether brackets alone don't decide all rows.
    verdicts = np.zeros(2 * rows + 2, np.uint8)
    _prefilter_keys(
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
