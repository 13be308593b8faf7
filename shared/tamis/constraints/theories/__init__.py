"""Theories: classes of constraints, each with its own representation of tuples.

| module | constraints |
|---|---|
| `difference_bounds` | conjunctions of `x - y <op> c` and `x <op> c` as matrices of bounds |
| `symbols` | conjunctions of equalities and inequalities of symbols |
| `order` | the theories dense and temporal, of both |
| `monotone` | the theory monotone, by networks of `tamis.constraints.monotone` |
| `linear` | the theory linear, by lazy tuples of `tamis.constraints.linear` |

`theory_of` finds a theory by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tamis.constraints.theories.linear import linear_theory
from tamis.constraints.theories.monotone import Monotone
from tamis.constraints.theories.order import DenseOrder, Temporal
from tamis.constraints.theory import Numbers, Theory
from tamis.errors import InputError

THEORIES: Mapping[str, Callable[[Numbers], Theory[Any]]] = {
    "dense": DenseOrder,
    "temporal": Temporal,
    "monotone": Monotone,
    "linear": linear_theory,
}


def theory_of(name: str, numbers: str) -> Theory[Any]:
    """The theory of a name over some numbers.

    Raises `InputError` for an unknown name, and `RefusedError` for numbers that the theory isn't closed over.
    """
    if name not in THEORIES:
        raise InputError(f"no such theory: {name!r}", hint=f"give one of {', '.join(THEORIES)}")
    if numbers not in tuple(Numbers):
        raise InputError(f"no such numbers: {numbers!r}", hint=f"give one of {', '.join(Numbers)}")
    return THEORIES[name](Numbers(numbers))
