"""`tamis.spark.retain`: omission for a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pyarrow as pa
from pyspark.sql import DataFrame

from tamis.errors import InputError
from tamis.offline.omit import Span, duration
from tamis.omission.batch import Ties
from tamis.omission.columns import Sides
from tamis.spark.columns import in_utc
from tamis.spark.frames import (
    LAG,
    check_frame,
    check_key,
    check_state_store,
    check_text,
    check_time,
    check_value,
    column,
    groups_of,
    key_of,
    lag_of,
    rate_of,
)
from tamis.spark.group_processor import stepped
from tamis.spark.packed_rows import GROUP, packed, unpacked, with_group
from tamis.spark.retention import Retention


def retain(
    df: DataFrame,
    interval: Span,
    *,
    value: str,
    time: str = "ts",
    key: str | Sequence[str] = (),
    sides: Sides = "both",
    max_delay: Span | None = None,
    ties: Ties = "fewest",
    rate: str | None = None,
    groups: int | None = None,
    metrics: str = "tamis_retain",
) -> DataFrame:
    """The rows that a threshold alert over windows up to the interval can need, with all of their columns.

    Arguments: as of `tamis.omit`; `time` is a column of timestamps, and `interval` a duration. `groups`: the
    number of groups that keys are divided into, each of which is decided by one task. The rows are those of
    `tamis.omit`, in any order. Rows whose time or value is missing, or can't be compared as a DOUBLE, are
    retained.

    A stream needs a watermark on `time`. A row is given out when the watermark has decided it; late rows are
    given out at once. `groups` must not change as long as a checkpoint is used. `max_delay` and `ties` are
    for static frames only. `metrics`: the name of the observed metrics; `held` is the number of rows in the
    state. With `rate`, such as `'10/s'` for ten rows of a key in any second, `bound` is the proven greatest
    number of them.

    Raises InputError, which names the column.
    """
    check_frame(df, "df")
    names = key_of(key)
    check_time(df, time, "df")
    check_value(df, value, "df")
    check_key(df, names, "df")
    for argument, given, known in (("sides", sides, get_args(Sides)), ("ties", ties, get_args(Ties))):
        if given not in known:
            hint = f"give one of {', '.join(map(repr, known))}"
            raise InputError(f"{given!r} is unknown", where=argument, hint=hint)
    rule = Retention(
        interval=duration(interval, "interval"),
        value=value,
        time=time,
        key=names,
        sides=sides,
        ties=ties,
        max_delay=None if max_delay is None else duration(max_delay, "max_delay"),
        rate=rate_of(rate, "rate"),
        lag=lag_of(df, time, "df") if df.isStreaming else 0,
    )
    check_text(metrics, "metrics")
    number = groups_of(groups, df)
    if not df.isStreaming:
        grouped = with_group(df, names, number).groupBy(GROUP)

        def retained(rows: pa.Table) -> pa.Table:
            return rule.retained(in_utc(rows.drop_columns([GROUP])))

        return grouped.applyInArrow(retained, df.schema)
    if max_delay is not None or ties != "fewest":
        where = "ties" if max_delay is None else "max_delay"
        hint = "leave it out: the watermark decides rows of a stream"
        raise InputError("it is for static frames", where=where, hint=hint)
    check_state_store(df)
    rows = unpacked(stepped(packed(df, names, number, 0), rule, number, metrics), "rows", df.schema)
    # Rows may now be behind the watermark by the interval, which a join of them must know.
    marked = column(time).alias(time, metadata={LAG: rule.lag + rule.interval})
    return rows.select(*(marked if name == time else column(name) for name in df.columns))
