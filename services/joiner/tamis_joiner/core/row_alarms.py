"""The rows of standing queries as records of `tamis.alarms`.

A row's `id` is a digest of the alert, the definition's version, the output partition and the row's number
there: a batch that comes again gives the same rows the same numbers, so whoever has seen an id has seen the
row. Equal rows are different ones where the query says so.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import orjson
from numpy.typing import NDArray

from tamis.evaluation.standing import WITHDRAWN, Rows
from tamis.messaging.records import canonical_key, canonical_value
from tamis.planning.plan import StandingQuery


def row_alarms(
    query: StandingQuery,
    place: tuple[int, int, int],
    rows: Rows,
    times: NDArray[Any],
    arrived: NDArray[Any] | None,
) -> list[tuple[bytes, bytes]]:
    """Key and value of a record for each row. `place`: the plan version that is obeyed, the output partition,
    and the number of the first row; `times` and `arrived`: of the tuples that completed them.
    """
    plan, partition, first = place
    columns = {name: vector.to_list() for name, vector in rows.columns.items()}
    withdrawn = columns.pop(WITHDRAWN, [False] * len(rows))
    came = [None] * len(rows) if arrived is None else arrived.tolist()
    found = []
    for at, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(columns, values, strict=True))
        key = [canonical_value(row[name]) for name in query.key]
        identity = orjson.dumps([query.alert, query.version, partition, first + at])
        record: dict[str, Any] = {
            "alert": query.alert,
            "id": blake2b(identity, digest_size=16).hexdigest(),
            "key": key,
            "event_time": int(times[at]),
            "row": row,
            "tuples": {},
            "plan": plan,
            "definition": query.version,
            "number": first + at,
        }
        if came[at] is not None:
            record["arrived"] = came[at]
        if withdrawn[at]:
            record["withdrawn"] = True
        found.append((canonical_key((query.alert, *key)), orjson.dumps(record)))
    return found
