"""A standing query of any kind over recordings of its streams."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.evaluation.standing.compiled import compiled
from tamis.evaluation.standing.in_time import play_in_time
from tamis.evaluation.standing.recorded import Played, play
from tamis.evaluation.standing.windowed import play_windows
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording


def played(query: Query, catalog: Catalog, recordings: Mapping[str, Recording]) -> Played:
    """All rows of a query that keeps synopses. `recordings`: of its streams and no others."""
    if query.window is not None:
        (source,) = query.sources
        return play_windows(query, catalog, recordings[source.stream])
    standing = compiled(query, catalog)
    assert standing is not None, "every query that keeps synopses is a standing one"
    return (play if query.timeless else play_in_time)(standing, recordings)
