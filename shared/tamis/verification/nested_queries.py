"""Compare a query over rows of aggregates with DuckDB, one query after the other.

The rows of each inner query are compared first. The query that reads them is then compared over the rows that
Tamis gave: DuckDB's may differ from these in the last digits, which could decide a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tamis.bounded.application_time.static_relations import query_inputs
from tamis.evaluation.standing.recording_runs import recorded, recordings_of, run_recordings
from tamis.query.model import Catalog, Query
from tamis.recordings.typed import Recording
from tamis.verification.aggregates import compare_windowed_groups, with_group_keys
from tamis.verification.compare import Verdict
from tamis.verification.standing import compare_standing


def compare_nested(
    name: str,
    query: Query,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    reference: Mapping[str, Recording],
) -> Verdict:
    """The verdict on a query and on all queries within it. Its counts of alarms are those of the last query;
    missed and extra rows are those of all.

    `recordings` are those that Tamis evaluates, `reference` those that DuckDB does.
    """
    nested = query.nested
    if nested is None:
        return _compare(name, query, catalog, recordings, reference)
    inner = []
    ours, theirs = dict(recordings), dict(reference)
    for stream in nested.streams:
        assert stream.aggregates is not None
        inner.append(compare_nested(name, stream.aggregates, catalog, recordings, reference))
        read = recordings_of(stream.aggregates, recordings)
        made = recorded(stream, run_recordings(stream.aggregates, catalog, read).rows)
        ours[stream.name] = theirs[stream.name] = made
    found = _compare(name, nested.query, catalog.with_streams(nested.streams), ours, theirs)
    tuples = sum(len(one) for one in recordings.values())
    return replace(
        found,
        tuples=tuples,
        retained=tuples,
        missed=found.missed + sum(one.missed for one in inner),
        extra=found.extra + sum(one.extra for one in inner),
    )


def _compare(
    name: str,
    query: Query,
    catalog: Catalog,
    recordings: Mapping[str, Recording],
    reference: Mapping[str, Recording],
) -> Verdict:
    keyed = query if query.grouping is None else with_group_keys(query)
    rows = run_recordings(keyed, catalog, recordings_of(query, recordings)).rows
    given = {**query_inputs(query, catalog).relations, **recordings_of(query, reference)}
    if query.windowed and query.timed_by is None:
        return compare_windowed_groups(name, query, given, rows.columns)
    return compare_standing(name, query, given, rows.columns)
