"""Run a standing query of any kind over recordings of its streams."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.evaluation.standing.application_time.recording_run import run_in_application_time
from tamis.evaluation.standing.compilation import compile_query
from tamis.evaluation.standing.contract import RecordedRun
from tamis.evaluation.standing.timeless.recording_run import run_timeless
from tamis.evaluation.standing.window_aggregates.recording_run import run_windowed
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording

# Columns are joined by compiled code, which is fast only over many tuples at once.
_LARGE_BATCH = 65_536


def run_recordings(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> RecordedRun:
    """All rows of a query that keeps synopses. `recordings` must be those of its streams."""
    if query.windowed:
        (source,) = query.windowed
        return run_windowed(query, catalog, recordings[source.stream])
    standing = compile_query(query, catalog)
    assert standing is not None, "every query that keeps synopses is a standing query"
    if query.timeless:
        return run_timeless(standing, recordings)
    if query.asof:
        return run_in_application_time(standing, recordings, _LARGE_BATCH)
    return run_in_application_time(standing, recordings)
