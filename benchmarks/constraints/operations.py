"""Time of operations on relations of many tuples, with and without the index of intervals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.harness import Cell, Result, Say, medians
from tamis.constraints.atoms import Linear, linear
from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.theories.order import OrderTuple, Temporal
from tamis.constraints.theory import Numbers
from tamis.constraints.tuple_sets import conjoined, difference, without_subsumed

NAME = "constraints.operations"
SIZES = (30, 100, 300, 1000)
NAMES = ("x", "y", "z")
COLUMNS = ("operation", "tuples", "result", "time, ms", "all pairs, ms", "ratio")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    repeats = 1 if quick else 3
    rows: list[dict[str, Cell]] = []
    for tuples in SIZES[:2] if quick else SIZES:
        for operation in ("select", "join", "difference"):
            say(f"{operation}, {tuples} tuples")
            rows.append(_row(operation, tuples, repeats))
    return Result(
        NAME,
        "Operations on relations of many tuples",
        COLUMNS,
        rows,
        {"repeats": repeats, "quick": quick},
        (
            f"CPU time, medians of {repeats} alternating runs on one core",
            "each tuple is a box of three variables with sides of 10, and a bound on the difference of two;"
            " the range of x grows with the number of tuples, those of y and z are 40",
            "select: twenty ranges of x, each a hundredth of all; join and difference: with another relation"
            " of as many tuples",
            "all pairs: the same without index; ratio: all pairs to the time with the index, which is built"
            " anew in each run",
        ),
    )


def _row(operation: str, count: int, repeats: int) -> dict[str, Cell]:
    theory = Temporal(Numbers.REAL)
    first, second = (_boxes(theory, count, seed) for seed in (1, 2))
    others = _ranges(theory, count) if operation == "select" else second
    work = _difference if operation == "difference" else conjoined
    works: dict[str, Callable[[], list[OrderTuple]]] = {
        "indexed": partial(_carry_out, work, theory, first, others, NAMES),
        "all": partial(_carry_out, work, theory, first, others, ()),
    }
    found = medians(works, repeats)
    (mine, result), (every, expected) = found["indexed"], found["all"]
    # Without the index, large sets aren't searched for tuples that others contain.
    if result != without_subsumed(theory, expected, NAMES):
        raise AssertionError("the index changes the result")
    return {
        "operation": operation,
        "tuples": count,
        "result": len(result),
        "time, ms": mine * 1e3,
        "all pairs, ms": every * 1e3,
        "ratio": every / mine,
    }


Work = Callable[[Temporal, IndexedTuples[OrderTuple], list[OrderTuple]], list[OrderTuple]]


def _carry_out(
    work: Work, theory: Temporal, ones: list[OrderTuple], others: list[OrderTuple], names: tuple[str, ...]
) -> list[OrderTuple]:
    return work(theory, IndexedTuples(theory, ones, names), others)


def _difference(
    theory: Temporal, ones: IndexedTuples[OrderTuple], others: list[OrderTuple]
) -> list[OrderTuple]:
    return difference(theory, others, ones)


def _boxes(theory: Temporal, count: int, seed: int) -> list[OrderTuple]:
    r = np.random.default_rng(seed)
    found = []
    for corner in r.integers(0, (2 * count, 30, 30), (count, len(NAMES))).tolist():
        atoms = [
            linear([(name, sign)], "<=", sign * at + (10 if sign > 0 else 0))
            for name, at in zip(NAMES, corner, strict=True)
            for sign in (1, -1)
        ]
        atoms.append(linear([("x", 1), ("y", -1)], "<", corner[0] - corner[1] + 5))
        found.append(_satisfiable(theory, atoms))
    return found


def _ranges(theory: Temporal, count: int) -> list[OrderTuple]:
    """Twenty ranges of x, each a hundredth of all."""
    width = max(1, 2 * count // 100)
    return [
        _satisfiable(theory, [linear([("x", 1)], "<=", at + width), linear([("x", -1)], "<=", -at)])
        for at in range(0, 2 * count, max(1, 2 * count // 20))
    ]


def _satisfiable(theory: Temporal, atoms: list[Linear | bool]) -> OrderTuple:
    found = theory.conjunction(atom for atom in atoms if isinstance(atom, Linear))
    if found is None:
        raise AssertionError("the tuple is satisfiable by its making")
    return found
