"""GROUP BY, HAVING and the calls of aggregates in SELECT, over streams without time and over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.query.context import Context
from tamis.query.model import Aggregate, Grouping, Output

if TYPE_CHECKING:
    from tamis.query.reading import Reader

FUNCTIONS = ("count", "sum", "avg", "min", "max", "median")
_USAGE = "write count(*), or count, count(DISTINCT), sum, avg, min, max or median of a column"


class Aggregates:
    """The aggregates of one query, each once, in the order in which they are first called."""

    def __init__(self) -> None:
        self.found: list[Aggregate] = []

    def read(self, reader: Reader, node: exp.Expr, name: str) -> Expr | None:
        """The column that stands for a call's value; None where a mistake was reported."""
        arguments = list(node.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = list(arguments[0].expressions)
        if len(arguments) != 1:
            reader.context.error(f"{name} takes one column, not {len(arguments)}", node, _USAGE)
            return None
        (argument,) = arguments
        if isinstance(argument, exp.Star) and name == "count" and not distinct:
            return self._value(Aggregate("count", None, False, Type.BIGINT))
        column = reader.of_tuples(argument)
        if column is None:
            return None
        if not isinstance(column, Column):
            what = f"{name} is executed of a column only"
            reader.context.error(_called(what, argument), argument, _USAGE)
            return None
        if distinct and name in ("sum", "avg", "median"):
            reader.context.error(f"{name}(DISTINCT …) isn't executed", node, "leave DISTINCT out")
            return None
        if name in ("sum", "avg", "median") and not column.type.numeric:
            reader.context.error(f"{name} needs a number, not {column.type}", argument, _USAGE)
            return None
        counted = name == "count" and distinct
        return self._value(Aggregate(name, column, counted, _type(name, column.type)))

    def _value(self, aggregate: Aggregate) -> Expr:
        if aggregate not in self.found:
            self.found.append(aggregate)
        return Column("", str(self.found.index(aggregate)), aggregate.type)


def _type(name: str, of: Type) -> Type:
    if name == "count":
        return Type.BIGINT
    if name in ("avg", "median"):
        return Type.DOUBLE
    return Type.BIGINT if name == "sum" and of is Type.INT else of


def grouping(
    context: Context, reader: Reader, node: exp.Select, found: Aggregates, select: Sequence[Output]
) -> Grouping | None:
    """GROUP BY and HAVING, checked against SELECT; None where a mistake was reported."""
    before = len(context.errors)
    by: list[Column] = []
    clause = node.args.get("group")
    if clause is not None and any(value for key, value in clause.args.items() if key != "expressions"):
        context.error("GROUP BY is executed by columns only", clause, "write the names of columns")
    for item in clause.expressions if clause is not None else []:
        expr = reader.of_tuples(item)
        if expr is not None and not isinstance(expr, Column):
            what = _called("GROUP BY is executed by columns only", item)
            context.error(what, item, "write the names of the columns that it is made from")
        elif isinstance(expr, Column) and expr not in by:
            by.append(expr)
    # What a mistake here stands for may well be what SELECT and HAVING take.
    known = len(context.errors) == before
    having = None
    if node.args.get("having") is not None:
        having = reader.condition(node.args["having"].this, "what stands in HAVING")
    for output, item in zip(select if known else (), node.expressions, strict=False):
        _grouped(context, output.expr, by, item)
    if having is not None and known:
        _grouped(context, having, by, node.args["having"])
    if len(context.errors) > before:
        return None
    return Grouping(tuple(by), tuple(found.found), having)


def _called(what: str, node: exp.Expr) -> str:
    """A mistake, where it is a derived stream's column with a reason for those who see a column there."""
    derived = isinstance(node, exp.Column)
    return f"{what}, and '{node.sql()}' is an expression where its stream is made" if derived else what


def _grouped(context: Context, expr: Expr, by: Sequence[Column], place: exp.Expr) -> None:
    for column in columns(expr):
        if column.alias and column not in by:
            name = f"{column.alias}.{column.name}"
            hint = f"write GROUP BY {name}, or an aggregate of it such as max({name})"
            context.error(f"'{name}' is neither grouped nor aggregated", place, hint)
            return
