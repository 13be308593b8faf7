"""Queries and streams under load: they are created, replaced, altered and dropped while readings arrive.

One query has windows. Some readings are wrong, the broker is away for a while, and the edge and the joiner
are killed right after a stream is altered.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from confluent_kafka import Consumer
from numpy.typing import NDArray
from tests.e2e.fed_fleet import Times, judge, until
from tests.e2e.feeder import SECOND, STREAMS, PatientFeeder, close_alert, hot_alert, swell_alert
from tests.e2e.one_fleet.conftest import BROKER_SECONDS, OneFleet

from tamis.messaging.topics import DEAD_LETTERS
from tamis.settings import KafkaSettings

AWAY_SECONDS = 20.0
START = 20_000  # event seconds
POISON = {
    b'{"station": "k1", "ts":': "undecodable",
    b'{"station": "k1", "temp": 1.0, "rh": 50.0}': "missing_field",
    b'{"station": "k1", "ts": 1000000, "temp": "warm", "rh": 50.0}': "wrong_type",
    b'{"station": "k1", "ts": 1000000, "temp": 99.0, "rh": 50.0}': "out_of_domain",
    b'{"station": "k1", "ts": 1000000, "temp": NaN, "rh": 50.0}': "nan",
}

# Without this statement, readings of -75 are dead letters.
WIDER = "ALTER STREAM surface ADD COLUMN wet BOOLEAN, ALTER COLUMN temp SET CHECK (temp BETWEEN -90 AND 70);"


class WideFeeder(PatientFeeder):
    """A feeder whose surface temperatures are at times below the domain that the stream had first."""

    wide = False

    def _reading(self, stream: str, station: int) -> dict[str, Any]:
        row = super()._reading(stream, station)
        if self.wide and stream == "surface" and (self.second + station) % 9 == 0:
            row |= {"temp": -75.0, "wet": False}
        return row


def dead_letters(bootstrap: str) -> dict[bytes, str]:
    """Payload and reason of each."""
    found: dict[bytes, str] = {}
    settings = KafkaSettings(bootstrap=bootstrap).client_config()
    consumer = Consumer({**settings, "group.id": "letters", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([DEAD_LETTERS])
        deadline = time.monotonic() + 30
        while len(found) < len(POISON) and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                headers = dict(cast(list[tuple[str, bytes]], message.headers()))
                found[message.value() or b""] = headers["reason"].decode()
    finally:
        consumer.close()
    return found


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_queries_change_under_load_and_nothing_promised_is_missed(
    tmp_path: Path, one_fleet: OneFleet
) -> None:
    fed = one_fleet
    feeder = WideFeeder(seed=7, start=START)
    feeder.url = fed.url
    try:
        fed.apply(close_alert("warm", 9.0) + swell_alert("swell", 10.0) + hot_alert("hot", 1.0))
        for name in ("warm", "swell", "hot"):
            fed.running(name)
        feeder.until(START + 60)
        fed.apply(close_alert("cool", 6.0))
        added = fed.running("cool")
        feeder.until(START + 110)
        feeder.post_lines("air", list(POISON))
        feeder.until(START + 120)
        fed.apply(close_alert("warm", 5.0, replace=True))
        replaced = fed.running("warm")
        old = fed.alert("hot")["plan"]
        fed.apply(hot_alert("hot", 6.0, replace=True))
        fed.running("hot")
        # No reading has come since: it is enough that each shard has taken up the plan.
        until(lambda: f"hot@{old}" not in fed.alert("hot")["retiring"])
        since = len(feeder.posted["air"])
        feeder.until(START + 130)
        fed.apply(WIDER)
        for killed in ("edge", "joiner"):
            fed.fleet.processes[killed].kill()
            fed.fleet.processes[killed].start()
            feeder.until(feeder.second + 5)
        altered = fed.running("warm")
        # No window and no partner of a reading below the former domain is from before the change.
        feeder.until(max(altered.values()) // SECOND + 25)
        feeder.wide = True
        feeder.until(START + 195)
        until(lambda: fed.passed(START + 170), 120)
        fed.fleet.broker.stop()
        gone = time.monotonic()
        feeder.until(START + 235, pause=AWAY_SECONDS / 40)
        assert time.monotonic() - gone >= AWAY_SECONDS
        fed.fleet.broker.start(BROKER_SECONDS)
        feeder.until(START + 275)
        until(lambda: fed.passed(START + 250))
        fed.apply("DROP ALERT cool;")
        feeder.until(START + 315)
        feeder.close(START + 4_000)
        until(lambda: fed.passed(START + 3_900), 90)
        alarms = fed.alarms()
        dead = dead_letters(fed.fleet.bootstrap)
        assert all(process.exit_code() is None for process in fed.fleet.processes.values())
    finally:
        feeder.end()
    assert dead == POISON
    recordings = feeder.recordings(tmp_path, STREAMS + WIDER)
    # Added: everything from its activation on, until it was dropped.
    last = (START + 245) * SECOND
    cool = judge(
        WIDER + close_alert("cool", 6.0),
        "cool",
        recordings,
        alarms["cool"],
        lambda a, s: (a >= added["air"]) & (s >= added["surface"]) & (a < last) & (s < last),
    )
    assert cool.extra == 0

    # Replaced: the old definition's combinations until both tuples are the new one's; then the new one's.
    def both(a: Times, s: Times) -> NDArray[np.bool_]:
        return (a >= replaced["air"]) & (s >= replaced["surface"])

    judge(WIDER + close_alert("warm", 9.0), "warm", recordings, alarms["warm"], lambda a, s: ~both(a, s))
    # Every alarm of the old definition is one of the new one's too: its threshold is lower.
    new = judge(WIDER + close_alert("warm", 5.0), "warm", recordings, alarms["warm"], both)
    assert new.extra == 0

    # Of one stream: each reading counts for one definition.
    raised = {
        which: {
            (a["row"]["station"], a["row"]["ts"]) for a in alarms["hot"] if (a["definition"] == old) is which
        }
        for which in (True, False)
    }
    for which, posted, above in (
        (True, feeder.posted["air"][:since], 1.0),
        (False, feeder.posted["air"][since:], 6.0),
    ):
        assert raised[which] == {(row["station"], row["ts"]) for row in posted if row["temp"] > above}
        assert len(raised[which]) > 20, "there must be something to count"

    # With windows, from the beginning to the end: all of it.
    swell = judge(
        WIDER + swell_alert("swell", 10.0),
        "swell",
        recordings,
        alarms["swell"],
        lambda a, s: np.ones(len(a), np.bool_),
    )
    assert swell.extra == 0
    assert swell.alarms < swell.reference_alarms, "windows must keep readings off Kafka"
