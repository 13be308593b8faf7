"""Cost of a stream's two forms on the link: the bytes of tuples, and of partial aggregates in their place.

Partial aggregates have no more rows than there are readings, and each row is shorter than a tuple with its
envelope. But a record also has an envelope and says what its rows consist of, so that records of a few rows
with a few readings each are longer than their tuples. The estimate is for values of usual lengths, and for
as many readings and groups as the stream declares. It doesn't depend on readings that were observed, so that
a plan is the same whenever it is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import orjson

from tamis.bounded.group_counts import tuples_in
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Type
from tamis.messaging.records import ENVELOPE
from tamis.operators.windows.partials import Partial, partials
from tamis.plan.model import PartialAggregation
from tamis.plan.nodes import Grouping
from tamis.plan.wire import wire_type
from tamis.planning.link.bound import MINUTE, PARTITIONS, of_queries
from tamis.query.model import Catalog, WindowGroupBy

# A number with as many digits as a time has, or a place.
_TIME = 1_760_000_000_000_000
_ORIGIN = {"shard": "air:edge-00/source", "plan": 10}
_TUPLE = len(orjson.dumps({ENVELOPE: {**_ORIGIN, "activation": _TIME, "place": _TIME}}))
_CUT = {
    "kind": "cut",
    "form": 10,
    "since": _TIME,
    "place": [_TIME, 0],
    "from": [_TIME] * 2,
    "to": [_TIME] * 2,
}
_RECORD = len(
    orjson.dumps({ENVELOPE: _ORIGIN | _CUT, "panes": [_TIME], "groups": [], "tables": [], "counts": []})
)
# Bytes of a value in JSON, with the comma behind it.
_VALUE = {Type.VARCHAR: 15, Type.TIMESTAMP: 17}
_NUMBER = 7
# Of the exact sum of DOUBLEs: an odd number and a power of 2.
_SUM = {"total": 20, "squares": 28}
# Of the names of a table's fields.
_NAME = 13
_DAY = 86_400_000_000
# Nobody has more readings a day: nothing limits them.
_MOST = 10**15


@dataclass(frozen=True)
class LinkCost:
    """Bytes that a shard sends in a minute, as tuples and as partial aggregates."""

    tuples: float
    partials: float

    @property
    def tuples_are_cheaper(self) -> bool:
        """True if tuples take fewer bytes."""
        return self.tuples < self.partials


def link_cost(
    sent: PartialAggregation,
    query: WindowGroupBy,
    catalog: Catalog,
    key: tuple[str, ...],
    read: Iterable[str],
) -> LinkCost | None:
    """The cost of the readings of a query; None if nothing limits them, or their groups. `key`: the partition
    key of the topic; `read`: the columns of tuples.
    """
    bound = of_queries(sent, [query], catalog, keyed=bool(key), partitions=PARTITIONS)
    stream = catalog.streams[query.windowed[0].stream]
    # Of a day: a minute may have one reading of a key that has one an hour.
    a_day = tuples_in(stream, _DAY, "").count
    if bound is None or max(a_day, bound.expected.rows) > _MOST:
        return None
    readings = float(a_day) * MINUTE / _DAY
    rows = min(float(bound.expected.rows), readings)
    records = min(float(bound.expected.records), rows)
    several = min(readings / rows - 1, 1.0) if rows else 0.0
    in_rows = rows * _row_bytes(sent.grouping, several) + readings * _separate_bytes(sent.grouping)
    in_partials = records * _record_bytes(sent.grouping) + in_rows
    return LinkCost(readings * _tuple_bytes(stream, key, read), in_partials)


def _tuple_bytes(stream: StreamDef, key: tuple[str, ...], read: Iterable[str]) -> int:
    """Key and value of a tuple's message."""
    types = {column.name: column.type for column in stream.columns}
    wanted = {*read, *key} | ({stream.time} if stream.time else set())
    columns = sum(len(name) + 3 + _VALUE.get(types[name], _NUMBER) for name in wanted if name in types)
    return _TUPLE + columns + 2 + sum(_VALUE.get(types[name], _NUMBER) for name in key)


def _record_bytes(grouping: Grouping) -> int:
    """A record without rows: its envelope, and the form of rows."""
    form = len(msgspec.json.encode(wire_type(Grouping).write(grouping)))
    tables = sum(_NAME * (1 + len(partial.measures)) for partial in partials(grouping.aggregates)[1:])
    return _RECORD + len('"grouping":,') + form + tables


def _row_bytes(grouping: Grouping, several: float) -> float:
    """A row: its pane, groups, count and partial aggregates. `several`: the share of rows with more than one
    reading; the others have its value only.
    """
    groups = sum(_VALUE.get(column.type, _NUMBER) for column in grouping.by)
    found = partials(grouping.aggregates)[1:]
    return 5 + groups + sum(_NUMBER + several * (_partial_bytes(partial) - _NUMBER) for partial in found)


def _partial_bytes(partial: Partial) -> int:
    if partial.order is not None:
        return 2 * _NUMBER
    return sum(_SUM.get(name, _NUMBER) for name in partial.measures) or _NUMBER


def _separate_bytes(grouping: Grouping) -> int:
    """The values of a reading that are kept separately."""
    return sum(_NUMBER for partial in partials(grouping.aggregates)[1:] if partial.each)
