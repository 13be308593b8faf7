"""Fault 6: one stream of a join stalls for an hour of event time, and then gives all of its readings."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.loaded_fleet import loaded_fleet

from tamis.local.scrape import Scrape

HOUR = 3_600
STEP = 4  # a reading of each station every so many event seconds
pytestmark = [pytest.mark.faults, pytest.mark.timeout(2400)]


def test_a_stream_stalls_for_an_hour(tmp_path: Path) -> None:
    with loaded_fleet(tmp_path, seed=6) as fed:
        fed.begin()
        first = fed.load.second
        end = first + HOUR
        fed.load.until(end, only="air", step=STEP)

        def held() -> float:
            return Scrape.of(fed.fleet.telemetry["joiner"]).total("tamis_joiner_state_tuples")

        fed.wait("the joiner holds the hour", lambda: held() > 5_000)
        assert not fed.passed(first + 60), "the frontier waits for the stream that stalls"
        most = held()
        fed.load.second = first
        fed.load.until(end, only="surface", step=STEP)
        found = fed.check()
        fed.wait("the state is trimmed", lambda: held() < 1_000)
        fed.said(f"a stream stalled for {HOUR} s of event time, {most:,.0f} tuples held", found)
