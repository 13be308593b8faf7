"""JSON payloads of a micro-batch to columns, or to Python objects.

Flat objects are decoded without objects of Python while most are understood. The others are parsed by a
single call if all are valid, slice by slice: the objects of a slice are forgotten before those of the next.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from tamis.expressions.vectors import Vector
from tamis.messaging.dead_letters import Reason
from tamis.omission.columns import Int64s
from tamis.plan.model import StreamPlan
from tamis.recordings.field_paths import FieldPath
from tamis.recordings.flat_json.columns import FlatDecoder
from tamis.recordings.json_structure import ComplexityError, check_complexity, loads
from tamis.recordings.json_values import Offence, excerpt
from tamis.recordings.times import TimeUnit
from tamis.wording.file_text import wide_encoding
from tamis_edge.decode.logical_types import Unfit

# Payloads of a slice, and their bytes: few enough that their objects stay in the processor's cache. No other
# thread of the edge runs while the parser does, which takes 50 ms for 50,000 nested arrays.
SLICE, SLICE_BYTES = 500, 100_000


def slices(payloads: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """The bounds of the slices: each has at most SLICE payloads, and at most SLICE_BYTES or a single payload.

    >>> list(slices([b"x" * 90_000, b"x" * 9_000, b"x" * 1_001, b"x" * 200_000]))
    [(0, 2), (2, 3), (3, 4)]
    """
    start = size = 0
    for row, payload in enumerate(payloads):
        if row > start and (row - start == SLICE or size + len(payload) > SLICE_BYTES):
            yield start, row
            start, size = row, 0
        size += len(payload)
    if payloads:
        yield start, len(payloads)


def without_nested(values: Sequence[Any]) -> Sequence[Any]:
    """Values with excerpts in place of arrays and objects: no column can have these, and their parts need a
    hundred times the memory of a payload.

    >>> without_nested([1.5, [[], [2]], None])
    [1.5, [[],[2]], None]
    """
    if not {list, dict} & set(map(type, values)):
        return values
    return [Unfit(excerpt(value)) if type(value) in (list, dict) else value for value in values]


# Batches that are not tried after one of which less than half was understood: a try takes a tenth of the time
# of the other way.
_PAUSE = 20


class FlatRows:
    """The compiled decoder of a stream's payloads."""

    def __init__(self, stream: StreamPlan, paths: Mapping[str, FieldPath], unit: TimeUnit) -> None:
        """`paths`: of the columns. Each is one field, and no two are the same."""
        self._names = [column.name for column in stream.columns]
        self._decoder = FlatDecoder({paths[c.name].steps[0]: c.type for c in stream.columns}, unit)
        self._pause = 0

    @staticmethod
    def of(stream: StreamPlan, paths: Mapping[str, FieldPath], unit: TimeUnit) -> FlatRows | None:
        """The decoder for a stream; None if columns are fields of nested objects, or two are one field."""
        fields = {path.steps for path in paths.values()}
        if not paths or len(fields) < len(paths) or any(len(steps) > 1 for steps in fields):
            return None
        return FlatRows(stream, paths, unit)

    def decode(self, payloads: Sequence[bytes]) -> tuple[dict[str, Vector], Int64s] | None:
        """The column vectors, and the positions of the payloads that were not understood, whose values are
        undefined. None if it isn't worth while to try.
        """
        if self._pause or not payloads:
            self._pause = max(self._pause - 1, 0)
            return None
        vectors, understood = self._decoder.decode(payloads)
        left = np.flatnonzero(~understood)
        if 2 * len(left) > len(payloads):
            self._pause = _PAUSE
        return dict(zip(self._names, vectors, strict=True)), left


def parse(payloads: Sequence[bytes], limit: int) -> tuple[list[dict[str, Any]], list[Offence]]:
    """The object of each payload, and the mistakes. The object is `{}` for a payload that isn't a JSON
    object, or has more than `limit` bytes.
    """
    rows: list[Any] | None = None
    if max(map(len, payloads), default=0) <= limit:
        rows = _parse_together(payloads)
    offences: list[Offence] = []
    if rows is None:
        rows = []
        for i, payload in enumerate(payloads):
            try:
                rows.append(_parse_one(payload, limit))
            except _Refused as refused:
                offences.append(Offence(i, refused.reason, str(refused)))
                rows.append({})
    if set(map(type, rows)) - {dict}:
        for i, row in enumerate(rows):
            if type(row) is not dict:
                error = f"a JSON {_NAMES[type(row)]}, not an object; send one object a reading"
                offences.append(Offence(i, Reason.UNDECODABLE, error))
                rows[i] = {}
    return rows, offences


_NAMES = {
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

# Between payloads that are parsed as one array. No sender can know it: without it two crafted payloads that
# only together are JSON could pass for others.
_FENCE = secrets.token_hex(16)
_JOINT = b',"%s",' % _FENCE.encode()


def _parse_together(payloads: Sequence[bytes]) -> list[Any] | None:
    try:
        for payload in payloads:
            check_complexity(payload)
        found = orjson.loads(b"[" + _JOINT.join(payloads) + b"]")
    except (ComplexityError, orjson.JSONDecodeError):
        return None
    rows: list[Any] = found[::2]
    fences = found[1::2]
    # The last payload may be two values with a comma between: then there is one more than the fences.
    if len(found) != 2 * len(payloads) - 1 or fences.count(_FENCE) != len(fences):
        return None
    return rows


class _Refused(Exception):
    def __init__(self, reason: Reason, error: str) -> None:
        super().__init__(error)
        self.reason = reason


def _parse_one(payload: bytes, limit: int) -> Any:
    if len(payload) > limit:
        raise _Refused(Reason.TOO_LARGE, f"{len(payload)} bytes; the limit is {limit}")
    try:
        return loads(payload)
    except orjson.JSONDecodeError as error:
        wide = wide_encoding(payload)
        if wide is not None:
            raise _Refused(Reason.UNDECODABLE, f"not JSON: {wide}, and not UTF-8; send it in UTF-8") from None
        raise _Refused(Reason.UNDECODABLE, f"not JSON: {error}") from None
    except ComplexityError as error:
        raise _Refused(Reason.UNDECODABLE, str(error)) from None
