"""`tamis.omit`: bracket omission of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pyarrow as pa

from tamis.errors import InputError
from tamis.frames.arrow_tables import Frame, frame_rows, warn
from tamis.offline.omit import Retained, Rule, Span, retained_rows
from tamis.offline.wording import FUNCTION
from tamis.omission.batch import Ties
from tamis.omission.columns import Sides
from tamis.recordings.rows import Rows
from tamis.recordings.times import PER_SECOND, TimeUnit


def omit(
    frame: Frame,
    interval: Span,
    *,
    value: str,
    time: str = "ts",
    key: str | Sequence[str] = (),
    sides: Sides = "both",
    max_delay: Span | None = None,
    ties: Ties = "fewest",
    time_unit: TimeUnit | None = None,
) -> pa.Table:
    """The rows that a threshold alert over windows up to the interval can need, in the order of time.

    Arguments: `value`, `time` and `key` are columns. `interval` and `max_delay` are durations (`'30s'`,
    `timedelta`, `numpy.timedelta64`) or, for times that are numbers, numbers in their unit; durations then
    need `time_unit`. `sides="above"` keeps maxima, for alarms on high values; `"below"` keeps minima.
    `ties="strict"`: equal values don't bracket each other, as in cai-2021. `max_delay`: the longest time that
    a decision may wait.

    Datetimes may have any unit and any time zone; without a zone they are in UTC. The rows are those of the
    frame, unchanged. Raises InputError, which names the column and the row.
    """
    rule = Rule(
        interval=interval,
        sides=sides,
        time=time,
        value=value,
        key=key_columns(key),
        max_delay=max_delay,
        ties=ties,
        time_unit=time_unit,
    )
    rows, found = retained(frame, rule)
    return rows.take(found.numbers).table()


def key_columns(key: str | Sequence[str]) -> tuple[str, ...]:
    """The columns of a key. Raises InputError if it is neither a name nor a list of names."""
    if isinstance(key, str):
        return (key,)
    if not isinstance(key, Sequence):
        raise InputError(
            f"{key!r} is no column", where="key", hint="give its name, a list of names, or () for no key"
        )
    return tuple(key)


def check_name(argument: str, column: object) -> None:
    """Raise InputError if a column isn't given by its name. Arrow has no other names than text."""
    if not isinstance(column, str):
        hint = (
            f"write {str(column)!r}, its name in Arrow"
            if isinstance(column, int)
            else "give its name as text"
        )
        raise InputError(f"{column!r} is no name of a column", where=argument, hint=hint)


def retained(frame: Frame, rule: Rule) -> tuple[Rows, Retained]:
    """The rows of a frame, and which of them are retained. Raises InputError."""
    for argument, column in (("time", rule.time), ("value", rule.value), *(("key", one) for one in rule.key)):
        check_name(argument, column)
    rows = frame_rows(frame, "frame")
    for name, given, known in (
        ("sides", rule.sides, get_args(Sides)),
        ("ties", rule.ties, get_args(Ties)),
        ("time_unit", rule.time_unit, (None, *PER_SECOND)),
    ):
        if given not in known:
            listed = ", ".join(repr(one) for one in known if one is not None)
            raise InputError(f"{given!r} is unknown", where=name, hint=f"give one of {listed}")
    found = retained_rows(rows, rule, FUNCTION)
    if found.warning is not None:
        warn(found.warning)
    return rows, found
