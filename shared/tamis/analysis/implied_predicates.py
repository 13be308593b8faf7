"""Implied predicates: what the conditions of a query say about the tuples of each stream alone.

`a.v > 10 AND b.v > a.v + 5` implies `b.v > 15`, and `a.k = b.k AND a.k = 'x'` implies `b.k = 'x'`. Edges can
drop tuples that don't meet an implied predicate: no row of the query contains them. The conditions of all
streams are one conjunction of linear constraints (`constraints.linear.conditions`), whose projection on the
columns of a stream gives ranges of columns and of differences of two columns (goldin-1997, section 3.4). Each
end is an exact DOUBLE or whole number, so that edges evaluate the predicate without rounding that could drop
a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tamis.analysis.contradictions import fewest, linear_system
from tamis.analysis.equality_classes import Equality, classes
from tamis.constraints.atoms import Linear, linear, variables
from tamis.constraints.linear.conditions import LinearSystem, nearest
from tamis.constraints.linear.conjunctions import implies, ranges_of
from tamis.constraints.linear.fourier_motzkin import eliminate
from tamis.constraints.theory import Interval
from tamis.declarations.domains import INT_LIMIT
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import (
    COMPARISONS,
    LARGEST_EXACT_INTEGER,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    columns,
    substitute,
)
from tamis.expressions.signatures import call

Predicates = Mapping[str, tuple[Expr, ...]]

# A query with more linear conditions is left as it is: its linear programs would take seconds.
MOST_CONDITIONS = 40
# More constraints than this are not projected on differences of columns.
_MOST_ROWS = 40
# A predicate has to exclude this share of the values that a column is declared to have. Otherwise it saves
# little, and queries that differ in it share no entry of a topic.
_WORTHWHILE = Fraction(1, 10)
_NOTHING = Literal(False, Type.BOOLEAN)


@dataclass(frozen=True)
class Implied:
    """Implied predicates by alias, which the filters of the stream don't imply.

    `contradiction` has conditions that no tuples meet together; then the predicates let no tuple pass.
    """

    predicates: Predicates
    contradiction: tuple[Expr, ...] = ()


def implied_predicates(
    streams: Mapping[str, StreamDef],
    filters: Predicates,
    conditions: Sequence[Expr],
    equalities: Sequence[Equality],
) -> Implied:
    """The implied predicates of a conjunction; streams and filters are by alias.

    `filters` are conditions on one stream, `conditions` on several, `equalities` are key equalities.
    """
    equal = [Call("=", pair, Type.BOOLEAN) for pair in equalities]
    own = [part for parts in filters.values() for part in parts]
    joined = [*conditions, *equal]
    found: dict[str, dict[Expr, None]] = {alias: {} for alias in streams}
    for alias, predicate in _transferred(filters, equalities):
        if predicate not in filters[alias]:
            found[alias][predicate] = None
    if len(own) + len(joined) <= MOST_CONDITIONS:
        system = _system(streams, [*own, *joined])
        sharpened = system.sharpened()
        if sharpened is None:
            contradiction = fewest([*own, *joined], lambda some: _system(streams, some).rows() is None)
            return Implied(dict.fromkeys(streams, (_NOTHING,)), contradiction)
        compared = _compared_columns(system, joined)
        rows = sharpened.rows
        ranges = sharpened.ranges([name for names in compared.values() for name in names])
        for alias, names in compared.items():
            alone = system.restricted(filters[alias], names.values())
            for predicate in _projected(rows, ranges, alone.rows() or (), names):
                found[alias][predicate] = None
    return Implied({alias: tuple(predicates) for alias, predicates in found.items() if predicates})


def _system(streams: Mapping[str, StreamDef], conditions: Iterable[Expr]) -> LinearSystem:
    system = linear_system(streams)
    for condition in conditions:
        system.add(condition)
    return system


def _compared_columns(system: LinearSystem, joined: Iterable[Expr]) -> dict[str, dict[str, Column]]:
    """The columns of each stream that are compared with other streams, by alias and variable."""
    compared = {column for part in joined for column in columns(part)}
    out: dict[str, dict[str, Column]] = {}
    for name, column in system.columns.items():
        if column in compared:
            out.setdefault(column.alias, {})[name] = column
    return out


def _projected(
    rows: tuple[Linear, ...],
    ranges: Mapping[str, Interval],
    own: tuple[Linear, ...],
    names: Mapping[str, Column],
) -> Iterator[Expr]:
    """The predicates of one stream that follow from `rows`, and not from its `own` constraints.

    `names` has the stream's columns by variable; `ranges` are those of their values under `rows`.
    """
    known = list(own)
    ranges_before = ranges_of(own, names)
    for name, column in names.items():
        before, after = ranges_before[name], ranges[name]
        for sign in (1, -1):
            end, closed = (after.upper, after.upper_closed) if sign > 0 else (after.lower, after.lower_closed)
            if end is None:
                continue
            known.append(_limit({name: sign}, end * sign, closed))
            if _worthwhile(before, end, sign) and (found := _range(column, sign, end, closed)) is not None:
                yield found
    others = [name for name in variables(rows) if name not in names]
    if len(names) < 2 or len(rows) > _MOST_ROWS:
        return
    for row in eliminate(rows, others) or ():
        if _is_difference(row, names) and not implies(known, row):
            known.append(row)
            yield _difference(row, names)


def _limit(terms: Mapping[str, int], constant: Fraction, closed: bool) -> Linear:
    row = linear(terms.items(), "<=" if closed else "<", constant)
    assert isinstance(row, Linear)
    return row


def _worthwhile(before: Interval, end: Fraction, sign: int) -> bool:
    """Tell if an end excludes enough of the values that a column had before."""
    if before.lower is None or before.upper is None:
        old = before.upper if sign > 0 else before.lower
        return old is None or sign * (old - end) > 0
    excluded = sign * ((before.upper if sign > 0 else before.lower) - end)
    return excluded > 0 and excluded >= _WORTHWHILE * (before.upper - before.lower)


def _range(column: Column, sign: int, end: Fraction, closed: bool) -> Expr | None:
    """`column <= end`, or `>=` for sign -1, for the values that the column can have; None where the end has
    no literal.
    """
    op = ("<" if sign > 0 else ">") + ("=" if closed else "")
    if column.type is Type.DOUBLE:
        # The last DOUBLE before the end is itself a value.
        value = _last_double(end, sign)
        if value is None:
            return None
        if Fraction(value) != end:
            op = op[0] + "="
        return call(op, column, _double(value))
    whole = math.floor(end * sign) * sign
    if whole != end:
        op = op[0] + "="
    if abs(whole) > LARGEST_EXACT_INTEGER or column.type not in (Type.INT, Type.BIGINT):
        return None
    return call(op, column, Literal(whole, column.type))


def _double(value: float) -> Literal:
    """The literal of a DOUBLE, as people write it: 15 rather than 15.0."""
    if value.is_integer() and abs(value) < INT_LIMIT:
        return Literal(int(value), Type.INT)
    return Literal(value, Type.DOUBLE)


def _last_double(end: Fraction, sign: int) -> float | None:
    """The greatest DOUBLE of at most `end`, or the least of at least `end` for sign -1."""
    try:
        nearest = float(end)
    except OverflowError:
        return None
    beyond = sign * (Fraction(nearest) - end) > 0
    value = math.nextafter(nearest, -sign * math.inf) if beyond else nearest
    return value if math.isfinite(value) else None


def _is_difference(row: Linear, names: Mapping[str, Column]) -> bool:
    """Tell if edges can evaluate a row: the difference of two DOUBLEs or of two INTs."""
    if len(row.terms) != 2 or {value for _, value in row.terms} != {1, -1}:
        return False
    types = {names[name].type for name in row.names}
    return types in ({Type.DOUBLE}, {Type.INT}) and nearest(row.constant) is not None


def _difference(row: Linear, names: Mapping[str, Column]) -> Expr:
    """The row as a predicate.

    The difference of two DOUBLEs is rounded to nearest, and so is its end: rounding keeps the order of both.
    """
    (first, sign), (second, _) = row.terms
    left, right = (names[first], names[second]) if sign > 0 else (names[second], names[first])
    if not row.constant:
        return call(row.op, left, right)
    if left.type is Type.INT:
        whole = math.floor(row.constant)
        op = row.op if whole == row.constant else "<="
        return call(op, call("-", left, right), Literal(whole, Type.INT))
    op = "=" if row.op == "=" else "<="
    return call(op, call("-", left, right), _double(float(row.constant)))


def _transferred(filters: Predicates, equalities: Sequence[Equality]) -> Iterator[tuple[str, Expr]]:
    """Filters on one attribute, for the attributes of other streams that are equal to it."""
    for group in classes(equalities):
        for column in group:
            for part in filters[column.alias]:
                if set(columns(part)) != {column} or not _compares_constants(part):
                    continue
                for other in group:
                    if other.type is column.type and other.alias != column.alias:
                        yield other.alias, substitute(part, {column: other}.__getitem__)


def _compares_constants(expr: Expr) -> bool:
    """Tell if a condition has the same outcome for values that are equal: -0.0 and 0.0 are."""
    if isinstance(expr, Call) and expr.op in ("and", "or", "not"):
        return all(_compares_constants(arg) for arg in expr.args)
    return (
        isinstance(expr, Call)
        and expr.op in COMPARISONS
        and all(isinstance(arg, Column | Literal) for arg in expr.args)
    )
