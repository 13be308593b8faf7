"""A standing query in the form in which the fleet runs it: its streams, its partition key, and its node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tamis.analysis.conjuncts import flatten_and, key_equality
from tamis.analysis.equality_classes import classes
from tamis.bounded import sessions, timed_joins, windows
from tamis.bounded.application_time.verdict import runs_in_time
from tamis.bounded.latest_values import candidate_filters
from tamis.bounded.memory import Memory
from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.declarations.streams import StreamDef
from tamis.errors import NotAcceptedError
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases, columns, conjunction
from tamis.plan.model import GREATEST, Input, Kept, PartialAggregation, Representation, StandingQuery, sayable
from tamis.plan.nodes import Grouping, Node
from tamis.plan.omission import Omission, bare
from tamis.planning.decide import verdict_on
from tamis.planning.link.cost import LinkCost, link_cost
from tamis.planning.link.placement import lower_half, partial_aggregation
from tamis.planning.link.representation import representations
from tamis.planning.physical.lowering import lowered
from tamis.query.computed_columns import meaning
from tamis.query.model import (
    AlertDef,
    Catalog,
    DerivedDef,
    JoinByTime,
    LatestValueJoin,
    NestedQuery,
    Query,
    SessionGroupBy,
    Source,
    UnionQuery,
    WindowGroupBy,
    all_queries,
    asof_joins,
    grouping_of,
    is_distinct,
    last_query,
    selects_of,
)
from tamis.sharing.entries import ReaderInput

_NOTHING = "no omission: a standing query counts every tuple"


def is_standing(definition: AlertDef | DerivedDef, catalog: Catalog) -> bool:
    """True if a query keeps synopses in place of tuples."""
    return not isinstance(definition.query, JoinByTime) or runs_in_time(definition, catalog)


@dataclass(frozen=True)
class Feed:
    """The input of a query from one stream.

    `filter` is over bare names; `read`: the columns besides partition key and time, in the stream's order.
    """

    stream: StreamDef
    partition_key: tuple[str, ...]
    filter: Expr | None
    read: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """The form in which the fleet runs a standing query. `key`: names of columns of SELECT."""

    feeds: tuple[Feed, ...]
    key: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Judged:
    """An accepted standing query. `lower`: see `placement.lower_half`. `kept`: of aggregates of windows, by
    stream. `cost`: of what edges send for it; None if that isn't known. `represented`: what edges keep of
    each stream of which they publish representatives.
    """

    memory: Memory
    layout: Layout
    node: Node
    lower: Grouping | str
    kept: Mapping[str, Kept] = field(default_factory=dict)
    cost: LinkCost | None = None
    represented: Mapping[str, Representation] = field(default_factory=dict)

    @property
    def tuples_are_cheaper(self) -> bool:
        """True if partial aggregates take more bytes than the readings, as far as that is known."""
        return self.cost is not None and self.cost.tuples_are_cheaper


def judged(alert: AlertDef, catalog: Catalog) -> Judged:
    """A standing query that is accepted. Raises NotAcceptedError with the reason that EXPLAIN gives if it
    isn't accepted.
    """
    catalog = catalog.reading(alert)

    def make() -> Judged:
        verdict = verdict_on(alert, catalog)
        if not verdict.accepted:
            repairs = verdict.memory.repairs
            hint = "; or ".join(repairs) if repairs else None
            raise NotAcceptedError(verdict.reason, where=f"alert {alert.name}", hint=hint)
        query = alert.query
        kept = _kept(query, catalog, verdict.memory)
        known = kept if all(one.most() <= GREATEST for one in kept.values()) else {}
        node = lowered(query, catalog)
        assert node is not None, "a query that keeps synopses is no join by time"
        placed, lower = layout(query, catalog), lower_half(alert, node)
        bound = verdict.memory.bound if verdict.memory.verdict == "bounded" else None
        keys = {feed.stream.name: feed.partition_key for feed in placed.feeds}
        return Judged(
            verdict.memory,
            placed,
            node,
            lower,
            known,
            _cost(alert, node, lower, placed, catalog),
            representations(alert, catalog, bound, keys),
        )

    found: Judged = catalog.results.get(_objects(alert, catalog), "standing query", make)
    return found


def _cost(
    alert: AlertDef, node: Node, lower: Grouping | str, placed: Layout, catalog: Catalog
) -> LinkCost | None:
    """The cost of the two forms in which edges can send the readings of an alert; None if there is only
    one.
    """
    sent, query = partial_aggregation(alert, node, lower, 1), alert.query
    if sent is None or not isinstance(query, WindowGroupBy):
        return None
    (feed,) = placed.feeds
    return link_cost(sent, query, catalog, feed.partition_key, feed.read)


def _kept(query: Query, catalog: Catalog, memory: Memory) -> dict[str, Kept]:
    """The entries that windows keep, and the tuples that a join in windows keeps, by stream; empty if the
    bound is no number, and for other queries.
    """
    if isinstance(query, NestedQuery):
        return timed_joins.kept(query, catalog, memory)
    if not isinstance(query, WindowGroupBy | SessionGroupBy):
        return {}
    kept = windows.kept(query, catalog) if isinstance(query, WindowGroupBy) else sessions.kept(query, catalog)
    return {} if kept is None else {query.windowed[0].stream: kept}


def learn(alert: AlertDef, catalog: Catalog, found: Judged) -> None:
    """Cache a result that another process has made."""
    catalog.results.put(_objects(alert, catalog), "standing query", found)


def _objects(alert: AlertDef, catalog: Catalog) -> tuple[object, ...]:
    streams = catalog.reading(alert).streams
    return alert, *(streams.get(source.stream) for source in alert.query.sources)


def layout(query: Query, catalog: Catalog) -> Layout:
    """Partition a query and list its inputs from each stream.

    A query is partitioned by KEY columns that are equal in all of its sources. These columns must also be in
    the rows: with DISTINCT they must be selected, with aggregates they must be in GROUP BY. If there are no
    such columns, the query is evaluated in one partition.
    """
    if isinstance(query, NestedQuery):
        return _nested_layout(query, catalog)
    members = selects_of(query)
    chosen = () if isinstance(query, UnionQuery) else _partition(query, catalog)
    partition: dict[str, tuple[str, ...]] = {}
    for one in members:
        for source in _streamed(one, catalog):
            names = tuple(c.name for group in chosen for c in group if c.alias == source.alias)
            partition.setdefault(source.stream, names)
    feeds = tuple(_feed(catalog.streams[stream], key, members, catalog) for stream, key in partition.items())
    return Layout(feeds, _key(query, chosen), _reason(chosen))


def _reason(chosen: Iterable[tuple[Column, ...]]) -> str:
    named = " and ".join(" = ".join(f"{c.alias}.{c.name}" for c in group) for group in chosen)
    return f"partitioned by {named}" if named else "evaluated in a single partition"


def _nested_layout(query: NestedQuery, catalog: Catalog) -> Layout:
    """The layout of nested queries: a KEY column must partition each of them."""
    found = _nested_partition(query, catalog)
    streams = dict.fromkeys(source.stream for source in _streamed(query, catalog))
    keys = {stream: tuple(names[stream] for names, _ in found) for stream in streams}
    feeds = tuple(
        _feed(catalog.streams[stream], key, all_queries(query), catalog) for stream, key in keys.items()
    )
    chosen = tuple(group for _, group in found)
    return Layout(feeds, _key(query.query, chosen), _reason(chosen))


def _nested_partition(query: Query, catalog: Catalog) -> list[tuple[dict[str, str], tuple[Column, ...]]]:
    """The classes of equal columns by which a query and all queries within it are partitioned. For each class
    the column of every raw stream, and the columns of the last query.
    """
    if not isinstance(query, NestedQuery):
        source_of = {source.alias: source.stream for source in query.sources}
        return [
            ({source_of[column.alias]: column.name for column in group}, group)
            for group in _partition(query, catalog)
        ]
    inner = {
        stream.name: (last_query(stream.query), _nested_partition(stream.query, catalog))
        for stream in query.streams
    }
    found: list[tuple[dict[str, str], tuple[Column, ...]]] = []
    sources = {source.alias: source.stream for source in query.query.sources}
    for group in _partition(query.query, catalog.with_streams(query.streams)):
        names: dict[str, set[str]] = {}
        complete = True
        for column in group:
            if (stream := sources[column.alias]) not in inner:
                names.setdefault(stream, set()).add(column.name)
                continue
            made, classes_ = inner[stream]
            expr = next((output.expr for output in made.select if output.name == column.name), None)
            below = next((one for one, own in classes_ if expr in own), None)
            complete &= below is not None
            for raw, name in (below or {}).items():
                names.setdefault(raw, set()).add(name)
        if complete and all(len(one) == 1 for one in names.values()):
            columns_ = {raw: one.pop() for raw, one in names.items()}
            # Two columns of rows may be one column below.
            if all(columns_ != known for known, _ in found):
                found.append((columns_, group))
    return found


def standing_query(
    alert: AlertDef, version: int, judged: Judged, topics: Mapping[str, str], *, aggregated: bool = True
) -> tuple[StandingQuery, list[ReaderInput]]:
    """An accepted alert as plan `version` makes it, and its readers; `topics` serve its streams.
    `aggregated`: as partial aggregates, where that is possible.
    """
    inputs = tuple(
        Input(
            "",
            feed.stream.name,
            topics[feed.stream.name],
            feed.stream.time or "",
            feed.partition_key,
            feed.filter,
            0,
            feed.read,
            kept=judged.kept.get(feed.stream.name),
            representation=judged.represented.get(feed.stream.name),
        )
        for feed in judged.layout.feeds
    )
    bound = judged.memory.bound
    made = StandingQuery(
        alert=alert.name,
        version=version,
        node=judged.node,
        inputs=inputs,
        key=judged.layout.key,
        bound=sayable(bound),
        severity=alert.options.severity,
        labels=alert.options.labels,
        gap=alert.options.gap,
        for_=alert.options.for_,
        proven=judged.memory.verdict == "bounded",
    )
    partials = partial_aggregation(alert, judged.node, judged.lower, version) if aggregated else None
    return made, [_reader(source, version, partials) for source in inputs]


def _reader(source: Input, version: int, partials: PartialAggregation | None) -> ReaderInput:
    omission = Omission.none("", source.partition_key, source.filter, _NOTHING)
    return ReaderInput(source, omission, version, max_delay=None, counted=True, partials=partials)


def _streamed(query: Query, catalog: Catalog) -> list[Source]:
    """The sources that are streams, not tables."""
    return [source for source in query.sources if source.stream in catalog.streams]


# ---- what is needed of a stream


def _feed(
    stream: StreamDef, partition_key: tuple[str, ...], members: Iterable[Query], catalog: Catalog
) -> Feed:
    known = {column.name for column in stream.columns}
    filters: list[Expr | None] = []
    read: set[str] = set()
    for query in members:
        for source in _streamed(query, catalog):
            if source.stream == stream.name:
                filters.append(_filter(query, source.alias, known))
                read |= {c.name for part in _parts(query) for c in columns(part) if c.alias == source.alias}
    rest = read - {*partition_key, stream.time}
    names = tuple(column.name for column in stream.columns if column.name in rest)
    return Feed(stream, partition_key, _any(filters), names)


def _filter(query: Query, alias: str, known: set[str]) -> Expr | None:
    """The conditions on one source alone; a tuple that fails them is never counted."""
    if isinstance(query, LatestValueJoin):
        join = next((one for one in query.joins if one.alias == alias), None)
        if join is not None:
            return bare(conjunction(candidate_filters(query, join)))
    parts = [
        part
        for conjunct in query.conjuncts
        for part in flatten_and(conjunct.expr)
        if aliases(part) <= {alias} and {c.name for c in columns(part)} <= known
    ]
    return bare(conjunction(tuple(dict.fromkeys(parts))))


def _any(filters: list[Expr | None]) -> Expr | None:
    distinct = [one for one in dict.fromkeys(filters) if one is not None]
    if None in filters:
        return None
    return distinct[0] if len(distinct) == 1 else Call("or", tuple(distinct), Type.BOOLEAN)


def _parts(query: Query) -> Iterator[Expr]:
    """Every expression of a query over its sources."""
    yield from (conjunct.expr for conjunct in query.conjuncts)
    yield from (output.expr for output in query.select)
    for join in asof_joins(query):
        yield from (column for pair in join.keys for column in pair)
        yield from (conjunct.expr for conjunct in join.filters)
    if (grouping := grouping_of(query)) is not None:
        yield from (meaning(column, query) for column in grouping.by)
        read = (column for one in grouping.aggregates for column in (one.column, one.order))
        yield from (meaning(column, query) for column in read if column is not None)
        if grouping.having is not None:
            yield grouping.having


# ---- partitions


def _partition(query: Query, catalog: Catalog) -> tuple[tuple[Column, ...], ...]:
    """The classes of equal KEY columns by which a query is partitioned; each class has a column of every
    source.
    """
    sources = _streamed(query, catalog)
    streams = {source.alias: catalog.streams[source.stream] for source in sources}
    if len(sources) < len(query.sources) and query.window is None:
        return ()
    if len(sources) == 1:
        ((alias, stream),) = streams.items()
        groups = [_and_equal(Column(alias, c.name, c.type), query) for c in stream.columns if c.key]
    else:
        times = {alias: stream.time for alias, stream in streams.items() if stream.time is not None}
        parts = (part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr))
        equalities = tuple(found for part in parts if (found := key_equality(part, times)) is not None)
        if isinstance(query, LatestValueJoin):
            # Conditions of WHERE apply to tuples that are already chosen.
            equalities = tuple(pair for join in query.joins for pair in join.keys)
        groups = classes(equalities)
    chosen = [
        one
        for group in groups
        if (one := _key_column_per_source(group, streams)) and _tells_apart(query, group)
    ]
    return tuple(chosen)


def _and_equal(column: Column, query: Query) -> list[Column]:
    """A column and the columns of tables that must be equal to it."""
    parts = (part for conjunct in query.conjuncts for part in flatten_and(conjunct.expr))
    equal = (part.args for part in parts if isinstance(part, Call) and part.op == "=" and column in part.args)
    return list(dict.fromkeys((column, *(one for pair in equal for one in pair if isinstance(one, Column)))))


def _key_column_per_source(
    group: list[Column], streams: Mapping[str, StreamDef]
) -> tuple[Column, ...] | None:
    """A KEY column for every source, the same for sources of one stream; None if a source has none."""
    found: list[Column] = []
    same: dict[str, str] = {}
    for alias, stream in streams.items():
        names = [c for c in group if c.alias == alias and c.name in stream.key]
        mine = next((c for c in names if same.get(stream.name, c.name) == c.name), None)
        if mine is None:
            return None
        same[stream.name] = mine.name
        found.append(mine)
    return tuple(found)


def _tells_apart(query: Query, group: list[Column]) -> bool:
    if isinstance(query, SessionGroupBy) and not any(c.name in query.session.by for c in group):
        return False
    if (grouping := grouping_of(query)) is not None:
        return any(c in group for c in grouping.by)
    return not is_distinct(query) or any(output.expr in group for output in query.select)


def _key(query: Query, chosen: tuple[tuple[Column, ...], ...]) -> tuple[str, ...]:
    """The columns of SELECT that identify the owner of a row: the columns of the group, or else of the
    partition.
    """
    if (grouping := grouping_of(query)) is not None:
        by = {column for column in grouping.by if column.name not in WINDOW_COLUMNS}
        return tuple(output.name for output in query.select if output.expr in by)
    named = [next((o.name for o in query.select if o.expr in group), None) for group in chosen]
    found = tuple(name for name in named if name is not None)
    return found if len(found) == len(named) else ()
