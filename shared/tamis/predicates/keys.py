"""Columns as int64 keys in the order of their values, so that one compiled kernel serves every type.

NULL has the least key. A range of cuts becomes a half-open range of keys, since a cut has the key of the
value above it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.expressions.double_order import number_of, write_numbers
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.predicates.differences import Difference, Form
from tamis.predicates.linear_forms import LinearForm
from tamis.predicates.ranges import Cut

Array = npt.NDArray[Any]

# Kinds of dtypes whose values need no conversion.
_DIRECT = {Type.DOUBLE: "fiu", Type.BOOLEAN: "b", Type.VARCHAR: "U"}


def checked(
    columns: Mapping[str, Array], types: Mapping[str, Type], named: Collection[str]
) -> dict[str, Array]:
    """The columns `named`, arrays of shape (n,), as the index reads them: with NaN or None for NULL.

    Masked values, NaT, infinities and NaN are NULL. Integers may stand for DOUBLE, whole floats for integers
    (NumPy has no other NULL there), and datetime64 for TIMESTAMP; nothing else is converted. Raises KeyError
    for a missing column, InputError for columns of different lengths and for a value that isn't of its
    column's type, with its row.
    """
    given = {name: np.ma.asanyarray(values) for name, values in columns.items()}
    shapes = {name: values.shape for name, values in given.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        found = ", ".join(f"'{name}' {shape}" for name, shape in shapes.items())
        raise InputError(
            f"columns of the shapes {found}", hint="give arrays of shape (n,), with a value for each row"
        )
    if not named:  # nothing to look up, but the rows are counted
        return {"": np.zeros(next(iter(shapes.values()), (0,)))}
    return {name: _read(name, given[name], types[name]) for name in named}


def array_of(column: Vector) -> Array:
    """A vector's values as the index reads them: with NaN or None for NULL."""
    if column.null is None or not column.null.any() or column.data.dtype.kind == "O":
        return column.data
    if column.data.dtype.kind == "f":
        return np.where(column.null, np.nan, column.data)
    values = column.data.astype(np.object_)
    values[column.null] = None
    return values


def _read(name: str, values: Array, kind: Type) -> Array:
    null = np.ma.getmaskarray(values) if np.ma.is_masked(values) else None
    array = np.ma.getdata(values)
    if kind is Type.TIMESTAMP and array.dtype.kind == "M":
        null = np.isnat(array) if null is None else null | np.isnat(array)
        array = array.astype("datetime64[us]").astype(np.int64)
    if array.dtype.kind in _DIRECT.get(kind, "i"):
        return array_of(Vector(array, null))
    missing = [False] * len(array) if null is None else null.tolist()
    listed = [
        None if nothing else _whole(value) if kind.integral else _known(value)
        for value, nothing in zip(array.tolist(), missing, strict=True)
    ]
    try:
        return array_of(Vector.from_list(listed, kind))
    except InputError as error:
        raise InputError(
            error.what,
            where=f"column '{name}', {error.where}",
            hint="convert it, or read the predicate with the column's type",
        ) from None


