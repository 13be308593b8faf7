"""Spark's stateful operator around a step: its state, its timers, and the counts of each call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tamis.errors import InputError
from tamis.spark.packed_rows import block, rows_of
from tamis.spark.steps import BEGINNING, Step

# These must never change, or checkpoints of earlier releases can't be read.
_STATE = "state"
_FIELDS = "groups int, rule string, decided bigint, timer bigint, first binary, second binary"

_OUTPUT = "rows binary, taken bigint, given bigint, late bigint, unusable bigint, held bigint, bound bigint"
_MILLISECOND = 1_000


def stepped(blocks: DataFrame, step: Step, groups: int, metrics: str) -> DataFrame:
    """The blocks that the step gives for `blocks`, in a column `rows`. Spark observes the counts of each
    batch under the name `metrics`.
    """
    made = blocks.groupBy("group").transformWithState(
        GroupProcessor(step, groups), _OUTPUT, "Append", "EventTime"
    )
    return made.observe(metrics, *_metrics())


def _metrics() -> list[Column]:
    """The metrics of a batch, over the groups that had rows or whose watermark has moved."""
    sums = ("taken", "given", "late", "unusable", "held")
    above = F.sum(F.when(F.col("held") > F.col("bound"), 1).otherwise(0))
    return [
        F.count(F.lit(1)).alias("groups"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums),
        F.sum("bound").alias("bound"),
        F.coalesce(above, F.lit(0)).alias("groups_above_bound"),
    ]


class GroupProcessor(StatefulProcessor):
    """One call is one batch of one group of keys. A group is called if it has rows, and if it holds rows and
    the watermark has moved.
    """

    def __init__(self, step: Step, groups: int) -> None:
        self._step, self._groups = step, groups

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this once for each task."""
        self._handle = handle
        self._state = handle.getValueState(_STATE, _FIELDS)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        """Take the blocks of a batch."""
        blocks: dict[int, list[Any]] = {}
        for row in rows:
            blocks.setdefault(int(row.side), []).append(row.rows)
        yield self._call(blocks, timerValues, None)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Take the new watermark."""
        yield self._call({}, timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing has to be closed."""

    def _call(self, blocks: dict[int, list[Any]], timer_values: Any, expired: int | None) -> Row:
        held, decided, timer = {}, BEGINNING, None
        state = self._state.get()
        if state is not None:
            groups, rule, decided, timer, *kept = state
            self._check(int(groups), str(rule))
            held = {side: rows_of([one]) for side, one in enumerate(kept) if one is not None}
        milliseconds = int(timer_values.getCurrentWatermarkInMs())
        watermark = max(decided, milliseconds * _MILLISECOND if milliseconds > 0 else BEGINNING)
        arrived = {side: rows_of(parts) for side, parts in blocks.items()}
        found = self._step.run(held, arrived, decided, watermark)
        if timer is not None and timer != expired:
            self._handle.deleteTimer(timer)
        # A timer fires at the first watermark that isn't before it: here at the next one.
        timer = max(milliseconds, 0) + 1 if found.counts.held else None
        if timer is not None:
            self._handle.registerTimer(timer)
        stored = [found.held.get(side) for side in (0, 1)]
        blobs = [None if rows is None or not len(rows) else block(rows) for rows in stored]
        self._state.update((self._groups, self._step.rule, watermark, timer, *blobs))
        counts = found.counts
        rows = found.given
        return Row(
            rows=None if rows is None or not len(rows) else block(rows),
            taken=counts.taken,
            given=counts.given,
            late=counts.late,
            unusable=counts.unusable,
            held=counts.held,
            bound=counts.bound,
        )

    def _check(self, groups: int, rule: str) -> None:
        if groups != self._groups:
            raise InputError(
                f"the checkpoint was made with groups={groups}, and this query has groups={self._groups}",
                where="groups",
                hint=f"give groups={groups}, or another checkpoint",
            )
        if rule != self._step.rule:
            raise InputError(
                f"the checkpoint was made with '{rule}', and this query has '{self._step.rule}'",
                hint="give the same arguments, or another checkpoint",
            )
