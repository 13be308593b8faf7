"""Alerts that users of ten fields write, and what becomes of each.

tests/fixtures/sql/fields has a file for each field: its streams, and alerts with a title that says what is
meant. The outcome of an alert stands behind it, after `--| `:

- `accepted: 12 of 500 tuples retained, 30 alarms, the same as the plain join`, by `tamis verify` over made-up
  recordings;
- `accepted, and told: …` with the warnings;
- `refused: …` with the whole message.

`python -m tests.unit.answers.field_alerts` writes all outcomes anew, and counts them. A recording has three
keys and values at random within the CHECKs of the stream, which move slowly. Keys are the texts k1, k2 and k3
or the numbers 1, 2 and 3.
"""

from __future__ import annotations

import csv
import math
import random
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tamis.analysis.domains import declared_ends
from tamis.cli.verify import verify
from tamis.errors import InputError
from tamis.evaluation.watched_recording import watched_recording
from tamis.expressions.nodes import Expr, Literal, Type
from tamis.planning.explain import explain
from tamis.query.model import Catalog, ColumnDef, StreamDef
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording

FIELDS = Path(__file__).resolve().parents[2] / "fixtures" / "sql" / "fields"
_START = datetime(2026, 1, 5, 23, 50, tzinfo=UTC)
_READINGS = 80  # of each key and stream
_DEFAULT_RANGE = (0.0, 1000.0)


def fields() -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Each field: its name, its streams, and its alerts as title, SQL and outcome."""
    for path in sorted(FIELDS.glob("*.sql")):
        streams, *blocks = re.split(r"^---- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        yield path.stem, streams, [_alert(block) for block in blocks]


def _alert(block: str) -> tuple[str, str, str]:
    title, *lines = block.splitlines()
    outcome = "\n".join(line[4:] for line in lines if line.startswith("--| "))
    return title, "\n".join(line for line in lines if not line.startswith("--| ")) + "\n", outcome


def outcome_of(field: str, streams: str, sql: str, directory: Path) -> str:
    """What Tamis says to an alert of a field, and whether its alarms are those of the plain join."""
    try:
        catalog = catalog_of(streams + sql)
    except InputError as error:
        return f"refused: {error}"
    (name,) = catalog.alerts
    explained = explain(catalog, name)
    if not explained.accepted:
        return "refused: " + "; or ".join((explained.reason, *explained.memory.repairs))
    told = "".join(f", and told: {one}" for one in explained.warnings)
    read = dict.fromkeys(source.stream for source in explained.streams)
    recordings = {
        stream: read_recording(catalog.streams[stream], [_recorded(field, catalog, stream, directory)])
        for stream in read
    }
    for stream in catalog.alerts[name].query.watched:
        recordings[stream.name] = watched_recording(recordings[stream.shown_name], stream)
    (found,) = verify(catalog, recordings)
    same = "the same as the plain join" if found.same else f"{found.missed} missed, {found.extra} extra"
    return (
        f"accepted{told}: {found.retained} of {found.tuples} tuples retained, {found.alarms} alarms, {same}"
    )


def _recorded(field: str, catalog: Catalog, name: str, directory: Path) -> str:
    """A made-up recording of a stream."""
    stream = catalog.streams[name]
    file = directory / f"{name}.csv"
    if file.exists():
        return str(file)
    random_ = random.Random(zlib.crc32(f"{field} {name}".encode()))
    step = timedelta(seconds=1)
    if stream.rate is not None:
        step = timedelta(microseconds=stream.rate.per / stream.rate.count)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow([column.name for column in stream.columns])
        for at in range(_READINGS):
            for key in (1, 2, 3):
                writer.writerow(_reading(stream, at, key, _START + at * step, random_))
    return str(file)


def _reading(stream: StreamDef, at: int, key: int, time: datetime, random_: random.Random) -> list[Any]:
    row: list[Any] = []
    for column in stream.columns:
        phase = zlib.crc32(f"{stream.name} {column.name}".encode()) % 7
        if column.name == stream.time:
            row.append((time + timedelta(milliseconds=key)).isoformat())
        elif column.key:
            row.append(f"k{key}" if column.type is Type.VARCHAR else key)
        else:
            row.append(_value(column, 0.5 + 0.5 * math.sin(phase + key + at / 6), random_))
    return row


def _value(column: ColumnDef, slow: float, random_: random.Random) -> Any:
    """A value of a column: within its CHECK, two thirds slow and one third noise."""
    share = (2 * slow + random_.random()) / 3
    if column.type is Type.BOOLEAN:
        return share > 0.5
    if column.type is Type.VARCHAR:
        texts = sorted(_texts(column.check)) or ["a", "b"]
        return texts[int(share * len(texts)) % len(texts)]
    low, high = declared_ends(column)
    low = _DEFAULT_RANGE[0] if math.isinf(low) else low
    high = low + _DEFAULT_RANGE[1] if math.isinf(high) else high
    value = low + share * (high - low)
    return int(value) if column.type in (Type.INT, Type.BIGINT) else round(value, 3)


def _texts(expr: Expr | None) -> set[str]:
    if isinstance(expr, Literal):
        return {expr.value} if isinstance(expr.value, str) else set()
    return {text for arg in getattr(expr, "args", ()) for text in _texts(arg)}


def kind(outcome: str) -> str:
    """`accepted`, `told` (accepted with a warning) or `refused`."""
    if outcome.startswith("accepted"):
        return "told" if "told: " in outcome else "accepted"
    return "refused"


def _write() -> None:
    counted: Counter[str] = Counter()
    for field, streams, alerts in fields():
        parts = [streams]
        for title, sql, _ in alerts:
            with tempfile.TemporaryDirectory() as directory:
                outcome = outcome_of(field, streams, sql, Path(directory))
            counted[kind(outcome)] += 1
            parts.append(f"---- {title}\n{sql}" + "".join(f"--| {line}\n" for line in outcome.splitlines()))
        (FIELDS / f"{field}.sql").write_text("".join(parts), encoding="utf-8")
    print(dict(counted))


if __name__ == "__main__":
    _write()
