"""Metrics of the joiner's state: counters stay right when records are read more than once."""

from __future__ import annotations

from dataclasses import replace

from tamis.messaging.records import Frontier, StreamState
from tamis.messaging.topic_reader import Record
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.telemetry import Metrics
from tamis_joiner.monitoring.kafka_monitor import StateMetrics


def read(value: bytes, key: bytes = b"0") -> Record:
    return Record("tamis.frontiers", 0, 0, key, value)


def record(time: int, alarms: int, late: int = 0) -> Record:
    dead, missed, disordered = {"foreign": alarms}, {"rows": late}, {"sums": 2 * late}
    frontier = Frontier(
        0, 1, {}, {}, {"hot": alarms}, late, 0, time, dead, missed=missed, disordered=disordered
    )
    return read(frontier.to_bytes())


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_records_that_are_read_again_are_not_counted_again() -> None:
    metrics = Metrics("joiner")
    observer = StateMetrics(metrics)
    records = [record(1, 2), record(2, 5, late=1), record(3, 9, late=4)]
    for one in [*records, *records, records[0]]:
        observer.take_frontier(one)
    assert value(metrics, "tamis_alarms_total", query="hot") == 9
    assert value(metrics, "tamis_joiner_late_total") == 4
    assert value(metrics, "tamis_query_late_total", query="rows") == 4
    assert value(metrics, "tamis_query_disordered_cuts_total", query="sums") == 8
    assert value(metrics, "tamis_dead_letters_total", service="joiner", reason="foreign") == 9


def test_counters_go_on_when_the_state_was_begun_anew() -> None:
    metrics = Metrics("joiner")
    observer = StateMetrics(metrics)
    for one in (record(1, 5), record(2, 1), record(3, 3)):
        observer.take_frontier(one)
    assert value(metrics, "tamis_alarms_total", query="hot") == 8


DECLARED = """
CREATE STREAM a (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 10, rate = '1/s', max_stall = '10 s', max_ahead = '0');
CREATE STREAM b (k INT KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
  WITH (keys = 10, rate = '1/s', max_stall = '10 s', max_ahead = '0');
"""

JOIN = (
    "CREATE ALERT {0} AS SELECT a.k FROM a JOIN b ON a.k = b.k"
    " AND ABS(a.ts - b.ts) <= INTERVAL '{1}' SECOND WHERE a.{2} > b.{2}"
)


def shown(*alerts: tuple[str, int, str], streams: str = DECLARED) -> Metrics:
    """The metrics of a joiner that obeys alerts, each of a name, seconds apart at most, and a column."""
    texts = [JOIN.format(name, apart, column) for name, apart, column in alerts]
    metrics = Metrics("joiner")
    observer = StateMetrics(metrics)
    observer.take_plan(first_plan(catalog_of(streams, *texts)))
    observer.take_frontier(record(1, 0))
    observer.update(0.0)
    return metrics


def kept(apart: int, held: int) -> int:
    """Tuples of a or b, by hand: 10 keys, 1 a second, from time bound, watermark, holding and stall."""
    return 10 * (apart + 2 + held + 10 + 1)


def topic_bounds(metrics: Metrics) -> list[float | None]:
    return [
        value(metrics, "tamis_joiner_bound_tuples", stream=stream, topic=f"tamis.stream.{stream}.1")
        for stream in "ab"
    ]


def test_a_query_has_the_bound_of_its_sources_and_a_topic_the_largest_of_its_queries() -> None:
    metrics = shown(("near", 5, "x"), ("far", 9, "x"))  # one entry, held for the least interval
    assert value(metrics, "tamis_query_bound_tuples", query="near") == 2 * kept(5, 10)
    assert value(metrics, "tamis_query_bound_tuples", query="far") == 2 * kept(9, 18)
    assert topic_bounds(metrics) == [kept(9, 18)] * 2


def test_what_another_query_has_edges_hold_on_a_shared_topic_counts() -> None:
    metrics = shown(("near", 5, "x"), ("far", 9, "y"))
    assert value(metrics, "tamis_query_bound_tuples", query="near") == 2 * kept(5, 18)
    assert value(metrics, "tamis_query_bound_tuples", query="far") == 2 * kept(9, 18)


WINDOWED = """
CREATE ALERT rows WITH (edge = '{}') AS
SELECT window_end, k, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '4' SECOND)
WHERE {} GROUP BY window_end, k
"""


def test_aggregates_of_windows_wait_for_what_edges_hold_for_others() -> None:
    # 4 s of window, 2 s of watermark and 10 s of stall are four panes of ten keys.
    alone = shown(streams=DECLARED + WINDOWED.format("raw", "y > 3"))
    assert value(alone, "tamis_query_bound_tuples", query="rows") == 4 * 10
    # Beside a join that holds for 18 s: 34 s, nine panes.
    beside = shown(("far", 9, "x"), streams=DECLARED + WINDOWED.format("raw", "y > 3") + ";")
    assert value(beside, "tamis_query_bound_tuples", query="rows") == 9 * 10
    # Partial aggregates have a topic of their own.
    apart = shown(("far", 9, "x"), streams=DECLARED + WINDOWED.format("auto", "y > 3") + ";")
    assert value(apart, "tamis_query_bound_tuples", query="rows") == 4 * 10


