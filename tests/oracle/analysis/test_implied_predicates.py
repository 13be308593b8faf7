"""Implied predicates against brute force: no row of the query has a tuple that an implied predicate excludes.

The conditions are evaluated here by Python's DOUBLEs and by fractions. Values lie where rounding decides: at
the ends of predicates, at rounded results of the conditions, at powers of two, and a few DOUBLEs beside them.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from tests.oracle.analysis.random_conditions import random_conditions
from tests.oracle.constraints import textbook_elimination as textbook
from tests.oracle.random_cases import also_long

from tamis.analysis.conjuncts import Analysis, analyse
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, columns, conjuncts
from tamis.query.parse import catalog_of

Value = float | int | None
Row = Mapping[tuple[str, str], Value]

_STREAM = (
    "CREATE STREAM {0} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE{1}, w DOUBLE, n INT, m BIGINT,"
    " WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);\n"
)
_POOL = (0.1, -0.3, 1.0, -3.0, 7.7, -0.0, 5e-324, 2.0**53, -(2.0**53), 1e100, -1e100)


def _analysis(where: list[str], check: str = "") -> Analysis:
    streams = "".join(_STREAM.format(name, check) for name in ("sa", "sb", "sc"))
    query = (
        "CREATE ALERT q AS SELECT a.ts FROM sa a, sb b, sc c WHERE ABS(a.ts - b.ts) <= INTERVAL '5' SECOND"
        " AND ABS(b.ts - c.ts) <= INTERVAL '5' SECOND AND " + " AND ".join(where)
    )
    catalog = catalog_of(streams + query + ";")
    return analyse(catalog.alerts["q"].query, catalog)


# --- evaluation by Python


_PYTHON: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    **{
        op: lambda x, nearest=nearest: type(x)(nearest(x))  # a float or a Fraction
        for op, nearest in (("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc))
    },
    "to_bigint": lambda x: Fraction(round(x)) if isinstance(x, Fraction) else round(x),
}
_COMPARED: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


def _computed(expr: Expr, row: Row) -> Value:
    """The value as SQL computes it: DOUBLEs rounded, integers of 64 bits, NULL for what can't be computed."""
    if isinstance(expr, Column):
        return row[expr.alias, expr.name]
    if isinstance(expr, Literal):
        assert isinstance(expr.value, int | float)
        return expr.value
    args = [_computed(arg, row) for arg in expr.args]
    if any(arg is None for arg in args):
        return None
    if expr.type is Type.DOUBLE:
        try:
            found = _PYTHON[expr.op](*(float(arg) for arg in args if arg is not None))
        except (OverflowError, ZeroDivisionError):
            return None
        return found if math.isfinite(found) else None
    found = _PYTHON[expr.op](*args)
    return found if -(2**63) <= found < 2**63 else None


def _exact(expr: Expr, row: Row) -> Fraction | None:
    if isinstance(expr, Column | Literal):
        value = row[expr.alias, expr.name] if isinstance(expr, Column) else expr.value
        assert value is None or isinstance(value, int | float)
        return None if value is None else Fraction(value)
    args = [_exact(arg, row) for arg in expr.args]
    if any(arg is None for arg in args):
        return None
    found = _PYTHON[expr.op](*args)
    assert isinstance(found, Fraction)
    return found


def _true(condition: Expr, row: Row) -> bool:
    """True if the condition is true as computed."""
    assert isinstance(condition, Call)
    if condition.op == "and":
        return all(_true(arg, row) for arg in condition.args)
    left, right = (_computed(arg, row) for arg in condition.args)
    if left is None or right is None:
        return False
    if condition.op != "=" and Type.DOUBLE in (condition.args[0].type, condition.args[1].type):
        left, right = float(left), float(right)
    return _COMPARED[condition.op](left, right)


def _counts(condition: Expr, row: Row) -> bool:
    """True if the condition is true as computed or in exact arithmetic: alarms are raised for both."""
    if _true(condition, row):
        return True
    assert isinstance(condition, Call)
    left, right = (_exact(arg, row) for arg in condition.args)
    if left is None or right is None:
        return False
    return _COMPARED[condition.op](left, right)


# --- adversarial rows


def _near(random_: random.Random, value: float) -> float:
    for _ in range(random_.choice((0, 0, 0, 0, 1, 1, 2))):
        value = math.nextafter(value, random_.choice((-math.inf, math.inf)))
    return value


