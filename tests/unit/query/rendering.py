"""Statements as a few short lines, which the cases of good.sql contain."""

from __future__ import annotations

from tamis.declarations.aggregates import Aggregate
from tamis.declarations.definitions import FunctionDef, PatternDef, TableDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Column, Expr, Literal, Type
from tamis.query.model import (
    AlertDef,
    AlertOptions,
    DerivedDef,
    Drop,
    Explain,
    Grouping,
    Query,
    Redefine,
    SetPaused,
    Show,
    Statement,
    grouping_of,
)


def expression(expr: Expr) -> str:
    """Prefix form; literals other than BOOLEAN, INT and VARCHAR carry the first letter of their type."""
    if isinstance(expr, Column):
        return f"{expr.alias}.{expr.name}" if expr.alias else expr.name
    if isinstance(expr, Literal):
        if expr.value is None:
            return f"null:{expr.type}"
        plain = expr.type in (Type.BOOLEAN, Type.INT, Type.VARCHAR)
        return repr(expr.value) + ("" if plain else f":{expr.type}")
    return f"({expr.op} {' '.join(expression(arg) for arg in expr.args)})"


def groups(grouping: Grouping) -> list[str]:
    """One line for GROUP BY, each aggregate, and HAVING."""
    calls = [f"{one.function}({_argument(one)}) {one.type}" for one in grouping.aggregates]
    return [
        f"group by {', '.join(map(expression, grouping.by))}",
        *(f"aggregate {number}: {call}" for number, call in enumerate(calls)),
        *([f"having {expression(grouping.having)}"] if grouping.having is not None else []),
    ]


def _argument(one: Aggregate) -> str:
    parts = [
        "distinct" if one.distinct else "",
        f"{one.fraction} of" if one.fraction is not None else "",
        expression(one.column) if one.column is not None else "*",
        f"by {expression(one.order)}" if one.order is not None else "",
    ]
    return " ".join(part for part in parts if part)


def query(read: Query) -> list[str]:
    """One line for FROM, each conjunct and each output; what `groups` gives."""
    sources = [
        f"{s.alias}={'/'.join((*s.via, s.stream))}"
        + (f" every {s.window.slide} of {s.window.size}" if s.window else "")
        for s in read.sources
    ]
    return [
        "from " + ", ".join(sources),
        *(f"where {expression(c.expr)}" for c in read.conjuncts),
        *(groups(grouping) if (grouping := grouping_of(read)) is not None else []),
        *(f"select {o.name}: {expression(o.expr)} {o.expr.type}" for o in read.select),
    ]


def statement(made: Statement) -> list[str]:
    """The lines of one statement."""
    match made:
        case Redefine():
            readers = [f"{type(one).__name__} {one.name}" for one in made.readers]
            return [f"{made.verb} {made.kind}: {', '.join(readers)}", *statement(made.made)]
        case StreamDef():
            columns = []
            for c in made.columns:
                check = f" check {expression(c.check)}" if c.check else ""
                columns.append(f"  {c.name} {c.type}{' key' * c.key}{' not null' * c.not_null}{check}")
            options = (made.keys, made.rate, made.max_stall, made.idle_timeout, made.max_ahead, made.finite)
            time = f"time {made.time} - {made.delay}"
            return [f"stream {made.name} {made.key}", *columns, f"  {time}", f"  {options}"]
        case TableDef():
            columns = [f"  {c.name} {c.type}{' key' * c.key}" for c in made.columns]
            return [f"table {made.name} from {made.path}", *columns]
        case FunctionDef():
            parameters = ", ".join(f"{name} {kind}" for name, kind in made.parameters)
            return [
                f"function {made.name}({parameters}) {made.returns}: {expression(made.body)} {made.functions}"
            ]
        case PatternDef():
            return [f"pattern {one.name} {one.values} {one.max_gap}" for one in made.members]
        case AlertDef():
            default = AlertOptions()
            given = {k: v for k, v in vars(made.options).items() if v != getattr(default, k)}
            what = f"{'replaced ' * made.replace}alert {made.name}"
            return [f"{what} {given} {made.functions}", *query(made.query)]
        case DerivedDef():
            return [f"derived {made.name} {made.functions}", *query(made.query)]
        case Drop():
            return [f"drop {made.kind} {made.name}"]
        case SetPaused():
            return [f"paused {made.name} {made.paused}"]
        case Show():
            return [f"show {made.kind}"]
        case Explain():
            return (
                [f"explain {made.target}"]
                if isinstance(made.target, str)
                else ["explain", *statement(made.target)]
            )
