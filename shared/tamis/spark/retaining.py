"""`tamis.spark.retain`: omission for a DataFrame, by the cores of omission for each group of keys.

A recording is decided by the batch form of omission. Of a stream, rows wait until the watermark has passed
them, and then are taken in order of time by the stream form. So exactly the rows are retained that the batch
form retains, whatever the batches and the order of arrival.

Rows that can't be compared (time or value NULL, not finite, or too large for a DOUBLE) are retained, and late
rows are, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from tamis.declarations.definitions import Rate
from tamis.errors import InputError
from tamis.offline.omit import Span, duration
from tamis.omission import Live, OmissionState, Sides, Ties, retained_by_key
from tamis.omission.columns import Bools, Int64s
from tamis.spark import steps
from tamis.spark.columns import followed_by, in_utc, key_codes, most_by_rate, numbers_of, times_of
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
from tamis.spark.group_processor import GROUP, packed, stepped, unpacked, with_group
from tamis.spark.steps import BEGINNING, Counts, Outcome, behind

# A column of held rows: `Live.needs`, or 0 for a row that waits for the watermark.
_NEEDS = "__tamis_needs"
_WAITS = 0


@dataclass(frozen=True)
class Retention:
    """The rule. `interval`, `max_delay` and `lag` are in microseconds; `rate` is that of each key. `lag`: how
    far rows may be behind the watermark of Spark without being late.
    """

    interval: int
    value: str
    time: str
    key: tuple[str, ...]
    sides: Sides = "both"
    ties: Ties = "fewest"
    max_delay: int | None = None
    rate: Rate | None = None
    lag: int = 0

    @property
    def rule(self) -> str:
        """As of `Step`."""
        return f"retain {self.interval} {self.value} {self.time} {self.key} {self.sides} {self.lag}"

    def retained(self, table: pa.Table) -> pa.Table:
        """The retained rows of a whole recording."""
        times, values, usable = self._columns(table)
        keep = ~usable
        at = np.flatnonzero(usable)
        codes = key_codes([table[name] for name in self.key], len(table))
        keep[at] = retained_by_key(
            codes[at],
            times[at],
            values[at],
            self.interval,
            sides=self.sides,
            ties=self.ties,
            max_delay=self.max_delay,
        )
        return table.filter(pa.array(keep))

    def run(self, held: steps.Sides, arrived: steps.Sides, decided: int, watermark: int) -> Outcome:
        """As of `Step`."""
        decided, watermark = behind(decided, self.lag), behind(watermark, self.lag)
        kept, came = held.get(0), arrived.get(0)
        rows, needs = _joined(kept, came)
        if rows is None:
            return Outcome(None, {}, Counts(bound=self._bound(np.empty(0, np.int64), None, watermark)))
        old = len(rows) - (0 if came is None else len(came))
        times, values, usable = self._columns(rows)
        new = np.arange(len(rows)) >= old
        late = new & usable & (times < decided)
        waiting = usable & ~late & (needs == _WAITS)
        codes = key_codes([rows[name] for name in self.key], len(rows))
        state = OmissionState(self.interval, self.sides)
        at = np.flatnonzero(needs != _WAITS)
        state.resume(codes[at], times[at], values[at], Live(at, needs[at]))
        ready = np.flatnonzero(waiting & (times < watermark))
        state.offer(codes[ready], times[ready], values[ready], ready, now=0)
        published = state.decide(watermark, now=0).published
        given = np.concatenate([np.flatnonzero(late | (new & ~usable)), published])
        live = state.live()
        still = np.flatnonzero(waiting & (times >= watermark))
        stays = np.concatenate([live.ids, still])
        flags = np.concatenate([live.needs, np.full(len(still), _WAITS, np.uint8)])
        return Outcome(
            rows.take(pa.array(given)),
            {0: rows.take(pa.array(stays)).append_column(_NEEDS, pa.array(flags, pa.uint8()))},
            Counts(
                taken=len(rows) - old,
                given=len(given),
                late=int(late.sum()),
                unusable=int((new & ~usable).sum()),
                held=len(stays),
                bound=self._bound(times[stays], codes[stays], watermark),
            ),
        )

    def _columns(self, table: pa.Table) -> tuple[Int64s, np.ndarray, Bools]:
        times, timed = times_of(table[self.time])
        values, valued = numbers_of(table[self.value])
        return times, values, timed & valued

    def _bound(self, times: Int64s, codes: Int64s | None, watermark: int) -> int | None:
        """All held rows of a key lie from the watermark less the interval on, up to the newest one."""
        if self.rate is None:
            return None
        if codes is None:
            return 0
        since = None if watermark == BEGINNING else watermark - self.interval
        return most_by_rate(codes, times, since, self.rate.count, self.rate.per)


def _joined(kept: pa.Table | None, came: pa.Table | None) -> tuple[pa.Table | None, np.ndarray]:
    """Held rows and those that came, one after the other, with the needs of all."""
    if kept is None:
        return came, np.full(0 if came is None else len(came), _WAITS, np.uint8)
    needs = np.asarray(kept[_NEEDS].to_numpy(), np.uint8)
    kept = kept.drop_columns([_NEEDS])
    if came is None:
        return kept, needs
    return followed_by(kept, came), np.concatenate([needs, np.full(len(came), _WAITS, np.uint8)])


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
    rows = unpacked(stepped(packed(df, names, number, 0), rule, number, metrics), df.schema)
    # Rows may now be behind the watermark by the interval, which a join of them must know.
    marked = column(time).alias(time, metadata={LAG: rule.lag + rule.interval})
    return rows.select(*(marked if name == time else column(name) for name in df.columns))
