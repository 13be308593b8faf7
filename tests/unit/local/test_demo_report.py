"""The demo's report, from what a demo has collected."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tamis.local.demo import Outcome, show
from tamis.local.demo_check import PlainJoins
from tamis.verification.compare import Verdict

OUTCOME = Outcome(
    decisions={
        ("readings", "indoors"): {"published": 2_000, "omitted": 7_000, "filtered": 1_000},
        ("readings", "outside"): {"published": 4_000, "omitted": 6_000, "filtered": 0},
        ("water", "outside"): {"published": 5},
    },
    published_bytes=6_500,
    alarms={"hot": [{"id": "a"}, {"id": "b"}]},
    episodes={"hot": 1},
    live_peak={"hot": 30},
    bounds={"hot": 1_000},
    latency={"hot": [1.0, 3.0]},
    plain_joins=PlainJoins([]),
)


def test_it_has_every_stream_every_alert_and_the_verdict() -> None:
    text = StringIO()
    verdict = Verdict(
        query="hot", tuples=205, retained=65, reference_alarms=9, alarms=2, missed=0, extra=0, late=0,
        at_threshold=0,
    )  # fmt: skip
    show(OUTCOME, [verdict], Console(file=text, width=80))
    lines = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert "stream tuples published omitted filtered late dead retained" in lines
    first = lines.index("readings 20,000 6,000 13,000 1,000 0 0 30.0%")
    assert lines[first + 1] == "indoors 10,000 2,000 7,000 1,000 0 0 20.0%"
    assert lines[first + 2] == "outside 10,000 4,000 6,000 0 0 0 40.0%"
    assert lines[first + 3] == "water 5 5 0 0 0 0 100.0%"
    assert "hot 2 1 30 1,000" in lines
    assert "bytes: 6,500 to Kafka; publishing every tuple would take 21,654 (70.0% saved)" in lines
    assert "latency, reading at the edge to alarm in Kafka: p50 2.00 s, p99 2.98 s" in lines
    assert "verify hot: 9 alarms of the plain join, 2 raised, missed 0, extra 0" in lines