def lag(now: float, *, edge: str, windows: str = "1") -> float | None:
    """Of a topic whose frontier is at 1000 s, which edges send as `edge` says, with windows of so many
    minutes.
    """
    rows = [
        f"CREATE ALERT rows{minutes} WITH (edge = '{edge}') AS SELECT window_end, k, count(*) AS n"
        f" FROM TUMBLE(a, ts, INTERVAL '{minutes}' MINUTE) GROUP BY window_end, k;"
        for minutes in windows.split()
    ]
    plan = first_plan(catalog_of(DECLARED, *rows))
    (topic,) = [topic.name for stream in plan.streams for topic in stream.topics]
    metrics = Metrics("joiner")
    observer = StateMetrics(metrics)
    observer.take_plan(plan)
    state = StreamState(1_000_000_000, 0, 0, False)
    observer.take_frontier(read(Frontier(0, 1, {topic: state}, {}, {}, 0, 0, 1).to_bytes()))
    observer.update(now)
    assert value(metrics, "tamis_joiner_frontier_seconds", stream="a", topic=topic) == 1000
    return value(metrics, "tamis_joiner_frontier_lag_seconds", stream="a", topic=topic)


def test_a_frontier_of_partial_aggregates_may_lie_behind_by_a_pane_and_the_delay() -> None:
    assert lag(1070.0, edge="raw") == 70
    assert lag(1062.0, edge="auto") == 0
    assert lag(1070.0, edge="auto") == 70 - 60 - 2
    # It moves at the ends of the shortest windows.
    assert lag(4800.0, edge="auto", windows="60") == 3800 - 3600 - 2
    assert lag(4800.0, edge="auto", windows="60 1") == 3800 - 60 - 2


PAIRS = """
CREATE ALERT rows AS SELECT a.k, window_end, count(*) AS n FROM TUMBLE(a, ts, INTERVAL '4' SECOND) a
JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.y > 3 AND b.y > 3 GROUP BY a.k, window_end;
"""


def test_joins_in_windows_wait_for_what_edges_hold_for_others() -> None:
    # Tuples of a wait for 5 s of bound, 2 s of watermark and 10 s of stall, those of b for 5 s more. One
    # window of ten keys is open.
    alone = shown(streams=DECLARED + PAIRS)
    assert value(alone, "tamis_query_bound_tuples", query="rows") == 10 * (18 + 23 + 1)
    # Beside a join that holds for 18 s.
    beside = shown(("far", 9, "x"), streams=DECLARED + PAIRS)
    assert value(beside, "tamis_query_bound_tuples", query="rows") == 10 * (36 + 41 + 1)


class Scraped(Metrics):
    """Metrics that are scraped before each change of a gauge."""

    def __init__(self) -> None:
        self.bounds: list[float | None] = []
        super().__init__("joiner")

    def set(self, name: str, value: float, **labels: str) -> None:
        self.bounds.append(self.registry.get_sample_value("tamis_query_bound_tuples", {"query": "near"}))
        super().set(name, value, **labels)


def test_a_scrape_during_an_update_finds_every_gauge() -> None:
    metrics = Scraped()
    observer = StateMetrics(metrics)
    observer.take_plan(first_plan(catalog_of(DECLARED, JOIN.format("near", 5, "x"))))
    observer.take_frontier(record(1, 0))
    observer.update(0.0)
    metrics.bounds.clear()
    observer.update(1.0)
    assert metrics.bounds
    assert None not in metrics.bounds
    observer.take_plan(first_plan(catalog_of(DECLARED, JOIN.format("far", 9, "x"))))
    observer.update(2.0)
    assert value(metrics, "tamis_query_bound_tuples", query="near") is None


def test_without_a_rate_there_is_no_bound() -> None:
    metrics = shown(("near", 5, "x"), streams=DECLARED.replace("rate = '1/s', ", "", 1))
    assert value(metrics, "tamis_query_bound_tuples", query="near") is None
    assert topic_bounds(metrics) == [None, kept(5, 10)]


def test_what_is_no_frontier_record_changes_nothing() -> None:
    metrics = Metrics("joiner")
    observer = StateMetrics(metrics)
    poisons = (b"", b"[]", b"7", b"{}", b'{"topics": {"a": 1}}', b'{"topics": []}', b"[" * 10_000)
    for poison in poisons:
        observer.take_frontier(read(poison))
    observer.take_frontier(replace(record(1, 7), key=b"1"))
    refused = value(metrics, "tamis_dead_letters_total", service="joiner", reason="undecodable")
    assert refused == len(poisons) + 1
    observer.take_frontier(record(1, 2))
    assert value(metrics, "tamis_alarms_total", query="hot") == 2
