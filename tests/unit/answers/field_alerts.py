"""Alerts that users of ten fields write, and what becomes of each.

tests/fixtures/sql/fields has a file for each field: its streams, and alerts with a title that says what is
meant. The outcome of an alert stands behind it, after `--| `:

- `accepted: 12 of 500 tuples retained, 30 alarms, the same as the plain join`, by `tamis verify` over made-up
  recordings;
- `accepted, and told: …` with the warnings;
- `refused: …` with the whole message.

A line `--: ` before the outcome judges an alert that isn't simply accepted and right:

- `--: mistake`: its author made a mistake, and the refusal or warning says how to mend it;
- `--: by design`: it is refused for a true reason, such as memory that can't be bounded;
- `--: needed help: …`: when it was first tried, it was refused although it is feasible, misunderstood, or the
  message didn't lead to the mend; and why. Now it is right, or a message or warning leads to the mend;
- `--: needs help: …`: this is still so.

`python -m tests.unit.answers.field_alerts [field …]` writes the outcomes of these fields (all of them by
default) anew, and the counts of all fields to the README beside them.

A recording has three keys and values at random within the CHECKs of the stream, which move slowly. Keys are
the texts k1, k2 and k3 or the numbers 1, 2 and 3; of two KEY columns, the first has the keys 1, 1 and 2. The
third key is silent for twelve readings, the second keeps its values for ten, and the first has one reading of
which each column is NULL that may be. Columns whose names end with `_total` count up, and start again once.
"""

from __future__ import annotations

import csv
import math
import random
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tamis.declarations.definitions import ColumnDef
from tamis.declarations.domains import declared_ends
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Expr, Literal, Type
from tamis.offline.recordings import watched_recording
from tamis.offline.verify import verify
from tamis.planning.explain import explain
from tamis.planning.explanations.explanation import Explanation
from tamis.query.catalog import apply
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of, parse
from tamis.recordings.typed import Recording, read_recording

FIELDS = Path(__file__).resolve().parents[2] / "fixtures" / "sql" / "fields"
_START = datetime(2026, 1, 5, 23, 50, tzinfo=UTC)
_READINGS = 80  # of each key and stream
_DEFAULT_RANGE = (0.0, 1000.0)
_SILENT = range(30, 42)  # readings that the third key doesn't have
_HELD = range(50, 60)  # readings in which the second key keeps its values
_NULL = 20  # the reading of the first key with NULLs
_RESET = 45  # the reading at which columns named …_total start again

JUDGEMENTS = ("mistake", "by design", "needed help", "needs help")


@dataclass(frozen=True, slots=True)
class FieldAlert:
    """An alert of a field: its title, its SQL, how it is judged (or an empty text), and its outcome."""

    title: str
    sql: str
    judgement: str
    outcome: str

    @property
    def kind(self) -> str:
        """`accepted`, `told` (accepted with a warning) or `refused`."""
        if self.outcome.startswith("accepted"):
            return "told" if "told: " in self.outcome else "accepted"
        return "refused"

    @property
    def judged(self) -> str:
        """One of JUDGEMENTS, or an empty text."""
        return self.judgement.split(":")[0]