def _row(random_: random.Random, parts: list[Expr], pool: list[float]) -> dict[tuple[str, str], Value]:
    """Values column by column: each near the pool, or where a condition with the values so far turns."""
    needed = list(dict.fromkeys(c for part in parts for c in columns(part)))
    if random_.random() < 0.3:
        random_.shuffle(needed)
    row: dict[tuple[str, str], Value] = {}
    for column in needed:
        candidates = [random_.choice(pool)]
        for part in parts:
            names = [(c.alias, c.name) for c in columns(part)]
            others = [name for name in names if name != (column.alias, column.name)]
            if len(others) < len(names) and all(name in row for name in others):
                candidates += _turns(part, (column.alias, column.name), row)
        candidates = candidates[1:] if len(candidates) > 1 and random_.random() < 0.9 else candidates
        value = _near(random_, random_.choice(candidates))
        if column.type is Type.DOUBLE:
            row[column.alias, column.name] = max(-1e100, min(1e100, value))
        else:
            limit = 2**31 - 1 if column.type is Type.INT else 2**63 - 1
            whole = max(-limit, min(limit, round(value) + random_.choice((-1, 0, 0, 1))))
            row[column.alias, column.name] = whole
    return row


def _turns(part: Expr, name: tuple[str, str], row: Row) -> Iterator[float]:
    """The values of a column at which a comparison turns, as computed and exactly."""
    assert isinstance(part, Call)
    left, right = part.args
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Column) and (one.alias, one.name) == name:
            computed = _computed(other, row)
            if computed is not None:
                yield from (float(computed), float(computed))
    if isinstance(left, Call) and left.op == "abs":
        (left,) = left.args
    for sign in (1, -1):

        def at(value: int, sign: int = sign) -> Fraction:
            one, other = (_exact(side, {**row, name: value}) for side in (left, right))
            assert one is not None
            assert other is not None
            return one - sign * other

        zero, slope = at(0), at(1) - at(0)
        if slope:
            yield float(max(Fraction(-(10**99)), min(Fraction(10**99), -zero / slope)))


def _ends(predicates: Mapping[str, tuple[Expr, ...]]) -> Iterator[float]:
    for parts in predicates.values():
        for part in parts:
            if isinstance(part, Call) and isinstance(part.args[1], Literal):
                value = part.args[1].value
                if isinstance(value, int | float):
                    yield float(value)


def _check(random_: random.Random, rows: int) -> tuple[int, int]:
    """The number of implied predicates of a random query, and of the rows that were tried and count."""
    where = random_conditions(random_, steps=True)
    check = random_.choice(("", " CHECK (v BETWEEN 0 AND 100)", " CHECK (v >= 1.1)"))
    analysis = _analysis(where, check)
    parts = _parts(analysis)
    pool = [*_POOL, *_ends(analysis.implied), *_ends(analysis.filters)]
    counted = 0
    for _ in range(rows):
        row = _row(random_, parts, pool)
        if any(not _declared(name, value, check) for name, value in row.items()):
            continue
        if all(_counts(part, row) for part in parts):
            counted += 1
            assert analysis.contradiction is None, (where, check, row)
            for implied in analysis.implied.values():
                assert all(_true(part, row) for part in implied), (where, check, row, implied)
    return sum(map(len, analysis.implied.values())), counted


def _parts(analysis: Analysis) -> list[Expr]:
    """All conditions of a query but those of time."""
    parts = [part for own in analysis.filters.values() for part in own] + [*analysis.conditions]
    parts += [Call("=", pair, Type.BOOLEAN) for pair in analysis.equalities]
    return [part for whole in parts for part in conjuncts(whole)]


def _declared(name: tuple[str, str], value: Value, check: str) -> bool:
    assert value is not None
    if not check or name[1] != "v":
        return True
    return 0 <= value <= 100 if "BETWEEN" in check else value >= 1.1


def test_no_row_is_lost() -> None:
    """Every row that counts has tuples that meet the implied predicates."""
    random_ = random.Random(1)
    found = [_check(random_, 50) for _ in range(30)]
    assert sum(implied for implied, _ in found) > 25
    assert sum(min(counted, 1) for _, counted in found) > 15


@pytest.mark.soundness
def test_no_row_is_lost_for_long() -> None:
    """The same with more queries and rows."""
    for seed in range(2, 30):
        random_ = random.Random(seed)
        for _ in range(200):
            _check(random_, 400)


# --- completeness


