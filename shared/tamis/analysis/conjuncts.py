"""Classification of a query's conjuncts: key equalities, time bounds, filters, and the condition.

WHERE and ON are one conjunction. A conjunct is a key equality (two plain attributes of two sources), a time
bound, a filter (a predicate of one source, applied before omission), or part of the condition over several
sources. Any other conjunct is refused, with its text and its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.analysis.contradictions import contradictory_filters, contradictory_values, fewest, message
from tamis.analysis.equality_classes import Equality
from tamis.analysis.implied_predicates import Implied, implied_predicates
from tamis.analysis.topology import bounds_of, intersect, mentions_time
from tamis.declarations.definitions import Window
from tamis.declarations.streams import StreamDef
from tamis.errors import Position, RefusedError, SqlError
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import OPPOSITE, Call, Column, Expr, Type, aliases
from tamis.expressions.python_functions import UNKNOWN, calls, shapes_of
from tamis.expressions.sql_text import identifier, to_sql
from tamis.plan.model import TimeBound
from tamis.plan.time_distances import Joined, TimeDistances, closure, joined, window_bounds
from tamis.query.linear_times import is_time
from tamis.query.model import (
    Absence,
    Catalog,
    Conjunct,
    GroupByQuery,
    JoinByTime,
    Query,
    asof_joins,
    same_window,
)

_LONGEST = 200  # characters of a condition in a message


@dataclass(frozen=True)
class AbsentPart:
    """The parts of a NOT EXISTS, without the filters of its sources. `bounds` and `equalities` are its own;
    `conditions` may also be over sources of the query alone.
    """

    aliases: tuple[str, ...]
    equalities: tuple[Equality, ...]
    bounds: tuple[TimeBound, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Analysis:
    """The parts of a query, in the order of its text; expressions keep their aliases.

    Sources under NOT EXISTS are among `aliases`, `streams`, `times`, `filters` and `implied`. The other
    fields are those of the query without its `absences`.
    """

    aliases: tuple[str, ...]
    streams: Mapping[str, StreamDef]  # by alias
    times: Mapping[str, str]  # alias -> its stream's time column
    equalities: tuple[Equality, ...]
    bounds: tuple[TimeBound, ...]
    window: Window | None  # shared by all tuples of a combination
    closure: TimeDistances  # tightest bounds of t_i - t_j, from bounds and window
    filters: Mapping[str, tuple[Expr, ...]]  # by alias
    implied: Mapping[str, tuple[Expr, ...]]  # by alias: more predicates, which follow from all conjuncts
    conditions: tuple[Expr, ...]  # conjuncts over several sources, except key equalities and time bounds
    contradiction: str | None  # the reason, if no tuples can ever join
    refused: tuple[SqlError, ...]
    within: int | None = None  # one alarm of each key in any span of this length is enough
    exists: tuple[str, ...] = ()  # the aliases of sources under EXISTS
    absences: tuple[AbsentPart, ...] = ()

    @property
    def absent(self) -> dict[str, AbsentPart]:
        """The absence of each source under NOT EXISTS, by alias."""
        return {alias: part for part in self.absences for alias in part.aliases}

    @property
    def joined(self) -> Joined:
        """The time bounds, apart for each absence."""
        absent = self.absent
        names = [alias for alias in self.aliases if alias not in absent]
        parts = [(part.aliases, part.bounds) for part in self.absences]
        return joined(names, self.exists, self.bounds, parts)

    def reach(self, later: str, earlier: str) -> int | None:
        """The greatest t_later - t_earlier of tuples that concern the same row (`Joined.reach`)."""
        if not self.exists and not self.absences:
            return self.closure.upper.get((later, earlier))
        return self.joined.reach(later, earlier)

    def waits_for_itself(self, alias: str) -> bool:
        """Tell if the tuples of a source are also kept for later tuples of the same source."""
        return alias in self.exists or alias in self.absent

    @property
    def predicates(self) -> dict[str, tuple[Expr, ...]]:
        """All predicates of each source, by alias: its filters, and the implied ones."""
        return {alias: (*own, *self.implied.get(alias, ())) for alias, own in self.filters.items()}

    def check(self) -> None:
        """Raises RefusedError with all refused conjuncts, if there are any."""
        if self.refused:
            raise RefusedError("; ".join(str(error) for error in self.refused))


def analyse(
    query: Query,
    catalog: Catalog,
    position: Position | None = None,
    *,
    early: bool = False,
    within: int | None = None,
) -> Analysis:
    """Classify the conjuncts of `query`; `position` is that of mistakes that no single conjunct has.

    A predicate of one stream that calls a Python function with a declared shape becomes part of the
    condition, where it is called only for tuples that omission retains. With `early` it is a filter, like
    other predicates. `within`: the span in which one alarm of each key is enough, for a query over one
    stream without windows.
    """
    join = _as_join(query)
    streams, times = _streams(query, catalog)
    order = _base(join)
    omits = len(order) > 1 or query.window is not None or within is not None
    parts = _Parts(join, times, late=omits and not early)
    bounds = intersect(parts.bounds, order)
    distances = closure(order, (*bounds, *window_bounds(query.window, order)))
    contradiction = parts.contradiction
    if contradiction is None and distances.contradictory:
        contradiction = parts.contradictory_bounds(order)
    filters = {alias: tuple(own) for alias, own in parts.filters.items()}
    implied = Implied({})
    if contradiction is None and not parts.refused:
        declared = _with_nulls(streams, query)
        conflict = contradictory_filters(declared, filters)
        if not conflict:
            implied = implied_predicates(streams, filters, tuple(parts.conditions), parts.equalities)
            conflict = implied.contradiction
        if not conflict:
            conflict = contradictory_values(declared, parts.joined)
        contradiction = message(conflict, declared, parts.said)
    refused = [*_not_joins_by_time(query, streams, position), *parts.refused]
    own_implied = dict(implied.predicates)
    absences = []
    if contradiction is None and not refused:
        for absence in join.absences:
            found = _absence(absence, join, parts, times, streams)
            absences.append(found.part)
            filters |= found.filters
            own_implied |= found.implied
            refused += found.refused
    return Analysis(
        aliases=tuple(streams),
        streams=streams,
        times=times,
        equalities=tuple(parts.equalities),
        bounds=bounds,
        window=query.window,
        closure=distances,
        filters=filters,
        implied=own_implied,
        conditions=tuple(parts.conditions),
        contradiction=contradiction,
        within=within,
        refused=tuple(refused),
        exists=join.exists,
        absences=tuple(absences),
    )


def _as_join(query: Query) -> JoinByTime:
    """The query with its sources, conjuncts and SELECT alone, as if it were a join by time."""
    if isinstance(query, JoinByTime):
        return query
    return JoinByTime(query.sources, query.conjuncts, query.select, watched=query.watched)


def _with_nulls(streams: Mapping[str, StreamDef], query: Query) -> dict[str, StreamDef]:
    """The streams as the rows of a query have them: without a partner in a LEFT ASOF JOIN, all columns of its
    stream are NULL.
    """
    outer = {join.alias for join in asof_joins(query) if join.outer}
    return {
        alias: replace(stream, columns=tuple(replace(column, not_null=False) for column in stream.columns))
        if alias in outer
        else stream
        for alias, stream in streams.items()
    }


def time_distances(query: JoinByTime, catalog: Catalog) -> TimeDistances:
    """The `closure` of the analysis of `query`, without the rest of it, which takes much longer."""
    _, times = _streams(query, catalog)
    order = _base(query)
    bounds = intersect(_Parts(query, times, late=False).bounds, order)
    return closure(order, (*bounds, *window_bounds(query.window, order)))


def _streams(query: Query, catalog: Catalog) -> tuple[dict[str, StreamDef], dict[str, str]]:
    """The streams of a query and the columns of their event times, by alias."""
    streams = {source.alias: catalog.streams[source.stream] for source in query.sources}
    return streams, {alias: stream.time for alias, stream in streams.items() if stream.time is not None}


def _base(query: JoinByTime) -> tuple[str, ...]:
    """The aliases of the sources that are not under NOT EXISTS."""
    absent = {alias for absence in query.absences for alias in absence.aliases}
    return tuple(source.alias for source in query.sources if source.alias not in absent)


@dataclass(frozen=True)
class _FoundAbsence:
    part: AbsentPart
    filters: dict[str, tuple[Expr, ...]]
    implied: dict[str, tuple[Expr, ...]]
    refused: list[SqlError]


def _absence(
    absence: Absence,
    query: JoinByTime,
    base: _Parts,
    times: Mapping[str, str],
    streams: Mapping[str, StreamDef],
) -> _FoundAbsence:
    """The parts of a NOT EXISTS. `base` has the parts of the query."""
    parts = _Parts(query, times, late=False, absence=absence)
    outer = _base(query)
    order = (*outer, *absence.aliases)
    bounds = intersect(parts.bounds, order)
    base_bounds = intersect(base.bounds, order)
    distances = closure(order, (*base_bounds, *bounds))
    rows = [alias for alias in outer if alias not in query.exists]
    refused = list(parts.refused)
    contradiction = parts.contradiction
    if contradiction is None and distances.contradictory:
        contradiction = base.contradictory_bounds(order, parts)
    filters = {alias: tuple(parts.filters[alias]) for alias in absence.aliases}
    implied: dict[str, tuple[Expr, ...]] = {}
    if contradiction is None and not refused:
        all_filters = {alias: tuple(base.filters[alias]) for alias in outer} | filters
        of_these = {alias: streams[alias] for alias in order}
        conditions = (*base.conditions, *parts.conditions)
        found = implied_predicates(of_these, all_filters, conditions, [*base.equalities, *parts.equalities])
        conflict = contradictory_filters(of_these, all_filters) or found.contradiction
        conflict = conflict or contradictory_values(of_these, (*base.joined, *parts.joined))
        contradiction = message(conflict, of_these, base.said | parts.said)
        implied = {alias: own for alias, own in found.predicates.items() if alias in absence.aliases}
    if contradiction is not None:
        hint = "leave it out, or correct the conditions of its WHERE"
        refused.append(SqlError(f"this NOT EXISTS always holds: {contradiction}", absence.position, hint))
    elif not refused:
        refused += _unbounded(absence, rows, times, distances)
    part = AbsentPart(absence.aliases, tuple(parts.equalities), bounds, tuple(parts.conditions))
    return _FoundAbsence(part, filters, implied, refused)


def _unbounded(
    absence: Absence, rows: Sequence[str], times: Mapping[str, str], distances: TimeDistances
) -> Iterator[SqlError]:
    """The refusal of a NOT EXISTS without time bounds on both ends."""
    for alias in absence.aliases:
        for row in rows:
            if (alias, row) in distances.upper and (row, alias) in distances.upper:
                continue
            late = (alias, row) not in distances.upper
            what = (
                f"NOT EXISTS can't be decided: a tuple of {alias} may come any time after that of {row}"
                if late
                else f"NOT EXISTS needs every earlier tuple of {alias}, however long ago it came"
            )
            own, other = (f"{identifier(one)}.{identifier(times[one])}" for one in (alias, row))
            hint = (
                f"bound the times on both ends: AND {own} BETWEEN {other} AND {other} + INTERVAL '1' MINUTE"
            )
            yield SqlError(what, absence.position, hint)
            return


def _not_joins_by_time(
    query: Query, streams: Mapping[str, StreamDef], position: Position | None
) -> list[SqlError]:
    """The reasons why a query is no join by time, apart from its conjuncts."""
    refused = [
        SqlError(
            f"stream {stream.name} has no WATERMARK, so this query isn't a join by time",
            position,
            f"evaluate recordings with tamis run, or declare WATERMARK in stream {stream.name}",
        )
        for stream in streams.values()
        if stream.time is None
    ]
    if isinstance(query, GroupByQuery) and not refused:
        hint = "evaluate recordings with tamis run, or leave the aggregates and GROUP BY out"
        refused.append(SqlError("a query with aggregates of windows isn't a join by time", position, hint))
    return refused


class _Parts:
    """The conjuncts of a query, or of one of its absences, by kind."""

    def __init__(
        self, query: JoinByTime, times: Mapping[str, str], *, late: bool, absence: Absence | None = None
    ) -> None:
        """`late`: predicates that call Python functions with a declared shape are part of the condition."""
        self._query, self._times, self._late, self._absence = query, times, late, absence
        self._windowed = frozenset(source.alias for source in query.sources if source.window is not None)
        self.equalities: list[Equality] = []
        self.bounds: list[TimeBound] = []
        # Dictionaries as ordered sets: a query may have thousands of parts, and some of them twice.
        self.filters: dict[str, dict[Expr, None]] = {source.alias: {} for source in query.sources}
        self.conditions: dict[Expr, None] = {}
        self.contradiction: str | None = None
        self.said: dict[Expr, str] = {}  # the user's text of each part, with its place
        self._bounding: dict[Expr, list[TimeBound]] = {}  # the conditions from which the bounds are
        self.refused: list[SqlError] = []
        for conjunct in (query if absence is None else absence).conjuncts:
            for part in flatten_and(conjunct.expr):
                self._add(part, conjunct)

    def _add(self, part: Expr, conjunct: Conjunct) -> None:
        sources = aliases(part)
        said = conjunct.text if len(conjunct.text) <= _LONGEST else to_sql(part)
        self.said.setdefault(part, f"{said} ({conjunct.position})")
        if part.type is not Type.BOOLEAN:
            self.refused.append(_refusal(conjunct, "is not a condition", "compare it with a value"))
        elif not sources:
            if not _holds(part):
                self.contradiction = f"{conjunct.text} ({conjunct.position}) is never true"
                for filters in self.filters.values():
                    filters[part] = None
        elif len(sources) == 1 and self._filters(part, *sources):
            (alias,) = sources
            self.filters[alias][part] = None
        elif same_window(part, self._windowed):
            pass  # the window is an attribute of the whole query
        elif equality := key_equality(part, self._times):
            self.equalities.append(equality)
            self.said.setdefault(Call("=", equality, Type.BOOLEAN), f"{said} ({conjunct.position})")
        elif bounds := bounds_of(part, self._times):
            self.bounds += bounds
            self._bounding[part] = list(bounds)
        elif len(mentions_time(part, self._times)) > 1:
            what = "doesn't limit the difference of the event times to one range with constant ends"
            hint = "write a bound such as b.ts BETWEEN a.ts AND a.ts + INTERVAL '30' SECOND"
            self.refused.append(_refusal(conjunct, what, hint))
        else:
            self.conditions[part] = None

    @property
    def joined(self) -> tuple[Expr, ...]:
        """All parts but those about event times of several streams and windows."""
        filters = (part for own in self.filters.values() for part in own)
        equal = (Call("=", equality, Type.BOOLEAN) for equality in self.equalities)
        return tuple(dict.fromkeys((*filters, *equal, *self.conditions)))

    def _filters(self, part: Expr, alias: str) -> bool:
        """Tell if a predicate of one source is a filter of that source."""
        if self._absence is not None and alias not in self._absence.aliases:
            return False  # it says when NOT EXISTS counts, and not which tuples of the row's source do
        return not (self._late and _expensive(part))

    def contradictory_bounds(self, order: tuple[str, ...], more: _Parts | None = None) -> str:
        """The message about time bounds that contradict each other, also those of `more`."""
        windows = window_bounds(self._query.window, order)
        bounding = self._bounding | ({} if more is None else more._bounding)
        said = self.said | ({} if more is None else more.said)

        def contradict(some: Sequence[Expr]) -> bool:
            bounds = [bound for part in some for bound in bounding[part]]
            return closure(order, (*intersect(bounds, order), *windows)).contradictory

        parts = fewest(list(bounding), contradict)
        named = ", ".join(dict.fromkeys(said[part] for part in parts))
        within = "" if self._query.window is None else " within a window"
        return f"no event times{within} meet all of {named}"


def _expensive(part: Expr) -> bool:
    """Tell if a predicate of one stream calls a Python function with a declared shape."""
    return any(set(shapes_of(c)) - {UNKNOWN} for c in calls(part))


def flatten_and(expr: Expr) -> list[Expr]:
    """The conjuncts of nested ANDs, with NOT moved inwards: `NOT (p OR q)` has two, and `NOT a < b` is
    `a >= b`.
    """
    if isinstance(expr, Call) and expr.op == "and":
        return [part for arg in expr.args for part in flatten_and(arg)]
    if isinstance(expr, Call) and expr.op == "not" and isinstance(expr.args[0], Call):
        inner = expr.args[0]
        if inner.op == "not":
            return flatten_and(inner.args[0])
        if inner.op == "or":
            return [part for arg in inner.args for part in flatten_and(Call("not", (arg,), Type.BOOLEAN))]
        if inner.op in OPPOSITE:
            return [Call(OPPOSITE[inner.op], inner.args, Type.BOOLEAN)]
    return [expr]


def key_equality(expr: Expr, times: Mapping[str, str]) -> Equality | None:
    """The two attributes of an equality of plain columns of two sources with comparable types, neither of
    them an event time; None for any other expression.
    """
    if not isinstance(expr, Call) or expr.op != "=":
        return None
    left, right = expr.args
    if not isinstance(left, Column) or not isinstance(right, Column) or left.alias == right.alias:
        return None
    if is_time(left, times) or is_time(right, times):
        return None
    comparable = left.type is right.type or (left.type.numeric and right.type.numeric)
    return (left, right) if comparable else None


def _holds(expr: Expr) -> bool:
    """Tell if a condition without columns is true."""
    return bool(holds(expr, {}, 1)[0])


def _refusal(conjunct: Conjunct, what: str, hint: str) -> SqlError:
    return SqlError(f"{conjunct.text} {what}", conjunct.position, hint)
