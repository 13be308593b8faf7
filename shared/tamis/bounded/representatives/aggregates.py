"""Aggregates over joins, as DISTINCT queries that need the same tuples.

max(f) is the greatest z for which some row has `z <= f`. So it needs the tuples of a DISTINCT query of the
groups that also joins a stream of all numbers z by `z <= f`; for min(f) the condition is `f <= z`. Several
aggregates need the tuples of all of their conditions, which are joined by OR. If an argument is never NULL,
each group has a greatest value, so that these tuples also give the groups. Otherwise the groups are one more
alternative.

`HAVING count(*) >= c` needs the c best tuples where one tuple of each combination of limited values covers
the others. If a tuple that isn't among the c best is part of a row, these are part of rows with the same
tuples of the other sources, which are c rows. Otherwise all rows are over the best tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.analysis.conjuncts import flatten_and
from tamis.bounded.timeless.aggregates import on_groups
from tamis.bounded.timeless.translate import is_present
from tamis.certificates.interval_arithmetic.derivatives import NO_VARIABLE, UndefinedError, box_of
from tamis.certificates.interval_arithmetic.subdivision import derivatives_over
from tamis.certificates.nulls import may_hold
from tamis.certificates.scalars import subexpressions
from tamis.declarations.aggregates import Aggregate, needs_all_values, needs_counts
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import (
    COMPARISONS,
    FLIPPED,
    OPAQUE,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    aliases,
    columns,
    conjunction,
    substitute,
)
from tamis.query.computed_columns import limited, meaning, with_computed
from tamis.query.model import Catalog, Output, Query, TimelessGroupBy, TimelessSelect

# The alias of the stream of all numbers, which no source has.
NUMBERS = "all numbers"


@dataclass(frozen=True)
class DistinctForm:
    """The DISTINCT query that needs the same tuples as one with aggregates.

    `catalog` has the columns that the query computes. `reached`: one more condition, with columns of
    `numbers`. `most`: so many tuples count of those that one would stand for.
    """

    query: TimelessSelect
    catalog: Catalog
    reached: Expr | None = None
    numbers: StreamDef | None = None
    most: int = 1


def distinct_form(query: TimelessGroupBy, catalog: Catalog) -> DistinctForm | None:
    """The DISTINCT query of one with aggregates; None if an aggregate needs counts of all rows."""
    grouping, wider = query.grouping, with_computed(catalog, query)
    counted = _counted(query)
    if counted is None and any(map(needs_counts, grouping.aggregates)):
        return None
    values = [one.column for one in grouping.aggregates if needs_all_values(one) and one.column is not None]
    found = DistinctForm(distinct_query(query, limited((*grouping.by, *values), query, wider)), wider)
    if counted is not None:
        return replace(found, most=counted)
    return _reaching(found, [one for one in grouping.aggregates if one.function in ("min", "max")], query)


def distinct_query(query: TimelessGroupBy, shown: Sequence[Column]) -> TimelessSelect:
    """The query of the rows in groups that pass the conditions on groups, with these columns."""
    every = (*query.conjuncts, *on_groups(query.grouping))
    conjuncts = tuple(replace(one, expr=written(one.expr, query)) for one in every)
    select = tuple(Output(f"{one.alias}.{one.name}", one) for one in shown)
    return TimelessSelect(query.sources, conjuncts, select, distinct=True)


def written(expr: Expr, query: Query) -> Expr:
    """An expression over the streams' own columns in place of those that the query computes."""
    return substitute(expr, lambda column: meaning(column, query))


def _counted(query: TimelessGroupBy) -> int | None:
    """The number of rows from which on HAVING holds for a group, where nothing else depends on them; None
    for other queries.
    """
    grouping = query.grouping
    rows = [number for number, one in enumerate(grouping.aggregates) if one.column is None]
    if len(rows) != len(grouping.aggregates) or not rows or grouping.having is None:
        return None
    count = grouping.value(rows[0])
    if any(count in columns(output.expr) for output in query.select):
        return None
    parts = [part for part in flatten_and(grouping.having) if count in columns(part)]
    least = [_least(part, count) for part in parts]
    known = [one for one in least if one is not None]
    return max(known) if len(known) == len(parts) and known else None


