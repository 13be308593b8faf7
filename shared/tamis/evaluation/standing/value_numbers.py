"""Values of a column as whole numbers, in the order of the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.bounded.synopses.columns import Column
from tamis.expressions.double_order import numbers_of
from tamis.expressions.vectors import Vector

TextCodes = dict[Any, int]


def as_numbers(vector: Vector, codes: TextCodes) -> Column:
    """A column as whole numbers in the order of its values. Texts have no order here: they get codes, and new
    texts are added to `codes`.
    """
    if vector.data.dtype == np.object_:
        coded = [codes.setdefault(text, len(codes)) for text in vector.data.tolist()]
        return Column(np.array(coded, np.int64), vector.null)
    if vector.data.dtype == np.float64:
        return Column(numbers_of(vector.data), vector.null)
    return Column(vector.data.astype(np.int64, copy=False), vector.null)
