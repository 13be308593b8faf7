"""Formats of stream topics: schemas are registered before a plan is written, and alarms are those of JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.in_process_fleet import InProcessFleet, InProcessRegistry

from tamis.errors import RefusedError, SqlErrors, UnavailableError
from tamis.messaging.records import Ack
from tamis.messaging.schemas.tuple_decoding import decode
from tamis.messaging.schemas.tuple_schema import layout
from tamis.messaging.schemas.wire_format import Format, Kind, schema_of
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.model import Plan
from tamis_registry.core.leases import new_lease
from tamis_registry.core.plan.planner import PLANNER
from tamis_registry.core.registry import Registry
from tamis_registry.core.state.records import records, recover
from tamis_registry.http.documents.leases import lease_document

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND


class Schemas:
    """Gives numbers to schemas; while `away`, it doesn't answer."""

    def __init__(self) -> None:
        self.away = False
        self.subjects: dict[str, list[tuple[Kind, str]]] = {}
        self.known: list[tuple[Kind, str]] = []
        self.asked = 0

    def register(self, subject: str, kind: Kind, text: str) -> int:
        self.asked += 1
        if self.away:
            raise UnavailableError("no usable answer", where="schema registry")
        self.subjects.setdefault(subject, []).append((kind, text))
        if (kind, text) not in self.known:
            self.known.append((kind, text))
        return self.known.index((kind, text)) + 1


def sql(form: str) -> str:
    given = f", value_format = '{form}'" if form else ""
    return f"""
    CREATE STREAM air (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN -100 AND 100), note VARCHAR,
      n BIGINT, ok BOOLEAN, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (keys = 10{given});
    CREATE STREAM water (k VARCHAR KEY, ts TIMESTAMP, x DOUBLE CHECK (x BETWEEN -100 AND 100),
      WATERMARK FOR ts AS ts) WITH (keys = 10{given});
    CREATE STREAM bare (k VARCHAR KEY, v INT) WITH (keys = 10{given});
    CREATE ALERT pairs AS SELECT a.k, a.ts, w.ts AS wts, a.x - w.x AS d, a.note, a.n, a.ok
      FROM air a JOIN water w
      ON a.k = w.k AND w.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
      WHERE a.x - w.x > 1;
    CREATE ALERT minutes AS SELECT k, window_end, count(*) AS c, max(x) AS top
      FROM TUMBLE(air, ts, INTERVAL '10' SECOND) GROUP BY k, window_end HAVING count(*) > 1;
    CREATE ALERT totals WITH (allow_unbounded = true) AS
      SELECT k, sum(v) AS s FROM bare GROUP BY k HAVING sum(v) > 3;
    """


def readings() -> dict[str, list[dict[str, Any]]]:
    """Values at which formats could differ: NULL, -0.0, one third, texts beyond ASCII, late tuples."""
    third = 1 / 3
    air = [
        {
            "k": k,
            "ts": NOW + i * SECOND + i,
            "x": x,
            "note": note,
            "n": n,
            "ok": i % 2 == 0 if i % 3 else None,
        }
        for i, (k, x, note, n) in enumerate(
            [
                ("a", 2.5, "größe\n", 2**62),
                ("b", third + 5, None, None),
                ("a", -0.0, "", -1),
                ("a", 7, "x", 0),
                (None, 9.5, "nobody", 1),
                ("b", 99.999999999999, '"', 2**53 + 1),
            ]
            * 3
        )
    ]
    air.append({**air[0], "x": 4.25})  # late
    water = [
        {"k": k, "ts": NOW + i * SECOND, "x": x}
        for i, (k, x) in enumerate([("a", third), ("b", 0.1), ("a", None), ("b", -0.0)] * 4)
    ]
    return {"air": air, "water": water, "bare": [{"k": "a", "v": i} for i in range(5)]}


