"""The tree of operators of an alert or a derived stream, from the plan that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from tamis.messaging.topics import outside_topic, stream_topic
from tamis.plan import nodes
from tamis.plan.model import Definition, Plan, StandingQuery
from tamis.plan.omission import bare
from tamis.planning.build import first_plan
from tamis.planning.decide import verdict_on
from tamis.planning.plan_trees.edges import EdgeInputs, filtered
from tamis.planning.plan_trees.joins import (
    Read,
    definition_tree,
    kept_formula,
    kept_tuples,
    latest_values_tree,
    time_join_tree,
)
from tamis.planning.plan_trees.operators import Kind, PlanBound, PlanOperator, QueryPlan
from tamis.planning.plan_trees.timeless import (
    Sources,
    application_time_tree,
    groups_tree,
    representatives_tree,
    rows_tree,
    union_tree,
)
from tamis.planning.plan_trees.windows import sessions_tree, windows_tree
from tamis.planning.verdict import Verdict
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.query.patterns.watch_text import WatchText
from tamis.wording.bound_units import bound_unit

_PUT_IN = "it is put in where it is read: it is part of the plan of each alert that reads it"


def query_plans(catalog: Catalog, chosen: Sequence[AlertDef | DerivedDef]) -> tuple[QueryPlan, ...]:
    """The plans of these queries in a fleet with everything in `catalog` that is accepted.

    Raises InputError if a table can't be read.
    """
    verdicts = {id(one): verdict_on(one, catalog) for one in chosen}
    asked = {one.name: one for one in chosen if isinstance(one, AlertDef) and verdicts[id(one)].accepted}
    plan = first_plan(_accepted(catalog, asked))
    return tuple(query_plan(one, verdicts[id(one)], plan) for one in chosen)


def plan_with(catalog: Catalog, chosen: Sequence[AlertDef | DerivedDef]) -> tuple[Plan, Catalog]:
    """The first plan of a fleet with the accepted definitions of `catalog` and `chosen`, and these
    definitions.
    """
    asked = [one for one in chosen if isinstance(one, AlertDef) and verdict_on(one, catalog).accepted]
    known = _accepted(catalog, {one.name: one for one in asked})
    return first_plan(known), known


def _accepted(catalog: Catalog, asked: Mapping[str, AlertDef]) -> Catalog:
    """The catalogue with these alerts, and without those that are not accepted."""
    found = catalog.copy()
    found.paused -= asked.keys()
    for name, derived in catalog.derived.items():
        if not verdict_on(derived, catalog).accepted:
            del found.derived[name]
    for name, alert in catalog.alerts.items():
        if name not in asked and not verdict_on(alert, catalog).accepted:
            del found.alerts[name]
    for name, alert in asked.items():
        found.alerts[name] = alert
        found = found.reading(alert)
    return found


def query_plan(query: AlertDef | DerivedDef, verdict: Verdict, plan: Plan, version: int = 1) -> QueryPlan:
    """The plan of a query in `plan`. `version`: the plan version that made an alert's definition."""
    kind: Kind = "alert" if isinstance(query, AlertDef) else "stream"
    if not verdict.accepted:
        return QueryPlan(query.name, kind, False, verdict.reason)
    bound = _whole_bound(verdict)
    words = WatchText(query.query.watched)
    if isinstance(query, DerivedDef):
        root = _derived(query, plan)
        if root is None:
            return QueryPlan(query.name, kind, True, _PUT_IN)
    else:
        made = next((d for d in plan.queries if (d.alert, d.version) == (query.name, version)), None)
        if made is None:
            return QueryPlan(query.name, kind, True, "the alert is paused")
        root = definition_plan(made, plan, verdict)
    return QueryPlan(query.name, kind, True, "", bound, root.worded(words))


def _whole_bound(verdict: Verdict) -> PlanBound | None:
    memory = verdict.memory
    if memory.verdict != "bounded":
        return None
    return PlanBound(memory.bound, bound_unit(memory.theorem), "" if memory.bound == 0 else memory.formula)


