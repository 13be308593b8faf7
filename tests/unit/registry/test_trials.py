"""Trials: a query on samples has the rows of a plain join, and samples of topics have each reading once."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient
from tests.unit.registry.openapi_copy import described
from tests.unit.registry.test_openapi import Made
from tests.unit.registry.test_proving import STREAMS, started

from tamis.declarations.file_access import NO_ACCESS
from tamis.errors import InputError, NotAcceptedError, RefusedError, SqlErrors
from tamis.settings import KafkaSettings
from tamis.settings.token_file import TokenFile
from tamis.telemetry import Health, Metrics
from tamis.web.tokens import digest
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.http.api import application
from tamis_registry.http.definitions import trials as http_trials
from tamis_registry.kafka import stream_tuples
from tamis_registry.kafka.newest import Entry, NewestReader
from tamis_registry.proving import trial as trials
from tamis_registry.proving.messages import Needed, NeededStream, Sample, Trial, TrialLimits, Tried
from tamis_registry.proving.pool import provers_of
from tamis_registry.proving.trial import try_out
from tamis_registry.registry_loop import RegistryLoop

BEGIN = 1_700_000_000_000_000
SECOND = 1_000_000
PAIR = """CREATE ALERT pair AS SELECT a.k, a.ts AS t, a.x + s.x AS total FROM air a JOIN surface s
  ON a.k = s.k AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
  WHERE a.x + s.x > 120;"""
MEAN = """CREATE ALERT mean AS SELECT window_end, k, avg(x) AS m FROM TUMBLE(air, ts, INTERVAL '1' MINUTE)
  GROUP BY window_end, k;"""
WIDE = "CREATE STREAM wide (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE, y DOUBLE, WATERMARK FOR ts AS ts);"


def tried(text: str, samples: Any = None, query: str | None = None, rows: int = 1000) -> Any:
    given = None if samples is None else {name: Sample((tuple(some),)) for name, some in samples.items()}
    limits = TrialLimits(10, 2**29, rows)
    return try_out(Trial(text, "a.sql", query, given, None, limits), started(STREAMS).state.catalog)


def readings(seed: int, count: int) -> list[dict[str, Any]]:
    numbers = random.Random(seed)
    times = sorted(BEGIN + numbers.randrange(120) * SECOND for _ in range(count))
    return [{"k": numbers.choice("ab"), "ts": ts, "x": numbers.randrange(101)} for ts in times]


def test_the_rows_are_alarms_of_a_plain_join() -> None:
    """Edges omit readings between others that raise alarms too, so there are fewer rows, of the same keys."""
    air, surface = readings(1, 60), readings(2, 60)
    found = tried(PAIR + MEAN, {"AIR": air, "surface": surface}, "PAIR")
    assert isinstance(found, Tried)
    expected = [
        [a["k"], a["ts"], a["x"] + s["x"]]
        for a in air
        for s in surface
        if a["k"] == s["k"] and abs(a["ts"] - s["ts"]) <= 5 * SECOND and a["x"] + s["x"] > 120
    ]
    rows = orjson.loads(found.rows)
    assert not Counter(map(tuple, rows)) - Counter(map(tuple, expected))
    assert {row[0] for row in rows} == {row[0] for row in expected} == {"a", "b"}
    assert (found.query, found.columns, found.row_count) == ("pair", ("k", "t", "total"), len(rows))
    assert found.times == ("t",)
    assert not found.truncated and found.notices == ()
    one = found.inputs["air"]
    assert (one.rows, one.first, one.last) == (60, air[0]["ts"], air[-1]["ts"]) and one.retained <= 60


def test_aggregates_are_tried_too_and_the_last_query_is_taken() -> None:
    air = [{"k": "a", "ts": BEGIN // (60 * SECOND) * 60 * SECOND + n * SECOND, "x": n * 10} for n in range(4)]
    found = tried(PAIR + MEAN, {"air": [*air, {"k": "a", "ts": air[-1]["ts"], "x": 500}]})
    assert [row[2] for row in orjson.loads(found.rows)] == [15.0]
    assert found.times == ("window_end",)
    assert (found.inputs["air"].rows, found.inputs["air"].refused) == (4, 1)
    assert "500 is outside of CHECK" in found.notices[0] and "samples.air, line 5" in found.notices[0]
    for text in ("EXPLAIN SELECT k, x FROM hot WHERE x > 40;", "EXPLAIN hot;"):
        service = tried(text, {"air": [{**air[0], "x": 50}]})
        assert [row[-1] for row in orjson.loads(service.rows)] == [50.0]


def test_rows_are_limited_by_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    air = [{"k": "a" * n, "ts": BEGIN + n, "x": 50} for n in range(1, 131)]
    text = "CREATE ALERT warm AS SELECT k FROM air WHERE x > 40;"
    found = tried(text, {"air": air}, rows=70)
    assert (len(orjson.loads(found.rows)), found.row_count, found.truncated) == (70, 130, True)
    monkeypatch.setattr(trials, "MOST_BYTES", 500)
    found = tried(text, {"air": air})
    rows = orjson.loads(found.rows)
    assert rows == [["a" * n] for n in range(1, 28)] and found.truncated
    empty = tried(text, {"air": []})
    assert (empty.rows, empty.row_count, empty.inputs["air"].first) == (b"[]", 0, None)


def test_a_query_tells_what_it_needs() -> None:
    found = tried(PAIR)
    read = NeededStream(frozenset({"k", "ts", "x"}), "ts")
    assert found == Needed("pair", {"air": read, "surface": read}, neighbours=False, monotone=True)
    assert not tried(MEAN).monotone
    few = tried(WIDE + "CREATE ALERT few AS SELECT k FROM wide WHERE y > 5;").streams["wide"]
    assert few.columns == {"k", "ts", "y"}
    assert tried("CREATE ALERT n AS SELECT DISTINCT x FROM still WHERE x IN (1, 2);").streams == {
        "still": NeededStream(frozenset({"x"}), None)
    }
    rose = "CREATE ALERT rose AS SELECT k, x FROM air WHERE x - lag(x) OVER (PARTITION BY k ORDER BY ts) > 5;"
    assert tried(rose).neighbours


def test_mistakes_have_their_places() -> None:
    with pytest.raises(SqlErrors, match=r"^a\.sql:1:26: "):
        tried("CREATE ALERT q AS SELECT nothing FROM air;", {"air": []})
    with pytest.raises(InputError, match="no query to try"):
        tried("SHOW ALERTS;")
    with pytest.raises(InputError, match="there is no query 'par'"):
        tried(PAIR, query="par")
    with pytest.raises(InputError, match=r"samples: no recording of stream surface"):
        tried(PAIR, {"air": []})
    with pytest.raises(InputError, match=r"samples.air, line 2, field x: 'hot' is not of type DOUBLE"):
        tried(PAIR, {"air": [readings(1, 1)[0], {**readings(1, 1)[0], "x": "hot"}], "surface": []})
    with pytest.raises(InputError, match=r"samples.water: there is no stream water"):
        tried(PAIR, {"air": [], "surface": [], "water": []})
    loose = "CREATE ALERT loose AS SELECT a.k FROM air a JOIN surface s ON a.k = s.k WHERE a.x + s.x > 5;"
    with pytest.raises(NotAcceptedError):
        tried(loose, {"air": [], "surface": []})


def entry(topic: str, shard: str, offset: int, row: dict[str, Any]) -> Entry[dict[str, Any]]:
    return Entry(topic, 0, offset, BEGIN + offset, {**row, "_": {"shard": shard}})


def test_a_reading_in_several_topics_is_in_the_sample_once() -> None:
    """The oracle counts: a reading is as often in the sample as in the topic that has it most often."""
    for seed in range(40):
        numbers = random.Random(seed)
        entries = [
            entry(
                numbers.choice(("t1", "t2", "t3")),
                numbers.choice(("e/1", "e/2")),
                offset,
                {"k": "a", "ts": numbers.randrange(4), "other": numbers.random()},
            )
            for offset in range(numbers.randrange(30))
        ]
        most: Counter[tuple[str, int]] = Counter()
        for topic in ("t1", "t2", "t3"):
            most |= Counter((e.value["_"]["shard"], e.value["ts"]) for e in entries if e.topic == topic)
        names = {"t1": {"k": "k", "ts": "ts"}, "t2": {"k": "k", "ts": "ts", "x": "other"}}
        names["t3"] = names["t1"]
        sample = stream_tuples.sample_of(entries, names, NeededStream(frozenset({"k", "ts"}), "ts"))
        found = sorted(sorted(row["ts"] for row in part) for part in sample.parts)
        shards = {shard for shard, _ in most}
        assert found == sorted(sorted(ts for one, ts in most.elements() if one == shard) for shard in shards)
        for part in sample.parts:
            assert [row["ts"] for row in part] == sorted(row["ts"] for row in part)
            assert all(set(row) == {"k", "ts"} for row in part)


def test_values_that_no_edge_writes_are_not_in_the_sample() -> None:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    entries = [entry("t", "e/1", n, {"x": x}) for n, x in enumerate((1, deep, {"a": 1}, None, "y"))]
    sample = stream_tuples.sample_of(entries, {"t": {"v": "x"}}, NeededStream(frozenset({"v"}), None))
    assert [row["v"] for row in sample.parts[0]] == [1, None, "y"]


def test_readings_without_event_time_keep_kafka_s_order() -> None:
    entries = [entry("t", "e/1", n, {"x": 9 - n}) for n in range(3)]
    sample = stream_tuples.sample_of(entries, {"t": {"v": "x"}}, NeededStream(frozenset({"v"}), None))
    assert sample.parts == (tuple({"v": 9 - n, "_order": BEGIN + n} for n in range(3)),)


def test_a_stream_needs_a_topic_with_the_columns() -> None:
    """Each refusal comes before Kafka is asked, which isn't there."""
    registry = started(STREAMS + WIDE + "CREATE ALERT warm AS SELECT k FROM wide WHERE x > 40;")
    plan, reader = registry.plan, NewestReader(KafkaSettings())
    with pytest.raises(RefusedError, match="no topic of stream wide has y, since no query in service reads"):
        stream_tuples.recent_sample(reader, plan, "wide", NeededStream(frozenset({"k", "ts", "y"}), "ts"))
    with pytest.raises(RefusedError, match="stream surface has no topic, since no query reads it"):
        stream_tuples.recent_sample(reader, plan, "surface", NeededStream(frozenset({"ts"}), "ts"))


