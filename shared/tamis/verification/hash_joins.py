"""Equalities of time buckets that follow from a WHERE, so that DuckDB can join by hashing.

DuckDB joins on equality fast, but on differences of times it tries all pairs of a key. Where the conjuncts
imply lo <= x - y <= hi for TIMESTAMPs x and y of two sources, time is cut into buckets. Each x lies in one
bucket, and y is listed under each bucket in which x could lie (mostly two). The WHERE itself stays unchanged.
So an error here can only lose alarms of the reference, and then `verify` fails.

A bound may follow from others: x - z <= 3 and z - y <= 4 imply x - y <= 7. Therefore the tightest bounds
between all pairs are computed first, as shortest paths. Otherwise two sources whose times are only bounded
through a third, or from one side each, would be joined without any bound.

This code shares nothing with the planner, since the reference must check the planner's reading of time
bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type

# Event times are within 2^53 microseconds, so a longer window excludes nothing. Contradictory bounds imply
# differences of any size, and the sums must fit in 64 bits.
_FURTHEST = 1 << 54


@dataclass(frozen=True)
class JoinWindow:
    """lo <= x - y <= hi, in microseconds."""

    x: Column
    y: Column
    lo: int
    hi: int

    @property
    def bucket(self) -> int:
        """The length of a bucket: the times of x for one y lie in at most two buckets."""
        return max(1, self.hi - self.lo)


def join_windows(conjuncts: Sequence[Expr], aliases: Sequence[str]) -> dict[str, JoinWindow]:
    """The narrowest windows that connect the sources, each by its source y: a minimum spanning tree (Prim)
    with the first source as its root, or several trees where no bound connects them.
    """
    least = difference_bounds(conjuncts)
    possible = [JoinWindow(x, y, -least[y, x], hi) for (x, y), hi in least.items() if (y, x) in least]
    possible = [w for w in possible if w.lo <= w.hi and max(abs(w.lo), abs(w.hi)) <= _FURTHEST]
    chosen: dict[str, JoinWindow] = {}
    tied: set[str] = set()
    while len(tied) < len(aliases):
        further = [w for w in possible if w.x.alias in tied and w.y.alias not in tied]
        if further:
            window = min(further, key=lambda w: w.bucket)
            chosen[window.y.alias] = window
            tied.add(window.y.alias)
        else:
            tied.add(next(alias for alias in aliases if alias not in tied))
    return chosen


def difference_bounds(conjuncts: Sequence[Expr]) -> dict[tuple[Column, Column], int]:
    """The least hi of x - y <= hi for all pairs (x, y) of TIMESTAMPs that the conjuncts bound, directly or
    through others (Floyd, Warshall).
    """
    least: dict[tuple[Column, Column], int] = {}
    for x, y, hi in (found for conjunct in conjuncts for found in _direct_bounds(conjunct)):
        least[x, y] = min(hi, least.get((x, y), hi))
    times = list(dict.fromkeys(column for pair in least for column in pair))
    for via, x, y in product(times, repeat=3):
        if x != y and (x, via) in least and (via, y) in least:
            hi = least[x, via] + least[via, y]
            least[x, y] = min(hi, least.get((x, y), hi))
    return least


def _direct_bounds(condition: Expr) -> Iterator[tuple[Column, Column, int]]:
    """(x, y, hi) for each x - y <= hi that the condition states directly."""
    if not isinstance(condition, Call):
        return
    if condition.op == "and":
        for part in condition.args:
            yield from _direct_bounds(part)
    if condition.op not in ("<", "<=", ">", ">=", "="):
        return
    left, right = condition.args
    if condition.op in (">", ">="):
        left, right = right, left
    inner = left.args[0] if isinstance(left, Call) and left.op == "abs" else None
    pairs = [(left, right)] if inner is None else [(inner, right), (Call("neg", (inner,), inner.type), right)]
    if condition.op == "=":
        pairs.append((right, left))
    for small, large in pairs:
        a, b = _linear(small), _linear(large)
        if a is None or b is None:
            continue
        terms = {c: a[0].get(c, 0) - b[0].get(c, 0) for c in {**a[0], **b[0]}}
        terms = {c: n for c, n in terms.items() if n}
        if sorted(terms.values()) == [-1, 1]:
            x, y = sorted(terms, key=lambda c: -terms[c])
            if x.alias != y.alias:
                yield x, y, b[1] - a[1]


def _linear(expr: Expr) -> tuple[dict[Column, int], int] | None:
    """A sum of TIMESTAMP columns and constants as the factor of each column, and the constant."""
    if expr.type not in (Type.TIMESTAMP, Type.INTERVAL):
        return None
    if isinstance(expr, Column):
        return {expr: 1}, 0
    if isinstance(expr, Literal):
        return ({}, expr.value) if isinstance(expr.value, int) else None
    if expr.op not in ("+", "-", "neg"):
        return None
    parts = [_linear(arg) for arg in expr.args]
    terms: dict[Column, int] = {}
    constant = 0
    for i, part in enumerate(parts):
        if part is None:
            return None
        sign = -1 if expr.op == "neg" or (expr.op == "-" and i) else 1
        constant += sign * part[1]
        for column, times in part[0].items():
            terms[column] = terms.get(column, 0) + sign * times
    return terms, constant
