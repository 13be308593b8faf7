"""Outcome of one statement, and EXPLAIN's documents of queries with the topics that serve them.

Applying a statement decides its query. Its document is made when an answer shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tamis.declarations.definitions import TableDef
from tamis.errors import NotAcceptedError
from tamis.messaging.topics import stream_topic
from tamis.plan.model import partial_topics
from tamis.planning.explain import estimated, rendered
from tamis.planning.incremental import Built
from tamis.planning.queries.definitions import definition_id
from tamis.planning.stream_plans import stream_read
from tamis.planning.verdict import Verdict
from tamis.query.catalog import put
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    Drop,
    Explain,
    Redefine,
    SetPaused,
    Show,
    Statement,
    all_queries,
)
from tamis.sharing.selectivity import StreamStatistics
from tamis_registry.core.plan.planner import Planner
from tamis_registry.core.plan.sent_aggregates import sent_to
from tamis_registry.core.plan.shared_topics import derived_topic
from tamis_registry.core.shards.backfill import check_replaced
from tamis_registry.core.state.model import State
from tamis_registry.core.statements.catalog_changes import carry_out, same

Result = Literal[
    "created",
    "altered",
    "replaced",
    "unchanged",
    "kept",
    "dropped",
    "paused",
    "resumed",
    "shown",
    "explained",
]


@dataclass(frozen=True)
class DecidedQuery:
    """A query with its verdict, and what its explanation is made of when somebody asks for it.

    `catalog` and `statistics` have what the query reads, as it was when the query was decided. `served`: the
    state and the plan with the topics that serve it.
    """

    made: AlertDef | DerivedDef
    verdict: Verdict
    catalog: Catalog
    statistics: Mapping[str, StreamStatistics]
    served: tuple[State, Built] | None = None

    def document(self) -> dict[str, Any]:
        """The query's part of EXPLAIN's document."""
        document = _document(self.made, self.verdict, self.catalog, self.statistics)
        if self.served is not None:
            tell(document, *self.served)
        return document


class UnboundedError(NotAcceptedError):
    """The query's memory isn't proven to be bounded."""

    def __init__(self, what: str, *, where: str, hint: str, query: DecidedQuery) -> None:
        self.query = query
        super().__init__(what, where=where, hint=hint)


@dataclass(frozen=True)
class Replanned:
    """A query that reads a changed definition, with its verdict. `result`: "replaced" if it has a new
    definition, otherwise "kept". `changes`: differences that its owner should know.
    """

    verdict: Verdict
    result: Result
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The result of one statement.

    `query`: the query that it defines. `explained`: EXPLAIN's document of a query. `shows`: the subject of
    SHOW. `kept`: the existing definition, if it stays although the statement differs from it. `notices`: on
    the files of a pattern. `replanned`: the queries that read an altered or replaced definition.
    """

    statement: str
    result: Result
    kind: str | None = None
    name: str | None = None
    query: DecidedQuery | None = None
    explained: dict[str, Any] | None = None
    shows: str | None = None
    kept: Kept | None = None
    notices: tuple[str, ...] = ()
    replanned: tuple[Replanned, ...] = ()

    def explanation(self) -> dict[str, Any] | None:
        """EXPLAIN's document of the query that it defines or explains."""
        return self.explained if self.query is None else self.query.document()


@dataclass(frozen=True)
class Kept:
    """The SQL of an existing definition, and the statement that differs from it, with its place in
    the text.
    """

    in_service: str
    asked: str
    where: str


def decided(
    planner: Planner,
    made: AlertDef | DerivedDef,
    catalog: Catalog,
    statistics: Mapping[str, StreamStatistics],
) -> DecidedQuery:
    """A query with its verdict. Raises NotAcceptedError if it isn't accepted."""
    verdict = planner.decide(made, catalog)
    query = DecidedQuery(made, verdict, *_read_by(made, catalog, statistics))
    if verdict.accepted:
        return query
    memory = verdict.memory
    name = f"{verdict.kind} '{made.name}'"
    if memory.verdict != "bounded":
        raise UnboundedError(
            f"the memory of {name} is {memory.verdict}: {memory.reason}",
            where=str(made.position),
            hint=f"it would be bounded with: {'; or with: '.join(memory.repairs)}"
            if memory.repairs
            else "WITH (allow_unbounded = true) accepts it as it is",
            query=query,
        )
    raise NotAcceptedError(f"{name} is refused: {memory.reason}", where=str(made.position))


def _read_by(
    made: AlertDef | DerivedDef, catalog: Catalog, statistics: Mapping[str, StreamStatistics]
) -> tuple[Catalog, Mapping[str, StreamStatistics]]:
    """The part of the catalogue and of the statistics that a query reads."""
    names = {source.stream for query in all_queries(made.query) for source in query.sources}
    names |= {stream.shown_name for stream in made.query.watched}
    read = Catalog(
        streams={name: catalog.streams[name] for name in names if name in catalog.streams},
        tables={name: catalog.tables[name] for name in names if name in catalog.tables},
        file_access=catalog.file_access,
        results=catalog.results,
    )
    return read, {name: statistics[name] for name in names if name in statistics}


