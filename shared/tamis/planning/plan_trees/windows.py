"""Aggregates of windows and of sessions, and tables that are joined before."""

from __future__ import annotations

from collections.abc import Callable

from tamis.declarations.aggregate_text import aggregate_text, over_aggregates
from tamis.declarations.aggregates import needs_all_values
from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.durations import seconds
from tamis.expressions.nodes import Column, Expr, substitute
from tamis.expressions.sql_text import to_sql
from tamis.plan import nodes
from tamis.planning.explanations.text import sessions_text, windows_text
from tamis.planning.plan_trees.joins import Read
from tamis.planning.plan_trees.operators import Details, PlanBound, PlanOperator
from tamis.planning.plan_trees.words import (
    column_names,
    condition,
    detail,
    equalities,
    further,
    named_output,
)


def windows_tree(node: nodes.Windows, read: Read, bound: PlanBound | None) -> PlanOperator:
    """The operator of aggregates of windows."""
    below = read(node.scan)
    for join in node.tables:
        below = _table_join(join, below)
    grouped = any(column.name not in WINDOW_COLUMNS for column in node.grouping.by)
    each = f"pane of {seconds(node.window.slide)}{' and group' if grouped else ''}"
    kept = f"one partial aggregate for each {each}{_values(node.grouping)}"
    return PlanOperator(
        "Windows",
        "joiner",
        "",
        (("window", windows_text(node.window)), *grouping_details(node.grouping)),
        f"{kept}, until the watermark has passed the last window that has it",
        bound,
        (below,),
    )


def sessions_tree(node: nodes.Sessions, read: Read, bound: PlanBound | None) -> PlanOperator:
    """The operator of aggregates of sessions."""
    details = (("session", sessions_text(node.session)), *grouping_details(node.grouping))
    kept = (
        f"one partial aggregate for each open session and group{_values(node.grouping)}, "
        "and tuples that the watermark has not passed"
    )
    return PlanOperator("Sessions", "joiner", "", details, kept, bound, (read(node.scan),))


def grouping_details(grouping: nodes.Grouping) -> Details:
    """GROUP BY, the aggregates, HAVING and SELECT."""
    meaning = _meaning(grouping)
    aggregates = [aggregate_text(one, meaning) for one in grouping.aggregates]
    having = "" if grouping.having is None else over_aggregates(grouping.having, grouping.aggregates, meaning)
    chosen = []
    for name, expr in grouping.select:
        text = over_aggregates(substitute(expr, meaning), grouping.aggregates, meaning)
        chosen.append(named_output(name, expr, text))
    return (
        *detail("group by", ", ".join(to_sql(meaning(column)) for column in grouping.by)),
        *detail("aggregates", ", ".join(dict.fromkeys(aggregates))),
        *detail("having", having),
        ("select", ", ".join(chosen)),
    )


def _meaning(grouping: nodes.Grouping) -> Callable[[Column], Expr]:
    """The expression that a computed column stands for; any other column stands for itself."""
    computed = {one.name: one.expr for one in grouping.computed}

    def meaning(column: Column) -> Expr:
        expr = computed.get(column.name)
        if expr is None or not column.alias:
            return column
        return substitute(expr, lambda own: Column(own.alias or column.alias, own.name, own.type))

    return meaning


def _values(grouping: nodes.Grouping) -> str:
    """Aggregates that need more than a number for each group."""
    whole = [one for one in grouping.aggregates if needs_all_values(one)]
    named = ", ".join(dict.fromkeys(aggregate_text(one, _meaning(grouping)) for one in whole))
    return f", with the values of {named}" if named else ""


def table_scan(table: nodes.Table, alias: str, read: tuple[str, ...]) -> PlanOperator:
    """The operator that reads a table."""
    subject = table.name if alias in ("", table.name) else f"{table.name} as {alias}"
    details = (("file", table.path), *detail("columns", column_names(read)))
    return PlanOperator("Table", "joiner", subject, details, "the rows of the file")


def _table_join(join: nodes.TableJoin, below: PlanOperator) -> PlanOperator:
    pairs = tuple(zip(join.step.before, join.step.own, strict=True))
    details = (
        *detail("on", equalities(pairs)),
        *detail("condition", condition(further(join.step))),
    )
    return PlanOperator(
        "TableJoin", "joiner", "", details, inputs=(below, table_scan(join.table, join.step.alias, join.read))
    )
