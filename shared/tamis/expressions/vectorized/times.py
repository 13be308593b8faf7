"""Vectorised functions of times: fields, starts of units, and times from seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tamis.expressions.instants import FIRST, LAST, field, truncated, valid
from tamis.expressions.nodes import Type
from tamis.expressions.vectorized.operands import Operand, any_null

_Operation: TypeAlias = Callable[[Sequence[Operand], Type], Operand]


def _of_valid(function: Callable[..., np.ndarray]) -> _Operation:
    """A function of a name and instants, NULL outside of the years 1 to 9999."""

    def run(args: Sequence[Operand], _: Type) -> Operand:
        name, instants = str(args[0].data[0]), args[1].data
        inside = valid(instants)
        null = args[1].null
        if not inside.all():
            instants, null = np.where(inside, instants, 0), any_null(~inside, null)
        return Operand(function(name, instants), null)

    return run


def _epoch(args: Sequence[Operand], _: Type) -> Operand:
    return Operand(args[0].data.astype(np.float64) / 1e6, args[0].null)


def _to_timestamp(args: Sequence[Operand], _: Type) -> Operand:
    seconds = args[0].doubles()
    inside = (seconds >= FIRST / 1e6) & (seconds < (LAST + 1) / 1e6)
    found = np.rint(np.where(inside, seconds, 0.0) * 1e6).astype(np.int64)
    return Operand(found, args[0].null if inside.all() else any_null(~inside, args[0].null))


OPERATIONS: dict[str, _Operation] = {
    "date_part": _of_valid(field),
    "date_trunc": _of_valid(truncated),
    "epoch": _epoch,
    "to_timestamp": _to_timestamp,
}
