"""Rows that are decided when frontiers have passed the end of a time bound.

A join gives a row as soon as its last tuple arrives. A row of NOT EXISTS is different: it is certain only
when no tuple of the subquery can come any more. So each combination of tuples has one or more *waits*: it is
decided when, for each of them, the frontier of the waited input is above the least of t_row + w over the
row's tuples. The tuples of the row are kept until then (`time_bounds.reaches`).

An evaluation is given the frontiers at the evaluation before and now. It gives the rows that are decided now
and were not given before, from the tuples alone: no state besides the frontiers is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tamis.expressions.vectors import Mask
from tamis.identity_cache import IdentityCache
from tamis.operators.time_join.temporal_join import Rows, Tuples
from tamis.operators.time_join.time_bounds import joined
from tamis.plan.model import Definition

# Before the frontier of every input, and beyond it. Times are within 2^53.
BEGINNING, END = -(2**62), 2**62


@dataclass(frozen=True)
class Wait:
    """A row is decided when the frontier of `alias` is above the least of t + w over `offsets`, which has w
    for each input of the row, in microseconds.

    `first`: the waited tuples lie at or after the greatest of t - f, with f for each input of the row. The
    tuples of `alias` must be complete from that time on, or nothing can be said about the row.
    """

    alias: str
    offsets: Mapping[str, int]
    first: Mapping[str, int]


@dataclass(frozen=True)
class Passed:
    """Frontiers by alias, at the evaluation before and now.

    `complete`: the event time from which on the topic of an input has all tuples that the definition needs;
    END if that is not known.
    """

    before: Mapping[str, int]
    now: Mapping[str, int]
    complete: Mapping[str, int]


def all_passed(definition: Definition) -> Passed:
    """The frontiers of recordings that are read as a whole."""
    names = [source.alias for source in definition.inputs]
    return Passed(dict.fromkeys(names, BEGINNING), dict.fromkeys(names, END), dict.fromkeys(names, BEGINNING))


def waits(definition: Definition) -> tuple[Wait, ...]:
    """The waits of each row; none if rows are given as soon as their tuples have arrived."""
    return _WAITS.one(definition, partial(_waits, definition))


_WAITS = IdentityCache[tuple[Wait, ...]]()


def _waits(definition: Definition) -> tuple[Wait, ...]:
    if not definition.absences:
        return ()
    bounds = joined(definition)
    found = []
    for alias in (alias for absence in definition.absences for alias in absence.aliases):
        upper = bounds.hidden[alias].upper
        offsets = {row: upper[alias, row] for row in bounds.rows if (alias, row) in upper}
        first = {row: upper[row, alias] for row in bounds.rows if (row, alias) in upper}
        found.append(Wait(alias, offsets, first))
    return tuple(found)


def ends(wait: Wait, times: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """The last event time that each row waits for. `times`: those of the rows' tuples, by alias."""
    found: NDArray[np.int64] = np.min([times[row] + w for row, w in wait.offsets.items()], axis=0)
    return found


def decided(
    awaited: Sequence[Wait], times: Mapping[str, NDArray[np.int64]], frontiers: Mapping[str, int]
) -> Mask:
    """The mask of the rows that are decided at these frontiers."""
    found = np.ones(len(next(iter(times.values()))), np.bool_)
    for wait in awaited:
        found &= ends(wait, times) < frontiers[wait.alias]
    return found


def known(
    awaited: Sequence[Wait], times: Mapping[str, NDArray[np.int64]], complete: Mapping[str, int]
) -> Mask:
    """The mask of the rows for which all waited tuples are there."""
    found = np.ones(len(next(iter(times.values()))), np.bool_)
    for wait in awaited:
        first = np.max([times[row] - f for row, f in wait.first.items()], axis=0)
        found &= first >= complete[wait.alias]
    return found


def crossing(awaited: Sequence[Wait], alias: str, times: NDArray[np.int64], passed: Passed) -> Mask:
    """The tuples of an input of which a row may be decided now that was not decided before."""
    found = np.zeros(len(times), np.bool_)
    for wait in awaited:
        if alias in wait.offsets:
            last = times + wait.offsets[alias]
            found |= (last >= passed.before[wait.alias]) & (last < passed.now[wait.alias])
    return found


def times_of(tuples: Mapping[str, Tuples], rows: Mapping[str, Rows]) -> dict[str, NDArray[np.int64]]:
    """The event times of the tuples of rows, by alias."""
    return {alias: tuples[alias].times[picked] for alias, picked in rows.items()}
