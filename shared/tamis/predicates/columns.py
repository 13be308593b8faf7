"""Columns of callers, converted to the arrays that predicates are evaluated over, or refused."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import InputError
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector

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
