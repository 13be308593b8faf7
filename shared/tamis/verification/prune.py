"""Joins that DuckDB can hash, for the reference: what its WHERE already implies, said by time buckets.

DuckDB joins on equality fast, and on differences of times by trying all pairs of a key. Where the conjuncts
hold lo <= x - y <= hi for TIMESTAMPs x and y of two sources, time is cut into buckets; x lies in one, and y
is listed under each in which x could lie (mostly two). The WHERE stays as it is, so that this can only make
the join faster or, were it wrong, lose alarms of the reference and so let `verify` fail.

Written anew, and shares nothing with the planner, whose reading of time bounds the reference is to check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type


@dataclass(frozen=True)
class Window:
    """lo <= x - y <= hi, in microseconds."""

    x: Column
    y: Column
    lo: int
    hi: int

    @property
    def bucket(self) -> int:
        """A length such that the times of x for one y lie in two buckets at most."""
        return max(1, self.hi - self.lo)


def windows(conjuncts: Sequence[Expr], aliases: Sequence[str]) -> dict[str, Window]:
    """For each source that windows tie to earlier ones the narrowest of them, with the source as y."""
    least: dict[tuple[Column, Column], int] = {}
    for x, y, hi in (found for conjunct in conjuncts for found in _differences(conjunct)):
        least[x, y] = min(hi, least.get((x, y), hi))
    order = {alias: i for i, alias in enumerate(aliases)}
    chosen: dict[str, Window] = {}
    for (x, y), hi in least.items():
        if order[x.alias] >= order[y.alias] or (y, x) not in least:
            continue
        window = Window(x, y, -least[y, x], hi)
        if window.lo <= window.hi and (y.alias not in chosen or window.bucket < chosen[y.alias].bucket):
            chosen[y.alias] = window
    return chosen


def _differences(condition: Expr) -> Iterator[tuple[Column, Column, int]]:
    """(x, y, hi) for each x - y <= hi that follows from the condition at once."""
    if not isinstance(condition, Call):
        return
    if condition.op == "and":
        for part in condition.args:
            yield from _differences(part)
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
    """Sums and differences of TIMESTAMP columns and constants: how often each column, and the constant."""
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
