"""Packing of a batch's records into few rows before the stateful operator.

Spark 4.2 passes rows to a stateful processor in Python one at a time, and passes columns only to stateless
functions. Therefore the records of a group go through the shuffle and into the processor as Arrow IPC
streams, one value for each Arrow batch of a task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tamis_joiner.core.state.arrow_ipc import ipc_bytes

# Columns of Spark's Kafka source that `pack` gets beside the number of the group.
RECORD = ("topic", "partition", "offset", "arrived", "value")
PACKED = "group int, packed binary"

_PACKED = pa.schema([("group", pa.int32()), ("packed", pa.binary())])


def pack(batches: Iterator[Any]) -> Iterator[Any]:
    """A row for each group of each batch. The records of a Kafka partition keep their order."""
    for batch in batches:
        groups = batch.column("group").to_numpy()
        numbers = np.unique(groups)
        records = batch.select(RECORD)
        parts = (records.filter(pa.array(groups == number)) for number in numbers)
        packed = [ipc_bytes(part) for part in (parts if len(numbers) > 1 else (records,))]
        yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(packed, pa.binary())], schema=_PACKED)
