"""Columns of Arrow tables as arrays: times, numbers that can be compared, and keys as codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.messaging.records import END_OF_TIME
from tamis.omission.columns import Bools, Floats, Int64s

# Larger whole numbers are not all different as DOUBLEs.
_LARGEST_WHOLE = 2**53


def in_utc(table: pa.Table) -> pa.Table:
    """The table with timestamps that have a zone in UTC, which Spark expects of results. It gives them in the
    zone of the session, as the same instants.
    """
    kinds = [_in_utc(kind) for kind in table.schema.types]
    if kinds == table.schema.types:
        return table
    columns = [column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def followed_by(kept: pa.Table, came: pa.Table) -> pa.Table:
    """The rows of a state, and those that came. Raises InputError if these have other columns."""
    if (kept.column_names, kept.schema.types) != (came.column_names, came.schema.types):
        shown = [", ".join(f"{one.name} {one.type}" for one in table.schema) for table in (kept, came)]
        raise InputError(
            f"the checkpoint has rows with the columns {shown[0]}, and this query has {shown[1]}",
            hint="select the same columns, or give another checkpoint",
        )
    return pa.concat_tables([kept.cast(came.schema), came])


def times_of(column: pa.ChunkedArray) -> tuple[Int64s, Bools]:
    """Timestamps in microseconds, and the mask of those that are event times: not NULL, and in range."""
    ticks = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    known = _known(ticks)
    data = np.asarray(ticks.fill_null(0).to_numpy(), np.int64)
    return data, known & (data < END_OF_TIME) & (data > -END_OF_TIME)


def numbers_of(column: pa.ChunkedArray) -> tuple[Floats, Bools]:
    """Numbers as DOUBLEs, and the mask of those that can be compared exactly: not NULL, and finite."""
    known = _known(column)
    if pa.types.is_integer(column.type):
        whole = np.asarray(column.fill_null(0).to_numpy())
        fits = (whole <= _LARGEST_WHOLE) & (whole >= -_LARGEST_WHOLE)
        return np.where(fits, whole, 0).astype(np.float64), known & fits
    data = np.asarray(column.cast(pa.float64()).fill_null(0.0).to_numpy(), np.float64)
    finite = np.isfinite(data)
    return np.where(finite, data, 0.0), known & finite


def key_codes(keys: Sequence[pa.ChunkedArray], rows: int) -> Int64s:
    """Codes of keys, at least 0: equal keys have equal codes, and NULL is a value of its own."""
    codes = np.zeros(rows, np.int64)
    for column in keys:
        encoded = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
        indices = encoded.dictionary_encode(null_encoding="encode").indices.to_numpy()
        # Numbered anew for each column, so that the products stay small.
        codes = np.unique(codes * (int(indices.max(initial=0)) + 1) + indices, return_inverse=True)[1]
    return codes.astype(np.int64)


def has_null(keys: Sequence[pa.ChunkedArray], rows: int) -> Bools:
    """The mask of rows with NULL in a column of the key."""
    found = np.zeros(rows, np.bool_)
    for column in keys:
        found |= ~_known(column)
    return found


def most_by_rate(codes: Int64s, times: Int64s, since: int | None, count: int, per: int) -> int:
    """The number of tuples that keys with a declared rate can have from `since` (None: from their first one)
    up to their newest one, over all keys; a closed span is covered by one more spans of `per` than fit into
    it. `count` tuples of a key come in `per` microseconds.
    """
    if not len(codes):
        return 0
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    spans: NDArray[np.int64] = times[ends] - (times[starts] if since is None else since)
    return int(sum(count * (span // per + 1) for span in spans.tolist()))


def _in_utc(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_utc(kind.value_type)))
    if pa.types.is_map(kind):
        item = kind.item_field.with_type(_in_utc(kind.item_type))
        return pa.map_(kind.key_field.with_type(_in_utc(kind.key_type)), item)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_utc(field.type)) for field in kind])
    return kind


def _known(column: pa.ChunkedArray) -> Bools:
    return np.asarray(column.is_valid().to_numpy(), np.bool_)
