"""The demo's report, from what a demo has collected."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tamis.fleet.demo import Outcome
from tamis.fleet.report import show
from tamis.verification import Verdict

OUTCOME = Outcome(
    places=[],
    decisions={
        ("air", "kitchen"): {"published": 20, "omitted": 70, "filtered": 10},
        ("air", "roof"): {"published": 40, "omitted": 60, "filtered": 0},
        ("water", "roof"): {"published": 5},
    },
    published_bytes=6_500,
    alarms={"hot": [{"id": "a"}, {"id": "b"}]},
    episodes={"hot": 1},
    live_peak={"hot": 30},
    bounds={"hot": 1_000},
    latency={"hot": [1.0, 3.0]},
)


def test_it_has_every_stream_every_alert_and_the_verdict() -> None:
    text = StringIO()
    verdict = Verdict(
        query="hot", tuples=205, retained=65, reference_alarms=9, alarms=2, missed=0, extra=0, late=0,
        at_threshold=0,
    )  # fmt: skip
    show(OUTCOME, [verdict], Console(file=text, width=120))
    lines = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert "stream edge tuples published omitted filtered late dead retained" in lines
    assert "air kitchen 100 20 70 10 0 0 20.0%" in lines
    assert "air roof 100 40 60 0 0 0 40.0%" in lines
    assert "air all 200 60 130 10 0 0 30.0%" in lines
    assert "water all 5 5 0 0 0 0 100.0%" in lines
    assert "hot 2 1 30 1,000" in lines
    assert "bytes: 6,500 to Kafka; every tuple would have been 20,500 (68.3% saved)" in lines
    assert "latency, reading at the edge to alarm in Kafka: p50 2.00 s, p99 2.98 s" in lines
    assert "verify hot: 9 alarms of the plain join, 2 raised, missed 0, extra 0" in lines
