"""Rows of random queries by DuckDB, which shares no code with Tamis, and their comparison with alarms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from tests.oracle.language.expressions import MACROS
from tests.oracle.language.queries import RandomQuery
from tests.oracle.language.readings import NAMES, RandomReadings

from tamis.plan.model import Definition

Values = tuple[Any, ...]
Alarm = Mapping[str, Any]


class Reference:
    """One DuckDB for many queries."""

    def __init__(self, table: Path) -> None:
        self._base = duckdb.connect(":memory:", config={"threads": 1})
        self._base.execute(f"CREATE TABLE r AS SELECT * FROM read_csv('{table}', nullstr = '')")
        for macro in MACROS:
            self._base.execute(macro)

    def rows(self, query: RandomQuery, readings: RandomReadings, named: str | None = None) -> list[Values]:
        """All rows: the columns of SELECT, the numbers of the tuples, and the window. `named`: the rows of
        this derived stream instead.
        """
        for name, table in readings.tables().items():
            self._base.register(f"given_{name}", table)
            self._base.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given_{name}")
        return self._base.execute(query.named[named] if named else query.duck).fetchall()


def differences(
    query: RandomQuery,
    rows: Sequence[Values],
    readings: RandomReadings,
    alarms: Sequence[Alarm],
    definition: Definition | None,
) -> tuple[list[Any], list[Any]]:
    """The rows of the reference for which Tamis has no alarm, and the alarms without a row."""
    if definition is None:
        found = [tuple(alarm["row"].values()) for alarm in alarms]
        return _unmatched(found, [row[: query.columns] for row in rows])
    return _of_tuples(query, rows, readings, alarms, definition)


def _unmatched(found: list[Values], wanted: list[Values]) -> tuple[list[Values], list[Values]]:
    """Rows of each list that the other one doesn't have as often; numbers may differ by rounding."""
    buckets: dict[Values, list[Values]] = defaultdict(list)
    for row in found:
        buckets[_coarse(row)].append(row)
    missed = []
    for row in wanted:
        mine = buckets[_coarse(row)]
        match = next((i for i, other in enumerate(mine) if same(row, other)), None)
        if match is None:
            missed.append(row)
        else:
            mine.pop(match)
    return missed, [row for rows in buckets.values() for row in rows]


def _coarse(row: Values) -> Values:
    """The values that are compared exactly."""
    return tuple("number" if isinstance(one, float) else one for one in map(_plain, row))


def _plain(value: Any) -> Any:
    value = float(value) if isinstance(value, Decimal) else value
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and abs(value) < 2**52 and abs(value) < 10**9 else value


def same(one: Values, other: Values) -> bool:
    """Tell if two rows are equal up to rounding."""
    return len(one) == len(other) and all(map(_same, map(_plain, one), map(_plain, other)))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return type(one) is type(other) and bool(one == other)


def _of_tuples(
    query: RandomQuery,
    rows: Sequence[Values],
    readings: RandomReadings,
    alarms: Sequence[Alarm],
    definition: Definition,
) -> tuple[list[Any], list[Any]]:
    """Differences of rows that consist of tuples. A row without an alarm needs one close to it, as
    `docs/omission.md` promises.
    """
    inputs = [source for source in definition.inputs if source.alias in query.slots]
    assert len(inputs) == len(query.slots), (query.sql, definition.inputs, query.slots)
    order = [list(query.slots).index(source.alias) for source in inputs]
    raised: dict[Values, list[Values]] = defaultdict(list)
    by_columns: dict[str, list[str]] = {}
    for alarm in alarms:
        tuples = [alarm["tuples"][source.alias] for source in inputs]
        for source, one in zip(inputs, tuples, strict=True):
            by_columns[source.alias] = [name for name in NAMES if name in one]
        start = alarm["window"]["start"] if query.windowed else None
        identity = (
            start,
            *(
                tuple(one[name] for name in by_columns[source.alias])
                for source, one in zip(inputs, tuples, strict=True)
            ),
        )
        raised[identity].append(tuple(alarm["row"].values()))
    close = _Close(query, definition)
    wanted: dict[Values, list[Values]] = defaultdict(list)
    lost = []
    facts = []
    for row in rows:
        numbers = row[query.columns : query.columns + len(query.slots)]
        given = [
            dict(zip(NAMES, readings.rows[query.slots[source.alias][1]][numbers[at]], strict=True))
            for source, at in zip(inputs, order, strict=True)
        ]
        start = row[-1] if query.windowed else None
        identity = (
            start,
            *(
                tuple(one[name] for name in by_columns.get(source.alias, ()))
                for source, one in zip(inputs, given, strict=True)
            ),
        )
        wanted[identity].append(row[: query.columns])
        facts.append((identity, start, given, row))
    extra = [
        (identity, shown)
        for identity, all_shown in raised.items()
        for shown in all_shown
        if not any(same(shown, one) for one in wanted.get(identity, ()))
    ]
    for identity, start, given, _ in facts:
        if identity in raised:
            close.add(start, given)
    for identity, start, given, row in facts:
        if identity not in raised and not close.has(start, given):
            lost.append(row)
    return lost, extra


class _Close:
    """Raised alarms, and the search for one that stands for another."""

    def __init__(self, query: RandomQuery, definition: Definition) -> None:
        self._within = query.within if query.promise == "within" else None
        self._inputs = [source for source in definition.inputs if source.alias in query.slots]
        silent = "NO READING" in query.sql
        self._spans = [0 if silent else source.interval for source in self._inputs]
        self._raised: dict[Values, list[list[int]]] = defaultdict(list)

    def _key(self, start: int | None, given: Sequence[dict[str, Any]]) -> Values:
        if self._within is not None:
            return (given[0]["k"],)
        parts = [
            tuple(one[name] for name in source.partition_key)
            for source, one in zip(self._inputs, given, strict=True)
        ]
        return (start, *parts)

    def add(self, start: int | None, given: Sequence[dict[str, Any]]) -> None:
        """Note a raised alarm."""
        self._raised[self._key(start, given)].append([one["ts"] for one in given])

    def has(self, start: int | None, given: Sequence[dict[str, Any]]) -> bool:
        """Tell if raised alarms stand for these tuples."""
        mine = self._raised[self._key(start, given)]
        times = [one["ts"] for one in given]
        if self._within is not None:
            before = max((at for (at,) in mine if at <= times[0]), default=None)
            after = min((at for (at,) in mine if at >= times[0]), default=None)
            return before is not None and after is not None and after - before <= self._within
        return any(
            all(abs(a - b) <= span for a, b, span in zip(times, other, self._spans, strict=True))
            for other in mine
        )
