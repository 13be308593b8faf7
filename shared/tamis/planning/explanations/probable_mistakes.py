"""Valid queries that probably don't mean what they say: conditions that hold always, never or too early.

- A condition that no values of the declared domains make false: most often a limit in another unit.
- `a.ts = b.ts`: sensors with clocks of their own never agree to the microsecond.
- `HAVING count(*) < n`: a window without readings has no row, so silent keys aren't found.
- `min(x) OVER (…) > c`: a frame has a single reading at the start and after a silence.
- `lag(x, n)` beyond the history of the stream: it is always NULL.
- `state IN ('empty', 'emty')`, of which the CHECK of the column admits no 'emty': most often another text was
  meant. A condition without such an alternative is refused, since the query would never have a row.
- Aggregates over a stream with event time and without windows, which have all readings since the beginning.
- NOT EXISTS over a stream whose event time may stand still.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tamis.analysis.conjuncts import flatten_and
from tamis.analysis.contradictions import (
    admitted_texts,
    compares_with_null,
    contradictory_values,
    null_test,
    possible_limits,
)
from tamis.analysis.value_constraints import narrowed
from tamis.declarations.streams import StreamDef
from tamis.declarations.watches import WindowFunction
from tamis.durations import seconds
from tamis.expressions.nodes import FLIPPED, OPPOSITE, Call, Column, Expr, Literal, Type, columns, substitute
from tamis.expressions.sql_text import identifier, interval, to_sql
from tamis.planning.missing_windows import windows_instead
from tamis.query.model import (
    Catalog,
    GroupByQuery,
    JoinByTime,
    Query,
    WindowGroupBy,
    all_queries,
    asof_joins,
    selects_of,
)

# A number of readings that no window has.
_MANY = 10**15
# Window functions that give the value itself over a single reading, if they ask for all readings.
_EXTREMES = ("min", "max")
# A query with more comparisons is generated, and its author reads no warnings.
_MOST_COMPARISONS = 100


def probable_mistakes(query: Query, catalog: Catalog) -> Iterator[str]:
    """A warning for each such condition of a query that isn't a union."""
    streams = {s.alias: catalog.streams[s.stream] for s in query.sources if s.stream in catalog.streams}
    yield from _always_true(query, streams)
    yield from _equal_times(query, streams)
    yield from _few_readings(query)
    yield from _short_frames(query, streams)
    yield from _beyond_history(streams)
    if (in_windows := windows_instead(query, catalog)) is not None:
        yield (
            "without windows the aggregates have all readings so far. For those of each"
            f" minute, write {in_windows}"
        )


def _always_true(query: Query, streams: Mapping[str, StreamDef]) -> Iterator[str]:
    for conjunct in query.all_conjuncts:
        part = conjunct.expr
        if not isinstance(part, Call) or part.op not in FLIPPED or not _numbers(part):
            continue
        never = Call(OPPOSITE[part.op], part.args, Type.BOOLEAN)
        if any(columns(part)) and narrowed([never], streams) is None:
            if (
                narrowed([part], streams) is None
            ):  # Neither the condition nor its opposite: it is always NULL.
                yield f"{conjunct.text} is never true, as every comparison with NULL"
                continue
            limits = possible_limits(never, streams)
            missing = _nullable(part, query, streams)
            instead = "leave the condition out"
            if missing:
                instead = f"if it is only meant to leave out NULL, write {' AND '.join(missing)}"
            yield (
                f"{conjunct.text} is always true for values of the declared domains{limits}. Look at the unit"
                f" of the limit, or {instead}"
            )


def _nullable(part: Expr, query: Query, streams: Mapping[str, StreamDef]) -> list[str]:
    """The conditions that the columns of an expression aren't NULL, of those that may be NULL."""
    optional = {join.alias for join in asof_joins(query) if join.outer}
    found = []
    for column in dict.fromkeys(columns(part)):
        declared = streams[column.alias].column(column.name) if column.alias in streams else None
        if column.alias in optional or declared is None or not declared.not_null:
            found.append(f"{identifier(column.alias)}.{identifier(column.name)} IS NOT NULL")
    return found


