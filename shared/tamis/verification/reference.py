"""Reference of `tamis verify`: an alert's full join over unfiltered recordings, run by DuckDB.

It shares only the parsed SQL with the rest of Tamis, and not the analysis of conjuncts, the omission or the
temporal join. EXISTS and NOT EXISTS are DuckDB's own: as documented, a row with NULL in a column that NOT
EXISTS equates with a column of its subquery is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tamis.declarations.definitions import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, Window
from tamis.expressions.duckdb_sql import to_duckdb
from tamis.expressions.exact.conditions import TRUE, outcomes
from tamis.expressions.exact.rounding import certain
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Call, Column, Expr, aliases, columns, conjunction
from tamis.expressions.python_functions import calls
from tamis.query.model import JoinByTime, Query
from tamis.recordings.typed import Recording
from tamis.verification.database import register, session
from tamis.verification.hash_joins import join_windows

ROW = "_row"  # the number of a tuple in its recording
_LATE, _BUCKET, _START = "_late", "_bucket", "_start"

Condition = Callable[[Expr], str]


@dataclass(frozen=True)
class Reference:
    """The alarms of the plain join: for each source the rows of its recording; all arrays of one length.

    `starts`: the starts of the windows, where the query has windows; a combination is an alarm in each window
    that contains it. `late`: a tuple of the combination was late. `near`: the condition may hold only because
    of rounding, or rounding decides which pattern a tuple is similar to. `exact_only`: combinations for which
    the condition fails only because of rounding, and holds in exact arithmetic.
    """

    rows: Mapping[str, NDArray[np.int64]]
    late: NDArray[np.bool_]
    near: NDArray[np.bool_]
    starts: NDArray[np.int64] | None = None
    exact_only: Reference | None = None

    def __len__(self) -> int:
        return len(self.late)

    def pick(self, which: NDArray[np.bool_]) -> Reference:
        """The combinations of a mask, without those in `exact_only`."""
        starts = None if self.starts is None else self.starts[which]
        rows = {alias: numbers[which] for alias, numbers in self.rows.items()}
        return Reference(rows, self.late[which], self.near[which], starts)


def plain_join(query: Query, recordings: Mapping[str, Recording]) -> Reference:
    """All combinations that raise an alarm; `recordings` are by stream."""
    names = [source.alias for source in query.sources]
    with connect(query, recordings) as connection:
        times = {name: recording.stream.time for name, recording in recordings.items()}
        found = connection.sql(_full_join(query, times)).fetchnumpy()
    computed = np.asarray(found["computed"], np.bool_)
    all_of = Reference(
        rows={a: np.asarray(found[f"r{i}"], np.int64) for i, a in enumerate(names)},
        late=np.asarray(found["late"], np.bool_),
        near=np.asarray(found["near"], np.bool_),
        starts=np.asarray(found["start"], np.int64) if query.window is not None else None,
    )
    rounded = ~_hold_exactly(query, recordings, all_of)
    for source in query.sources:
        uncertain = recordings[source.stream].uncertain
        if uncertain is not None:
            rounded |= uncertain[all_of.rows[source.alias]]
    return replace(replace(all_of, near=rounded).pick(computed), exact_only=all_of.pick(~computed & ~rounded))


def _hold_exactly(query: Query, recordings: Mapping[str, Recording], found: Reference) -> NDArray[np.bool_]:
    """The mask of combinations that certainly hold in exact arithmetic over their readings."""
    exactly = ~found.near
    doubtful = np.flatnonzero(found.near)
    condition = conjunction(tuple(c for c in _join_conditions(query) if certain(c) is not None))
    if condition is not None and len(doubtful):
        given = {
            (c.alias, c.name): recordings[source.stream].columns[c.name].take(found.rows[c.alias][doubtful])
            for source in query.sources
            for c in dict.fromkeys(columns(condition))
            if c.alias == source.alias
        }
        exactly[doubtful] = outcomes(condition, given, len(doubtful)) == TRUE
    return exactly


def _join_conditions(query: Query) -> list[Expr]:
    """The conjuncts over several sources. Those over one source have their computed value by definition."""
    return [c.expr for c in query.conjuncts if len(aliases(c.expr)) > 1]


def _full_join(query: Query, times: Mapping[str, str | None]) -> str:
    """The query with equalities of time buckets (`hash_joins`). `times`: the event time of each stream."""
    names = [source.alias for source in query.sources]
    conditions = [c.expr for c in query.conjuncts]
    tables, ties = bucketed_tables(query, conditions, times)
    where = [*map(_possibly_sql, conditions), *ties]
    rows = ", ".join(f"{quote(a)}.{ROW} AS r{i}" for i, a in enumerate(names))
    late = " OR ".join(f"{quote(a)}.{_LATE}" for a in names)
    near = near_threshold_sql(_join_conditions(query))
    if query.window is not None:
        rows += f", {quote(names[0])}.{attribute(WINDOW_START)} AS start"
    return (
        f"SELECT {rows}, {late} AS late, {_computed_sql(query)} AS computed, {near} AS near"
        f" FROM {', '.join(tables)}"
        f" WHERE {' AND '.join(where) or 'TRUE'}"
    )


def bucketed_tables(
    query: Query, conditions: Sequence[Expr], times: Mapping[str, str | None]
) -> tuple[list[str], list[str]]:
    """The tables of FROM, and the equalities of time buckets that follow from `conditions`; the WHERE must
    contain all of these. `times`: the event time of each stream, needed for those that are read in windows.
    """
    tied = join_windows(conditions, [source.alias for source in query.sources])
    tables, ties = [], []
    for source in query.sources:
        stream, at = quote(source.stream), times.get(source.stream)
        if source.window is not None and at is not None:
            stream = windowed_sql(source.stream, at, source.window)
        window = tied.get(source.alias)
        if window is None:
            tables.append(f"{stream} AS {quote(source.alias)}")
            continue
        time, size = attribute(window.y.name), window.bucket
        first, last = (
            f"CAST(floor_div({time} + {shift}, {size}) AS BIGINT)" for shift in (window.lo, window.hi)
        )
        tables.append(
            f"(SELECT *, unnest(range({first}, {last} + 1)) AS {_BUCKET} FROM {stream})"
            f" AS {quote(source.alias)}"
        )
        ties.append(f"floor_div({column_sql(window.x)}, {size}) = {quote(source.alias)}.{_BUCKET}")
    return tables, ties


def windowed_sql(stream: str, time: str, window: Window) -> str:
    """SQL of the stream with a row for each tuple and each window that contains it."""
    at, slide, size, offset = attribute(time), window.slide, window.size, window.offset
    start, end = attribute(WINDOW_START), attribute(WINDOW_END)
    if window.cumulative:
        start_of = f"floor_div({at} - {offset}, {size}) * {size} + {offset}"
        first = f"(floor_div({at} - {start}, {slide}) + 1) * {slide}"
        each = f"SELECT *, {start_of} AS {start} FROM {quote(stream)}"
        return f"(SELECT *, {start} + unnest(range({first}, {size} + 1, {slide})) AS {end} FROM ({each}))"
    first = f"floor_div({at} - {offset}, {slide}) * {slide} - {size - slide} + {offset}"
    each = f"SELECT *, unnest(range({first}, {at} + 1, {slide})) AS {_START} FROM {quote(stream)}"
    return f"(SELECT *, {_START} AS {start}, {_START} + {size} AS {end} FROM ({each}))"


def _possibly_sql(condition: Expr, margins: tuple[Margin, ...] = ()) -> str:
    """SQL that is true where a conjunct holds, or may hold in exact arithmetic."""
    near = near_threshold_sql([condition] if len(aliases(condition)) > 1 else [], margins)
    return f"({sql_of(condition)})" if near == "FALSE" else f"({sql_of(condition)} OR {near})"


def _computed_sql(query: Query) -> str:
    """SQL that is true where the conjuncts hold for which the WHERE also admits rounding."""
    doubtful = [f"({sql_of(c)})" for c in _join_conditions(query) if certain(c) is not None]
    return f"coalesce({' AND '.join(doubtful)}, FALSE)" if doubtful else "TRUE"


def near_threshold(
    query: Query,
    recordings: Mapping[str, Recording],
    rows: Mapping[str, NDArray[np.int64]],
    margins: tuple[Margin, ...] = (),
) -> NDArray[np.bool_]:
    """The mask of the given combinations that depend on rounding: of the plain join, or of the values that
    omission compares.
    """
    names = [source.alias for source in query.sources]
    count = len(rows[names[0]])
    if count == 0:
        return np.zeros(0, np.bool_)
    tests = [near_threshold_sql(_join_conditions(query), margins)]
    for conjunct in query.conjuncts:
        if all(c.name not in WINDOW_COLUMNS for c in columns(conjunct.expr)):
            tests.append(_possibly_sql(conjunct.expr, margins))
    with connect(query, recordings) as connection:
        wanted = pa.table({"n": np.arange(count), **{f"r{i}": rows[a] for i, a in enumerate(names)}})
        connection.register("wanted", wanted)
        joins = " ".join(
            f"JOIN {quote(s.stream)} AS {quote(s.alias)} ON {quote(s.alias)}.{ROW} = wanted.r{i}"
            for i, s in enumerate(query.sources)
        )
        holds = f"coalesce({' AND '.join(tests)}, FALSE)"
        found = connection.sql(f"SELECT n, {holds} AS near FROM wanted {joins}").fetchnumpy()
    near = np.zeros(count, np.bool_)
    near[np.asarray(found["n"], np.int64)] = np.asarray(found["near"], np.bool_)
    return near


def near_threshold_sql(conditions: Sequence[Expr], margins: tuple[Margin, ...] = ()) -> str:
    """SQL that is true where exact arithmetic might decide some conditions differently."""
    tests = [sql_of(test) for c in conditions if (test := certain(c, margins)) is not None]
    return f"(NOT coalesce({' AND '.join(tests)}, FALSE))" if tests else "FALSE"


def sql_of(expr: Expr) -> str:
    """SQL of an expression over the columns of sources."""
    return to_duckdb(expr, column_sql)


def column_sql(column: Column) -> str:
    """SQL of a column of a source."""
    return f"{quote(column.alias)}.{attribute(column.name)}"


def attribute(name: str) -> str:
    """SQL of a column of a recording; the dot distinguishes it from the columns that are added here."""
    return quote(f"c.{name}")


def quote(name: str) -> str:
    """A name as an identifier of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def connect(query: Query, recordings: Mapping[str, Recording]) -> duckdb.DuckDBPyConnection:
    """A session with the streams of a query as tables; `_row` is the number of each row."""
    connection = session()
    for called in calls(*(conjunct.expr for conjunct in query.all_conjuncts)):
        register(called)
    # Division of integers, rounded down also below zero. Times are within 2^53, so nothing overflows.
    connection.execute("CREATE TEMP MACRO floor_div(a, b) AS (a - ((a % b) + b) % b) // b")
    for name in {source.stream for source in query.sources}:
        connection.register(f"_input_{name}", tuples(recordings[name]))
        # Copied to a table of DuckDB, since a registered Arrow table would be scanned again for each use.
        connection.execute(f"CREATE TEMP TABLE {quote(name)} AS SELECT * FROM {quote(f'_input_{name}')}")
    return connection