def _known(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _whole(value: object) -> object:
    """2.0 as 2."""
    known = _known(value)
    return int(known) if isinstance(known, float) and known.is_integer() else known


Int64s = npt.NDArray[np.int64]

NULL_KEY = np.iinfo(np.int64).min
LOW_KEY = NULL_KEY + 1
HIGH_KEY = np.iinfo(np.int64).max


@dataclass(frozen=True)
class KeyOrder:
    """The keys of one attribute.

    `points`: None if each value has its own key. Otherwise the values at which ranges end, ascending; a key
    is a position among them, and all values between two of them have the same key.
    """

    kind: Type
    points: Sequence[Any] | None = None

    @staticmethod
    def of(kind: Type, cuts: Iterable[Cut]) -> KeyOrder:
        """The keys of an attribute whose ranges have these cuts."""
        ends = sorted({cut[1] for cut in cuts if len(cut) == 2})
        # The outermost integers share keys with NULL, LOW and HIGH; that matters only if a range ends there.
        coded = kind is Type.VARCHAR or (
            kind is not Type.DOUBLE and bool(ends) and (ends[0] <= LOW_KEY or ends[-1] >= HIGH_KEY)
        )
        return KeyOrder(kind, ends if coded else None)

    def of_cut(self, cut: Cut) -> int:
        """The key of a cut: the key of the least value above it."""
        if len(cut) == 1:
            return {-2: NULL_KEY, -1: LOW_KEY, 1: HIGH_KEY}[cut[0]]
        if self.points is not None:
            return bisect_right(self.points, cut[1])
        if self.kind is Type.DOUBLE:
            return number_of(cut[1])
        return int(cut[1])

    def of_values(self, values: npt.NDArray[np.generic], out: Int64s) -> None:
        """Write the keys of a column's values; None, NaN and infinities are NULL."""
        if self.kind is Type.DOUBLE:
            write_numbers(np.asarray(values, np.float64), NULL_KEY, out)
            return
        listed = _listed(values) if self.points is not None or values.dtype.kind in "Of" else None
        if listed is None:
            np.clip(values.astype(np.int64), LOW_KEY, HIGH_KEY - 1, out=out)
        elif self.points is None:
            out[:] = [NULL_KEY if v is None else min(max(int(v), LOW_KEY), HIGH_KEY - 1) for v in listed]
        else:
            known: dict[Any, int] = {v: bisect_right(self.points, v) for v in set(listed) if v is not None}
            known[None] = NULL_KEY
            out[:] = [known[v] for v in listed]


def _listed(values: npt.NDArray[np.generic]) -> list[Any]:
    """The values, None for NULL."""
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in values.tolist()]


def computed_values(
    dimension: str, columns: Mapping[str, npt.NDArray[np.generic]], order: KeyOrder
) -> npt.NDArray[np.generic]:
    """The values of a computed dimension, as a column."""
    if isinstance(dimension, Difference):
        return _differences(dimension, columns, order)
    assert isinstance(dimension, LinearForm)
    vectors = {("", c.name): _vector(columns[c.name], c.type) for c in dimension.coefficients}
    return array_of(evaluate(dimension.expr, vectors, len(columns[dimension.attributes[0]])))


def _vector(values: npt.NDArray[np.generic], kind: Type) -> Vector:
    if kind is Type.DOUBLE:
        numbers = _finite(values)
        return Vector(numbers, np.isnan(numbers))
    if values.dtype.kind == "i":
        return Vector(values.astype(np.int64))
    return Vector.from_list([None if v is None else int(v) for v in _listed(values)], kind)


def _differences(
    d: Difference, columns: Mapping[str, npt.NDArray[np.generic]], order: KeyOrder
) -> npt.NDArray[np.generic]:
    """The values of a difference, as a column."""
    left, right = columns[d.left], columns[d.right]
    if d.form is not Form.WHOLE:
        one, other = _finite(left), _finite(right)
        with np.errstate(all="ignore"):
            if d.form is Form.ROUNDED:
                return one - other
            other = other + d.offset
            signs = np.subtract(one > other, one < other, dtype=np.float64)
            return np.where(np.isfinite(one) & np.isfinite(other), signs, np.nan)
    if left.dtype.kind == right.dtype.kind == "i" and order.points is None:
        x, y = left.astype(np.int64), right.astype(np.int64)
        found = x - y
        past = ((x < 0) != (y < 0)) & ((found < 0) != (x < 0))  # an overflow: beyond all ends
        return np.where(past, np.where(x < 0, LOW_KEY, HIGH_KEY - 1), found)
    pairs = zip(_listed(left), _listed(right), strict=True)
    exact = [None if a is None or b is None else int(a) - int(b) for a, b in pairs]
    return np.array(exact, np.object_)


def _finite(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """As DOUBLEs; None and infinities are NaN."""
    numbers = values.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
