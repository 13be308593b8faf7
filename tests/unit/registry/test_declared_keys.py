"""Streams that have more keys than they declare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tamis.messaging.records import Frontier, StreamState
from tamis.telemetry import Metrics
from tamis_registry.core.declared_keys import excesses, key_counts
from tamis_registry.gauges import KeyWarnings, show
from tamis_registry.http.documents.streams import stream_documents

ALERT = "CREATE ALERT q AS SELECT a.k FROM air a JOIN few f ON a.k = f.k AND a.ts = f.ts WHERE a.v + f.v > 5;"


@pytest.fixture
def declared(fleet: Any) -> Any:
    fleet.sql(
        "CREATE STREAM few (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts) WITH (keys = 3);"
        + ALERT
    )
    return fleet


def hold(fleet: Any, *keys: int) -> None:
    """The joiner reports so many keys of each stream, by partition."""
    for partition, count in enumerate(keys):
        topics = {name: StreamState(1, 9, 9, False, keys=count) for name in fleet.topics}
        fleet.registry.follow(Frontier(partition, fleet.version, topics, {}, {}, 0, 0, fleet.now))


def test_partitions_add_up_since_each_key_is_in_one(declared: Any) -> None:
    hold(declared, 2, 1)
    view = declared.registry.view(declared.now)
    assert [(one.stream, one.declared, one.held) for one in key_counts(view)] == [("few", 3, 3)]
    assert excesses(view) == {}
    hold(declared, 2, 2)
    (reason,) = excesses(declared.registry.view(declared.now)).values()
    assert "4 keys at the same time and declares keys = 3" in reason and "ALTER STREAM few SET" in reason


def test_the_state_of_the_stream_says_it_and_metrics_have_both_numbers(declared: Any) -> None:
    hold(declared, 5)
    view, metrics = declared.registry.view(declared.now), Metrics("registry")
    whys = {one["name"]: one["why"] for one in stream_documents(view)}
    assert whys["air"] == [] and "5 keys" in whys["few"][0]
    show(view, metrics)
    text = metrics.exposition().decode()
    assert 'tamis_registry_keys{stream="few"' in text and 'tamis_registry_keys{stream="air"' not in text
    assert [line[-3:] for line in text.splitlines() if line.startswith("tamis_registry_declared")] == ["3.0"]


def test_a_partition_key_with_other_columns_says_nothing_about_keys(declared: Any) -> None:
    """Tuples of one key may be in several partitions then, or a key may have several partition keys."""
    hold(declared, 9)
    view = declared.registry.view(declared.now)
    other = replace(view.plan.streams[-1].topics[0], partition_key=("v",))
    streams = (*view.plan.streams[:-1], replace(view.plan.streams[-1], topics=(other,)))
    assert list(key_counts(replace(view, plan=replace(view.plan, streams=streams)))) == []


def test_the_log_warns_once_until_there_are_no_more(declared: Any) -> None:
    warnings = KeyWarnings()
    with capture_logs() as events:
        for count in (5, 6, 3, 7):
            hold(declared, count)
            warnings.show(declared.registry.view(declared.now))
    assert [event["reason"].split()[2] for event in events] == ["5", "7"]
