"""Queries over streams without time and in application time: alternatives, their unions, groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from tamis.expressions.nodes import Call, Expr, conjuncts
from tamis.expressions.sql_text import to_sql
from tamis.operators.synopses.bound import Term, terms
from tamis.plan import nodes
from tamis.plan.conjunction import with_extreme
from tamis.plan.omission import bare
from tamis.planning.plan_trees.differences import joined, named, needed_values
from tamis.planning.plan_trees.operators import Details, PlanBound, PlanOperator
from tamis.planning.plan_trees.windows import grouping_details, table_scan
from tamis.planning.plan_trees.words import condition, detail, is_not_null, representatives, selected

_GROUPS = "each group, with its partial aggregates and its last row"


@dataclass(frozen=True)
class Sources:
    """The streams of a query: `read` gives the operator of a stream under an alias. By stream, edges send the
    tuples that pass `sent`.
    """

    read: Callable[[str, str], PlanOperator]
    sent: Mapping[str, Expr | None]


def rows_tree(node: nodes.Rows, sources: Sources) -> PlanOperator:
    """The operators of a query without aggregates."""
    found = _alternatives(node.matching, sources, "")
    tree = PlanOperator("Project", "joiner", "", (("select", selected(node.select)),), inputs=(found,))
    if not node.distinct:
        return tree
    return _distinct(tree, _given(node.matching.alternatives))


def union_tree(node: nodes.Union, sources: Sources) -> PlanOperator:
    """The operators of UNION."""
    members = tuple(rows_tree(one, sources) for one in node.members)
    tree = PlanOperator("Union", "joiner", inputs=members)
    if not node.distinct:
        return tree
    return _distinct(tree, _given(one for member in node.members for one in member.matching.alternatives))


def representatives_tree(
    node: nodes.Representatives, sources: Sources, bound: PlanBound | None
) -> PlanOperator:
    """The operators of a query of which representatives are kept."""
    found = _represented(node.sources, sources, bound)
    tree = PlanOperator("Project", "joiner", "", (("select", selected(node.select)),), inputs=(found,))
    return _distinct(tree, None)


def _represented(
    every: Sequence[nodes.RepresentedSource], sources: Sources, bound: PlanBound | None
) -> PlanOperator:
    """The join of tuples that stand for all others. The bound is that of the whole query."""
    inputs = tuple(sources.read(one.stream, one.alias) for one in every)
    several = dict.fromkeys(part for one in every for step in one.steps for part in step.conditions)
    kept = "; ".join(f"of {one.alias} {representatives(one.covers)}" for one in every)
    own = ((one.stream, [(expr, True) for expr in one.filter]) for one in every)
    details = (
        *detail("filter", _own_conditions(own, sources.sent)),
        *detail("condition", condition(several)),
    )
    return PlanOperator("Representatives", "joiner", "", details, kept, bound, inputs)


def groups_tree(node: nodes.Groups, sources: Sources, bound: PlanBound | None) -> PlanOperator:
    """The operators of aggregates over streams without time."""
    details = grouping_details(node.grouping)
    if node.represented:
        below = (_represented(node.represented, sources, bound),)
        return PlanOperator("Groups", "joiner", "", details, _GROUPS, inputs=below)
    parts = tuple(_alternatives(part.matching, sources, _gives(part, node)) for part in node.parts)
    groups = _given(one for part in node.parts for one in part.matching.alternatives)
    return PlanOperator("Groups", "joiner", "", details, _GROUPS, groups, parts)


def application_time_tree(
    node: nodes.ApplicationTime, sources: Sources, bound: PlanBound | None
) -> PlanOperator:
    """The operators of a query in application time."""
    tables = {one.name: one for one in node.tables}
    members = tuple(_timed(member, tables, sources) for member in node.members)
    timed = [name for name, time in node.streams if time]
    kept = "tuples until the watermarks of all streams have passed them"
    if node.distinct:
        kept += ", and the rows that it has given"
    return PlanOperator(
        "ApplicationTime",
        "joiner",
        "",
        (
            *detail("in order of event time", ", ".join(timed)),
            *detail("distinct", "each row once" * node.distinct),
        ),
        kept,
        bound,
        members,
    )


def _timed(member: nodes.TimedMatching, tables: dict[str, nodes.Table], sources: Sources) -> PlanOperator:
    named_by = dict(member.sources)
    read = {one.stream: tuple(name for name, _ in one.columns) for one in member.kept}

    def read_source(name: str, alias: str) -> PlanOperator:
        table = tables.get(named_by.get(alias, name))
        return sources.read(name, alias) if table is None else table_scan(table, alias, read.get(name, ()))

    below = Sources(read_source, sources.sent)
    found = _alternatives(member.matching, below, "", timed=True)
    tree = PlanOperator("Project", "joiner", "", (("select", selected(member.select)),), inputs=(found,))
    return _distinct(tree, None) if member.distinct else tree


def _gives(part: nodes.GroupsPart, node: nodes.Groups) -> str:
    if len(node.parts) == 1:
        return ""
    if part.extreme is None:
        return "the groups"
    aggregate = node.grouping.aggregates[part.extreme]
    assert aggregate.column is not None, "an extreme is one of a column"
    return f"{aggregate.function}({aggregate.column.alias}.{aggregate.column.name})"


def _alternatives(
    matching: nodes.Matching, sources: Sources, gives: str, *, timed: bool = False
) -> PlanOperator:
    """The combinations of all alternatives of a SELECT."""
    found = tuple(_alternative(one, matching, sources, gives, timed) for one in matching.alternatives)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} cases of the conditions, of which a row has one" if found else "no row is possible"
    return PlanOperator("Union", "joiner", "", (("of", what),), inputs=found)


def _alternative(
    node: nodes.Alternative, matching: nodes.Matching, sources: Sources, gives: str, timed: bool
) -> PlanOperator:
    query = named(node.conjunction)
    inputs = tuple(map(sources.read, query.streams, query.aliases))
    details: Details = (
        *detail("gives", gives),
        *detail("filter", _own_conditions(zip(query.streams, node.conditions, strict=True), sources.sent)),
        *detail("join", joined(query) if len(query.streams) > 1 else ""),
        *detail("condition", condition(matching.joins)),
    )
    if node.keeps == "nothing":
        return PlanOperator("Filter", "joiner", "", details, inputs=inputs) if details else inputs[0]
    # Rates, which the bound in application time needs, are not in the plan.
    bound = None if timed else _sum([one for one in _terms(node) if one.alias is not None])
    which = f" of {needed_values(query)}" if query.needed else ""
    if node.keeps == "representatives":
        kept = f"of each group of limited values{which}, the tuples that stand for all"
        return PlanOperator("Representatives", "joiner", "", details, kept, bound, inputs)
    kept = f"one count for each group of limited values{which}"
    return PlanOperator("Counts", "joiner", "", details, kept, bound, inputs)


def _own_conditions(
    every: Iterable[tuple[str, Sequence[tuple[Expr, bool]]]], sent: Mapping[str, Expr | None]
) -> str:
    """The conditions on single tuples, without those that all tuples meet that come from edges. A comparison
    never holds with NULL, so that its columns need no condition.
    """
    texts = []
    for stream, own in every:
        known = set(conjuncts(bare(sent.get(stream))))
        for expr, holds in own:
            if not holds:
                texts.append(f"({to_sql(expr)}) IS NOT TRUE")
            elif bare(expr) not in known and not is_not_null(expr):
                either = isinstance(expr, Call) and expr.op == "or"
                texts.append(f"({to_sql(expr)})" if either else to_sql(expr))
    return " AND ".join(dict.fromkeys(texts))


def _terms(node: nodes.Alternative) -> Sequence[Term]:
    """The summands of the bound of an alternative; none if it isn't bounded."""
    query = named(node.conjunction)
    closure = query.closure()
    if closure is None:
        return ()
    if node.extreme is not None:
        query, closure = with_extreme(query, closure, *node.extreme)
    return terms(query, closure)


def _given(every: Iterable[nodes.Alternative]) -> PlanBound | None:
    """The bound of what is kept of rows: those that DISTINCT remembers, or their groups."""
    return _sum([term for one in every for term in _terms(one) if term.alias is None])


def _sum(every: Sequence[Term]) -> PlanBound | None:
    """The bound from its summands; None if it isn't a number."""
    total = sum((one.count for one in every), 0)
    if not every or not isfinite(total):
        return None
    return PlanBound(int(total), "entries", " + ".join(one.text for one in every))


def _distinct(tree: PlanOperator, bound: PlanBound | None) -> PlanOperator:
    return PlanOperator("Distinct", "joiner", keeps="the rows that it has given", bound=bound, inputs=(tree,))