def _numbers(part: Call) -> bool:
    return all(side.type.numeric for side in part.args)


def _equal_times(query: Query, streams: Mapping[str, StreamDef]) -> Iterator[str]:
    plain = {
        source.alias: streams[source.alias].time
        for source in query.sources
        if source.alias in streams and source.aggregated is None and not source.windowed
    }
    for conjunct in query.all_conjuncts:
        part = conjunct.expr
        if not isinstance(part, Call) or part.op != "=":
            continue
        sides = [
            side for side in part.args if isinstance(side, Column) and plain.get(side.alias) == side.name
        ]
        if len(sides) == 2 and sides[0].alias != sides[1].alias:
            one, other = (f"{identifier(side.alias)}.{identifier(side.name)}" for side in sides)
            yield (
                f"{conjunct.text} holds only for readings of exactly the same microsecond. Unless one device"
                f" sends both with one time, write ABS({one} - {other}) <= INTERVAL '1' SECOND"
            )


def _few_readings(query: Query) -> Iterator[str]:
    if not isinstance(query, WindowGroupBy) or len(query.sources) > 1:
        return
    grouping = query.grouping
    if grouping.having is None:
        return
    counted = {
        grouping.value(number)
        for number, one in enumerate(grouping.aggregates)
        if one.function == "count" and one.column is None
    }
    tests = [(part, set(columns(part))) for part in flatten_and(grouping.having)]
    parts = [part for part, named in tests if named and named <= counted]
    if parts and _holds(parts, 0) and not _holds(parts, _MANY):
        rows = query.sources[0].aggregated
        read = None if rows is None else rows.query
        if read is not None and len(read.sources) > 1:
            one, *_, other = (identifier(source.alias) for source in read.sources)
            yield (
                "a window in which nothing joins has no row, and count(*) counts combinations of tuples. To"
                f" find tuples of {one} without a partner, write an alert over {one} with WHERE NOT EXISTS"
                f" (SELECT 1 FROM {other} WHERE …), with the conditions of the join"
            )
            return
        size = interval(query.window.size)
        yield (
            "a window without readings has no row, so an alert on a small count(*) doesn't find a key that"
            f" is silent for a whole window. For silent keys, add an alert with WHERE NO READING FOR {size}"
        )


def _holds(parts: list[Expr], count: int) -> bool:
    """False if the conditions never hold for this number of readings."""
    value = Literal(count, Type.BIGINT)
    return narrowed([substitute(part, lambda _: value) for part in parts], {}) is not None


def _short_frames(query: Query, streams: Mapping[str, StreamDef]) -> Iterator[str]:
    functions = {
        Column(alias, watch.column.name, watch.column.type): watch
        for alias, stream in streams.items()
        for watch in stream.watches
        if isinstance(watch, WindowFunction)
    }
    if not functions:
        return
    parts = [(part, one.text) for one in query.conjuncts for part in flatten_and(one.expr)]
    used = {column for part, _ in parts for column in columns(part) if column in functions}
    if any(functions[column].function in ("count", "lag") for column in used):
        return
    for part, text in parts:
        read = set(columns(part))
        if not read or any(c not in functions or functions[c].function not in _EXTREMES for c in read):
            continue
        if any(functions[column].frame.last for column in read):
            continue

        def single(column: Column) -> Expr:
            value = functions[column].value
            return substitute(value, lambda inner: Column(column.alias, inner.name, inner.type))

        alone = substitute(part, single)
        if narrowed([alone], streams) is not None and not possible_limits(alone, streams):
            yield (
                f"{text} can hold with a single reading, at the start and after a silence: its frame"
                " then has no others. If readings of the whole frame are meant, add AND count(*) OVER (…)"
                " >= n with their number and the same frame"
            )
            return


