"""Rows of a SELECT over the newest readings in the topics of a stream.

The registry sends the readings; conditions and columns are evaluated here, by the code that edges use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from tamis.cli.shell.readings_query import MOST_READINGS, ReadingsQuery
from tamis.expressions.evaluate import evaluate, holds
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Value, Vector
from tamis.recordings.json_values import convert
from tamis.web.registry_client import RegistryClient

_ENVELOPE = "_"


@dataclass(frozen=True)
class NewestReadings:
    """Rows, the newest first. `complete`: no other reading in the topics fits. `notices`: facts that a reader
    of the rows needs.
    """

    stream: str
    columns: tuple[tuple[str, Type], ...]
    rows: list[tuple[Value, ...]]
    complete: bool
    notices: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The JSON object of `tamis sql --json`; times and intervals are microseconds."""
        return {
            "statement": "select",
            "stream": self.stream,
            "columns": [name for name, _ in self.columns],
            "types": [kind.value for _, kind in self.columns],
            "rows": self.rows,
            "complete": self.complete,
            "notices": self.notices,
        }


def newest_readings(registry: RegistryClient, query: ReadingsQuery) -> NewestReadings:
    """Run a SELECT. Raises TamisError if the registry doesn't send the readings."""
    name = query.stream.name
    path = f"/v1/streams/{quote(name, safe='')}/readings"
    answer = registry.request("GET", path, query={"limit": str(MOST_READINGS)})
    readings, notices = _readings(answer["records"], query)
    count = len(readings)
    columns: dict[tuple[str, str], Vector] = {}
    for column in query.stream.columns:
        values = [one.get(column.name) for one in readings]
        columns[query.alias, column.name], unusable = convert(column.name, values, column.type, "us")
        if unusable:
            notices.append(f"{len(unusable)} values of {column.name} are no {column.type} and shown as NULL")
    fits = np.ones(count, np.bool_)
    for condition in query.conditions:
        fits &= holds(condition, columns, count)
    found = np.flatnonzero(fits)
    shown = found[: query.limit]
    cells = [evaluate(one.expr, columns, count).take(shown).to_list() for one in query.select]
    # An older registry has no `not_shown`.
    hidden, unreadable = answer.get("not_shown", ()), answer["unreadable"]
    complete = bool(answer["complete"]) and len(shown) == len(found) and not (hidden or unreadable)
    if hidden:
        notices.append(f"{_counted(len(hidden), 'reading')} can't be shown: {hidden[0]['why']}")
    if unreadable:
        notices.append(f"{_counted(unreadable, 'record')} in the topics of {name} can't be read")
    if not answer["records"]:
        notices.append(f"the topics of {name} have no readings: edges send only those that queries need")
    elif not answer["complete"] and len(found) < query.limit:
        notices.append(f"of {name}, only the newest {len(answer['records'])} in its topics were searched")
    return NewestReadings(
        name,
        tuple((one.name, one.expr.type) for one in query.select),
        list(zip(*cells, strict=True)),
        complete,
        tuple(notices),
    )


def _readings(
    records: Sequence[Mapping[str, Any]], query: ReadingsQuery
) -> tuple[list[dict[str, Any]], list[str]]:
    """The readings, the newest first, each of them once, and notices about columns and topics that lack.

    Topics of a stream have copies of the same reading, each with the columns that its readers need. Of these
    topics, those with the most of the columns that the SELECT reads are used.
    """
    known = query.stream
    wanted = query.columns | ({known.time} if known.time is not None else set())
    carried: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        carried[record["topic"]] |= record["value"].keys() - {_ENVELOPE}
    best = max((wanted & has for has in carried.values()), key=len, default=wanted)
    used = {topic for topic, has in carried.items() if wanted & has == best}
    kept: Counter[tuple[str, bytes]] = Counter()
    copies: Counter[tuple[str, str, bytes]] = Counter()
    readings: list[dict[str, Any]] = []
    for record in records:
        if record["topic"] not in used:
            continue
        reading = {name: record["value"].get(name) for name in sorted(best)}
        shard, text = str(record["value"].get(_ENVELOPE, {}).get("shard")), orjson.dumps(reading)
        copies[record["topic"], shard, text] += 1
        # Equal readings that are in one topic are several readings.
        if copies[record["topic"], shard, text] > kept[shard, text]:
            kept[shard, text] += 1
            readings.append(reading)
    notices = []
    if missing := sorted(wanted - best):
        what = "is" if len(missing) == 1 else "are"
        why = "no query in service reads it" if len(missing) == 1 else "no query in service reads them"
        why += " together with the others" if len(carried) > 1 else ""
        notices.append(f"{', '.join(missing)} {what} NULL: {why}, so edges don't send {_them(missing)}")
    if left := sorted(carried.keys() - used):
        notices.append(f"readings in {', '.join(left)} are left out: they lack columns of this SELECT")
    return readings, notices


def _counted(count: int, what: str) -> str:
    """The count with its noun."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _them(names: Sequence[str]) -> str:
    """The pronoun for one name or several."""
    return "it" if len(names) == 1 else "them"
