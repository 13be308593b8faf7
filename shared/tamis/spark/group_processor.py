"""Spark's stateful operator around a step, over rows in blocks: state, timers, and the counts of each call.

A block is a stream of Arrow with the rows of one group of keys: fewer rows for Spark, and all types kept.
Blocks also hide the column of the watermark. Spark removes late rows before a stateful operator that sees it,
and Tamis does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructField, StructType

from tamis.errors import InputError
from tamis.spark.columns import in_utc
from tamis.spark.frames import column
from tamis.spark.steps import BEGINNING, Step

GROUP = "__tamis_group"
PACKED = "group int, side int, rows binary"

# These must never change, or checkpoints of earlier releases can't be read.
_STATE = "state"
_FIELDS = "groups int, rule string, decided bigint, timer bigint, first binary, second binary"

_OUTPUT = "rows binary, taken bigint, given bigint, late bigint, unusable bigint, held bigint, bound bigint"
_MILLISECOND = 1_000


def with_group(df: DataFrame, key: Sequence[str], groups: int) -> DataFrame:
    """The rows with the number of their group, from 0 to before `groups`."""
    number = F.pmod(F.hash(*map(column, key)), F.lit(groups)) if key else F.lit(0)
    return df.withColumn(GROUP, number.cast("int"))


def packed(df: DataFrame, key: Sequence[str], groups: int, side: int) -> DataFrame:
    """The rows in blocks: the columns of `PACKED`. `side` is the number of the input."""
    return with_group(df, key, groups).mapInArrow(partial(_pack, side), PACKED)


def unpacked(blocks: DataFrame, schema: StructType) -> DataFrame:
    """The rows of the blocks in the column `rows`, without a watermark."""
    plain = StructType([StructField(one.name, one.dataType, one.nullable) for one in schema])
    return blocks.select("rows").where(F.col("rows").isNotNull()).mapInArrow(_unpack, plain)


def block(rows: pa.Table) -> bytes:
    """The rows as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def rows_of(blocks: Iterable[Any]) -> pa.Table:
    """The rows of blocks: at least one, all of the same columns."""
    return pa.concat_tables([pa.ipc.open_stream(bytes(one)).read_all() for one in blocks])


def _pack(side: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        table = in_utc(pa.Table.from_batches([batch]))
        numbers = np.asarray(table[GROUP].to_numpy(), np.int64)
        order = np.argsort(numbers, kind="stable")
        rows = table.drop_columns([GROUP]).take(pa.array(order))
        groups, starts = np.unique(numbers[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        blocks = [
            block(rows.slice(int(start), int(end - start))) for start, end in zip(starts, ends, strict=True)
        ]
        columns = [
            pa.array(groups, pa.int32()),
            pa.array([side] * len(groups), pa.int32()),
            pa.array(blocks, pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["group", "side", "rows"])


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for one in batch.column(0).to_pylist():
            yield from pa.ipc.open_stream(one).read_all().to_batches()


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
