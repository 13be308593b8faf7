"""What the joiner shows of itself: counters that are right though its records are read more than once."""

from __future__ import annotations

from tamis.messaging.records import Frontier
from tamis.telemetry import Metrics
from tamis_joiner.observer import Observer


def record(time: int, alarms: int, late: int = 0) -> bytes:
    return Frontier(0, 1, {}, {}, {"hot": alarms}, late, 0, time, {"foreign": alarms}).to_bytes()


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_records_that_are_read_again_are_not_counted_again() -> None:
    metrics = Metrics("joiner")
    observer = Observer(metrics)
    records = [record(1, 2), record(2, 5, late=1), record(3, 9, late=4)]
    for one in [*records, *records, records[0]]:
        observer.frontier(one)
    assert value(metrics, "tamis_alarms_total", query="hot") == 9
    assert value(metrics, "tamis_joiner_late_total") == 4
    assert value(metrics, "tamis_dead_letters_total", service="joiner", reason="foreign") == 9


def test_counters_go_on_when_the_state_was_begun_anew() -> None:
    metrics = Metrics("joiner")
    observer = Observer(metrics)
    for one in (record(1, 5), record(2, 1), record(3, 3)):
        observer.frontier(one)
    assert value(metrics, "tamis_alarms_total", query="hot") == 8


def test_what_is_no_frontier_record_changes_nothing() -> None:
    metrics = Metrics("joiner")
    observer = Observer(metrics)
    for poison in (b"", b"[]", b"7", b"{}", b'{"topics": {"a": 1}}', b'{"topics": []}'):
        observer.frontier(poison)
    observer.frontier(record(1, 2))
    assert value(metrics, "tamis_alarms_total", query="hot") == 2