def tuples(recording: Recording) -> pa.Table:
    """The tuples of a recording, with their numbers as `_row` and `_late`."""
    arrays = {
        f"c.{column}": pa.array(vector.data, mask=vector.null, from_pandas=False)
        for column, vector in recording.columns.items()
    }
    return pa.table({ROW: np.arange(len(recording)), _LATE: recording.late, **arrays})


def existing_rows(
    query: JoinByTime, recordings: Mapping[str, Recording], margins: tuple[Margin, ...] = ()
) -> Reference:
    """All rows of a query with EXISTS or NOT EXISTS; `recordings` are by stream.

    `margins`: the errors of the values that edges compare. A row for which rounding decides is `near`; if the
    computed conditions exclude it, it is in `exact_only`.
    """
    names = [source.alias for source in query.row_sources]

    def possible(condition: Expr) -> str:
        return _possibly_sql(condition, margins)

    def sure(condition: Expr) -> str:
        near = near_threshold_sql([condition] if len(aliases(condition)) > 1 else [], margins)
        return f"({sql_of(condition)} AND NOT {near})"

    tables = ", ".join(f"{quote(s.stream)} AS {quote(s.alias)}" for s in query.row_sources)
    late = " OR ".join(f"{quote(alias)}._late" for alias in names)
    rows = ", ".join(f"{quote(alias)}._row AS r{i}" for i, alias in enumerate(names))
    with connect(query, recordings) as connection:
        found = connection.sql(
            f"SELECT {rows}, {late} AS late, {_holds(query, sql_of, sql_of)} AS computed,"
            f" NOT {_holds(query, sure, possible)} AS near"
            f" FROM {tables} WHERE {_holds(query, possible, sure)}"
        ).fetchnumpy()
    every = Reference(
        rows={alias: np.asarray(found[f"r{i}"], np.int64) for i, alias in enumerate(names)},
        late=np.asarray(found["late"], np.bool_),
        near=np.asarray(found["near"], np.bool_),
    )
    holds = np.asarray(found["computed"], np.bool_)
    given, excluded = every.pick(holds), every.pick(~holds)
    return Reference(given.rows, given.late, given.near, exact_only=excluded)


