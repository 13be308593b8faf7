"""Alarm records of `tamis.alarms`, with an identity that a replay repeats.

An alarm's `id` is a digest of the alert's name and, for each alias, of the tuple that plays it: its time
and the values of its partition key and of every column that the definition reads (filter, equalities,
condition, SELECT); over windows, also of the window's start. Nothing that depends on when or how a tuple
came is in it: not the plan version, nor columns that a topic carries for other queries. So the same
combination has the same id after a crash, in another batch, and under a replaced definition that reads the
same columns; two tuples that the alert can't tell apart are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson

from tamis.evaluation.temporal_join import Joined, Rows
from tamis.evaluation.window_rows import rows as window_rows
from tamis.expressions.evaluate import evaluate
from tamis.expressions.nodes import columns
from tamis.messaging.records import canonical_key, canonical_value
from tamis.planning.plan import Definition, Input
from tamis.planning.remembered import MOST, Remembered
from tamis.query.model import WINDOW_COLUMNS
from tamis_joiner.core.live import Live
from tamis_joiner.core.shed import Shed


def alarm_records(
    definition: Definition, plan: int, live: Mapping[str, Live], rows: Sequence[Rows], shed: Shed
) -> list[tuple[bytes, bytes]]:
    """Key and value of an alarm for each combination and, over windows, for each window that it lies in.

    `live` is by alias, `rows` one array per input. An alarm over a span in `shed` is marked `incomplete`.
    """
    window, starts = definition.window, None
    if window is not None:
        stacked = [live[s.alias].times[picked] for s, picked in zip(definition.inputs, rows, strict=True)]
        which, starts = window_rows(window, stacked)
        rows = [picked[which] for picked in rows]
    size = len(rows[0])
    joined = Joined(definition.inputs, live, rows, window, starts)
    selected = [(name, evaluate(expr, joined, size).to_list()) for name, expr in definition.select]
    aliases = [source.alias for source in definition.inputs]
    key_of = definition.inputs[0]
    keys = (
        list(zip(*(joined[key_of.alias, name].to_list() for name in key_of.partition_key), strict=True))
        or [()] * size
    )
    read = _READ.one(definition, partial(_columns_read, definition))
    tuples = [
        _dicts(joined, source, sorted({source.time, *read[source.alias], *source.columns}))
        for source in definition.inputs
    ]
    stack = [(live[alias], picked) for alias, picked in zip(aliases, rows, strict=True)]
    times = np.array([side.times[picked] for side, picked in stack])
    latest = times.max(axis=0).tolist()
    incomplete = shed.over(definition, times).tolist()
    late = np.logical_or.reduce([side.late[picked] for side, picked in stack]).tolist()
    arrived = np.max([side.arrived[picked] for side, picked in stack], axis=0).tolist()
    found = []
    for at in range(size):
        identity: list[Any] = [
            definition.alert,
            [
                [
                    alias,
                    int(times[number, at]),
                    {c: canonical_value(tuples[number][at][c]) for c in read[alias]},
                ]
                for number, alias in sorted(enumerate(aliases), key=lambda pair: pair[1])
            ],
        ]
        if starts is not None:
            identity.append(int(starts[at]))
        key = [canonical_value(v) for v in keys[at]]
        record: dict[str, Any] = {
            "alert": definition.alert,
            "id": blake2b(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest(),
            "key": key,
            "event_time": latest[at],
            "row": {name: values[at] for name, values in selected},
            "tuples": {alias: tuples[number][at] for number, alias in enumerate(aliases)},
            "plan": plan,
            "definition": definition.version,
            "arrived": arrived[at],
        }
        if window is not None and starts is not None:
            record["window"] = {"start": int(starts[at]), "end": int(starts[at]) + window.size}
        if late[at]:
            record["late"] = True
        if incomplete[at]:
            record["incomplete"] = True
        found.append((canonical_key((definition.alert, *key)), orjson.dumps(record)))
    return found


def _dicts(joined: Joined, source: Input, names: Sequence[str]) -> list[dict[str, Any]]:
    values = [joined[source.alias, name].to_list() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


_READ = Remembered[dict[str, list[str]]](MOST)


def _columns_read(definition: Definition) -> dict[str, list[str]]:
    read: dict[str, set[str]] = {source.alias: set(source.partition_key) for source in definition.inputs}
    parts = [source.filter for source in definition.inputs] + [definition.condition]
    parts += [expr for _, expr in definition.select] + [c for pair in definition.equalities for c in pair]
    for part in parts:
        for column in columns(part) if part is not None else ():
            read[column.alias].add(column.name)
    of_window = WINDOW_COLUMNS if definition.window is not None else ()
    return {alias: sorted(names.difference(of_window)) for alias, names in read.items()}
