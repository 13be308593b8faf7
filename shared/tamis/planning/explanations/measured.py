"""The tuples of a recording that edges drop for one query."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.evaluation.replay import retained_rows
from tamis.planning.build import first_plan
from tamis.planning.explanations.explanation import Measured
from tamis.query.model import AlertDef, Catalog
from tamis.recordings.typed import Recording


def measured(alert: AlertDef, catalog: Catalog, recordings: Mapping[str, Recording]) -> dict[str, Measured]:
    """The dropped tuples of each recorded stream, by stream. `alert` must be accepted."""
    catalog = catalog.reading(alert)
    plan = first_plan(
        Catalog(catalog.streams, {}, catalog.functions, {alert.name: alert}, results=catalog.results)
    )
    found = {}
    for stream in plan.streams:
        if stream.topics and (recording := recordings.get(stream.name)) is not None:
            kept = np.logical_or.reduce([retained_rows(topic, recording) for topic in stream.topics])
            found[stream.name] = Measured(len(recording), int(len(recording) - kept.sum()))
    return found
