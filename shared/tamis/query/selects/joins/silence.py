"""NO READING FOR length: a reading without a later one of the same key within this time.

It means NOT EXISTS over the same stream: with the KEY columns equal, and an event time after that of the row
and at most `length` later. Over a derived stream or a subquery, only its readings count.
"""

from __future__ import annotations

from sqlglot import exp

from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.expressions.signatures import call
from tamis.query.context import Context
from tamis.query.model import Conjunct
from tamis.query.scalars.literals import resolve_interval
from tamis.query.selects.scope import FromItem, FromScope, with_free_names
from tamis.query.syntax.dialect import NoReading, span


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
    item.conjuncts = (*item.conjuncts, *(Conjunct(one, text, position) for one in conditions))
    return item
