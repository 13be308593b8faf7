"""Records of `tamis.alarms`: of combinations of joined tuples, and of rows of standing queries.

The `id` of an alarm of a join is a digest of the name of the alert and of the tuple of each alias: its event
time and the values of its partition key and of every column that the definition reads (filter, equalities,
condition, SELECT). Over windows the start of the window is part of it, too. It doesn't depend on when or how
a tuple came, on the plan version, or on columns that a topic carries for other queries. So the same
combination has the same id after a crash, in another batch, and under a replaced definition that reads the
same columns. Two tuples that the alert can't tell apart give one id.

The `id` of a row of a standing query is a digest of the alert, the version of the definition, the output
partition and the number of the row there. If a batch is repeated, its rows get the same numbers again, so a
reader can recognise rows that it has seen. Equal rows have different ids, because the query may return a row
several times. With DISTINCT it doesn't, and the number isn't in the digest: a row that comes again after the
state was lost has the same id, in whatever order rows come then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from tamis.declarations.definitions import WINDOW_COLUMNS
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.identity_cache import IdentityCache
from tamis.messaging.records import canonical_key, canonical_value
from tamis.operators.contract import WITHDRAWN, Rows
from tamis.operators.time_join.decided_rows import ends, waits
from tamis.operators.time_join.existence import row_inputs
from tamis.operators.time_join.temporal_join import JoinedColumns
from tamis.operators.time_join.time_bounds import window_rows
from tamis.plan.model import Definition, Input, StandingQuery
from tamis.plan.nodes import gives_rows_once
from tamis_joiner.core.shed_spans import ShedSpans
from tamis_joiner.core.tuples.stored_tuples import StoredTuples

KeyValue = tuple[bytes, bytes]  # of a record

Values = list[Any]


def alarm_record(
    definition: Definition | StandingQuery,
    *,
    identity: list[Any],
    key: Iterable[Any],
    event_time: int,
    row: Mapping[str, Any],
    tuples: Mapping[str, Any],
    plan: int,
    more: Mapping[str, Any],
) -> KeyValue:
    """Key and value of an alarm. Its `id` is a digest of the alert's name and `identity`; `more` has the
    fields that not every alarm has.
    """
    canonical = [canonical_value(value) for value in key]
    text = orjson.dumps([definition.alert, *identity], option=orjson.OPT_SORT_KEYS)
    record = {
        "alert": definition.alert,
        "id": blake2b(text, digest_size=16).hexdigest(),
        "key": canonical,
        "event_time": event_time,
        "row": row,
        "tuples": tuples,
        "plan": plan,
        "definition": definition.version,
        **more,
    }
    return canonical_key((definition.alert, *canonical)), orjson.dumps(record)


@dataclass(frozen=True)
class Numbering:
    """The plan version in use, the output partition, and the number of the first row."""

    plan: int
    partition: int
    first: int


def standing_alarms(
    query: StandingQuery,
    numbering: Numbering,
    rows: Rows,
    times: NDArray[Any],
    arrived: NDArray[Any] | None,
) -> list[KeyValue]:
    """Key and value of an alarm for each row. `times` and `arrived` are those of the tuples that completed
    the rows.
    """
    columns = {name: vector.to_list() for name, vector in rows.columns.items()}
    withdrawn = columns.pop(WITHDRAWN, [False] * len(rows))
    once = gives_rows_once(query.node)
    alarms = []
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(columns, values, strict=True))
        number = numbering.first + at
        more: dict[str, Any] = {"number": number}
        if arrived is not None:
            more["arrived"] = int(arrived[at])
        if withdrawn[at]:
            more["withdrawn"] = True
        alarms.append(
            alarm_record(
                query,
                # Numbers begin again with a lost checkpoint. Without the row itself, another row would then
                # have an id that the alerts service knows, and be taken for a repetition.
                identity=[query.version, numbering.partition, *([] if once else [number]), row],
                key=[row[name] for name in query.key],
                event_time=int(times[at]),
                row=row,
                tuples={},
                plan=numbering.plan,
                more=more,
            )
        )
    return alarms


def join_alarms(
    definition: Definition,
    plan: int,
    stored: Mapping[str, StoredTuples],
    rows: Sequence[NDArray[np.int64]],
    shed: ShedSpans,
) -> list[KeyValue]:
    """Key and value of an alarm for each combination; over windows, for each window that it lies in.

    `stored` is by alias. `rows` has one array for each input of the definition's rows, all of one length:
    their items with index i are combination i. An alarm over a span in `shed` is marked `incomplete`.
    """
    starts = None
    if definition.window is not None:
        inputs = zip(definition.inputs, rows, strict=True)
        times = [stored[source.alias].times[picked] for source, picked in inputs]
        which, starts = window_rows(definition.window, times)
        rows = [picked[which] for picked in rows]
    read = _READ.one(definition, partial(_columns_read, definition))
    found = _combinations(definition, stored, rows, starts, read)
    incomplete = shed.overlapped(definition, found.times).tolist()
    # An `id` doesn't depend on the order in which the definition names its inputs.
    shown = row_inputs(definition)
    by_alias = sorted((source.alias, at) for at, source in enumerate(shown))
    alarms = []
    for at in range(len(incomplete)):
        identity: list[Any] = [
            [
                [
                    alias,
                    int(found.times[number, at]),
                    {name: canonical_value(found.tuples[number][at][name]) for name in read[alias]},
                ]
                for alias, number in by_alias
            ]
        ]
        # A row that had to wait for frontiers would make the latency of alarms look like the wait.
        more: dict[str, Any] = {} if definition.absences else {"arrived": found.arrived[at]}
        if definition.window is not None and starts is not None:
            start = int(starts[at])
            identity.append(start)
            more["window"] = {"start": start, "end": start + definition.window.size}
        if found.late[at]:
            more["late"] = True
        if incomplete[at]:
            more["incomplete"] = True
        alarms.append(
            alarm_record(
                definition,
                identity=identity,
                key=found.keys[at],
                event_time=found.latest[at],
                row={name: values[at] for name, values in found.selected},
                tuples={source.alias: found.tuples[number][at] for number, source in enumerate(shown)},
                plan=plan,
                more=more,
            )
        )
    return alarms


@dataclass(frozen=True)
class _Combinations:
    """Combinations as values of Python, one for each alarm. `times` is of shape (inputs, combinations);
    `tuples` has a list for each input.
    """

    times: NDArray[np.int64]
    latest: Values
    late: Values
    arrived: Values
    keys: list[tuple[Any, ...]]
    selected: list[tuple[str, Values]]
    tuples: list[list[dict[str, Any]]]


def _combinations(
    definition: Definition,
    stored: Mapping[str, StoredTuples],
    rows: Sequence[NDArray[np.int64]],
    starts: NDArray[np.int64] | None,
    read: Mapping[str, Sequence[str]],
) -> _Combinations:
    size = len(rows[0])
    shown = row_inputs(definition)
    joined = JoinedColumns(shown, stored, rows, definition.window, starts)
    sides = [(stored[source.alias], picked) for source, picked in zip(shown, rows, strict=True)]
    times = np.array([tuples.times[picked] for tuples, picked in sides])
    key_of = shown[0]
    by_alias = {source.alias: own for source, own in zip(shown, times, strict=True)}
    # The event time of an alarm is the time from which on it is certain.
    latest = np.max([*times, *(ends(wait, by_alias) for wait in waits(definition))], axis=0)
    keys = [joined[key_of.alias, name].to_list() for name in key_of.partition_key]
    return _Combinations(
        times=times,
        latest=latest.tolist(),
        late=np.logical_or.reduce([tuples.late[picked] for tuples, picked in sides]).tolist(),
        arrived=np.max([tuples.arrived[picked] for tuples, picked in sides], axis=0).tolist(),
        keys=list(zip(*keys, strict=True)) if keys else [()] * size,
        selected=[(name, evaluate(expr, joined, size).to_list()) for name, expr in definition.select],
        tuples=[
            _dicts(joined, source, sorted({source.time, *read[source.alias], *source.columns}))
            for source in shown
        ],
    )


def _dicts(joined: JoinedColumns, source: Input, names: Sequence[str]) -> list[dict[str, Any]]:
    values = [joined[source.alias, name].to_list() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


_READ = IdentityCache[dict[str, list[str]]]()


def _columns_read(definition: Definition) -> dict[str, list[str]]:
    """By alias, the columns that the definition reads; those of a window are computed and not read."""
    read: dict[str, set[str]] = {source.alias: set(source.partition_key) for source in definition.inputs}
    parts = [source.filter for source in definition.inputs] + [definition.condition]
    parts += [expr for _, expr in definition.select] + [c for pair in definition.equalities for c in pair]
    for absence in definition.absences:
        parts += [absence.condition, *(c for pair in absence.equalities for c in pair)]
    for part in parts:
        for column in columns(part) if part is not None else ():
            read[column.alias].add(column.name)
    computed = WINDOW_COLUMNS if definition.window is not None else ()
    return {alias: sorted(names.difference(computed)) for alias, names in read.items()}
