"""Explanations and plans of the queries of a SQL text, as data, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from tamis.errors import InputError
from tamis.offline.recordings import since_begin
from tamis.plan.model import Plan
from tamis.planning.explain import estimated, explain, grown
from tamis.planning.explanations.advice import advice
from tamis.planning.explanations.explanation import Explanation, SourceExplanation
from tamis.planning.explanations.measured import measured
from tamis.planning.explanations.text import refused_change, text
from tamis.planning.explanations.transfer import Transfer, topic_transfer
from tamis.planning.plan_trees.operators import QueryPlan
from tamis.planning.plan_trees.query_plans import plan_with, query_plans
from tamis.planning.plan_trees.text import plan_text
from tamis.planning.refused_changes import RefusedChange, refused_changes
from tamis.query.model import AlertDef, Catalog, DerivedDef, Explain, Statement
from tamis.recordings.typed import Recording
from tamis.wording.names import normalized_name, suggest


@dataclass(frozen=True)
class Explained:
    """The explanations of queries, and the changes of streams and functions that would refuse one of them."""

    queries: tuple[Explanation, ...]
    changes: tuple[RefusedChange, ...]

    @property
    def accepted(self) -> bool:
        """True if every query and every change is accepted."""
        return all(one.accepted for one in self.queries) and not self.changes

    def document(self) -> dict[str, Any]:
        """The JSON object of `tamis explain --json`."""
        found: dict[str, Any] = {"queries": [one.document() for one in self.queries]}
        if self.changes:
            found["changes"] = [one.document() for one in self.changes]
        return found

    def text(self, *, verbose: bool = False) -> str:
        """The explanations for people. `verbose` adds the proofs, the compared values and the formulas."""
        if not self.queries:
            return "no query: nothing to explain"
        changes = map(refused_change, self.changes)
        return "\n\n".join([*changes, *(text(one, verbose=verbose) for one in self.queries)])


@dataclass(frozen=True)
class Plans:
    """The physical plans of queries."""

    queries: tuple[QueryPlan, ...]

    @property
    def accepted(self) -> bool:
        """True if every query is accepted."""
        return all(one.accepted for one in self.queries)

    def document(self) -> dict[str, Any]:
        """The JSON object of `tamis explain --plan --json`."""
        return {"plans": [one.document() for one in self.queries]}

    def text(self) -> str:
        """The plans for people."""
        if not self.queries:
            return "no query: there is no plan"
        return "\n\n".join(map(plan_text, self.queries))


def asked_queries(
    catalog: Catalog, statements: Sequence[Statement], name: str | None, source: str
) -> list[AlertDef | DerivedDef]:
    """The queries to explain: those that statements create or explain, or the one of this name. `source` is
    the name of the text in messages. Raises InputError for an unknown name.
    """
    asked: dict[str, AlertDef | DerivedDef] = {}
    for statement in statements:
        if isinstance(statement, AlertDef | DerivedDef):
            # A later statement may have changed a function or stream that it reads.
            asked[statement.name] = _at_the_end(statement, catalog)
        elif isinstance(statement, Explain) and isinstance(statement.target, AlertDef):
            asked[statement.target.name] = statement.target
    name = name if name is None else normalized_name(name, asked)
    if name is not None and name not in asked:
        raise InputError(
            f"there is no query {name!r}", where=source, hint=suggest(name, asked, "it has " + _listed(asked))
        )
    return [one for known, one in asked.items() if name in (None, known) and _stands(one, catalog)]


def explained(
    chosen: Sequence[AlertDef | DerivedDef],
    catalog: Catalog,
    statements: Sequence[Statement],
    recordings: Mapping[str, Recording],
    *,
    witness: bool = False,
) -> Explained:
    """The explanations of these queries. What edges drop is measured on the recordings; `witness`: the
    example of an unbounded query is run.
    """
    found = [_explained(one, catalog, recordings) for one in chosen]
    found = shared_transfers(chosen, found, catalog)
    changes = _changes(statements, {one.name for one in chosen})
    if witness:
        found = [grown(catalog, *pair) for pair in zip(chosen, found, strict=True)]
    return Explained(tuple(found), tuple(changes))


def planned(chosen: Sequence[AlertDef | DerivedDef], catalog: Catalog) -> Plans:
    """The plans of these queries in a fleet that has all that is accepted of the catalogue."""
    return Plans(query_plans(catalog, chosen))


def shared_transfers(
    chosen: Sequence[AlertDef | DerivedDef], explanations: Sequence[Explanation], catalog: Catalog
) -> list[Explanation]:
    """The explanations with what edges send in a fleet that has all that is accepted of the catalogue, where
    alerts with partial aggregates share topics.
    """
    if not any(_has_partials(source) for one in explanations for source in one.streams):
        return list(explanations)
    plan, known = plan_with(catalog, chosen)
    return [
        replace(one, streams=tuple(_in_plan(source, one.name, plan, known) for source in one.streams))
        for one in explanations
    ]


def _has_partials(source: SourceExplanation) -> bool:
    sent = source.transfer
    return sent is not None and not sent.reason and sent.represented is None


def _in_plan(source: SourceExplanation, alert: str, plan: Plan, known: Catalog) -> SourceExplanation:
    """The source with what edges send to its topic of the plan, whose name only a fleet knows."""
    made = next((query for query in plan.standing if query.alert == alert), None)
    if made is None or not _has_partials(source):
        return source
    planned, topic = next(
        (stream, topic)
        for stream in plan.streams
        for topic in stream.topics
        if topic.name == made.inputs[0].topic
    )
    stream = known.streams[planned.name]
    sent: Transfer = known.results.get(
        (stream, topic),
        "what edges send",
        lambda: topic_transfer(
            plan, topic, stream, lambda query: known.alerts.get(query.rpartition("@")[0]), known
        ),
    )
    return replace(source, transfer=replace(sent, topic="", alert=alert))


def _explained(
    query: AlertDef | DerivedDef, catalog: Catalog, recordings: Mapping[str, Recording]
) -> Explanation:
    """The explanation with estimates, advice, and what edges drop of the recordings."""
    found = estimated(catalog, explain(catalog, query), {})
    if not found.accepted or not any(source.key or source.interval for source in found.streams):
        changes = {}
    else:
        changes = advice(query, catalog)
    dropped = {}
    if isinstance(query, AlertDef) and found.accepted and recordings:
        dropped = measured(query, catalog, since_begin(query, recordings))
    sources = (
        replace(
            source,
            advice=changes.get(source.alias, ()),
            measured=dropped.get(source.stream if source.watched is None else source.watched.name),
        )
        for source in found.streams
    )
    return replace(found, streams=tuple(sources))


def _changes(statements: Iterable[Statement], queries: Set[str]) -> list[RefusedChange]:
    """The changes that are refused because of these queries."""
    found = []
    for change in refused_changes(statements):
        named = tuple(one for one in change.queries if one.name in queries)
        if named:
            found.append(replace(change, queries=named))
    return found


def _at_the_end(query: AlertDef | DerivedDef, catalog: Catalog) -> AlertDef | DerivedDef:
    """The query as it is at the end of the file, or as it was if it has been dropped."""
    queries: Mapping[str, AlertDef | DerivedDef] = (
        catalog.alerts if isinstance(query, AlertDef) else catalog.derived
    )
    return queries.get(query.name, query)


def _stands(query: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """True if every stream that the query reads still exists at the end of the file."""
    bases = {stream.name: stream.shown_name for stream in query.query.watched}
    read = (bases.get(source.stream, source.stream) for source in query.query.sources)
    return all(name in catalog.streams or name in catalog.tables for name in read)


def _listed(asked: dict[str, AlertDef | DerivedDef]) -> str:
    return ", ".join(asked) if asked else "none"
