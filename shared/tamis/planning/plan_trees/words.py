"""Parts of nodes as SQL for people: conditions, columns of SELECT, keys, bounds on times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tamis.durations import seconds
from tamis.expressions.nodes import Call, Column, Expr, conjunction
from tamis.expressions.sql_text import identifier, to_sql
from tamis.plan.nodes import Cover, JoinStep, Outputs
from tamis.planning.plan_trees.operators import Details


def detail(name: str, text: str) -> Details:
    """A detail; none for an empty text."""
    return ((name, text),) if text else ()


def condition(parts: Iterable[Expr]) -> str:
    """The AND of conditions; empty without any."""
    whole = conjunction(tuple(dict.fromkeys(parts)))
    return "" if whole is None else to_sql(whole)


def representatives(covers: Iterable[Cover]) -> str:
    """The tuples that covers keep of a source."""
    return " and ".join(dict.fromkeys(map(_covering, covers)))


def _covering(cover: Cover) -> str:
    which = "any tuple" if cover.most == 1 else f"{cover.most} tuples" if cover.most else "all tuples"
    if cover.unequal:
        which = f"tuples with different {' and '.join(map(to_sql, cover.unequal))}"
    elif cover.value is not None:
        count = f"{cover.most} " if cover.most > 1 else ""
        which = f"the {count}{'least' if cover.least else 'greatest'} {to_sql(cover.value)}"
    each = f" for each {', '.join(map(to_sql, cover.equal))}" if cover.equal else ""
    return f"{which}{each}"


def selected(select: Outputs) -> str:
    """The columns of SELECT."""
    return ", ".join(named_output(name, expr, to_sql(expr)) for name, expr in select)


def named_output(name: str, expr: Expr, text: str) -> str:
    """A column of SELECT, whose expression is shown as `text`."""
    same = isinstance(expr, Column) and expr.name == name
    return text if same else f"{text} AS {identifier(name)}"


def equalities(pairs: Iterable[tuple[Expr, Expr]]) -> str:
    """Pairs of equal expressions."""
    return " AND ".join(f"{to_sql(left)} = {to_sql(right)}" for left, right in pairs)


def further(step: JoinStep) -> tuple[Expr, ...]:
    """The conditions of a join besides its equalities."""
    pairs = {*zip(step.before, step.own, strict=True), *zip(step.own, step.before, strict=True)}
    return tuple(
        one for one in step.conditions if not (isinstance(one, Call) and one.op == "=" and one.args in pairs)
    )


def is_not_null(expr: Expr) -> bool:
    """True for `… IS NOT NULL`."""
    below = expr.args[0] if isinstance(expr, Call) and expr.op == "not" else None
    return isinstance(below, Call) and below.op == "is_null"


def column_names(names: Sequence[str]) -> str:
    """Names of columns."""
    return ", ".join(map(identifier, names))


def distance(later: str, earlier: str, least: int | None, most: int | None) -> str:
    """The bounds of `later - earlier`, of times in microseconds; empty without any.

    >>> distance("s.ts", "a.ts", -30_000_000, 30_000_000)
    's.ts - a.ts between -30 s and 30 s'
    >>> distance("s.ts", "a.ts", None, 0), distance("s.ts", "a.ts", 0, 5_000_000)
    ('s.ts <= a.ts', 's.ts - a.ts between 0 s and 5 s')
    >>> distance("s.ts", "a.ts", 1, None)
    's.ts > a.ts'
    """
    apart = f"{later} - {earlier}"
    if least is not None and least == most:
        return f"{later} = {earlier}" if least == 0 else f"{apart} = {span(least)}"
    if least is not None and most is not None:
        return f"{apart} between {span(least)} and {span(most)}"
    if least is not None:
        order = {0: ">=", 1: ">"}.get(least)
        return f"{apart} >= {span(least)}" if order is None else f"{later} {order} {earlier}"
    if most is not None:
        order = {0: "<=", -1: "<"}.get(most)
        return f"{apart} <= {span(most)}" if order is None else f"{later} {order} {earlier}"
    return ""


def span(microseconds: int) -> str:
    """A span of time with its sign.

    >>> span(-1_500_000)
    '-1.5 s'
    """
    return f"-{seconds(-microseconds)}" if microseconds < 0 else seconds(microseconds)
