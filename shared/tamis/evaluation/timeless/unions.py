"""The rows of a UNION from those of its SELECTs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.evaluation.timeless.rows import Result, Rows, first_of_equal
from tamis.expressions.vectors import Vector


def merged(members: Sequence[Result], distinct: bool) -> Rows:
    """Which rows of all members, one after the other, the union has, in the order in which they arise; of
    equal ones the first where it is `distinct`.
    """
    order = np.argsort(np.concatenate([one.arrived for one in members]), kind="stable")
    if not distinct:
        return order
    parts = zip(*(one.selected.values() for one in members), strict=True)
    columns = [Vector.concat(list(part)).take(order) for part in parts]
    return np.asarray(order[first_of_equal(columns, len(order))], np.int64)
