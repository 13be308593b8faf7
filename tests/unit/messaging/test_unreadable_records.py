"""Records that can't be read are all counted, and named in the log without filling it."""

from __future__ import annotations

from structlog.testing import capture_logs

from tamis.messaging.topic_reader import AT_ONCE, Record, UnreadableRecords
from tamis.telemetry import Metrics, get_logger


def test_each_is_counted_and_the_first_of_a_key_is_named() -> None:
    now = [0.0]
    metrics = Metrics("registry")
    unreadable = UnreadableRecords("registry", metrics, get_logger("test"), lambda: now[0])

    def report(key: bytes) -> None:
        unreadable.report(Record("tamis.acks", 0, 7, key, b"x"), "no JSON" * 1000)

    with capture_logs() as logs:
        for _ in range(3):
            report(b"a\xff")
        assert [(one["key"], one["offset"], len(one["error"])) for one in logs] == [("a\ufffd", 7, 500)]
        for number in range(500):
            report(b"%d" % number)
        assert len(logs) == AT_ONCE
        now[0] = 5.0
        for number in range(500, 1000):
            report(b"%d" % number)
        assert len(logs) == AT_ONCE + 5 and logs[AT_ONCE]["not_named"] == 500 - AT_ONCE + 1
    counted = metrics.registry.get_sample_value(
        "tamis_dead_letters_total", {"service": "registry", "reason": "undecodable"}
    )
    assert counted == 1003
