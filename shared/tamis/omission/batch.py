"""Batch form of bracket omission: decides the tuples of a recording."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.omission.bracket_prefilter import prefilter
from tamis.omission.bracket_sweep import sweep
from tamis.omission.columns import (
    Bools,
    Floats,
    Int64s,
    Sides,
    Span,
    as_delay,
    as_span,
    check_rule,
    finite_order,
    floats,
    int64s,
    refuse_nan,
    same_length,
    ticks,
)
from tamis.omission.nearest_neighbours import by_neighbours
from tamis.row_order import by_key_and_time, by_time

Ties = Literal["fewest", "strict"]
"""The treatment of equal values. `fewest`: the smallest set of tuples that hits every window's extremes;
`strict`: the rule of cai-2021."""


class _Rule(NamedTuple):
    """The checked rule by which tuples are retained. Interval and delay are in ticks of the times."""

    interval: int
    sides: Sides
    ties: Ties
    max_delay: int | None


def retained(
    times: Any,
    values: npt.ArrayLike,
    interval: Span,
    *,
    sides: Sides = "both",
    ties: Ties = "fewest",
    max_delay: Span | None = None,
) -> Bools:
    """The tuples of one key that must be retained.

    Every closed window of length `interval` (with any ends) that contains a tuple contains a retained tuple
    with the window's greatest value (`sides="above"`), its least (`"below"`), or one of each (`"both"`). With
    `ties="fewest"` no smaller set does; `"strict"` is cai-2021, Algorithm 1: equal values at different
    times don't bracket, and of exact duplicates one is kept.

    `times`: int64 ticks, in any order, equal ones allowed, or dates (`tamis.omission.columns`);
    `values`: numbers, not NaN; both of shape (n,). `interval`: in the ticks of the times; for dates
    microseconds or a duration such as `timedelta(seconds=30)`; 0 retains all. `max_delay`, in the same
    units: the longest time that a decision may wait (tuples are decided in order of time, and the tuples
    that bracket another one inherit its deadline); 0 retains all. The result has shape (n,), in the order
    of the input. Raises `InputError`.

    >>> retained([0, 1, 2, 3], [5.0, 1.0, 2.0, 6.0], 4, sides="above").tolist()
    [True, False, False, True]
    """
    at, rule = _checked(times, interval, sides, ties, max_delay)
    value = floats("values", values)
    same_length(times=at, values=value)
    if rule.interval > 0 and rule.max_delay is None:
        # The same pass also finds out whether the rows are in order and free of NaN.
        found = by_neighbours(at, value, _borders(None, len(at)), as_span(rule.interval), sides)
        if found is not None:
            return _swept(*found, keys=None, times=at, values=value, rule=rule)
    refuse_nan("values", value)
    return _retained(None, at, value, rule)


def retained_by_key(
    key_codes: npt.ArrayLike,
    times: Any,
    values: npt.ArrayLike,
    interval: Span,
    *,
    sides: Sides = "both",
    ties: Ties = "fewest",
    max_delay: Span | None = None,
) -> Bools:
    """The tuples that must be retained of many keys; each key is decided separately, as `retained` decides
    one. `key_codes`: int64, one for each tuple.

    Takes linear time for tuples ordered by key and time or, with dense codes, by time; otherwise it sorts
    them.
    """
    at, rule = _checked(times, interval, sides, ties, max_delay)
    keys, value = int64s("key_codes", key_codes), finite_order("values", values)
    same_length(key_codes=keys, times=at, values=value)
    return _retained(keys, at, value, rule)


def _checked(
    times: Any, interval: Span, sides: Sides, ties: Ties, max_delay: Span | None
) -> tuple[Int64s, _Rule]:
    at, (span, delay) = ticks(times, interval, max_delay)
    assert span is not None
    check_rule(span, sides, delay)
    if ties not in get_args(Ties):
        raise InputError(f"unknown rule for ties {ties!r}", hint=f"give one of {', '.join(get_args(Ties))}")
    return at, _Rule(span, sides, ties, delay)


def _retained(keys: Int64s | None, times: Int64s, values: Floats, rule: _Rule) -> Bools:
    """Decide checked columns. `keys`: None for one key; `by_neighbours` then couldn't decide the rows in
    their present order.
    """
    rows = len(times)
    if rule.interval == 0 or rule.max_delay == 0 or rows == 0:
        return np.ones(rows, np.bool_)
    order = by_time(times) if keys is None else by_key_and_time(keys, times)
    if order is not None:
        keys, times, values = keys if keys is None else keys[order], times[order], values[order]
    if rule.max_delay is None:
        given = times, values, _borders(keys, rows), as_span(rule.interval), rule.sides
        found = by_neighbours(*given) if keys is not None or order is not None else None
        keep, settled = found or prefilter(*given, rule.ties == "strict")
    else:
        keep, settled = np.ones(rows, np.bool_), False
    keep = _swept(keep, settled, keys=keys, times=times, values=values, rule=rule)
    if order is None:
        return keep
    answer = np.empty(rows, np.bool_)
    answer[order] = keep
    return answer


def _swept(
    keep: Bools, settled: bool, *, keys: Int64s | None, times: Int64s, values: Floats, rule: _Rule
) -> Bools:
    """Apply the whole rule to the rows in `keep`, unless these are `settled`; rows are in order."""
    left = np.flatnonzero(keep) if not settled else np.empty(0, np.int64)
    if len(left):
        keep[left] = sweep(
            np.zeros(len(left), np.int64) if keys is None else keys[left],
            times[left],
            values[left],
            as_span(rule.interval),
            rule.sides != "below",
            rule.sides != "above",
            rule.ties == "strict",
            as_delay(rule.max_delay),
        )
    return keep


def _borders(keys: Int64s | None, rows: int) -> Int64s:
    """The first row of each key, where the rows are ordered by key, and the number of rows."""
    if keys is None:
        return np.array([0, rows])
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1], [True]]))
