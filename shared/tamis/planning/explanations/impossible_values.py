"""Comparisons that are never true beside others that may be: a probable mistake.

`state IN ('empty', 'emty')` is valid. If the CHECK of the column admits no 'emty', most often another text
was meant. A condition without such an alternative is refused: the query would never have a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tamis.analysis.contradictions import (
    admitted_texts,
    compares_with_null,
    contradictory_values,
    null_test,
)
from tamis.expressions.nodes import FLIPPED, Call, Column, Expr, Literal, substitute
from tamis.expressions.sql_text import to_sql
from tamis.query.model import Catalog, Query, StreamDef

# A query with more comparisons is generated, and its author reads no warnings.
_MOST_COMPARISONS = 100


def impossible_values(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """A warning for each comparison of a column with a constant that the column's CHECK never admits."""
    found: dict[str, None] = {}
    for one in query.queries:
        for part in one.members or (one,):
            streams = {
                source.alias: catalog.streams[source.stream]
                for source in part.sources
                if source.stream in catalog.streams
            }
            for comparison in list(_comparisons(part))[:_MOST_COMPARISONS]:
                found |= dict.fromkeys(_warning(comparison, streams))
    return tuple(found)


def _comparisons(query: Query) -> Iterator[Call]:
    conditions = [conjunct.expr for conjunct in query.all_conjuncts]
    values = [output.expr for output in query.select]
    if query.grouping is not None:
        computed = ((alias, column.computed) for alias, column in query.grouping.computed)
        values += [_of(alias, expr) for alias, expr in computed if expr is not None]
    for expr in (*conditions, *values):
        yield from _parts(expr, alone=expr in conditions)


def _of(alias: str, expr: Expr) -> Expr:
    """A computed column's expression over the columns of its source."""
    return substitute(expr, lambda column: column if column.alias else replace(column, alias=alias))


def _parts(expr: Expr, alone: bool) -> Iterator[Call]:
    """The comparisons of a column with a constant in an expression. One that stands `alone` is left out."""
    if not isinstance(expr, Call):
        return
    kinds = {type(one) for one in expr.args}
    if expr.op in (*FLIPPED, "=") and kinds == {Column, Literal} and not alone:
        yield expr
    for one in expr.args:
        yield from _parts(one, alone=alone and expr.op == "and")


def _warning(comparison: Call, streams: Mapping[str, StreamDef]) -> Iterator[str]:
    named = [one for one in comparison.args if isinstance(one, Column)]
    if any(one.alias not in streams or streams[one.alias].column(one.name) is None for one in named):
        return
    if contradictory_values(streams, [comparison]):
        which = " by the CHECK of its column"
        if compares_with_null(comparison):
            instead = null_test(comparison)
            which = ", as every comparison with NULL" + (f": write {instead}" if instead else "")
        elif texts := admitted_texts(comparison, streams):
            which = f": {texts}"
        yield f"{to_sql(comparison)} is never true{which}"
