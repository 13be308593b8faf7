"""Trial of a query on samples of readings, in the proving process.

The query runs as with `tamis run`: with the filters and the omission of an edge, and the evaluators of the
joiner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import orjson
import pyarrow as pa

from tamis.declarations.file_access import FileAccess
from tamis.declarations.streams import StreamDef
from tamis.errors import InputError
from tamis.expressions.nodes import Type, columns
from tamis.offline.explain import asked_queries
from tamis.offline.recordings import read_recordings, since_begin
from tamis.offline.run import rows_of, runnable
from tamis.offline.wording import REQUEST
from tamis.plan.model import StreamPlan
from tamis.planning.explanations.measured import plan_alone, retained_by_edges
from tamis.planning.queries.standing_queries import is_standing
from tamis.query.model import AlertDef, Catalog, DerivedDef, Explain, JoinByTime
from tamis.recordings.rows import JsonRows
from tamis.recordings.times import TimeUnit
from tamis.recordings.typed import Recording, recording_of
from tamis.wording.names import normalized_name
from tamis_registry.core.statements.catalog_changes import carry_out
from tamis_registry.core.statements.outcomes import target
from tamis_registry.core.statements.reading import parsed
from tamis_registry.proving.messages import Needed, NeededStream, Sample, Trial, Tried, TriedInput

# Of the rows as JSON: further rows are left out.
MOST_BYTES = 2 * 2**20
_AT_ONCE = 50  # rows that are made at a time
_NO_TABLES = FileAccess(
    (),
    "a trial shows the rows of the tables that it reads, and this client may not see readings",
    "use a token with 'readings: true'",
)


def try_out(trial: Trial, catalog: Catalog) -> Needed | Tried:
    """Run a query of a text, which is read with a catalogue, on samples; without samples, tell what it needs.

    Raises the errors of a text, InputError for wrong samples, and NotAcceptedError.
    """
    statements = parsed(trial.text, catalog, trial.file, files=trial.files)
    draft = catalog.copy()
    for statement in statements:
        carry_out(draft, statement)
    where = trial.file or "the text"
    # EXPLAIN also names queries in service, which the text doesn't create.
    queries = [target(one, draft) if isinstance(one, Explain) else one for one in statements]
    asked = asked_queries(draft, queries, trial.query, where)
    if not asked:
        raise InputError("no query to try", where=where, hint="add a CREATE ALERT or EXPLAIN statement")
    chosen = runnable(asked[-1])
    if not trial.tables:
        draft.file_access = _NO_TABLES
    if trial.samples is None:
        return _needed(chosen, draft)
    return _tried(chosen, draft, trial, trial.samples)


def _needed(chosen: AlertDef | DerivedDef, catalog: Catalog) -> Needed:
    """The streams that a query reads. Raises NotAcceptedError if it isn't accepted."""
    query = chosen.query
    read = {}
    for stream in plan_alone(_as_alert(chosen), catalog).streams:
        if stream.topics:
            read[stream.shards_of] = NeededStream(_columns(stream), stream.time)
    absences = query.absences if isinstance(query, JoinByTime) else ()
    monotone = not (is_standing(chosen, catalog) or absences)
    return Needed(chosen.name, read, bool(query.watched), monotone)


def _columns(stream: StreamPlan) -> frozenset[str]:
    """The columns that edges and the joiner read of a stream."""
    found = {stream.time} if stream.time is not None else set()
    for topic in stream.topics:
        found |= {*topic.columns, *topic.partition_key}
        for entry in topic.entries:
            found |= set(entry.omission_key)
            found |= {c.name for e in (entry.filter, entry.value) if e is not None for c in columns(e)}
    return frozenset(found)


def _tried(
    chosen: AlertDef | DerivedDef, catalog: Catalog, trial: Trial, samples: Mapping[str, Sample]
) -> Tried:
    known = {**catalog.streams, **catalog.derived, **catalog.tables}
    given = {normalized_name(name, known): sample for name, sample in samples.items()}
    notices: list[str] = []
    recordings = since_begin(
        chosen,
        read_recordings(
            catalog,
            [chosen],
            given,
            partial(_recording, trial.unit),
            wording=REQUEST,
            notify=notices.append,
        ),
    )
    found = rows_of(chosen, catalog, recordings, wording=REQUEST, notify=notices.append)
    rows, count = _rows(found, trial.limits.rows)
    return Tried(
        chosen.name,
        tuple(found.column_names),
        tuple(one.name for one in chosen.query.select if one.expr.type is Type.TIMESTAMP),
        rows,
        found.num_rows,
        count < found.num_rows,
        _inputs(chosen, catalog, recordings),
        tuple(notices),
    )


def _recording(unit: TimeUnit | None, stream: StreamDef, sample: Sample) -> Recording:
    """The recording of a sample, in which each part stands for one source."""
    if sample.columns is not None:
        # A topic may lack columns that must not be NULL.
        kept = tuple(column for column in stream.columns if column.name in sample.columns)
        stream = replace(stream, columns=kept)
    where = f"samples.{stream.name}"
    files = [
        JsonRows(part, [orjson.dumps(one) for one in part], range(1, len(part) + 1), where)
        for part in sample.parts or ((),)
    ]
    return recording_of(stream, files, unit, absent_is_null=True)


def _rows(found: pa.Table, limit: int) -> tuple[bytes, int]:
    """The first rows as a JSON array of arrays, and their number."""
    made: list[bytes] = []
    size = 0
    for start in range(0, min(limit, found.num_rows), _AT_ONCE):
        for row in found.slice(start, min(_AT_ONCE, limit - start)).to_pylist():
            one = orjson.dumps(list(row.values()))
            size += len(one)
            if size > MOST_BYTES:
                return b"[" + b",".join(made) + b"]", len(made)
            made.append(one)
    return b"[" + b",".join(made) + b"]", len(made)


def _inputs(
    chosen: AlertDef | DerivedDef, catalog: Catalog, recordings: Mapping[str, Recording]
) -> dict[str, TriedInput]:
    """The readings of each raw stream. Streams with watches have the readings of their raw stream."""
    bases = {stream.name: stream.shown_name for stream in chosen.query.watched}
    masks = retained_by_edges(_as_alert(chosen), catalog, recordings)
    found: dict[str, TriedInput] = {}
    retained: dict[str, np.ndarray] = {}
    for name, recording in recordings.items():
        base = bases.get(name, name)
        mask = masks.get(name, np.zeros(len(recording), np.bool_))
        retained[base] = mask | retained[base] if base in retained else mask
        time = recording.stream.time
        times = np.zeros(0, np.int64) if time is None else recording.columns[time].data
        found[base] = TriedInput(
            len(recording),
            int(retained[base].sum()),
            recording.refused,
            int(times.min()) if len(times) else None,
            int(times.max()) if len(times) else None,
        )
    return found


def _as_alert(chosen: AlertDef | DerivedDef) -> AlertDef:
    return chosen if isinstance(chosen, AlertDef) else AlertDef(chosen.name, chosen.query)
