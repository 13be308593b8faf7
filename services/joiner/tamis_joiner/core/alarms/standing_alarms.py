"""Alarms of standing queries: one for each row.

A row's `id` is a digest of the alert, the definition's version, the output partition and the row's number
there. If a batch is repeated, its rows get the same numbers again, so a reader can recognise rows that it has
seen. Equal rows have different ids, because the query may return a row several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tamis.evaluation.standing.contract import WITHDRAWN, Rows
from tamis.plan.model import StandingQuery
from tamis_joiner.core.alarms.alarm_record import KeyValue, alarm_record


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
                identity=[query.version, numbering.partition, number],
                key=[row[name] for name in query.key],
                event_time=int(times[at]),
                row=row,
                tuples={},
                plan=numbering.plan,
                more=more,
            )
        )
    return alarms
