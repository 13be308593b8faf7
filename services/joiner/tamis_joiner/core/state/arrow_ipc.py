"""Arrow IPC streams of one batch as bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

# Spark's state store takes several steps for each byte. In one thread, since all cores have tasks of their
# own.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def ipc_bytes(batch: Any) -> bytes:
    """A record batch as an Arrow IPC stream, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
