"""Run of a query over recordings, with the evaluators of the fleet: its rows as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.declarations.watches import WindowFunction
from tamis.errors import InputError, NotAcceptedError
from tamis.expressions.nodes import Column, Expr, Type, columns
from tamis.offline.recordings import since_begin
from tamis.offline.standing_runs import run_query
from tamis.offline.wording import Wording
from tamis.operators.contract import WITHDRAWN, Rows
from tamis.operators.time_join.replay import Replay, replay
from tamis.persistent.dicts import PersistentDict
from tamis.planning.build import first_plan
from tamis.planning.decide import verdict_on
from tamis.planning.queries.standing_queries import is_standing
from tamis.planning.stream_plans import live
from tamis.query.computed_columns import meaning
from tamis.query.model import AlertDef, Catalog, DerivedDef, GroupByQuery, NestedQuery, Query, selects_of
from tamis.recordings.times import PER_SECOND, TimeUnit
from tamis.recordings.typed import Recording
from tamis.recordings.values import iso_text
from tamis.wording.names import normalized_name, suggest

_TYPES = {
    Type.VARCHAR: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.DOUBLE: pa.float64(),
}  # all others are whole numbers


def chosen_query(catalog: Catalog, name: str | None, source: str, wording: Wording) -> AlertDef | DerivedDef:
    """The query of this name, or the only one. Raises InputError, which names `source`, if there is none."""
    queries: dict[str, AlertDef | DerivedDef] = {**catalog.derived, **catalog.alerts}
    if not queries:
        raise InputError("no query to run", where=source, hint="add a CREATE ALERT statement")
    name = name if name is None else normalized_name(name, queries)
    if name is None and len(queries) > 1:
        hint = f"choose one with {wording.query}: {', '.join(queries)}"
        raise InputError("several queries", where=source, hint=hint)
    if name is not None and name not in queries:
        raise InputError(
            f"there is no query {name!r}",
            where=source,
            hint=suggest(name, queries, "it has " + ", ".join(queries)),
        )
    return runnable(next(iter(queries.values())) if name is None else queries[name])


def runnable(query: AlertDef | DerivedDef) -> AlertDef | DerivedDef:
    """The query as `rows_of` runs it: a derived stream without a state of its own runs as an alert."""
    inlined = isinstance(query, DerivedDef) and query.inlined
    return AlertDef(query.name, query.query) if inlined else query


def rows_of(
    chosen: AlertDef | DerivedDef,
    catalog: Catalog,
    recordings: dict[str, Recording],
    *,
    wording: Wording,
    notify: Callable[[str], object],
) -> pa.Table:
    """The rows of a query over the recordings of its streams, with the columns of SELECT.

    Times have the form in which the recordings have them. `notify` gets how many tuples came too late for
    their windows, and how many rows hold in exact arithmetic only. Raises NotAcceptedError if the query isn't
    accepted.
    """
    recordings = since_begin(chosen, recordings)
    if is_standing(chosen, catalog):
        return _standing_rows(chosen, catalog, recordings, wording, notify)
    alert = live(chosen) if isinstance(chosen, AlertDef) else AlertDef(chosen.name, chosen.query)
    alone = Catalog(
        catalog.streams, {}, catalog.functions, PersistentDict({alert.name: alert}), results=catalog.results
    )
    plan = first_plan(alone)
    found = replay(plan.definitions[0], plan.streams, recordings)
    if found.exact_only:
        what = "1 row holds" if found.exact_only == 1 else f"{found.exact_only} rows hold"
        notify(
            f"{alert.name}: {what} in exact arithmetic and not as computed, because of rounding; no alarm"
            " that holds exactly is left out"
        )
    return _table(found, recordings)


def _standing_rows(
    chosen: AlertDef | DerivedDef,
    catalog: Catalog,
    recordings: dict[str, Recording],
    wording: Wording,
    notify: Callable[[str], object],
) -> pa.Table:
    """The rows of a standing query. Raises NotAcceptedError if it isn't bounded."""
    verdict = verdict_on(chosen, catalog)
    if not verdict.accepted:
        repairs = verdict.memory.repairs
        hint = f"write {repairs[0]}" if repairs else f"ask {wording.explain} for more"
        raise NotAcceptedError(verdict.reason, where=f"{verdict.kind} {chosen.name}", hint=hint)
    rows = _played(chosen.query, catalog, recordings, notify)
    recordings = {**query_inputs(chosen.query, catalog).relations, **recordings}
    members = selects_of(chosen.query)
    built = {}
    for number, output in enumerate(chosen.query.select):
        vector, kind = rows.columns[output.name], output.expr.type
        column = pa.array(vector.data, _TYPES.get(kind, pa.int64()), mask=vector.null)
        if kind is Type.TIMESTAMP:
            written = {_written(one, one.select[number].expr, recordings) for one in members}
            given, unit = written.pop() if len(written) == 1 else (pa.string(), "us")
            column = _as_given(column, given, unit)
        built[output.name] = column
    if WITHDRAWN in rows.columns:
        built[WITHDRAWN] = pa.array(rows.columns[WITHDRAWN].data)
    return pa.table(built)