def _beyond_history(streams: Mapping[str, StreamDef]) -> Iterator[str]:
    for stream in dict.fromkeys(streams.values()):
        for watch in stream.watches:
            if not isinstance(watch, WindowFunction) or watch.frame.first is None or stream.rate is None:
                continue
            rows, history = watch.frame.first, watch.frame.span
            # A closed span of W microseconds has at most count * (W div per + 1) readings.
            age = stream.rate.per * (-(-(rows + 1) // stream.rate.count) - 1)
            if age <= history:
                continue
            name = f"{watch.function}(…) OVER (…)"
            result = "is always NULL" if watch.function == "lag" else "sees fewer readings"
            yield (
                f"{name} {result}: at the rate of {stream.shown_name}, the reading {rows} before is at least"
                f" {seconds(age)} older, and readings older than {seconds(history)} count as missing. Declare"
                f" history = '{-(-age // 1_000_000)} seconds' in the WITH of {stream.shown_name}"
            )


def impossible_values(query: Query, catalog: Catalog) -> tuple[str, ...]:
    """A warning for each comparison of a column with a constant that the column's CHECK never admits."""
    found: dict[str, None] = {}
    for one in all_queries(query):
        for part in selects_of(one):
            streams = {
                source.alias: catalog.streams[source.stream]
                for source in part.sources
                if source.stream in catalog.streams
            }
            for comparison in list(_comparisons(part))[:_MOST_COMPARISONS]:
                found |= dict.fromkeys(_warning(comparison, streams))
    return tuple(found)


def _comparisons(query: Query) -> Iterator[Call]:
    conditions = [conjunct.expr for conjunct in query.all_conjuncts]
    values = [output.expr for output in query.select]
    if isinstance(query, GroupByQuery):
        computed = ((alias, column.computed) for alias, column in query.grouping.computed)
        values += [_of(alias, expr) for alias, expr in computed if expr is not None]
    for expr in (*conditions, *values):
        yield from _parts(expr, alone=expr in conditions)


def _of(alias: str, expr: Expr) -> Expr:
    """A computed column's expression over the columns of its source."""
    return substitute(expr, lambda column: column if column.alias else replace(column, alias=alias))


def _parts(expr: Expr, alone: bool) -> Iterator[Call]:
    """The comparisons of a column with a constant in an expression. One that stands `alone` is left out."""
    if not isinstance(expr, Call):
        return
    kinds = {type(one) for one in expr.args}
    if expr.op in (*FLIPPED, "=") and kinds == {Column, Literal} and not alone:
        yield expr
    for one in expr.args:
        yield from _parts(one, alone=alone and expr.op == "and")


def _warning(comparison: Call, streams: Mapping[str, StreamDef]) -> Iterator[str]:
    named = [one for one in comparison.args if isinstance(one, Column)]
    if any(one.alias not in streams or streams[one.alias].column(one.name) is None for one in named):
        return
    if contradictory_values(streams, [comparison]):
        which = " by the CHECK of its column"
        if compares_with_null(comparison):
            instead = null_test(comparison)
            which = ", as every comparison with NULL" + (f": write {instead}" if instead else "")
        elif texts := admitted_texts(comparison, streams):
            which = f": {texts}"
        yield f"{to_sql(comparison)} is never true{which}"


def silence_warnings(query: Query, catalog: Catalog) -> Iterator[str]:
    """A warning for each stream under NOT EXISTS without `idle_timeout`: while a source sends nothing, its
    event time doesn't move, and no row is decided.
    """
    if not isinstance(query, JoinByTime):
        return
    absent = {alias for absence in query.absences for alias in absence.aliases}
    for name in dict.fromkeys(source.stream for source in query.sources if source.alias in absent):
        stream = catalog.streams[name]
        if stream.idle_timeout is None:
            shown, stall = stream.shown_name, seconds(stream.max_stall)
            yield (
                f"stream {shown} has no idle_timeout: while a source of it sends nothing, its event time"
                " stands still, and alarms wait for its next reading, or for the end of its max_stall of"
                f" {stall}. Add idle_timeout = '30 seconds' to its WITH, so that its event time follows the"
                " clock"
            )
