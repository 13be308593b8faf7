"""Random queries over recordings with late readings, compared by `tamis verify`. Each shard is a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.oracle.language.queries import RandomQuery
from tests.oracle.language.readings import NAMES, RandomReadings, Row
from tests.oracle.language.run import statements_of

from tamis.declarations.streams import StreamDef
from tamis.errors import NotAcceptedError, SqlErrors
from tamis.expressions.vectors import Vector
from tamis.offline.recordings import watched_recording
from tamis.offline.verify import verify
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.compare import Verdict


def verified(seed: int, table: Path) -> tuple[RandomQuery, str, int, Verdict] | None:
    """The query, its SQL, the number of late readings, and the verdict; None if the query is refused."""
    query = RandomQuery(seed)
    readings = RandomReadings(
        random.Random(seed + 1), query.streams, steady=query.steady, apart=query.apart, late=True
    )
    sql = statements_of(query, readings, table)
    try:
        catalog = catalog_of(sql)
        alert = catalog.alerts["q"].query
        made = {name: _recording(catalog.streams[name], readings) for name in query.streams}
        made |= {one.name: watched_recording(made[one.shown_name], one) for one in alert.watched}
        (verdict,) = verify(catalog, made)
    except (SqlErrors, NotAcceptedError):
        return None
    late = sum(int(made[name].late.sum()) for name in query.streams)
    return query, sql, late, verdict


def _recording(stream: StreamDef, readings: RandomReadings) -> Recording:
    """The readings of a stream, shard by shard."""
    files = [shard.rows for shard in readings.shards if shard.stream == stream.name]
    rows = [row for file in files for row in file]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in NAMES]
    given = dict(zip(NAMES, columns, strict=True))
    vectors = {one.name: Vector.from_list(given[one.name], one.type) for one in stream.columns}
    late = [behind for file in files for behind in _late(file, stream.delay)]
    return Recording(stream, vectors, np.array(late, np.bool_), {}, 0, None, tuple(map(len, files)))


def _late(rows: Sequence[Row], delay: int) -> list[bool]:
    """Tell of each row if it is behind the watermark of those before it."""
    found, latest = [], -(2**62)
    for row in rows:
        found.append(row[1] < latest - delay)
        latest = max(latest, row[1])
    return found