def _played(
    query: Query, catalog: Catalog, recordings: dict[str, Recording], notify: Callable[[str], object]
) -> Rows:
    found = run_query(query, catalog, recordings)
    if found.late:
        what = "tuple is" if found.late == 1 else "tuples are"
        streams = " and ".join(one.stream.shown_name for one in recordings.values())
        notify(f"stream {streams}: {found.late} {what} missing in a window that had already ended")
    return found.rows


def _written(query: Query, expr: Expr, recordings: dict[str, Recording]) -> tuple[pa.DataType, TimeUnit]:
    """The type and the unit in which the recordings have the times of an expression; a number of microseconds
    if it has no times.
    """
    if isinstance(query, NestedQuery):
        # Times of rows of aggregates are written as the event times of the first stream.
        first = next(one for one in recordings.values() if one.stream.time is not None)
        return _form(first, str(first.stream.time))
    streams = {source.alias: source.stream for source in query.sources}
    read = (c for column in columns(expr) for c in columns(_aggregated(query, column)))
    times = [c for c in read if c.type is Type.TIMESTAMP]
    given = [(recordings[streams[c.alias]], c.name) for c in times]
    windows = WINDOW_COLUMNS if query.windowed else ()
    names = [(one, one.stream.time if name in windows else name) for one, name in given]
    written = (_form(one, name) for one, name in names if name is not None)
    return next(written, (pa.int64(), "us"))


def _form(recording: Recording, name: str) -> tuple[pa.DataType, TimeUnit]:
    """The type and the unit in which a recording has the times of a column. The column of a window function
    isn't in the files: its times have the form of those that it is computed from, or else of event times.
    """
    stream = recording.stream
    if name not in recording.given:
        watches = (
            one for one in stream.watches if isinstance(one, WindowFunction) and one.column.name == name
        )
        read = (c.name for one in watches for c in columns(one.value) if c.type is Type.TIMESTAMP)
        name = next(read, str(stream.time))
    return recording.given[name].type, recording.unit


def _aggregated(query: Query, column: Column) -> Expr:
    """The expression over a stream from which a column of the query's rows is computed."""
    if not column.alias and isinstance(query, GroupByQuery):
        column = query.grouping.aggregates[int(column.name)].column or column
    return meaning(column, query)


def _as_given(ticks: pa.Array, kind: pa.DataType, unit: TimeUnit) -> pa.Array:
    """Times in microseconds, converted to this type. If all of them are whole units, the numbers are
    integers, else fractions.
    """
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        per = PER_SECOND[unit]
        if per >= 1_000_000:
            return pc.multiply(ticks, per // 1_000_000)
        each = 1_000_000 // per
        whole = pc.divide(ticks, each)
        if pc.all(pc.equal(pc.multiply(whole, each), ticks)).as_py() is not False:
            return whole
        return pc.divide(ticks.cast(pa.float64(), safe=False), float(each))
    return iso_text(ticks) if pa.types.is_string(kind) else ticks.cast(pa.timestamp("us", kind.tz))


def _table(found: Replay, recordings: dict[str, Recording]) -> pa.Table:
    built = {name: _output(found, name, expr, recordings) for name, expr in found.definition.select}
    return pa.table(built)


def _output(found: Replay, name: str, expr: Expr, recordings: dict[str, Recording]) -> pa.Array:
    vector = found.selected[name]
    if expr.type is not Type.TIMESTAMP:
        return pa.array(vector.data, _TYPES.get(expr.type, pa.int64()), mask=vector.null)
    if isinstance(expr, Column):
        recording, column = _source(found, expr, recordings)
        if column == expr.name and column in recording.given:
            return recording.given[column].take(pa.array(found.rows[expr.alias]))
    ticks = pa.array(vector.data, pa.int64(), mask=vector.null)
    first = found.definition.inputs[0]
    like = next((c for c in columns(expr) if c.type is Type.TIMESTAMP), None)
    like = like or Column(first.alias, first.time, Type.TIMESTAMP)
    return _as_given(ticks, *_form(*_source(found, like, recordings)))


def _source(found: Replay, column: Column, recordings: dict[str, Recording]) -> tuple[Recording, str]:
    """The recording of a column of times, and the name of the column there: the start and the end of a window
    are written as event times.
    """
    source = next(s for s in found.definition.inputs if s.alias == column.alias)
    windowed = found.definition.window is not None and column.name in WINDOW_COLUMNS
    return recordings[source.stream], source.time if windowed else column.name