def _derived(query: DerivedDef, plan: Plan) -> PlanOperator | None:
    """The tree of a derived stream's topic; None if it is put in where it is read."""
    topics = {stream_topic(query.name, 1), outside_topic(query.name, 1)}
    return next(
        (
            EdgeInputs(plan, {}).derived(stream.name, topic)
            for stream in plan.streams
            for topic in stream.topics
            if topic.name in topics and topic.select
        ),
        None,
    )


def definition_plan(made: Definition | StandingQuery, plan: Plan, verdict: Verdict) -> PlanOperator:
    """The tree of a query of the plan."""
    bound = _whole_bound(verdict)
    edges = EdgeInputs(plan, {one.alias: bare(one.omission.value) for one in verdict.inputs})
    if isinstance(made, Definition):
        return definition_tree(made, edges, bound)
    below = {one.stream: edges.of(one) for one in made.inputs}
    sent = {one.stream: one.filter for one in made.inputs}

    def read(scan: nodes.Scan) -> PlanOperator:
        return filtered(_under(below[scan.stream], scan.alias), scan, sent[scan.stream])

    sources = Sources(lambda name, alias: _under(below[name], alias), sent)
    tree = _tree(made.node, read, sources, bound, made)
    return tree if made.proven else tree.without_bounds()


def _under(tree: PlanOperator, alias: str) -> PlanOperator:
    """The tree of an input with the alias of an occurrence: a query that keeps synopses reads each stream
    once, without an alias.
    """
    if not tree.subject:
        return replace(tree, inputs=tuple(_under(one, alias) for one in tree.inputs))
    if alias in ("", tree.subject):
        return tree
    return replace(tree, subject=f"{tree.subject} as {alias}")


def _tree(
    node: nodes.Node, read: Read, sources: Sources, bound: PlanBound | None, made: StandingQuery
) -> PlanOperator:
    match node:
        case nodes.Windows():
            return windows_tree(node, read, bound)
        case nodes.Sessions():
            return sessions_tree(node, read, bound)
        case nodes.LatestValues():
            return latest_values_tree(node, read, bound)
        case nodes.TimeJoin():
            return _read_in_order(time_join_tree(node, read), made)
        case nodes.Rows():
            return rows_tree(node, sources)
        case nodes.Union():
            return union_tree(node, sources)
        case nodes.Representatives():
            return representatives_tree(node, sources, bound)
        case nodes.Groups():
            return groups_tree(node, sources, bound)
        case nodes.ApplicationTime():
            return application_time_tree(node, sources, bound)
        case nodes.Nested():
            return _nested(node, read, sources, made)
        case _:
            assert_never(node)


def _read_in_order(tree: PlanOperator, made: StandingQuery) -> PlanOperator:
    """A join by time within a query, with the bound of its tuples where the plan has it."""
    kept = [(one, one.kept) for one in made.inputs if one.kept is not None]
    if len(kept) < len(made.inputs):
        return tree
    own = [replace(part, besides=0) for _, part in kept]
    formula = " + ".join(map(kept_formula, own))
    bound = PlanBound(sum(part.most() for part in own), "tuples", formula)
    named = [replace(one, alias=one.stream) for one, _ in kept]
    return replace(tree, keeps=kept_tuples(named), bound=bound)


def _nested(node: nodes.Nested, read: Read, sources: Sources, made: StandingQuery) -> PlanOperator:
    """A query over the rows of others, which stand in place of its streams. The bound of the whole query is
    that of all of its operators together.
    """
    inner = {one.stream: _tree(one.node, read, sources, None, made) for one in node.inner}

    def read_rows(scan: nodes.Scan) -> PlanOperator:
        found = inner.get(scan.stream)
        return read(scan) if found is None else filtered(found, scan, None)

    def rows_or_stream(name: str, alias: str) -> PlanOperator:
        return inner[name] if name in inner else sources.read(name, alias)

    return _tree(node.outer, read_rows, Sources(rows_or_stream, sources.sent), None, made)