def run(form: str) -> tuple[InProcessFleet, InProcessRegistry, Schemas]:
    schemas = Schemas()
    registry = InProcessRegistry(sql(form), NOW, replace(PLANNER, register=schemas.register))
    registry.list_shards(["air", "water", "bare"], NOW)
    fleet = InProcessFleet(decode_plan(encode_plan(registry.plan)))
    now = NOW
    found = readings()
    for start in range(0, 20, 5):
        for stream, rows in found.items():
            if rows[start : start + 5]:
                now += SECOND
                fleet.send(stream, rows[start : start + 5], now)
    for stream in found:
        fleet.run(stream, now).finish()
        fleet.settle(stream, now)
    return fleet, registry, schemas


@pytest.fixture(scope="module")
def in_json() -> InProcessFleet:
    return run("")[0]


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_alarms_are_those_of_json(form: Format, in_json: InProcessFleet) -> None:
    fleet, registry, _ = run(form)
    assert {name: len(ids) for name, ids in in_json.alarms.items()}.keys() == {"pairs", "minutes", "totals"}
    assert fleet.alarms == in_json.alarms
    assert not fleet.dead
    plan = registry.plan
    topics = {topic.name: (stream, topic) for stream in plan.streams for topic in stream.topics}
    published, plain = (
        [(topic, value) for topic, value in one.published if topic.startswith("tamis.stream")]
        for one in (fleet, in_json)
    )
    assert len(published) == len(plain)
    for (topic, value), (same, text) in zip(published, plain, strict=True):
        stream, of = topics[topic]
        assert topic == same
        if of.partials is not None:
            assert value.startswith(b"{") and json.loads(value).keys() == json.loads(text).keys()
            continue
        assert schema_of(value) == of.schema
        document, expected = decode(value, layout(stream, of)), json.loads(text)
        assert document.pop("_") == expected.pop("_")
        assert {name: document[name] for name in expected} == expected
        assert all(document[name] is None for name in document.keys() - expected.keys())


def test_each_topic_has_its_subject_and_the_same_schema_for_ever() -> None:
    _, registry, schemas = run("avro")
    assert set(schemas.subjects) == {f"tamis.stream.{name}.1-value" for name in ("air", "water", "bare")}
    asked = schemas.asked
    core = registry.registry
    change = core.apply("CREATE ALERT more AS SELECT k FROM air WHERE n > 5 AND note = 'x'", NOW)[1]
    core.done(change, NOW)
    assert schemas.asked == asked
    air = core.plan.stream("air")
    assert air is not None and air.value_format == "avro"
    schema = core.state.schemas["tamis.stream.air.1"].schema.number
    assert {topic.schema for topic in air.topics} == {schema, None}  # partial aggregates are JSON


def test_a_restart_needs_no_schema_registry() -> None:
    _, registry, schemas = run("protobuf")
    before = recover(records(registry.registry.state))
    assert before is not None and before.schemas == registry.registry.state.schemas
    schemas.away = True
    planner = replace(PLANNER, register=schemas.register)
    again = Registry(planner, before.draft(), before, registry.plan.version, NOW)
    change = again.begin(NOW)
    assert change.plan is not None
    assert replace(change.plan, version=0) == replace(registry.plan, version=0)
    without = Registry(PLANNER, before.draft(), before, registry.plan.version, NOW)
    assert without.begin(NOW).plan is not None


def test_without_an_answer_nothing_is_written() -> None:
    schemas = Schemas()
    schemas.away = True
    registry = InProcessRegistry("", NOW, replace(PLANNER, register=schemas.register)).registry
    with pytest.raises(UnavailableError):
        registry.apply(sql("avro"), NOW)
    assert not registry.state.statements
    schemas.away = False
    assert registry.apply(sql("avro"), NOW)[1].plan is not None


def test_what_a_format_cant_have_is_refused_at_once() -> None:
    registry = InProcessRegistry("", NOW, replace(PLANNER, register=Schemas().register)).registry
    odd = "CREATE STREAM s (k VARCHAR KEY, \"a b\" DOUBLE) WITH (value_format = 'avro')"
    with pytest.raises(RefusedError, match="can't have the name 'a b'"):
        registry.apply(odd, NOW)
    base = "CREATE STREAM s (k VARCHAR KEY, x DOUBLE) WITH (value_format = 'AVRO');"
    with pytest.raises(RefusedError, match=r"topic tamis.stream.d.01: .*can't have the name"):
        registry.apply(base + "CREATE STREAM d AS SELECT k, x + 1 FROM s", NOW)
    with pytest.raises(SqlErrors, match="isn't a format of values"):
        registry.apply(base.replace("AVRO", "xml"), NOW)
    none = InProcessRegistry("", NOW).registry
    with pytest.raises(RefusedError, match="needs a schema registry, and none is configured"):
        none.apply(base, NOW)


