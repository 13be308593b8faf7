"""JSON that is kept for long."""

from __future__ import annotations

from typing import Any

import orjson


def json_bytes(value: Any) -> bytes:
    """A value as JSON that needs no more memory than its length.

    `orjson.dumps` reserves memory in case all characters have to be escaped, and its result keeps it: JSON of
    20 kB takes 260 kB, and that of a key of six characters takes 4 kB.
    """
    return bytes(memoryview(orjson.dumps(value)))
