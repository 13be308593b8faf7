"""Conditions that mean NOT EXISTS: the IS NULL of a LEFT JOIN, NO READING, and columns that can't be NULL.

NO READING FOR length means NOT EXISTS over the same stream: with the KEY columns equal, and an event time
after that of the row and at most `length` later. Over a derived stream or a subquery, only its readings
count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from tamis.expressions.nodes import COMPARISONS, Call, Column, Expr, Literal, Type, columns
from tamis.expressions.signatures import call
from tamis.query.context import Context
from tamis.query.model import Conjunct
from tamis.query.scalars.literals import resolve_interval
from tamis.query.scalars.resolution import operands
from tamis.query.selects.scope import FromItem, FromScope, with_free_names
from tamis.query.syntax.cursor import name_of
from tamis.query.syntax.dialect import NoReading, span

_STRICT = ("+", "-", "*", "/", "neg", "abs")  # NULL if an argument is NULL


def unwrapped(node: exp.Expr) -> exp.Expr:
    """A syntax tree without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def null_test(part: exp.Expr, names: Collection[str]) -> tuple[str, str] | None:
    """The name and the column of `c.x IS NULL` where c is one of `names`; None for anything else."""
    node = unwrapped(part)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and not node.args.get("negate"):
        column = unwrapped(node.this)
        if isinstance(column, exp.Column) and column.args.get("table") is not None:
            table = name_of(column.args["table"]).text
            if table in names:
                return table, name_of(column.this).text
    return None


def item_name(table: exp.Expr) -> str:
    """The name of an item of FROM; empty if it has none."""
    alias = table.args.get("alias")
    identifier = table.this if alias is None else alias.this
    return name_of(identifier).text if isinstance(identifier, exp.Identifier) else ""


def is_anti_join(join: exp.Expr, select: exp.Select) -> bool:
    """Tell if a LEFT JOIN is meant as NOT EXISTS: WHERE tests a column of it by IS NULL."""
    if join.args.get("side") != "LEFT" or join.args.get("kind") not in (None, "", "OUTER"):
        return False
    where = select.args.get("where")
    parts = [] if where is None else operands(where.this, exp.And)
    return any(null_test(part, {item_name(join.this)}) is not None for part in parts)


def not_null_columns(context: Context, item: FromItem, conjuncts: Sequence[Conjunct]) -> set[str]:
    """The columns of a joined item that can't be NULL in a tuple that joins: its event time, those that are
    declared NOT NULL, and those that a comparison of ON compares.
    """
    compared = {column for conjunct in conjuncts for column in _compared(conjunct.expr)}
    found = set()
    for name, expr in (item.columns or {}).items():
        if isinstance(expr, Column):
            source = next(one for one in item.sources if one.alias == expr.alias)
            stream = context.stream(source)
            column = None if stream is None else stream.column(expr.name)
            if expr in compared or (
                stream is not None and (expr.name == stream.time or (column is not None and column.not_null))
            ):
                found.add(name)
    return found


def _compared(condition: Expr) -> Iterator[Column]:
    """The columns of which none is NULL where a condition is true."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from _compared(part)
    elif isinstance(condition, Call) and condition.op in COMPARISONS and all(map(_strict, condition.args)):
        yield from columns(condition)


def _strict(expr: Expr) -> bool:
    """Tell if an expression is NULL whenever one of its columns is."""
    return not isinstance(expr, Call) or (expr.op in _STRICT and all(map(_strict, expr.args)))


def silence_length(context: Context, node: NoReading, at: int) -> Literal | None:
    """The length, above zero; None if a mistake was reported. `at`: the offset of the condition."""
    usage = "write NO READING FOR INTERVAL '5' MINUTE"
    if not isinstance(node.this, exp.Interval):
        context.error("NO READING needs a constant length", at, usage)
        return None
    length = resolve_interval(context, node.this)
    if isinstance(length, Literal) and isinstance(length.value, int) and length.value > 0:
        return length
    if length is not None:
        context.error("NO READING needs a length above zero", at, usage)
    return None


def silence(
    context: Context, outer: FromScope, node: NoReading, length: Literal, taken: set[str]
) -> FromItem | None:
    """The stream of the query under a name that is not among `taken`, with the conditions on a later reading
    as its conjuncts; None if the query doesn't read a single stream with event time.
    """
    stream = None
    if len(outer.sources) == 1:
        ((source, _),) = outer.sources
        stream = context.catalog.streams.get(source.stream)
    if stream is None or stream.time is None or source.window is not None:
        return None
    item = with_free_names(outer.items[0], taken)
    (other,) = item.sources
    text, position = context.source(node), context.text.position(span(node)[0])

    def pair(name: str, type_: Type) -> tuple[Column, Column]:
        return Column(other.alias, name, type_), Column(source.alias, name, type_)

    after, before = pair(stream.time, Type.TIMESTAMP)
    conditions: list[Expr] = [
        *(call("=", *pair(column.name, column.type)) for column in stream.columns if column.key),
        call(">", after, before),
        call("<=", after, call("+", before, length)),
    ]
    later = (Conjunct(one, text, position) for one in conditions)
    return replace(item, conjuncts=(*item.conjuncts, *later))
