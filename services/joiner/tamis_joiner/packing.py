"""Records of a batch packed into few rows before the stateful operator.

Spark 4.2 hands rows to a stateful processor in Python one at a time, columns only to stateless functions. So
the records of a group go through the shuffle and into the processor as streams of Arrow's IPC format, one
value for each Arrow batch of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

# What `pack` is given beside the number of the group: columns of Spark's Kafka source.
RECORD = ("topic", "partition", "offset", "arrived", "value")
PACKED = "group int, packed binary"

_PACKED = pa.schema([("group", pa.int32()), ("packed", pa.binary())])


def pack(batches: Iterator[Any]) -> Iterator[Any]:
    """A row for each group of each batch; the records of a Kafka partition keep their order."""
    for batch in batches:
        groups = batch.column("group").to_numpy()
        numbers = np.unique(groups)
        records = batch.select(RECORD)
        parts = (records.filter(pa.array(groups == number)) for number in numbers)
        packed = [_stream(part) for part in (parts if len(numbers) > 1 else (records,))]
        yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(packed, pa.binary())], schema=_PACKED)


def _stream(batch: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