def fields() -> Iterator[tuple[str, str, list[FieldAlert]]]:
    """Each field: its name, its streams and its alerts."""
    for path in sorted(FIELDS.glob("*.sql")):
        streams, *blocks = re.split(r"^---- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        yield path.stem, streams, [_alert(block) for block in blocks]


def _alert(block: str) -> FieldAlert:
    title, *lines = block.splitlines()
    marked = {mark: [line[4:] for line in lines if line.startswith(mark)] for mark in ("--: ", "--| ")}
    sql = [line for line in lines if line[:4] not in marked]
    return FieldAlert(title, "\n".join(sql) + "\n", "\n".join(marked["--: "]), "\n".join(marked["--| "]))


def outcome_of(field: str, streams: str, sql: str, directory: Path) -> str:
    """What Tamis says to an alert of a field, and whether its alarms are those of the plain join."""
    try:
        catalog, explained = explanation_of(streams, sql)
    except InputError as error:
        return f"refused: {error}"
    if not explained.accepted:
        return "refused: " + "; or ".join((explained.reason, *explained.memory.repairs))
    told = "".join(f", and told: {one}" for one in explained.warnings)
    (found,) = verify(catalog, recordings_of(field, catalog, explained, directory))
    same = "the same as the plain join" if found.same else f"{found.missed} missed, {found.extra} extra"
    return (
        f"accepted{told}: {found.retained} of {found.tuples} tuples retained, {found.alarms} alarms, {same}"
    )


def explanation_of(streams: str, sql: str) -> tuple[Catalog, Explanation]:
    """The catalogue with an alert of a field, and its explanation. Raises InputError."""
    catalog = _declared(streams).copy()
    for statement in parse("\n" * streams.count("\n") + sql, catalog):
        apply(catalog, statement)
    (name,) = catalog.alerts
    return catalog, explain(catalog, name)


def recordings_of(
    field: str, catalog: Catalog, explained: Explanation, directory: Path, readings: int = _READINGS
) -> dict[str, Recording]:
    """Made-up recordings of the streams that an alert reads, with so many readings of each key."""
    read = dict.fromkeys(source.stream for source in explained.streams if source.stream in catalog.streams)
    recordings = {
        stream: _recording(_recorded(field, catalog, stream, directory, readings), catalog.streams[stream])
        for stream in read
    }
    for alert in catalog.alerts.values():
        for stream in alert.query.watched:
            recordings[stream.name] = watched_recording(recordings[stream.shown_name], stream)
    return recordings


@cache
def _declared(streams: str) -> Catalog:
    """The streams and tables of a field, which its alerts share."""
    return catalog_of(streams)


@cache
def _recording(file: str, stream: StreamDef) -> Recording:
    """A recording, which the alerts of a field share."""
    return read_recording(stream, [file])


def _recorded(field: str, catalog: Catalog, name: str, directory: Path, readings: int) -> str:
    """A made-up recording of a stream."""
    stream = catalog.streams[name]
    file = directory / f"{name}.csv"
    if file.exists():
        return str(file)
    step = timedelta(seconds=1)
    if stream.rate is not None:
        step = timedelta(microseconds=stream.rate.per / stream.rate.count)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow([column.name for column in stream.columns])
        for at in range(readings):
            for key in (1, 2, 3):
                if key != 3 or at not in _SILENT:
                    writer.writerow(_reading(field, stream, at, key, _START + at * step))
    return str(file)


def _reading(field: str, stream: StreamDef, at: int, key: int, time: datetime) -> list[Any]:
    row: list[Any] = []
    keys = [column.name for column in stream.columns if column.key]
    held = _HELD.start if key == 2 and at in _HELD else at
    for column in stream.columns:
        name = f"{field} {stream.name} {column.name}"
        phase = zlib.crc32(f"{stream.name} {column.name}".encode()) % 7
        if column.name == stream.time:
            row.append((time + timedelta(milliseconds=key)).isoformat())
        elif column.key:
            number = (key + 1) // 2 if len(keys) > 1 and column.name == keys[0] else key
            row.append(f"k{number}" if column.type is Type.VARCHAR else number)
        elif column.name.endswith("_total"):
            row.append(10 * key * (held if held < _RESET else held - _RESET))
        elif key == 1 and at == _NULL and not column.not_null:
            row.append(None)
        else:
            noise = random.Random(zlib.crc32(f"{name} {key} {held}".encode())).random()
            row.append(_value(column, 0.5 + 0.5 * math.sin(phase + key + held / 6), noise))
    return row


def _value(column: ColumnDef, slow: float, noise: float) -> Any:
    """A value of a column: within its CHECK, two thirds slow and one third noise."""
    share = (2 * slow + noise) / 3
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


def counts(alerts: list[FieldAlert]) -> list[int]:
    """How many alerts there are; are right; are answered so that their authors can mend them; are refused by
    design; need help; and needed or need help at the first trial.
    """
    judged = Counter(alert.judged for alert in alerts)
    helped = [alert.kind == "refused" for alert in alerts if alert.judged == "needed help"]
    right = judged[""] + len(helped) - sum(helped)
    answered = judged["mistake"] + sum(helped)
    needing = judged["needs help"]
    return [len(alerts), right, answered, judged["by design"], needing, len(helped) + needing]


def readme() -> str:
    """The page with the counts of all fields."""
    rows = [(name.replace("_", " "), counts(alerts)) for name, _, alerts in fields()]
    total = [sum(column) for column in zip(*(row for _, row in rows), strict=True)]
    table = [f"| {name} | {' | '.join(map(str, row))} |" for name, row in [*rows, ("all", total)]]
    return "\n".join([*_README, *table, ""])


_README = (
    "# Alerts of ten fields",
    "",
    "Alerts as engineers of ten fields would write them, each with its outcome. `python -m",
    "tests.unit.answers.field_alerts` writes the outcomes and this page anew; its module says how to read",
    "them.",
    "",
    "- **right**: accepted, means what its title says (or a warning says where it doesn't), and has the",
    "  alarms of the plain join.",
    "- **answered**: mistakes and unsupported constructs; the message or warning leads to the mend.",
    "- **by design**: refused for a true reason, such as memory that can't be bounded.",
    "- **need help**: refused although feasible, misunderstood, or with an unclear message.",
    "- **at first**: needed help when they were first tried.",
    "",
    "| field | alerts | right | answered | by design | need help | at first |",
    "|---|---|---|---|---|---|---|",
)


def _write(named: list[str]) -> None:
    for field, streams, alerts in fields():
        if named and field not in named:
            continue
        parts = [streams]
        with tempfile.TemporaryDirectory() as directory:
            for alert in alerts:
                outcome = outcome_of(field, streams, alert.sql, Path(directory))
                notes = [f"--: {line}\n" for line in alert.judgement.splitlines()]
                notes += [f"--| {line}\n" for line in outcome.splitlines()]
                parts.append(f"---- {alert.title}\n{alert.sql}{''.join(notes)}")
        (FIELDS / f"{field}.sql").write_text("".join(parts), encoding="utf-8")
    (FIELDS / "README.md").write_text(readme(), encoding="utf-8")


if __name__ == "__main__":
    _write(sys.argv[1:])
