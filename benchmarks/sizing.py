"""Unit costs of the sizing calculator (`tamis size`): bytes, memory and CPU time for one tuple.

A full run stores them in the package, with the machine on which they were measured.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
import orjson
import psutil
from confluent_kafka import Producer
from numpy.typing import NDArray
from tests.fixtures.dict_state import DictState
from tests.stream_records import progress_record

from benchmarks import alerts, edge, joiner
from benchmarks.harness import Cell, Result, Say, machine
from benchmarks.kafka import PARTITIONS, Topics
from benchmarks.readings import SECOND, station
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.local.fleet import EdgeSpec, Fleet, FleetSpec
from tamis.messaging.records import Frontier
from tamis.messaging.topic_reader import TopicReader
from tamis.messaging.topics import PLANS, stream_topic
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.planning.physical.lowering import standing_evaluator
from tamis.query.parse import catalog_of
from tamis.settings import KafkaSettings
from tamis.sizing.figures import FILE, UnitCost, written
from tamis_edge.core.commit import Commit
from tamis_edge.core.records import Record
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.storage.journal import Journal
from tamis_edge.storage.spool import Spool
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

NAME = "sizing"
KEYS = 1_000
T = TypeVar("T")
MB = 1_000_000
SETTLE_SECONDS = 5.0
# A fleet that has not raised the alarms of its readings by then hangs.
PATIENCE = 120.0

STREAM = """
CREATE STREAM {name} (
  station VARCHAR KEY, ts TIMESTAMP{columns}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH (keys = {keys}, rate = '100/s', max_stall = '1 hour');
"""
# A tuple is kept for an hour, so that all tuples of the measurement are live.
JOIN = """
CREATE ALERT q AS SELECT {select} FROM a JOIN b ON a.station = b.station
  AND b.ts BETWEEN a.ts - INTERVAL '30' MINUTE AND a.ts + INTERVAL '30' MINUTE
WHERE a.c0 - b.c0 > {threshold};
"""


def run(quick: bool, say: Say) -> Result:
    """Measure. A quick run shows that it works: its CPU times are too high, and it stores nothing."""
    tuples = 20_000 if quick else 400_000
    costs: list[UnitCost] = []
    say(f"joiner's state of {tuples:,} tuples")
    narrow, wide = _alone(_state, tuples, 1), _alone(_state, tuples, 5)
    columns = (wide[0] - narrow[0]) / 4
    costs += [
        UnitCost(
            "joiner_state_bytes_per_tuple",
            narrow[0] - columns,
            "B",
            "checkpoint state without DOUBLE columns",
        ),
        UnitCost(
            "joiner_state_bytes_per_column", columns, "B", "checkpoint state of a further DOUBLE column"
        ),
        UnitCost(
            "joiner_memory_per_state_byte",
            max(narrow[1], wide[1]),
            "B",
            "resident memory of a Python worker for a byte of state",
        ),
        UnitCost("synopsis_bytes_per_entry", _synopsis(), "B", "saved state of a query that counts"),
    ]
    say("edge's held tuples, journal and spool")
    costs += [
        UnitCost("edge_memory_bytes_per_held_tuple", _alone(_held, tuples // 4), "B", "resident memory"),
        UnitCost(
            "edge_memory_bytes_per_key",
            _alone(_key, tuples // 4),
            "B",
            "resident memory for a key of a stream",
        ),
        *_disk(tuples // 10),
    ]
    say("the memory of a fleet at rest, and its bytes in Kafka")
    costs += _fleet(30 if quick else 120)
    for module, cost, row, how in (
        (edge, "edge_cpu_us_per_reading", "edge, every tuple that passes the predicate", "tuple"),
        (joiner, "joiner_cpu_us_per_tuple", "joiner", "row"),
        (alerts, "alerts_cpu_us_per_alarm", None, "alarm"),
    ):
        found = module.run(quick, lambda text, name=module.NAME: say(f"{name}: {text}"))
        costs.append(UnitCost(cost, _cpu(found, row, how), "us", f"benchmark {module.NAME}, Kafka to Kafka"))
        if module is edge:
            costs.append(UnitCost("edge_memory_mb", _loaded(found), "MB", "benchmark edge, under load"))
    facts = machine()

    def publish() -> None:
        FILE.write_bytes(written(costs, facts))

    rows: list[dict[str, Cell]] = [
        {"cost": one.name, "value": round(one.value, 3), "unit": one.unit, "measured as": one.how}
        for one in costs
    ]
    return Result(
        NAME,
        "Unit costs of tamis size",
        ("cost", "value", "unit", "measured as"),
        rows,
        {"tuples": tuples, "quick": quick},
        ("memory is the resident memory of processes; a MB is 10^6 bytes",),
        publish=publish,
    )


def _alone(measure: Callable[..., T], *arguments: int) -> T:
    """The result of a function in a process of its own, whose memory nothing else has used."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


def _cpu(result: Result, row: str | None, what: str) -> float:
    """The greatest CPU time in a benchmark's rows, or in one of them."""
    name = next(one for one in result.columns if one.startswith("CPU") and what in one)
    found = [one[name] for one in result.rows if one.get(name) is not None and row in (None, one["what"])]
    return max(float(value) for value in found if value is not None)


def _loaded(result: Result) -> float:
    """The greatest memory of an edge under load."""
    return max(float(row["MB under load"] or 0) for row in result.rows if row.get("MB under load"))


def _resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def _plan(columns: int, threshold: float = 1e9) -> Plan:
    doubles = "".join(f", c{number} DOUBLE" for number in range(columns))
    sql = "".join(STREAM.format(name=name, columns=doubles, keys=KEYS) for name in "ab")
    select = ", ".join(f"a.c{number} AS x{number}, b.c{number} AS y{number}" for number in range(columns))
    alert = JOIN.format(select=select, threshold=threshold).replace(
        "CREATE ALERT q AS", "CREATE ALERT q WITH (max_delay = '0 seconds') AS"
    )
    return first_plan(catalog_of(sql + alert), shards={"a": "a", "b": "b"})


def _state(tuples: int, columns: int) -> tuple[float, float]:
    """Bytes of state for a live tuple, and bytes of memory for each of these."""
    plan = _plan(columns)
    random = np.random.default_rng(1)
    if tuples > 10_000:
        _state(10_000, columns)  # imports and kernels
    state, topic, batch = DictState(), stream_topic("a", 1), 10_000
    group = Group.load(0, 1, state)
    taken = [_records(PLANS, [encode_plan(plan)], 0)]
    before = _resident()
    out = None
    for number in range(tuples // batch):
        values = _values(random, columns, batch, number * SECOND * 10)
        progress = [progress_record(shard, 1, 0, 0) for shard in "ab"]
        taken += [
            _records(topic, [*values, progress[0]], number),
            _records(stream_topic("b", 1), progress[1:], number),
        ]
        group = Group.load(0, 1, state, group)
        out = group.process(*split_plans(taken), state, now=number, token=str(number))
        taken = []
    assert out is not None
    assert out.frontier is not None
    found = Frontier.from_bytes(out.frontier).topics[topic]
    assert found.tuples == tuples // batch * batch, "all tuples are live"
    return found.bytes / found.tuples, max(1.0, (_resident() - before) / found.bytes)


def _values(random: np.random.Generator, columns: int, count: int, start: int) -> list[bytes]:
    """Tuples in the order of time, of 10 seconds for 10,000. Nothing else is regular: state is compressed."""
    envelope = {"shard": "a", "plan": 1, "activation": 0}
    cells = random.normal(15, 8, (count, columns)).tolist()
    keys = random.integers(KEYS, size=count).tolist()
    times = (start + np.sort(random.integers(count * SECOND // 1_000, size=count))).tolist()
    return [
        orjson.dumps(
            {"station": station(key), "ts": time}
            | {f"c{at}": value for at, value in enumerate(row)}
            | {"_": envelope}
        )
        for key, time, row in zip(keys, times, cells, strict=True)
    ]


def _records(topic: str, values: list[bytes], number: int) -> Records:
    rows = np.arange(len(values))
    return Records(topic, 0, values, rows, np.full(len(values), number))


def _synopsis() -> float:
    sql = (
        "CREATE STREAM s (k INT, a BIGINT);"
        " CREATE ALERT q AS SELECT k, count(*) AS n, sum(a) AS t, max(a) AS m FROM s"
        " WHERE k BETWEEN 1 AND 10000 GROUP BY k;"
    )
    query = standing_evaluator(sql, "q")
    numbers = Vector.from_list(list(range(1, 10_001)), Type.INT)
    query.take("s", {"k": numbers, "a": Vector(numbers.data * 7)}, 10_000)
    return len(query.dump()) / 10_000


def _shard() -> ShardRun:
    return ShardRun("a:edge/http", "a", Commit(), _plan_with_omission())


def _plan_with_omission() -> Plan:
    sql = "".join(STREAM.format(name=name, columns=", c0 DOUBLE", keys=KEYS) for name in "ab")
    return first_plan(
        catalog_of(sql + JOIN.format(select="a.ts", threshold=1e9)), shards={"a:edge/http": "a", "b": "b"}
    )


def _held(tuples: int) -> float:
    """Falling values, after the highest one: each waits for a higher one that may still come."""
    run_ = _shard()
    _offer(run_, ["k"] * 100, np.arange(100), np.full(100, 1e6))
    before = _resident()
    for first in range(0, tuples, 10_000):
        numbers = np.arange(first, first + 10_000)
        _offer(run_, ["k"] * 10_000, 100 + numbers * 1_000, 1e6 - 1.0 - numbers)
    assert run_.held > tuples / 2, "the values must be held"
    return (_resident() - before) / run_.held


def _key(keys: int) -> float:
    """A tuple of each of many keys."""
    _offer(_shard(), ["k"] * 100, np.arange(100), np.zeros(100))  # imports and kernels
    run_ = _shard()
    before = _resident()
    for first in range(0, keys, 10_000):
        names = [station(number) for number in range(first, first + 10_000)]
        _offer(run_, names, np.full(10_000, 1_000), np.zeros(10_000))
    return (_resident() - before) / keys


def _offer(run_: ShardRun, keys: Sequence[str], times: NDArray[Any], values: NDArray[Any]) -> None:
    times = times.astype(np.int64)
    vectors = {
        "station": Vector.from_list(list(keys), Type.VARCHAR),
        "ts": Vector.from_list(times.tolist(), Type.TIMESTAMP),
        "c0": Vector.from_list(values.tolist(), Type.DOUBLE),
    }
    first = run_.next_offset
    run_.take(Batch(vectors, times, np.arange(first, first + len(times)), times), 0)
    for record in run_.out:
        run_.safe(record.token)
    run_.out.clear()
    if run_.commit() is not None:
        run_.committed(0)


def _disk(records: int) -> Iterator[UnitCost]:
    """Bytes in the files of journal and spool beyond those of the payloads."""
    payload = b"x" * 100
    directory = Path(tempfile.mkdtemp(prefix="tamis-bench-sizing-"))
    try:
        journal = Journal(directory / "journal.db", limit=10**10)
        for _ in range(records // 100):
            journal.append("a:edge/http", [payload] * 100, 0).result()
        journal.close()
        spool = Spool(directory / "spool.db", limit=10**10)
        for first in range(0, records, 100):
            some = [
                Record(number, "tamis.stream.a.1", -1, b'["station-00001"]', payload, 1_700_000_000_000)
                for number in range(first, first + 100)
            ]
            spool.append("a:edge/http", some, [one.token for one in some])
        spool.close()
        for name, size in (("journal", 100), ("spool", 100 + 17)):
            taken = sum(path.stat().st_size for path in directory.glob(f"{name}.db*"))
            overhead = taken / (records // 100 * 100) - size
            yield UnitCost(f"{name}_overhead_bytes", overhead, "B", f"size of {name}.db beyond the payloads")
    finally:
        shutil.rmtree(directory)


def _fleet(seconds: int) -> Iterator[UnitCost]:
    """Start a fleet, send it readings of two streams for some event seconds, and weigh it."""
    with tempfile.TemporaryDirectory(prefix="tamis-bench-sizing-") as temporary:
        sql = "".join(STREAM.format(name=name, columns=", c0 DOUBLE", keys=50) for name in "ab")
        fleet = Fleet(FleetSpec(Path(temporary), [EdgeSpec("edge")], partitions=PARTITIONS), lambda _: None)
        try:
            fleet.start({"all.sql": sql + JOIN.format(select="a.c0, b.c0 AS other", threshold=0)})
            url, began = fleet.http_sources["edge"], time.monotonic()
            start = int(time.time()) * SECOND
            with httpx.Client(timeout=30) as client:
                for second in range(seconds):
                    for name, value in (("a", 1.0), ("b", 2.0)):
                        rows = [
                            {"station": station(key), "ts": start + second * SECOND + key, "c0": value}
                            for key in range(50)
                        ]
                        client.post(f"{url}/v1/streams/{name}", json=rows).raise_for_status()
                    time.sleep(max(0.0, began + second * 0.25 - time.monotonic()))
            time.sleep(SETTLE_SECONDS)
            for name in fleet.processes.keys() - {"edge"}:  # an edge is weighed under load
                yield from _memory(name, psutil.Process(fleet.processes[name].pid))
            elapsed = time.monotonic() - began
            yield from _overheads(fleet.bootstrap, Path(temporary))
            topic = stream_topic("a", 1)
            with TopicReader(KafkaSettings(bootstrap=fleet.bootstrap).client_config(), [topic]) as reader:
                values = [record.value or b"" for record in reader.snapshot()]
        finally:
            fleet.stop()
        progress = sum(b'"kind":"progress"' in value for value in values)
        rate = progress / PARTITIONS / elapsed
        yield UnitCost("progress_records_per_second", rate, "1/s", "for each shard and partition")


def _overheads(bootstrap: str, directory: Path) -> Iterator[UnitCost]:
    """Bytes of a record and of a batch in a log, beyond key and value."""
    topics, sizes = Topics(bootstrap), {}
    names = {"single": 1, "together": 500}
    topics.create(names, 1)
    producer = Producer({**topics.config, "linger.ms": 500, "enable.idempotence": True})
    for name, size in names.items():
        for number in range(1_000):
            producer.produce(name, b"x" * 100, b"key-00001")
            if number % size == size - 1:
                producer.flush()
        (log,) = directory.rglob(f"{name}-0/*.log")
        sizes[name] = log.stat().st_size / 1_000 - 109
    topics.close()
    batch = (sizes["single"] - sizes["together"]) / (1 - 1 / names["together"])
    yield UnitCost("kafka_batch_overhead_bytes", batch, "B", "log segments, one record a batch")
    record = sizes["single"] - batch
    yield UnitCost("kafka_record_overhead_bytes", record, "B", "log segments, 500 records a batch")


def _memory(name: str, process: psutil.Process) -> Iterator[UnitCost]:
    children = process.children(recursive=True)
    own = process.memory_info().rss / MB
    if name != "joiner":
        total = own + sum(child.memory_info().rss for child in children) / MB
        yield UnitCost(f"{name}_memory_mb", total, "MB", "resident memory at rest, with child processes")
        return
    java = [child for child in children if "java" in child.name()]
    workers = [child for child in children if child not in java]
    yield UnitCost(
        "joiner_driver_memory_mb",
        own + sum(one.memory_info().rss for one in java) / MB,
        "MB",
        "resident memory of driver and JVM at rest, with a heap of 2 GB",
    )
    each = [one.memory_full_info().uss / MB for one in workers]
    yield UnitCost("joiner_worker_memory_mb", max(each), "MB", "memory of a Python worker at rest")
