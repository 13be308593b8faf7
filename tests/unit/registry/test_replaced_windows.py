"""Windows that are open when their alert is replaced, in a fleet with edge, joiner and registry."""

from __future__ import annotations

import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, InProcessRegistry

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
STREAM = "CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, WATERMARK FOR ts AS ts);"
ALERT = (
    "ALERT q {} AS SELECT window_end, k, count(*) AS n FROM TUMBLE(air, ts, INTERVAL '10' SECOND) {}"
    " GROUP BY window_end, k;"
)


def send(fleet: InProcessFleet, first: int, end: int) -> None:
    """A reading of each second."""
    readings = [{"k": "a", "ts": NOW + second * SECOND, "x": 1.0} for second in range(first, end)]
    fleet.send("air", readings, NOW)


@pytest.mark.parametrize("option", ["", "WITH (edge = 'raw')"])
def test_the_old_definition_gives_no_row_for_windows_that_are_open_at_its_end(option: str) -> None:
    registry = InProcessRegistry(f"{STREAM} CREATE {ALERT.format(option, '')}", NOW)
    registry.list_shards(["air"], NOW)
    fleet = InProcessFleet(registry.plan)
    send(fleet, 0, 24)
    registry.apply(f"CREATE OR REPLACE {ALERT.format(option, 'WHERE x < 5')}", NOW)
    assert len(registry.plan.standing) == 2
    fleet.obey(registry.plan, NOW)
    fleet.settle("air", NOW)
    registry.hear(fleet, NOW)
    assert registry.tick(NOW) is not None
    assert len(registry.plan.standing) == 1
    fleet.obey(registry.plan, NOW)
    send(fleet, 24, 45)
    ends = {((end - NOW) // SECOND, n) for end, k, n in fleet.rows.values()}
    # Of the window to 30 s the old definition had counted 4 readings. The new one counts the other 6.
    assert ends == {(10, 10), (20, 10), (30, 6), (40, 10)}