def _linear(part: Expr) -> Iterator[tuple[dict[str, Fraction], str, Fraction]]:
    """A condition as constraints in exact arithmetic, from its values at 0 and at unit points."""
    assert isinstance(part, Call)
    left, right = part.args
    inner = left.args[0] if isinstance(left, Call) and left.op == "abs" else None
    names = list(dict.fromkeys((c.alias, c.name) for c in columns(part)))
    origin: dict[tuple[str, str], Value] = dict.fromkeys(names, 0)
    for sign, side in ((1, left),) if inner is None else ((1, inner), (-1, inner)):

        def at(row: Row, sign: int = sign, side: Expr = side) -> Fraction:
            one, other = _exact(side, row), _exact(right, row)
            assert one is not None
            assert other is not None
            return sign * one - other

        slopes = {".".join(name): at({**origin, name: 1}) - at(origin) for name in names}
        yield slopes, part.op, -at(origin)


def _ends_of(parts: tuple[Expr, ...], column: str, upper: bool) -> list[Fraction]:
    """The ends on one side that predicates set for a column."""
    found = []
    for part in parts:
        assert isinstance(part, Call)
        left, right = part.args
        if isinstance(left, Column) and f"{left.alias}.{left.name}" == column and isinstance(right, Literal):
            assert isinstance(right.value, int | float)
            if part.op == "=" or part.op.startswith("<" if upper else ">"):
                found.append(Fraction(right.value))
    return found


@pytest.mark.parametrize("times", also_long(100))
def test_exact_ends_are_found(times: int) -> None:
    """Where exact arithmetic gives a column an end that its own filters don't give, there is a predicate with
    nearly this end.
    """
    random_ = random.Random(3)
    expected = found = 0
    for _ in range(30 * times):
        analysis = _analysis(random_conditions(random_))
        parts = _parts(analysis)
        system = textbook.constraints(one for part in parts for one in _linear(part))
        # Some are contradictory only for whole numbers.
        if analysis.contradiction is not None or not textbook.satisfiable(system):
            continue
        compared = {c for part in parts for c in columns(part) if len(aliases(part)) > 1}
        for column in sorted(compared, key=str):
            name = f"{column.alias}.{column.name}"
            own = analysis.filters[column.alias]
            predicates = analysis.implied.get(column.alias, ())
            for upper, (end, _) in enumerate(textbook.range_of(system, name)):
                if end is None or _ends_of(own, name, bool(upper)):
                    continue
                expected += 1
                ends = _ends_of(predicates, name, bool(upper))
                found += any(
                    abs(one - end) <= Fraction(1, 10**9) * (1 + abs(end)) + (column.type is not Type.DOUBLE)
                    for one in ends
                )
    assert expected > 20 * times
    assert found >= 0.9 * expected


def test_whole_numbers_beyond_doubles() -> None:
    """A BIGINT that no DOUBLE equals is compared with a DOUBLE as the nearest DOUBLE."""
    analysis = _analysis(["a.m >= 9007199254740993", "b.v >= a.m", "c.v > 0"])
    (predicate,) = analysis.implied["b"]
    assert _true(predicate, {("b", "v"): 9007199254740992.0})
    assert not _true(predicate, {("b", "v"): 9007199254740990.0})


def _has_whole(system: list[textbook.Constraint]) -> bool:
    """Tell if some whole number of a single integer column meets all constraints."""
    (name,) = {name for coefficients, _, _ in system for name in coefficients}
    assert name.endswith((".n", ".m"))
    near = {math.floor(limit / of[name]) + step for of, limit, _ in system for step in (-1, 0, 1, 2)}
    return any(
        all(at * of[name] < limit or (at * of[name] == limit and not strict) for of, limit, strict in system)
        for at in near
    )


@pytest.mark.parametrize("times", also_long(100))
def test_contradictions_name_the_fewest_conditions(times: int) -> None:
    """The conditions of a contradiction can't be met together, but without any of them no contradiction is
    found.
    """
    random_ = random.Random(4)
    found = 0
    for _ in range(20 * times):
        where = [*random_conditions(random_), *random_conditions(random_)]
        contradiction = _analysis(where).contradiction
        if contradiction is None:
            continue
        named = [text for text in dict.fromkeys(where) if f"{text} (line" in contradiction]
        parts = [part for text in named for part in _parts(_analysis([text]))]
        system = textbook.constraints(one for part in parts for one in _linear(part))
        whole = {f"{c.alias}.{c.name}" for part in parts for c in columns(part) if c.type is Type.INT}
        system += [({name: Fraction(1)}, Fraction(2**31 - 1), False) for name in whole]
        system += [({name: Fraction(-1)}, Fraction(2**31), False) for name in whole]
        assert not textbook.satisfiable(system) or not _has_whole(system)
        for left_out in named if len(named) > 1 else ():
            assert _analysis([text for text in named if text != left_out]).contradiction is None
        found += 1
    assert found > times