def test_a_derived_stream_has_the_schema_of_its_select_and_a_new_one_where_it_is_made_anew() -> None:
    schemas = Schemas()
    registry = InProcessRegistry("", NOW, replace(PLANNER, register=schemas.register)).registry
    base = "CREATE STREAM s (k VARCHAR KEY, x DOUBLE, n INT) WITH (value_format = 'avro');"

    def apply(text: str) -> int | None:
        registry.done(registry.apply(text, NOW)[1], NOW)
        stream = registry.plan.stream("s")
        assert stream is not None
        return stream.topics[0].schema if stream.topics else None

    first = apply(base + "CREATE STREAM d AS SELECT k, x FROM s")
    ((_, text),) = schemas.subjects["tamis.stream.d.01-value"]
    assert [field["name"] for field in json.loads(text)["fields"]] == ["_", "k", "x"]
    assert json.loads(text)["name"] == "d"
    apply("DROP STREAM d")
    second = apply("CREATE STREAM d AS SELECT k, n FROM s")
    assert None not in (first, second) and first != second
    assert apply("DROP STREAM d; CREATE STREAM d AS SELECT k, x FROM s") == first


def test_a_time_that_begins_anew_waits_for_the_schema_registry_and_nothing_else_does() -> None:
    schemas = Schemas()
    text = (
        "CREATE STREAM s (k VARCHAR KEY, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (value_format = 'avro');"
    )
    text += "CREATE ALERT q AS SELECT k FROM s WHERE k > 'a'"
    service = InProcessRegistry(text, NOW, replace(PLANNER, register=schemas.register))
    service.list_shards("s", NOW)
    far = NOW + 10**6 * SECOND
    plan = service.plan
    ack = Ack("s:e/http", "s", "e", plan.version, NOW, "active", NOW, reached=far)
    service.registry.hear(ack, NOW)
    service.registry.hear(Ack("s:f/http", "s", "f", plan.version, 0, "waiting", NOW), NOW)
    schemas.away = True
    change = service.tick(NOW)
    assert change is not None and not change.anew
    assert "s:f/http" in service.plan.since
    assert service.tick(NOW) is None
    schemas.away = False
    change = service.tick(NOW)
    assert change is not None and change.anew == ("s",)
    assert set(schemas.subjects) == {"tamis.stream.s.1-value", "tamis.stream.s.2-value"}


def taken_late(form: str) -> dict[str, set[str]]:
    """The alarms of a joiner that gets all records before its first plan."""
    sent, registry, _ = run(form)
    late = InProcessFleet(Plan(1, 1))
    for topic, value in sent.published:
        if topic.startswith("tamis.stream"):
            late._join(topic, [value], NOW)
    assert not late.alarms
    late._join(PLANS, [encode_plan(registry.plan)], NOW)
    assert not late.dead
    return late.alarms


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_records_wait_for_the_plan_that_has_their_topic(form: Format) -> None:
    """Without a plan the joiner knows no topic: only the envelopes of records can be read."""
    found = taken_late(form)
    assert found and found == taken_late("")


def test_a_lease_says_the_format_of_its_topic() -> None:
    schemas = Schemas()
    registry = InProcessRegistry(sql("avro"), NOW, replace(PLANNER, register=schemas.register)).registry
    lease, change = registry.subscribe(new_lease("air", "x < -5", "report", 60, registry.state.catalog), NOW)
    registry.done(change, NOW)
    document = lease_document(registry.view(NOW), lease)
    assert document["value_format"] == "avro"
    assert f"{document['topic']}-value" in schemas.subjects
