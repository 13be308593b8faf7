"""One reading from the future moves nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, plan_of
from tests.unit.edge.plans import air, entry, topic

from tamis.messaging.dead_letters import Reason
from tamis.plan.json_form import decode_plan, encode_plan
from tamis_edge.decode.decoder import Decoder
from tamis_edge.settings import FileSource
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.file import FileSources
from tamis_edge.storage.journal import Journal

SECOND = 1_000_000
NOW = 1_760_000_000 * SECOND
FAR = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * SECOND
STREAM = (
    "CREATE STREAM {0} (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
    " WITH (max_stall = '5 minutes'{1});"
)
ALERT = (
    "CREATE ALERT hot AS SELECT a.k, a.v + b.v AS sum FROM a JOIN b ON a.k = b.k"
    " AND ABS(a.ts - b.ts) <= INTERVAL '5' SECOND WHERE a.v + b.v > 10;"
)


def alarms(option: str) -> tuple[int, InProcessFleet]:
    """How many of 100 pairs raise an alarm, of which the tenth comes with a reading of the year 2100."""
    fleet = InProcessFleet(plan_of(STREAM.format("a", option), STREAM.format("b", option), ALERT))
    for i in range(100):
        now = NOW + i * 20 * SECOND
        future = [{"k": "x", "ts": FAR, "v": 1.0}] if i == 10 else []
        for stream in "ab":
            fleet.send(stream, [*future, {"k": "x", "ts": now, "v": 6.0}], now)
    for stream in "ab":
        fleet.send(stream, [{"k": "x", "ts": NOW + 10_000 * SECOND, "v": 0.0}], NOW + 10_000 * SECOND)
    return len(fleet.alarms.get("hot", ())), fleet


def test_a_reading_from_the_future_takes_no_alarm() -> None:
    raised, fleet = alarms("")
    assert raised == 100
    assert fleet.dead == {Reason.AHEAD_OF_CLOCK.value: 2}
    assert all(run.high < FAR for run in fleet.runs.values())
    assert fleet.frontier("tamis.stream.a.1") < FAR


def test_without_a_limit_it_takes_all_that_follow() -> None:
    raised, fleet = alarms(", max_ahead = 'unlimited'")
    assert raised == 11
    assert not fleet.dead


def limits(option: str) -> tuple[int | None, bool]:
    (stream,) = plan_of(STREAM.format("a", option)).streams
    return stream.max_ahead, stream.max_ahead_given


def test_the_limit_is_10_minutes_unless_a_stream_declares_another() -> None:
    assert limits("") == (600 * SECOND, False)
    assert limits(", max_ahead = '1 minute'") == (60 * SECOND, True)
    assert limits(", max_ahead = 'unlimited'") == (None, True)


def test_a_plan_from_before_has_the_limit_that_it_says() -> None:
    plan = plan_of(STREAM.format("a", ""))
    document = orjson.loads(encode_plan(plan))
    assert "max_ahead_given" not in document["streams"][0]
    document["streams"][0]["max_ahead"] = None
    (stream,) = decode_plan(orjson.dumps(document)).streams
    assert stream.max_ahead is None


@pytest.mark.parametrize(
    ("given", "replayed", "refused"), [(False, False, 1), (False, True, 0), (True, False, 1), (True, True, 1)]
)
def test_a_replayed_recording_is_not_judged_by_the_clock_unless_the_stream_says_so(
    given: bool, replayed: bool, refused: int
) -> None:
    stream = air([topic([entry(0)])], max_ahead=SECOND, max_ahead_given=given)
    row = {"station": "a", "ts": FAR, "temp": 1.0, "ok": True}
    found = Decoder(stream, FieldMap(), replayed=replayed).payloads([orjson.dumps(row)], NOW)
    assert len(found.offences) == refused


def test_a_row_from_the_future_does_not_hold_up_a_paced_replay(tmp_path: Path) -> None:
    path = tmp_path / "air.ndjson"
    times = [NOW, FAR, NOW + SECOND]
    path.write_text("".join(f'{{"station":"a","ts":{ts},"temp":1.0}}\n' for ts in times))
    journal = Journal(tmp_path / "journal.db", 2**20)
    config = FileSource(name="rec", kind="file", stream="air", path=path, speed=1.0)
    (shard,) = FileSources([config], "e", journal).shards()
    stream = air([topic([entry(0)])], max_ahead=600 * SECOND, max_ahead_given=True)
    shard.start(0, Decoder(stream, FieldMap(), replayed=True))
    first = shard.poll(10, NOW + 100 * SECOND)
    assert first is not None
    assert first.offsets.tolist() == [0, 1]
    second = shard.poll(10, NOW + 101 * SECOND)
    assert second is not None
    assert second.offsets.tolist() == [2]
    journal.close()
