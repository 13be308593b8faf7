"""Computed columns: expressions over one stream that a query aggregates or groups by.

A query has them in `Grouping.computed`. Everything that decides or evaluates the query reads them as further
columns of the stream, so only their values have to be computed, for each batch once. `FILTER (WHERE c)` needs
nothing of its own: all aggregates except `count(*)` ignore NULL, so `sum(x) FILTER (WHERE c)` is the sum of
`CASE WHEN c THEN x END`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tamis.declarations.definitions import ColumnDef
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, aliases, columns, substitute
from tamis.expressions.sql_text import to_sql
from tamis.query.model import Catalog, GroupByQuery, Query

# A column counts as one with few values if its results are text, or whole numbers in a range of this size.
_MOST_RESULTS = 64


@dataclass(frozen=True)
class KnownValues:
    """The name of a computed column, and the condition on it that all of its values meet."""

    name: str
    limits: Callable[[Expr], Expr]


def computed_column(
    expr: Expr, taken: Mapping[str, Expr | None], known: KnownValues | None = None
) -> ColumnDef:
    """The column for an expression over the columns of one stream, which have any alias, or over those of
    several sources.

    Its name is the SQL of the expression in parentheses, as in messages. `taken` has the names of all columns
    of the stream that gets the column, and for those that the query computes their expressions. `known`: what
    is known of the column's values.
    """
    several = len(aliases(expr)) > 1
    own = expr if several else substitute(expr, lambda column: Column("", column.name, column.type))
    name = f"({to_sql(own, qualify=several)})" if known is None else known.name
    while taken.get(name, own) != own:
        name = f"({name})"
    results = _results(own)
    check = None if known is None else known.limits(Column("", name, own.type))
    if results and _few(results):
        column = Column("", name, own.type)
        equal = tuple(Call("=", (column, one), Type.BOOLEAN) for one in results)
        check = equal[0] if len(equal) == 1 else Call("or", equal, Type.BOOLEAN)
    return ColumnDef(name, own.type, check=check, computed=own)


def _results(expr: Expr) -> list[Literal] | None:
    """The results besides NULL of a CASE whose results are constants, or are equal to constants by their
    conditions; None for any other expression.
    """
    if not isinstance(expr, Call) or expr.op != "case":
        return None
    found: list[Literal] = []
    certain = Literal(True, Type.BOOLEAN)
    for condition, value in zip(
        (*expr.args[:-1:2], certain), expr.args[1:-1:2] + expr.args[-1:], strict=True
    ):
        equal = [value] if isinstance(value, Literal) else _equal(condition, value)
        if equal is None:
            return None
        found += equal
    return [one for one in dict.fromkeys(found) if one.value is not None]


def _equal(condition: Expr, value: Expr) -> list[Literal] | None:
    """The constants to one of which a value is equal where a condition holds; None if there may be others."""
    if not isinstance(condition, Call):
        return None
    if condition.op == "=" and value in condition.args:
        return [one for one in condition.args if isinstance(one, Literal)] or None
    parts = [_equal(one, value) for one in condition.args] if condition.op in ("and", "or") else []
    known = [one for one in parts if one is not None]
    if condition.op == "or" and len(known) == len(parts):
        return [one for part in known for one in part]
    return known[0] if condition.op == "and" and known else None


def _few(results: list[Literal]) -> bool:
    if any(one.type in (Type.DOUBLE, Type.TIMESTAMP, Type.INTERVAL) for one in results):
        return False
    numbers = [int(one.value or 0) for one in results if one.type is not Type.VARCHAR]
    return not numbers or max(numbers) - min(numbers) < _MOST_RESULTS


def with_computed(catalog: Catalog, query: Query) -> Catalog:
    """The catalogue in which streams also have the columns that the query computes."""
    if not isinstance(query, GroupByQuery) or not query.grouping.computed:
        return catalog
    wider = catalog.copy()
    for name, columns_ in computed_by_stream(query).items():
        stream = wider.streams[name]
        wider.streams[name] = replace(stream, columns=(*stream.columns, *columns_))
    return wider


def computed_by_stream(query: Query) -> dict[str, tuple[ColumnDef, ...]]:
    """The columns that a query computes, each once, by the name of their stream."""
    streams = {source.alias: source.stream for source in query.sources}
    found: dict[str, dict[ColumnDef, None]] = {}
    for alias, column in query.grouping.computed if isinstance(query, GroupByQuery) else ():
        found.setdefault(streams[alias], {})[column] = None
    return {name: tuple(own) for name, own in found.items()}


def meaning(column: Column, query: Query) -> Expr:
    """The expression over the stream's own columns that a column of the query stands for."""
    if isinstance(query, GroupByQuery):
        for alias, one in query.grouping.computed:
            if (alias, one.name) == (column.alias, column.name) and one.computed is not None:
                return substitute(one.computed, lambda c: Column(c.alias or column.alias, c.name, c.type))
    return column


def limited(wanted: Iterable[Column], query: Query, catalog: Catalog) -> tuple[Column, ...]:
    """The columns whose values must be few so that those of `wanted` are few: a computed column with few
    results itself, the columns of its expression for any other computed column.
    """
    found: list[Column] = []
    for column in wanted:
        stream = next((one.stream for one in query.sources if one.alias == column.alias), "")
        definition = catalog.streams[stream].column(column.name) if stream in catalog.streams else None
        computed = definition is not None and definition.computed is not None
        few = definition is not None and (definition.check is not None or column.type is Type.BOOLEAN)
        found += columns(meaning(column, query)) if computed and not few else [column]
    return tuple(dict.fromkeys(found))
