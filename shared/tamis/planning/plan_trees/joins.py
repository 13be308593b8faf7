"""Joins by time: definitions, which keep tuples, ASOF JOIN, and joins whose rows are read in windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from tamis.durations import seconds
from tamis.expressions.nodes import Column, Expr, Type
from tamis.expressions.sql_text import identifier
from tamis.plan import nodes
from tamis.plan.model import Absence, Definition, Input, Kept, TimeBound
from tamis.planning.explanations.text import windows_text
from tamis.planning.plan_trees.edges import EdgeInputs
from tamis.planning.plan_trees.operators import PlanBound, PlanOperator
from tamis.planning.plan_trees.words import condition, detail, distance, equalities, further, selected

Read = Callable[[nodes.Scan], PlanOperator]  # the operator that gives the tuples of a scan


def definition_tree(definition: Definition, edges: EdgeInputs, bound: PlanBound | None) -> PlanOperator:
    """The operator of a definition: the joiner's half of a join by time, or of a query over one stream."""
    inputs = definition.inputs
    single = len(inputs) == 1
    absent = {alias for one in definition.absences for alias in one.aliases}
    joined = [one for one in inputs if one.alias not in absent]
    details = (
        *detail("on", equalities((*_partitions(joined), *definition.equalities))),
        *detail("times", _times(definition.bounds, inputs)),
        *detail("condition", condition(_parts(definition.condition))),
        *detail("window", "" if definition.window is None else _same_window(definition, single=single)),
        *detail("exists", ", ".join(map(identifier, definition.exists))),
        *(("not exists", _absence(one, joined, inputs)) for one in definition.absences),
        ("select", selected(definition.select)),
    )
    below = tuple(map(edges.of, inputs))
    if single:
        return PlanOperator("Project", "joiner", "", details, inputs=below)
    return PlanOperator("TimeJoin", "joiner", "", details, kept_tuples(inputs), bound, below)


def kept_tuples(inputs: Sequence[Input]) -> str:
    """The tuples that a join by time keeps: for how long, where rates are declared."""
    if any(one.kept is None for one in inputs):
        return "tuples of each source until none can join them any more"
    spans = [f"of {identifier(one.alias)} for {seconds(one.kept.span)}" for one in inputs if one.kept]
    return f"tuples {' and '.join(spans)} of event time"


def kept_formula(kept: Kept) -> str:
    """The formula of `Kept.most`.

    >>> kept_formula(Kept(992_000_000, 10_000, 1_000_000))
    '10000 * (992 s div 1 s + 1)'
    """
    besides = f" + {kept.besides}" if kept.besides else ""
    return f"{kept.tuples} * ({seconds(kept.span)} div {seconds(kept.per)} + 1){besides}"


def _parts(expr: Expr | None) -> tuple[Expr, ...]:
    return () if expr is None else (expr,)


def _partitions(inputs: Sequence[Input]) -> list[tuple[Column, Column]]:
    """The equalities of the partition key, of each input with the one before."""
    return [
        (_key_column(left, own), _key_column(right, other))
        for left, right in pairwise(inputs)
        for own, other in zip(left.partition_key, right.partition_key, strict=True)
    ]


def _key_column(one: Input, name: str) -> Column:
    return Column(one.alias, name, Type.VARCHAR)


def _times(bounds: Iterable[TimeBound], inputs: Iterable[Input]) -> str:
    times = {one.alias: f"{identifier(one.alias)}.{identifier(one.time)}" for one in inputs}
    apart = (distance(times[one.left], times[one.right], one.lo, one.hi) for one in bounds)
    return " AND ".join(filter(None, apart))


def _same_window(definition: Definition, *, single: bool) -> str:
    assert definition.window is not None
    what = "a row for each of the" if single else "all tuples of a row share one of the"
    return f"{what} {windows_text(definition.window)}"


def _absence(absence: Absence, joined: Sequence[Input], inputs: Sequence[Input]) -> str:
    own = [one for one in inputs if one.alias in absence.aliases]
    keys = [*_partitions([joined[0], *own]), *absence.equalities] if joined else list(absence.equalities)
    parts = (equalities(keys), _times(absence.bounds, inputs), condition(_parts(absence.condition)))
    names = ", ".join(map(identifier, absence.aliases))
    return f"{names} with {' AND '.join(filter(None, parts))}"


def latest_values_tree(node: nodes.LatestValues, read: Read, bound: PlanBound | None) -> PlanOperator:
    """The operator of ASOF JOIN."""
    latest = tuple((f"latest {join.scan.alias}", _latest(join, node)) for join in node.joins)
    kept = [f"tuples of {identifier(node.first.alias)} until all watermarks have passed them"]
    for join in node.joins:
        latest_one = f"the latest one{' of each key' if join.keys else ''} before"
        kept.append(f"of {identifier(join.scan.alias)} the later tuples and {latest_one}")
    return PlanOperator(
        "LatestValues",
        "joiner",
        "",
        (*latest, *detail("condition", condition(node.filter)), ("select", selected(node.select))),
        ", ".join(kept),
        bound,
        (read(node.first), *(read(join.scan) for join in node.joins)),
    )


def _latest(join: nodes.LatestJoin, node: nodes.LatestValues) -> str:
    times = {one.alias: one.time for one in (node.first, *(other.scan for other in node.joins))}
    first, alias = node.first.alias, join.scan.alias
    own, before = (f"{identifier(one)}.{identifier(times[one])}" for one in (alias, first))
    apart = distance(before, own, join.least, join.most)
    outer = "; NULL without one" if join.outer else ""
    return f"{' AND '.join(filter(None, (equalities(join.keys), apart)))}{outer}"


def time_join_tree(node: nodes.TimeJoin, read: Read) -> PlanOperator:
    """The operator of a join by time whose rows are read in order."""
    times = {one.alias: f"{identifier(one.alias)}.{identifier(one.time)}" for one in node.scans}
    pairs = [pair for step in node.steps for pair in zip(step.before, step.own, strict=True)]
    conditions = [one for step in node.steps for one in further(step)]
    details = (
        *detail("on", equalities(pairs)),
        *detail("times", _distances(node.distances, times)),
        *detail("condition", condition(conditions)),
        *detail("window", "" if node.window is None else f"shared: {windows_text(node.window)}"),
        ("select", selected(node.select)),
    )
    first = identifier(node.first)
    kept = f"tuples of each source until the watermarks have passed all tuples of {first} that they may join"
    return PlanOperator("TimeJoin", "joiner", "", details, kept, inputs=tuple(map(read, node.scans)))


def _distances(every: Iterable[nodes.TimeDistance], times: Mapping[str, str]) -> str:
    most = {(one.later, one.earlier): one.most for one in every}
    texts = []
    for (later, earlier), after in most.items():
        back = most.get((earlier, later))
        if back is None or times[later] > times[earlier]:
            least = None if back is None else -back
            texts.append(distance(times[later], times[earlier], least, after))
    return " AND ".join(filter(None, texts))
