"""The batch form of bracket omission: which tuples of a recording are retained."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.omission.columns import (
    Bools,
    Floats,
    Int64s,
    Sides,
    check_rule,
    finite_order,
    floats,
    int64s,
    refuse_nan,
    same_length,
)
from tamis.omission.neighbours import by_neighbours
from tamis.omission.order import by_key_and_time, by_time
from tamis.omission.sift import sift
from tamis.omission.sweep import sweep
from tamis.omission.ticks import as_delay, as_span

Ties = Literal["fewest", "strict"]
"""`fewest`: the least number of tuples that hits every window's extremes; `strict`: the rule of cai-2021."""


def retained(
    times: npt.ArrayLike,
    values: npt.ArrayLike,
    interval: int,
    *,
    sides: Sides = "both",
    ties: Ties = "fewest",
    max_delay: int | None = None,
) -> Bools:
    """Which of one key's tuples must be retained.

    Every closed window of length `interval` (with any ends) that holds a tuple holds a retained one with
    the window's greatest value (`sides="above"`), its least (`"below"`), or one of each (`"both"`). With
    `ties="fewest"` no smaller set does; `"strict"` is cai-2021, Algorithm 1: equal values at different
    times don't bracket, exact duplicates are kept once.

    `times`: int64 ticks, in any order, equal ones allowed; `values`: numbers, not NaN; both of shape (n,).
    `interval`: ticks, 0 retains all. `max_delay`: the longest that a decision may wait, in ticks of event
    time (tuples are decided in order of time, and a tuple's deadline passes to those that bracket it); 0
    retains all. The answer has shape (n,), in the order of the input. Raises `InputError`.

    >>> retained([0, 1, 2, 3], [5.0, 1.0, 2.0, 6.0], 4, sides="above").tolist()
    [True, False, False, True]
    """
    check_rule(interval, sides, max_delay)
    _check_ties(ties)
    at, value = int64s("times", times), floats("values", values)
    same_length(times=at, values=value)
    if interval > 0 and max_delay is None:
        # In its only pass it sees, too, whether the rows are in order and free of NaN.
        found = by_neighbours(at, value, _borders(None, len(at)), as_span(interval), sides)
        if found is not None:
            return _swept(*found, None, at, value, interval, sides, ties)
    refuse_nan("values", value)
    return _retained(None, at, value, interval, sides, ties, max_delay)


def retained_by_key(
    key_codes: npt.ArrayLike,
    times: npt.ArrayLike,
    values: npt.ArrayLike,
    interval: int,
    *,
    sides: Sides = "both",
    ties: Ties = "fewest",
    max_delay: int | None = None,
) -> Bools:
    """`retained` for many keys at once: each key's tuples by themselves. `key_codes`: int64, one per tuple.

    Linear in tuples that come ordered by key and time or, with dense codes, by time; otherwise it sorts them.
    """
    check_rule(interval, sides, max_delay)
    _check_ties(ties)
    keys, at, value = int64s("key_codes", key_codes), int64s("times", times), finite_order("values", values)
    same_length(key_codes=keys, times=at, values=value)
    return _retained(keys, at, value, interval, sides, ties, max_delay)


def _check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise InputError(f"unknown rule for ties {ties!r}", hint=f"give one of {', '.join(get_args(Ties))}")


def _retained(
    keys: Int64s | None,
    times: Int64s,
    values: Floats,
    interval: int,
    sides: Sides,
    ties: Ties,
    max_delay: int | None,
) -> Bools:
    """Checked columns; `keys`: None for one key, whose rows in the order they have aren't
    `by_neighbours`'s.
    """
    rows = len(times)
    if interval == 0 or max_delay == 0 or rows == 0:
        return np.ones(rows, np.bool_)
    order = by_time(times) if keys is None else by_key_and_time(keys, times)
    if order is not None:
        keys, times, values = keys if keys is None else keys[order], times[order], values[order]
    if max_delay is None:
        rule = times, values, _borders(keys, rows), as_span(interval), sides
        found = by_neighbours(*rule) if keys is not None or order is not None else None
        keep, settled = found or sift(*rule, ties == "strict")
    else:
        keep, settled = np.ones(rows, np.bool_), False
    keep = _swept(keep, settled, keys, times, values, interval, sides, ties, max_delay)
    if order is None:
        return keep
    answer = np.empty(rows, np.bool_)
    answer[order] = keep
    return answer


def _swept(
    keep: Bools,
    settled: bool,
    keys: Int64s | None,
    times: Int64s,
    values: Floats,
    interval: int,
    sides: Sides,
    ties: Ties,
    max_delay: int | None = None,
) -> Bools:
    """`keep`, of rows in order, after the whole rule is applied to what is left, where it isn't `settled`."""
    left = np.flatnonzero(keep) if not settled else np.empty(0, np.int64)
    if len(left):
        keep[left] = sweep(
            np.zeros(len(left), np.int64) if keys is None else keys[left],
            times[left],
            values[left],
            as_span(interval),
            sides != "below",
            sides != "above",
            ties == "strict",
            as_delay(max_delay),
        )
    return keep


def _borders(keys: Int64s | None, rows: int) -> Int64s:
    """The first row of each key, of keys side by side, and the number of rows."""
    if keys is None:
        return np.array([0, rows])
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))
