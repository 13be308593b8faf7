"""The calculator's figures beside simulated and real state, and beside the records that an edge makes."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from tests.fixtures.dict_state import DictState
from tests.stream_records import progress_record

from tamis.declarations.definitions import Rate
from tamis.declarations.units import parse_rate
from tamis.messaging.records import Frontier, progress_envelope
from tamis.messaging.schemas.tuple_encoding import encode_alone
from tamis.messaging.schemas.tuple_schema import ValueSchema
from tamis.messaging.schemas.wire_format import Format
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis.recordings.typed import read_recording
from tamis.sizing.estimate import Sizing, estimate
from tamis.sizing.figures import Figure, UnitCosts, unit_costs
from tamis.sizing.fleet import Operation
from tamis.sizing.load import Given, load_of
from tamis.sizing.records import progress_bytes, reading_bytes, tuple_bytes, unfiltered_bytes
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

SECOND = 1_000_000
# Of the simulation: few tuples would take mostly what each part of the state takes.
KEYS, RATE = 100, 10
DEMO = Path(__file__).resolve().parents[3] / "demo" / "first"

STREAM = """
CREATE STREAM {0} (station VARCHAR KEY, ts TIMESTAMP, v DOUBLE CHECK (v BETWEEN -100 AND 100),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH (keys = 20, rate = '2/s', max_stall = '10 seconds', max_ahead = '1 second');
"""
# Without omission, and with a threshold that the tuples of `row` pass alone (v beyond 99) but not together.
SQL = f"""{STREAM.format("a")}{STREAM.format("b")}
CREATE ALERT q WITH (max_delay = '0 seconds') AS SELECT a.v, b.v AS other FROM a JOIN b
  ON a.station = b.station AND b.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE a.v - b.v > 199;
"""
BUSY = SQL.replace("keys = 20, rate = '2/s'", f"keys = {KEYS}, rate = '{RATE}/s'")


def sized(sql: str, given: Mapping[str, Given] | None = None, operation: Operation | None = None) -> Sizing:
    catalog = catalog_of(sql)
    known = given or {}
    loads = {name: load_of(one, known.get(name, Given())) for name, one in catalog.streams.items()}
    return estimate(catalog, loads, operation or Operation(), unit_costs())


def figures(sizing: Sizing, part: str, name: str | None = None) -> Mapping[str, Figure]:
    return next(one.figures for one in sizing.parts if (one.title, one.name) == (part, name))


def seconds(silent: range) -> Iterator[tuple[list[int], list[int]]]:
    """Event times of both streams in each of 40 seconds; the second stream is silent in some of them and then
    sends everything at once.
    """
    chance, held = random.Random(5), list[int]()
    for second in range(40):
        both = [
            sorted(second * SECOND + chance.randrange(SECOND) for _ in range(KEYS * RATE)) for _ in range(2)
        ]
        held += both[1]
        sent = [] if second in silent else sorted(held)
        held = held if second in silent else []
        yield both[0], sent


@pytest.mark.parametrize(("silent", "name"), [(range(0), "tuples"), (range(20, 29), "tuples in a stall")])
def test_live_tuples_are_those_of_a_simulation_and_of_the_joiner(silent: range, name: str) -> None:
    state = figures(sized(BUSY), "state of topic", "tamis.stream.a.1")
    expected, bound = state[name].value, state["bound"].value
    simulated, joined, size = live(silent)
    assert max(simulated) <= bound
    # A batch of a second is taken in before anything is removed.
    assert max(joined) <= bound
    assert 0.8 * expected <= max(simulated) <= 1.15 * expected
    assert 0.8 * expected <= max(joined) <= 1.15 * expected + KEYS * RATE
    bytes_ = state["state"].value / state["tuples in a stall"].value
    assert size == pytest.approx(bytes_, rel=0.5), "bytes of a tuple in the state"


def live(silent: range) -> tuple[list[int], list[int], float]:
    """Live tuples of the first stream by simulation and in a group of the joiner, and bytes of one there."""
    plan = first_plan(catalog_of(BUSY), shards={"a": "a", "b": "b"})
    state = DictState()
    group = Group.load(0, 1, state)
    simulated, joined, size = [], [], 0.0
    kept: list[int] = []
    marks = {"a": -SECOND, "b": -SECOND}
    pending = [records(PLANS, [encode_plan(plan)], 0)]
    for number, both in enumerate(seconds(silent)):
        for stream, times in zip("ab", both, strict=True):
            marks[stream] = max([marks[stream], *(time - 2 * SECOND for time in times)])
            values = [row(stream, at, time) for at, time in enumerate(times)]
            progress = [progress_record(stream, 1, 0, max(0, marks[stream]))]
            pending.append(records(f"tamis.stream.{stream}.1", values + progress, number))
        kept = [time for time in [*kept, *both[0]] if time + 5 * SECOND >= marks["b"]]
        simulated.append(len(kept))
        group = Group.load(0, 1, state, group)
        out = group.process(*split_plans(pending), state, now=number, token=str(number))
        pending = []
        assert out.frontier is not None
        found = Frontier.from_bytes(out.frontier).topics["tamis.stream.a.1"]
        joined.append(found.tuples)
        if found.tuples == max(joined):
            size = found.bytes / found.tuples
    return simulated, joined, size


def row(stream: str, at: int, time: int) -> bytes:
    envelope = b'"_":{"shard":"%s","plan":1,"activation":0}' % stream.encode()
    value = (99.05 + at % 40 * 0.01) * (1 if stream == "a" else -1)
    return b'{"station":"s%d","ts":%d,"v":%.2f,%s}' % (at % KEYS, time, value, envelope)


def records(topic: str, values: list[bytes], number: int) -> Records:
    rows = np.arange(len(values))
    return Records(topic, 0, values, rows, np.full(len(values), number))


@pytest.mark.parametrize("form", ["json", "avro", "protobuf"])
def test_bytes_of_a_tuple_are_those_of_an_edge(form: Format) -> None:
    catalog = catalog_of((DEMO / "alerts.sql").read_text())
    streams = {name: replace(one, value_format=form) for name, one in catalog.streams.items()}
    catalog = replace(catalog, streams=streams)
    air = catalog.streams["air"]
    recording = read_recording(air, [str(DEMO / "air.csv")])
    load = load_of(air, Given(recording=recording))
    shard = "air:edge-00/source"
    plan = first_plan(catalog, shards={shard: "air", "surface": "surface"})
    planned = plan.stream("air")
    assert planned is not None
    (topic,) = planned.topics
    if form != "json":
        # As a schema registry numbers them.
        registered = replace(planned, topics=(replace(topic, schema=77),))
        plan = replace(plan, streams=tuple(registered if one is planned else one for one in plan.streams))
    run = ShardRun(shard, "air", Commit(version=1, activation=1_700_000_000_000_000), plan)
    times = recording.columns["ts"].data
    run.take(Batch(recording.columns, times, np.arange(len(times)), times), 0)
    run.finish()
    sizes = [len(record.value) + len(record.key or b"") for record in run.out]
    assert sizes
    found = tuple_bytes(load, planned, topic, 1)
    assert found.value == pytest.approx(mean(sizes), rel=0.02)
    assert found.source.startswith({"json": "JSON", "avro": "Avro", "protobuf": "Protobuf"}[form])
    envelope = progress_envelope(shard, 1, 1_760_000_000_000_000, 1_760_000_000_000_000)
    schema = None if form == "json" else ValueSchema(form, 77, len(planned.columns))
    assert progress_bytes(planned, topic, 1) == len(encode_alone(schema, envelope))
    assert all((record.value[:1] == b"{") == (form == "json") for record in run.out)
    # The estimate of the whole fleet uses these figures.
    loads = {"air": load, "surface": load_of(catalog.streams["surface"], Given(rate=Rate(1, SECOND)))}
    parts = estimate(catalog, loads, Operation(partitions=2), unit_costs()).parts
    figures = next(part.figures for part in parts if (part.title, part.name) == ("topic", topic.name))
    assert figures["record"].value == found.value
    whole = unfiltered_bytes(load, planned).value
    assert whole == reading_bytes(load).value if form == "json" else whole < 0.7 * reading_bytes(load).value
    extra = figures["traffic without Tamis"].value / load.rate.value - whole
    assert 0 < extra < 150


def test_retained_share_is_measured_by_a_recording() -> None:
    sql = (DEMO / "alerts.sql").read_text()
    catalog = catalog_of(sql)
    given = {
        name: Given(recording=read_recording(catalog.streams[name], [str(DEMO / f"{name}.csv")]))
        for name in ("air", "surface")
    }
    found = sized(sql, given)
    topic = figures(found, "topic", "tamis.stream.air.1")
    assert topic["retained"].basis == "measured" and 0 < topic["retained"].value < 1
    assert figures(found, "topic", "tamis.alarms")["alarms"].basis == "measured"
    worst = figures(sized(sql), "topic", "tamis.stream.air.1")["retained"]
    assert (worst.value, worst.basis) == (1.0, "assumed")


def test_each_tuple_of_a_group_without_windows_is_an_alarm() -> None:
    alert = "CREATE ALERT g AS SELECT station, {} FROM {} GROUP BY station{};"
    counted = STREAM.format("a") + alert.format("count(*) AS n", "a", "")
    of_minutes = STREAM.format("a") + alert.format(
        "window_end", "TUMBLE(a, ts, INTERVAL '1' MINUTE)", ", window_end"
    )
    alarms = [figures(sized(one), "topic", "tamis.alarms")["alarms"].value for one in (counted, of_minutes)]
    assert alarms[0] >= 40
    assert alarms[1] < 1


def test_disk_and_traffic_grow_with_retention_replication_outage_and_rate() -> None:
    small = sized(SQL, {"a": Given(Rate(40, SECOND))}, Operation())
    large = sized(
        SQL,
        {"a": Given(Rate(4_000, SECOND))},
        Operation(retention=2 * 86_400 * SECOND, replication=6, outage=3600 * SECOND),
    )
    topic, grown = (figures(one, "topic", "tamis.stream.a.1") for one in (small, large))
    ratio = grown["traffic"].value / topic["traffic"].value
    # Progress doesn't grow with the rate, and larger batches save overhead.
    assert 30 < ratio <= 100
    assert grown["disk"].value / topic["disk"].value == pytest.approx(4 * ratio)
    spools = [figures(one, "edge")["spool"].value for one in (small, large)]
    assert 2 * 40 < spools[1] / spools[0] <= 2 * 100
    # The bound holds for what is declared; more than that is said.
    assert figures(large, "state of topic", "tamis.stream.a.1")["bound"].value == pytest.approx(
        figures(small, "state of topic", "tamis.stream.a.1")["bound"].value
    )
    assert any("are more than keys x rate declare" in note for note in large.notes)
    assert not small.notes


def test_cores_and_partitions_grow_with_the_published_tuples() -> None:
    many = sized(SQL, {"a": Given(Rate(300_000, SECOND)), "b": Given(Rate(300_000, SECOND))})
    cores = figures(many, "joiner")["cores"].value
    assert cores == np.ceil(600_000 * unit_costs()["joiner_cpu_us_per_tuple"] / 1e6 / 0.5)
    assert figures(many, "Kafka")["partitions"].value >= 2 * cores
    assert figures(sized(SQL), "Kafka")["partitions"].value == 4


def test_queries_that_count_are_sized_by_the_bound_of_their_synopses() -> None:
    found = sized(
        "CREATE STREAM s (k INT CHECK (k BETWEEN 1 AND 50) KEY, v BIGINT) WITH (keys = 50, rate = '1/s');"
        "CREATE ALERT q AS SELECT k, count(*) AS n FROM s GROUP BY k;"
    )
    state = figures(found, "state of query", "q")
    assert state["bound"].basis == "proven" and 50 <= state["bound"].value <= 100
    assert state["state"].value == state["bound"].value * unit_costs()["synopsis_bytes_per_entry"]


def test_state_of_a_join_has_a_size_without_the_number_of_keys() -> None:
    rate = {"rate": Given(rate=parse_rate("200/s")), "keys": Given(rate=parse_rate("200/s"), keys=20)}
    sql = re.sub(r"\s+WITH \(keys.*?\)", "", SQL)
    without, known = (sized(sql, {"a": rate[one], "b": rate[one]}) for one in rate)
    topic = "tamis.stream.a.1"
    state = figures(without, "state of topic", topic)
    assert "bound" not in state and any("its state has no proven number" in one for one in without.notes)
    for name in ("tuples", "tuples in a stall", "state"):
        assert state[name].value == figures(known, "state of topic", topic)[name].value > 0


def test_unbounded_state_is_not_called_zero() -> None:
    found = sized(
        "CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);"
        "CREATE ALERT q WITH (allow_unbounded = true) AS"
        " SELECT a.ts FROM a JOIN b ON a.k = b.k WHERE a.v - b.v > 5;",
        {name: Given(rate=parse_rate("5/s")) for name in "ab"},
    )
    assert figures(found, "state of topic", "tamis.stream.a.1") == {}
    assert any("its state has no proven number" in one for one in found.notes)


def test_every_unit_cost_is_used_and_has_its_origin() -> None:
    used: set[str] = set()

    class Watched(UnitCosts):
        def __getitem__(self, name: str) -> float:
            used.add(name)
            return super().__getitem__(name)

    costs = unit_costs()
    catalog = catalog_of(SQL)
    loads = {name: load_of(one, Given()) for name, one in catalog.streams.items()}
    estimate(catalog, loads, Operation(), Watched(costs.machine, costs.costs))
    assert used | {"synopsis_bytes_per_entry"} == costs.costs.keys()
    assert all(one.value > 0 and one.how for one in costs.costs.values())
    assert "cores" in costs.machine


def test_undeclared_keys_and_rates_give_numbers_that_prove_nothing() -> None:
    undeclared = """
    CREATE STREAM {0} (station VARCHAR KEY, ts TIMESTAMP, v DOUBLE,
      WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH (max_ahead = 'unlimited', max_stall = '10 seconds');
    """
    sql = undeclared.format("a") + undeclared.format("b") + SQL[SQL.index("CREATE ALERT") :]
    rates = {"a": Given(Rate(3, 60 * SECOND)), "b": Given(Rate(3, 60 * SECOND))}
    found = sized(sql, rates)
    state = figures(found, "state of topic", "tamis.stream.a.1")
    assert "bound" not in state
    assert state["tuples in a stall"].value == pytest.approx((5 + 2 + 10) / 20)
    assert any("tamis.stream.a.1: its state has no proven number" in note for note in found.notes)


def test_topics_of_outside_readers_cost_the_joiner_nothing() -> None:
    derived = f"{STREAM.format('a')} CREATE STREAM hot AS SELECT station, v FROM a WHERE v > 30;"
    found = sized(derived, {"a": Given(Rate(10_000_000, SECOND))})
    assert figures(found, "topic", "tamis.stream.hot.01")["published"].value == 10_000_000
    assert figures(found, "joiner")["cores"].value == 1
    assert not [part for part in found.parts if part.title == "state of topic"]


def test_the_joiner_reads_the_topics_of_derived_streams_that_may_serve_alerts() -> None:
    derived = f"{STREAM.format('a')} CREATE STREAM hot AS SELECT station, ts, v FROM a WHERE v > 30;"
    found = sized(derived, {"a": Given(Rate(1_000_000, SECOND))})
    assert figures(found, "topic", "tamis.stream.hot.1")["published"].value == 1_000_000
    assert figures(found, "joiner")["cores"].value > 1
    assert not [part for part in found.parts if part.title == "state of topic"]