TEXTS = {"grafana": "tamis_reader", "ci": "tamis_writer"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """The API with tokens, and with a prover that is not started."""
    file = Path(tmp_path_factory.mktemp("tokens")) / "tokens.yaml"
    lines = [
        f"  - {{name: {name}, sha256: {digest(text)}, role: {'writer' if name == 'ci' else 'reader'}}}"
        for name, text in TEXTS.items()
    ]
    file.write_text("\n".join(["tokens:", *lines, ""]))
    metrics, health = Metrics("registry"), Health()
    worker = RegistryLoop(KafkaSettings(), 2, PLANNER, metrics, health)
    tokens = TokenFile(file)
    app = application(worker, provers_of(NO_ACCESS, 1), metrics, health, tokens=tokens)
    return TestClient(app, base_url="http://localhost")


@pytest.mark.parametrize("name", TEXTS)
def test_readings_of_topics_need_a_right_of_their_own(client: TestClient, name: str) -> None:
    headers = {"authorization": f"Bearer {TEXTS[name]}"}
    for answer in (
        client.post("/v1/try", content=PAIR, headers=headers),
        client.post("/v1/try", json={"sql": PAIR}, headers=headers),
    ):
        assert answer.status_code == 403
        assert "readings: true" in answer.json()["detail"] and name in answer.json()["detail"]
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "dictionary"),
        (b'{"samples": {}}', "Field required"),
        (b'{"sql": 5}', "valid string"),
        (b'{"sql": "", "samples": {"air": [5]}}', "dictionary"),
        (b'{"sql": "", "samples": {"air": [{"k": []}]}}', "valid"),
        (
            b'{"sql": "", "samples": {"air": [' + b"[]," * 300_000 + b"{}]}}",
            "arrays and objects; the limit is 20000",
        ),
        (b'{"sql": "", "samples": ' + b"[" * 200 + b"]" * 200 + b"}", "nested more than 100 levels"),
        (b'{"sql": NaN}', "valid string"),
        (b'{"sql": "", "time_unit": "days", "samples": {}}', "'ms'"),
        (orjson.dumps({"sql": "", "samples": {"air": [{}] * 10_001}}), "at most 10000"),
    ],
)
def test_wrong_bodies_are_refused(client: TestClient, body: bytes, said: str) -> None:
    headers = {"authorization": f"Bearer {TEXTS['grafana']}", "content-type": "application/json"}
    answer = client.post("/v1/try", content=body, headers=headers)
    assert answer.status_code == 400 and said in answer.json()["detail"], answer.text


def test_a_number_that_is_not_finite_does_not_take_other_readings_with_it() -> None:
    sent = readings(1, 30)
    found = tried(PAIR, {"air": [sent[0] | {"x": math.nan}, *sent[1:]], "surface": readings(2, 30)})
    assert isinstance(found, Tried)
    assert (found.inputs["air"].rows, found.inputs["air"].refused) == (29, 1)


def test_the_answer_is_of_its_type() -> None:
    found = tried(PAIR, {"air": readings(1, 30), "surface": readings(2, 30)})
    document = http_trials._answer(found, "sent", {"air": True, "surface": True}, "note").body
    Made().check("/v1/try", orjson.loads(document), "post")
    body = described()["paths"]["/v1/try"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/sql", "text/plain", "application/json"}
