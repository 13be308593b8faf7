"""Arrow IPC streams of one batch as bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def ipc_bytes(batch: Any) -> bytes:
    """A record batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
