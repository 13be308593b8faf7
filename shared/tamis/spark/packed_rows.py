"""Rows of Spark in blocks of Arrow, one for each group of keys: fewer rows for Spark, and all types kept.

Blocks also hide the column of the watermark. Spark removes late rows before a stateful operator that sees it,
and Tamis does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tamis.spark.columns import in_utc
from tamis.spark.frames import column

GROUP = "__tamis_group"
PACKED = "group int, side int, rows binary"


def with_group(df: DataFrame, key: Sequence[str], groups: int) -> DataFrame:
    """The rows with the number of their group, from 0 to before `groups`."""
    number = F.pmod(F.hash(*map(column, key)), F.lit(groups)) if key else F.lit(0)
    return df.withColumn(GROUP, number.cast("int"))


def packed(df: DataFrame, key: Sequence[str], groups: int, side: int) -> DataFrame:
    """The rows in blocks: the columns of `PACKED`. `side` is the number of the input."""
    return with_group(df, key, groups).mapInArrow(partial(_pack, side), PACKED)


def unpacked(blocks: DataFrame, name: str, schema: StructType) -> DataFrame:
    """The rows of the blocks in the column `name`, without a watermark."""
    plain = StructType([StructField(one.name, one.dataType, one.nullable) for one in schema])
    return blocks.select(column(name)).where(column(name).isNotNull()).mapInArrow(_unpack, plain)


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
