"""Reference of `tamis verify` for EXISTS and NOT EXISTS: DuckDB's own, over unfiltered recordings.

It shares only the parsed SQL with the rest of Tamis. As documented, a row with NULL in a column that NOT
EXISTS equates with a column of its subquery is not given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tamis.expressions.exact.rounding import Margin
from tamis.expressions.nodes import Call, Column, Expr, aliases
from tamis.query.model import Query
from tamis.recordings.typed import Recording
from tamis.verification.reference import Reference, connect, near_threshold_sql, quote, sql_of

Margins = tuple[Margin, ...]
Condition = Callable[[Expr], str]


def existing_rows(query: Query, recordings: Mapping[str, Recording], margins: Margins = ()) -> Reference:
    """All rows of a query with EXISTS or NOT EXISTS; `recordings` are by stream.

    `margins`: the errors of the values that edges compare. A row for which rounding decides is `near`; if the
    computed conditions exclude it, it is in `exact_only`.
    """
    names = [source.alias for source in query.row_sources]

    def computed(condition: Expr) -> str:
        return sql_of(condition)

    def near(condition: Expr) -> str:
        return near_threshold_sql([condition] if len(aliases(condition)) > 1 else [], margins)

    def possible(condition: Expr) -> str:
        return f"({sql_of(condition)} OR {near(condition)})"

    def certain(condition: Expr) -> str:
        return f"({sql_of(condition)} AND NOT {near(condition)})"

    tables = ", ".join(f"{quote(s.stream)} AS {quote(s.alias)}" for s in query.row_sources)
    late = " OR ".join(f"{quote(alias)}._late" for alias in names)
    rows = ", ".join(f"{quote(alias)}._row AS r{i}" for i, alias in enumerate(names))
    with connect(query, recordings) as connection:
        found = connection.sql(
            f"SELECT {rows}, {late} AS late, {_holds(query, computed, computed)} AS computed,"
            f" NOT {_holds(query, certain, possible)} AS near"
            f" FROM {tables} WHERE {_holds(query, possible, certain)}"
        ).fetchnumpy()
    every = Reference(
        rows={alias: np.asarray(found[f"r{i}"], np.int64) for i, alias in enumerate(names)},
        late=np.asarray(found["late"], np.bool_),
        near=np.asarray(found["near"], np.bool_),
    )
    holds = np.asarray(found["computed"], np.bool_)
    given, excluded = every.pick(holds), every.pick(~holds)
    return Reference(given.rows, given.late, given.near, exact_only=excluded)


def _holds(query: Query, condition: Condition, absent: Condition) -> str:
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


def _exists(query: Query, names: Collection[str], conditions: Sequence[str]) -> str:
    tables = ", ".join(f"{quote(s.stream)} AS {quote(s.alias)}" for s in query.sources if s.alias in names)
    return f"EXISTS (SELECT 1 FROM {tables} WHERE {' AND '.join(conditions) or 'TRUE'})"


def _groups(query: Query) -> list[set[str]]:
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
