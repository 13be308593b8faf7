"""Conditions on the tuples of one source, and values of tuples as numbers of conjunctions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tamis.difference_bounds import Bound
from tamis.expressions.double_order import number_of
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr
from tamis.expressions.vectors import Mask, Vector

Numbers = list[Bound | None]


def passing(
    conditions_: Iterable[tuple[Expr, bool]], alias: str, batch: Mapping[str, Vector], rows: int
) -> Mask:
    """The tuples of a source that satisfy its conditions and belong to the alternative."""
    columns = {(alias, name): vector for name, vector in batch.items()}
    keep = np.ones(rows, np.bool_)
    for expr, wanted in conditions_:
        keep &= holds(expr, columns, rows) == wanted
    return keep


def numbers(vector: Vector, codes: Mapping[str, int]) -> Numbers:
    """The values of a column as numbers, None for NULL. `codes` are those of the constant texts."""
    values = vector.to_list()
    if vector.data.dtype == np.object_:
        return [None if v is None else _code(str(v), codes) for v in values]
    if vector.data.dtype == np.float64:
        return [None if v is None else number_of(float(v)) for v in values]
    return [None if v is None else int(v) for v in values]


def _code(text: str, codes: Mapping[str, int]) -> int:
    """A number for a text, equal for equal texts: small for the constants of the query."""
    code = codes.get(text)
    return len(codes) + int.from_bytes(b"\1" + text.encode()) if code is None else code