def _least(part: Expr, count: Column) -> int | None:
    """The least count for which a condition `count(*) >= c` or `count(*) > c` holds, at least 1."""
    if not isinstance(part, Call) or part.op not in FLIPPED:
        return None
    op, (left, right) = part.op, part.args
    if right == count:
        op, left, right = FLIPPED[op], right, left
    if left != count or op not in (">", ">=") or not isinstance(right, Literal):
        return None
    if not isinstance(right.value, int) or isinstance(right.value, bool):
        return None
    return max(1, right.value + (op == ">"))


def _reaching(form: DistinctForm, aggregates: Sequence[Aggregate], query: TimelessGroupBy) -> DistinctForm:
    """The form with the conditions of MIN and MAX."""
    made: list[ColumnDef] = []

    def fresh(kind: Type) -> Column:
        made.append(ColumnDef(str(len(made)), kind, not_null=True))
        return Column(NUMBERS, made[-1].name, kind)

    arguments = [(one, written(one.column, query)) for one in aggregates if one.column is not None]
    parts = [_reached(value, fresh, greatest=one.function == "max") for one, value in arguments]
    streams = {source.alias: form.catalog.streams[source.stream] for source in query.sources}
    conditions = tuple(part for one in form.query.conjuncts for part in flatten_and(one.expr))
    if arguments and not any(_never_null(value, conditions, streams) for _, value in arguments):
        parts.append(fresh(Type.BOOLEAN))
    numbers = StreamDef(NUMBERS, tuple(made), None, 0)
    either = parts[0] if len(parts) == 1 else Call("or", tuple(parts), Type.BOOLEAN) if parts else None
    return replace(form, reached=either, numbers=numbers)


def _reached(value: Expr, fresh: Callable[[Type], Column], *, greatest: bool) -> Expr:
    """The condition by which a row has a value that is at least, or at most, a number of its own."""
    if isinstance(value, Call) and value.op == "case" and len(value.args) == 3:
        condition, then, otherwise = value.args
        if isinstance(otherwise, Literal) and otherwise.value is None:
            return _both(condition, _reached(then, fresh, greatest=greatest))
    if value.type is Type.BOOLEAN:
        extreme = value if greatest else Call("not", (value,), Type.BOOLEAN)
        some = (_both(fresh(Type.BOOLEAN), extreme), _both(fresh(Type.BOOLEAN), is_present(value)))
        return Call("or", some, Type.BOOLEAN)
    number = fresh(value.type)
    return Call("<=", (number, value) if greatest else (value, number), Type.BOOLEAN)


def _both(one: Expr, other: Expr) -> Expr:
    found = conjunction((*flatten_and(one), *flatten_and(other)))
    assert found is not None, "two conditions are some"
    return found


def _never_null(value: Expr, conditions: tuple[Expr, ...], streams: Mapping[str, StreamDef]) -> bool:
    """True if an expression has a value in each row."""
    together = conjunction(conditions)
    for column in columns(value):
        definition = streams[column.alias].column(column.name)
        nullable = definition is None or not definition.not_null
        if nullable and (together is None or may_hold(together, column)):
            return False
    doubtful = (*COMPARISONS, "case", OPAQUE)
    if any(isinstance(part, Call) and part.op in doubtful for part in subexpressions(value)):
        return False
    try:
        filters = {alias: tuple(one for one in conditions if aliases(one) == {alias}) for alias in streams}
        derivatives_over(value, box_of((value,), streams, filters), NO_VARIABLE, strict=True)
    except UndefinedError:
        return False
    return True


def over_several(query: TimelessGroupBy) -> Iterator[Expr]:
    """The arguments of aggregates over several sources: no differences decide them."""
    for one in query.grouping.aggregates:
        value = None if one.column is None else written(one.column, query)
        if value is not None and len({column.alias for column in columns(value)}) > 1:
            yield value