def _document(
    made: AlertDef | DerivedDef,
    verdict: Verdict,
    catalog: Catalog,
    statistics: Mapping[str, StreamStatistics],
) -> dict[str, Any]:
    """A query's part of EXPLAIN's document, with the estimated shares of streams."""
    return estimated(catalog, rendered(verdict, made, catalog), statistics).document()


def explain_all(
    statements: Iterable[Statement],
    catalog: Catalog,
    planner: Planner,
    readings: Mapping[str, StreamStatistics],
) -> list[dict[str, Any]]:
    """EXPLAIN's document of every query among the statements, including refused queries.

    The statements change `catalog`.
    """
    queries = []
    for statement in statements:
        _check(statement, catalog)
        carry_out(catalog, statement)
        match statement:
            case TableDef():
                check_path(statement, catalog)
            case Redefine():
                again = (one for one in statement.readers if isinstance(one, AlertDef | DerivedDef))
                queries += [_document(one, planner.decide(one, catalog), catalog, readings) for one in again]
            case AlertDef() | DerivedDef():
                queries.append(_document(statement, planner.decide(statement, catalog), catalog, readings))
            case Explain():
                explained = target(statement, catalog)
                queries.append(_document(explained, planner.decide(explained, catalog), catalog, readings))
                if statement.creates and isinstance(explained, AlertDef):
                    _put(catalog, explained)
    return queries


def _check(statement: Statement, catalog: Catalog) -> None:
    """Check what applying an alert would refuse, although it may be explained. Raises Conflict."""
    made = statement.target if isinstance(statement, Explain) else statement
    known = catalog.alerts.get(made.name) if isinstance(made, AlertDef) else None
    if known is not None and isinstance(made, AlertDef):
        check_replaced(known, made)


def _put(catalog: Catalog, made: AlertDef) -> None:
    """Put an alert into the catalogue as if it were created, with OR REPLACE."""
    known = catalog.alerts.get(made.name)
    if made.name not in catalog.derived and (known is None or not same(known, made)):
        put(catalog, [made])


def tell(query: dict[str, Any], state: State, built: Built) -> None:
    """Add to a query's part of EXPLAIN's document the topics that serve its sources, with the reasons, and
    what edges send to them.
    """
    stored = state.alert(query["name"])
    version = 0 if stored is None else stored.version
    choices = {} if stored is None else built.topic_choices(definition_id(stored.name, stored.version))
    alert = None if stored is None else stored.alert
    read = {} if alert is None else {source.alias: source.stream for source in alert.query.sources}
    for source in query.get("streams", ()):
        # A standing query has a topic for each stream, however often it reads it.
        stream = read.get(source["alias"], source["stream"])  # watched, where the document has its base
        choice = choices.get(source["alias"]) or choices.get(stream)
        if choice is not None:
            form = source.get("sent", {}).get("form")
            nothing_omitted = source["omission"]["interval"] is None or source.get("most_omitted") == 0
            source["sharing"] = {
                "topic": derived_topic(state, choice.topic)
                if isinstance(choice.topic, str)
                else stream_topic(stream_read(alert, version, stream), choice.topic),
                "how": choice.how,
                "share_before": choice.before,
                "share": choice.after,
                "estimated_from": choice.basis,
                "reason": choice.reason(needs_all=nothing_omitted and form != "representatives"),
            }
            topic = source["sharing"]["topic"]
            # Readings that would take fewer bytes may join a topic of partial aggregates that exists.
            if form == "partial aggregates" or (form and topic in partial_topics(built.plan)):
                sent = sent_to(topic, state, built.plan)
                source["sent"] = replace(sent, alert=query["name"]).document()


def check_path(table: TableDef, catalog: Catalog) -> None:
    """Check the file of a table.

    Raises RefusedError if the file is outside of the permitted directories, InputError if it isn't a regular
    file.
    """
    catalog.file_access.resolve(table.path, f"{table.position}: table {table.name}")


def target(wish: Explain, catalog: Catalog) -> AlertDef | DerivedDef:
    """The query that a statement explains."""
    if isinstance(wish.target, AlertDef):
        return wish.target
    return catalog.alerts.get(wish.target) or catalog.derived[wish.target]


MOST_CHARACTERS = 120

_NOTHING = ("unchanged", "kept", "shown", "explained")


def reasons(statements: Iterable[Statement], outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """The first line of each statement that has changed something."""
    pairs = zip(statements, outcomes, strict=True)
    return tuple(_line(statement) for statement, outcome in pairs if outcome.result not in _NOTHING)


def _line(statement: Statement) -> str:
    match statement:
        case Drop():
            text = f"DROP {statement.kind.upper()} {statement.name}"
        case SetPaused():
            text = f"{'PAUSE' if statement.paused else 'RESUME'} ALERT {statement.name}"
        case Redefine(verb="alter"):
            text = f"ALTER {statement.kind.upper()} {statement.name}"
        case Redefine():
            text = f"CREATE OR REPLACE {statement.kind.upper()} {statement.name}"
        case Show() | Explain():
            text = ""  # they change nothing
        case _:
            text = statement.sql.partition("\n")[0].rstrip()
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
