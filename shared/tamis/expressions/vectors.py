"""Vectors: columns of values with NULLs, which all code that works on batches passes on.

| type | `data` |
|---|---|
| DOUBLE | float64; what isn't finite is NULL |
| INT, BIGINT, TIMESTAMP, INTERVAL | int64; event times and intervals in microseconds |
| BOOLEAN | bool |
| VARCHAR | object array of str, None if NULL |

If a value is NULL, its item of `data` is undefined, except in a VARCHAR: read `data` only together with
`null`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.errors import InputError
from tamis.expressions.nodes import Literal, Type

Value: TypeAlias = float | int | str | bool | None
Mask: TypeAlias = NDArray[np.bool_]

_KINDS: Mapping[Type, tuple[type, ...]] = {
    Type.DOUBLE: (float, int, np.floating, np.integer),
    Type.INT: (int, np.integer),
    Type.BIGINT: (int, np.integer),
    Type.TIMESTAMP: (int, np.integer),
    Type.INTERVAL: (int, np.integer),
    Type.BOOLEAN: (bool, np.bool_),
    Type.VARCHAR: (str,),
}


def dtype_of(type_: Type) -> np.dtype[Any]:
    """The type of `Vector.data` for columns of this type."""
    if type_.integral:
        return np.dtype(np.int64)
    return np.dtype({Type.DOUBLE: np.float64, Type.BOOLEAN: np.bool_, Type.VARCHAR: np.object_}[type_])


@dataclass(frozen=True, eq=False)
class Vector:
    """Values of one type, `data` of shape (n,); `null` of the same shape, or None if no value is NULL.

    Both arrays may be shared with other vectors: never write into them.
    """

    data: NDArray[Any]
    null: Mask | None = None

    def __len__(self) -> int:
        return len(self.data)

    def take(self, indices: NDArray[Any] | slice) -> Vector:
        """The values at `indices` (or where a mask of shape (n,) is true), in that order. A slice copies
        nothing.
        """
        return Vector(self.data[indices], None if self.null is None else self.null[indices])

    def to_list(self) -> list[Value]:
        """Plain Python values, None for NULL."""
        values: list[Value] = self.data.tolist()
        if self.null is not None:
            for index in np.flatnonzero(self.null):
                values[index] = None
        return values

    @staticmethod
    def concat(vectors: Sequence[Vector]) -> Vector:
        """The vectors one after the other: at least one, all of one type."""
        if len(vectors) == 1:
            return vectors[0]
        data = np.concatenate([v.data for v in vectors])
        if all(v.null is None for v in vectors):
            return Vector(data)
        return Vector(
            data, np.concatenate([np.zeros(len(v), np.bool_) if v.null is None else v.null for v in vectors])
        )

    @staticmethod
    def full(literal: Literal, n: int) -> Vector:
        """`n` times the same value.

        Raises InputError if the value is not of the literal's type.
        """
        one = Vector.from_list([literal.value], literal.type)
        return Vector(np.repeat(one.data, n), None if one.null is None else np.repeat(one.null, n))

    @staticmethod
    def nulls(type_: Type, n: int) -> Vector:
        """`n` times NULL."""
        return Vector(np.full(n, None if type_ is Type.VARCHAR else 0, dtype_of(type_)), np.ones(n, np.bool_))

    @staticmethod
    def from_list(values: Sequence[Any], type_: Type) -> Vector:
        """A vector of Python or NumPy scalars, None for NULL; a DOUBLE may be written as an integer.

        A float that isn't finite is NULL. Raises InputError with the index of the first wrong value, if a
        value is not of the type or out of its range. Text, BOOLEANs, and DOUBLEs for an integer type are
        not converted.

        >>> Vector.from_list([1, None, 2.5], Type.DOUBLE).to_list()
        [1.0, None, 2.5]
        """
        kinds = set(map(type, values))
        wrong = {kind for kind in kinds if not _is_of(kind, type_)}
        if wrong:
            raise _misfit(next(i for i, v in enumerate(values) if type(v) in wrong), values, type_)
        if type_ is Type.DOUBLE:
            return _doubles(values)
        data = np.empty(len(values), np.object_)
        data[:] = values
        null = np.equal(data, np.array(None), dtype=np.bool_) if type(None) in kinds else None
        if type_ is Type.VARCHAR:
            return Vector(data, null)
        if null is not None:
            data[null] = False if type_ is Type.BOOLEAN else 0
        try:
            return Vector(data.astype(dtype_of(type_)), null)
        except OverflowError:
            raise _misfit(next(i for i, v in enumerate(data) if not _fits(v)), values, type_) from None


@dataclass(frozen=True, eq=False)
class NumberedTexts(Vector):
    """VARCHARs with numbers, at least 0: in all vectors with the same `table`, those with the same number are
    equal. `table` can be weakly referenced. Vectors that are made of this one have no numbers.
    """

    numbers: NDArray[np.int64] = field(kw_only=True)
    table: object = field(kw_only=True)


Columns: TypeAlias = Mapping[tuple[str, str], Vector]
"""Columns by the source's alias and the column's name, as in `nodes.Column`; all of one length."""


def _is_of(kind: type, type_: Type) -> bool:
    if kind is type(None):
        return True
    if issubclass(kind, (bool, np.bool_)):  # a bool is an int to Python, not to SQL
        return type_ is Type.BOOLEAN
    return issubclass(kind, _KINDS[type_])


def _doubles(values: Sequence[Any]) -> Vector:
    try:
        data = np.array(values, np.float64)  # None becomes NaN
    except OverflowError:
        raise _misfit(
            next(i for i, v in enumerate(values) if not _fits_double(v)), values, Type.DOUBLE
        ) from None
    finite = np.isfinite(data)
    if finite.all():
        return Vector(data)
    return Vector(np.where(finite, data, 0.0), ~finite)


def _fits(value: Any) -> bool:
    return -(2**63) <= int(value) < 2**63


def _fits_double(value: Any) -> bool:
    try:
        float(0 if value is None else value)
    except OverflowError:
        return False
    return True


def _misfit(index: int, values: Sequence[Any], type_: Type) -> InputError:
    value = values[index]
    large = isinstance(value, int) and value.bit_length() > 64
    shown = "an integer of more than 64 bits" if large else repr(value)[:80]
    return InputError(f"{shown} is not a value of type {type_}", where=f"value {index}")
