"""Derived streams of aggregates in the registry: they have users and no topic, and survive a restart."""

from __future__ import annotations

import pytest
from tests.unit.registry.test_leases import started
from tests.unit.registry.test_readers_of_derived_streams import applied

from tamis.errors import RefusedError, SqlErrors
from tamis_registry.core.leases import new_lease
from tamis_registry.core.state.records import records, recover

SQL = """
CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM means AS SELECT k, window_end, avg(x) AS mean FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
GROUP BY k, window_end;
CREATE STREAM high AS SELECT * FROM means WHERE mean > 80;
CREATE ALERT q AS SELECT k, max(mean) AS m FROM TUMBLE(high, window_end, INTERVAL '1' HOUR)
GROUP BY k, window_end;
"""


def test_a_derived_stream_of_aggregates() -> None:
    registry = started()
    assert {one.result for one in applied(registry, SQL)} == {"created"}
    plan = registry.plan
    assert [(stream.name, len(stream.topics)) for stream in plan.streams if stream.name == "air"] == [
        ("air", 1)
    ]
    (query,) = plan.standing
    assert [(source.stream, source.partition_key) for source in query.inputs] == [("air", ("k",))]
    with pytest.raises(SqlErrors, match="stream 'means' is read by stream 'high', alert 'q'"):
        registry.apply("DROP STREAM means;", 0)
    with pytest.raises(RefusedError, match="'means' has rows of aggregates, and has no topic"):
        new_lease("means", "", "me", 60, registry.state.catalog)
    again = started(recover(records(registry.state)))
    assert again.plan.standing == plan.standing