def _holds(query: JoinByTime, condition: Condition, absent: Condition) -> str:
    """SQL that is true for a row: `condition` makes the SQL of a conjunct, `absent` that of a conjunct under
    NOT EXISTS.
    """
    own = [c.expr for c in query.conjuncts if not aliases(c.expr) & set(query.exists)]
    parts = [f"coalesce({condition(one)}, FALSE)" for one in own]
    for group in _groups(query):
        conditions = [c.expr for c in query.conjuncts if aliases(c.expr) & set(group)]
        parts.append(_exists(query, group, [condition(one) for one in conditions]))
    for absence in query.absences:
        conditions = [c.expr for c in absence.conjuncts]
        parts.append(f"NOT {_exists(query, absence.aliases, [absent(one) for one in conditions])}")
        parts += [f"{sql_of(column)} IS NOT NULL" for column in _equated(conditions, absence.aliases)]
    return f"({' AND '.join(parts)})"


def _exists(query: JoinByTime, names: Collection[str], conditions: Sequence[str]) -> str:
    tables = ", ".join(f"{quote(s.stream)} AS {quote(s.alias)}" for s in query.sources if s.alias in names)
    return f"EXISTS (SELECT 1 FROM {tables} WHERE {' AND '.join(conditions) or 'TRUE'})"


def _groups(query: JoinByTime) -> list[set[str]]:
    """The sources under EXISTS, those together that conjuncts connect: the others are independent."""
    found = [{alias} for alias in query.exists]
    for conjunct in query.conjuncts:
        named = aliases(conjunct.expr) & set(query.exists)
        touched = [group for group in found if group & named]
        if len(touched) > 1:
            found = [group for group in found if group not in touched] + [set().union(*touched)]
    return found


def _equated(conditions: Sequence[Expr], absent: Sequence[str]) -> Iterator[Column]:
    """The columns of rows that equalities of plain columns connect with those under NOT EXISTS."""
    for one in conditions:
        if isinstance(one, Call) and one.op == "and":
            yield from _equated(one.args, absent)
        elif isinstance(one, Call) and one.op == "=":
            left, right = one.args
            if isinstance(left, Column) and isinstance(right, Column):
                inner = [column.alias in absent for column in (left, right)]
                if sorted(inner) == [False, True]:
                    yield right if inner[0] else left
