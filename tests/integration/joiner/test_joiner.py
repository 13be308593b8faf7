"""The joiner as a process over a real Kafka: plans, tuples and progress in, alarms and frontiers out.

One joiner serves all tests in turn, since each start of Spark costs ten seconds; it is killed once.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import httpx
import orjson
import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.integration.edges import wipe
from tests.integration.joiner import spark_rpc
from tests.stream_records import progress_record

from tamis.errors import UnavailableError
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.python_functions import opaque
from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging import topics
from tamis.messaging.records import Frontier, canonical_key
from tamis.plan.json_form import encode_plan
from tamis.plan.model import (
    Definition,
    Input,
    Plan,
    StreamColumn,
    StreamPlan,
    TimeBound,
    TopicPlan,
)
from tamis_joiner.checkpoint.files import Checkpoint

DAEMON = "tamis_joiner.spark.processes.daemon"  # of the Python workers
PARTITIONS = 2
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
STARTING = 240.0  # the first batch takes 10 s on a machine with nothing else to do

Row = tuple[str, int, float]


def topic_of(stream: str) -> str:
    return topics.stream_topic(stream, 1)


def stream_plan(name: str) -> StreamPlan:
    columns = (("k", Type.VARCHAR), ("ts", Type.TIMESTAMP), ("v", Type.DOUBLE))
    return StreamPlan(
        name,
        tuple(StreamColumn(column, type_, False, None) for column, type_ in columns),
        "ts",
        0,
        None,
        None,
        3600 * SECOND,
        (TopicPlan(topic_of(name), ("k",), ("v",), ()),),
    )


def sum_alert(alert: str, version: int, left: str, right: str, least: float) -> Definition:
    """left.v + right.v > least, at most two seconds apart."""
    total: Expr = Call("+", (Column("l", "v", Type.DOUBLE), Column("r", "v", Type.DOUBLE)), Type.DOUBLE)
    return Definition(
        alert=alert,
        version=version,
        inputs=tuple(
            Input(alias, stream, topic_of(stream), "ts", ("k",), None, 0)
            for alias, stream in (("l", left), ("r", right))
        ),
        equalities=(),
        bounds=(TimeBound("l", "r", -2 * SECOND, 2 * SECOND),),
        condition=Call(">", (total, Literal(least, Type.DOUBLE)), Type.BOOLEAN),
        select=(("total", total),),
        bound=500,
    )


def plan(version: int, streams: list[str], definitions: list[Definition]) -> Plan:
    return Plan(
        version=version,
        partitions=PARTITIONS,
        streams=tuple(stream_plan(name) for name in streams),
        definitions=tuple(definitions),
        since={f"e/{name}": 1 for name in streams},
        shard_streams={f"e/{name}": name for name in streams},
    )


def reference(left: list[Row], right: list[Row], least: float) -> set[tuple[Row, Row]]:
    """The plain join, run by DuckDB."""
    with duckdb.connect() as base:
        for name, rows in (("l", left), ("r", right)):
            columns = zip(*rows, strict=True)
            base.register(name, pa.table(dict(zip(["k", "ts", "v"], map(list, columns), strict=True))))
        found = base.execute(
            f"SELECT l.k, l.ts, l.v, r.k, r.ts, r.v FROM l JOIN r ON l.k = r.k "
            f"AND l.ts - r.ts BETWEEN {-2 * SECOND} AND {2 * SECOND} WHERE l.v + r.v > {least}"
        ).fetchall()
    return {((a, b, c), (d, e, f)) for a, b, c, d, e, f in found}


@dataclass
class Bench:
    """A broker with the fleet's topics, a joiner, and what was sent and read so far."""

    bootstrap: str
    joiner: ServiceProcess
    url: str
    query: Path  # the joiner's checkpoint
    random: random.Random
    clock: int = START
    sent: dict[str, list[Row]] = field(default_factory=dict)
    alarms: dict[str, dict[str, Any]] = field(default_factory=dict)
    read: int = 0
    frontiers: dict[int, Frontier] = field(default_factory=dict)
    dead: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connect_producer()
        self.consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "test", "isolation.level": "read_committed"}
        )
        self.consumer.assign(
            [TopicPartition(topics.ALARMS, p, 0) for p in range(PARTITIONS)]
            + [TopicPartition(topics.FRONTIERS, 0, 0), TopicPartition(topics.DEAD_LETTERS, 0, 0)]
        )

    def connect_producer(self) -> None:
        """Connect anew: a producer that has seen a deleted topic refuses records for a while."""
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2_random"})

    def plan(self, new: Plan) -> None:
        for partition in range(PARTITIONS):
            self.producer.produce(topics.PLANS, encode_plan(new), b"plan", partition=partition)
        self.producer.flush()

    def tuples(self, number: int, streams: list[str], version: int) -> None:
        """Send `number` tuples of these streams, half a second apart on average."""
        for _ in range(number):
            self.clock += self.random.randint(0, SECOND)
            stream = self.random.choice(streams)
            row = (f"k{self.random.randrange(4)}", self.clock, self.random.randint(0, 40) / 4)
            self.sent.setdefault(stream, []).append(row)
            envelope = {"shard": f"e/{stream}", "plan": version, "activation": 0}
            value = orjson.dumps({"k": row[0], "ts": row[1], "v": row[2], "_": envelope})
            self.producer.produce(topic_of(stream), value, canonical_key((row[0],)))
        self.producer.flush()

    def progress(self, streams: list[str], version: int) -> None:
        for stream in streams:
            for partition in range(PARTITIONS):
                value = progress_record(f"e/{stream}", version, 0, self.clock)
                self.producer.produce(topic_of(stream), value, partition=partition)
        self.producer.flush()

    def until(self, done: Any, timeout: float = 120.0) -> None:
        """Read what the joiner publishes until `done()`."""
        deadline = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < deadline, "not in time"
            for message in self.consumer.consume(500, 0.2):
                value = message.value()
                assert message.error() is None and value is not None
                if message.topic() == topics.ALARMS:
                    alarm = orjson.loads(value)
                    self.read += 1
                    self.alarms[alarm["id"]] = alarm
                    assert message.key() == canonical_key((alarm["alert"], *alarm["key"]))
                elif message.topic() == topics.FRONTIERS:
                    record = Frontier.from_bytes(value)
                    self.frontiers[record.partition] = record
                else:
                    self.dead.append(message)

    def raised(self, alert: str) -> set[tuple[Row, Row]]:
        return {
            tuple(tuple(a["tuples"][alias][c] for c in ("k", "ts", "v")) for alias in ("l", "r"))  # type: ignore[misc]
            for a in self.alarms.values()
            if a["alert"] == alert
        }

    def held(self) -> int:
        return sum(s.tuples for f in self.frontiers.values() for s in f.topics.values())


@pytest.fixture(scope="module")
def bench(embedded: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("joiner")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    embedded.start()  # where a test that stopped it has failed
    wipe(embedded.bootstrap)
    environment = {
        "TAMIS_KAFKA_BOOTSTRAP": embedded.bootstrap,
        "TAMIS_DATA": str(folder),
        "TAMIS_TELEMETRY_PORT": str(port),
        "TAMIS_JOINER_MEMORY": "1g",
        "TAMIS_FUNCTIONS": "plant_functions",
        "TAMIS_LOG_FORMAT": "json",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    (folder / "plant_functions.py").write_text("def twice(v):\n    return v * 2\n")
    joiner = ServiceProcess("joiner", ["joiner"], environment, folder / "joiner.log", f"{url}/readyz")
    # In its working directory lies a module of a name that Spark's Python workers import.
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "grp.py").write_text("raise SystemExit('of the working directory')\n")
    with contextlib.chdir(elsewhere):
        joiner.start()
    made = Bench(embedded.bootstrap, joiner, url, folder / "joiner/query", random.Random(11))
    try:
        yield made
    finally:
        made.consumer.close()
        joiner.kill()


def create(bootstrap: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    single = (topics.FRONTIERS, topics.DEAD_LETTERS)
    made = admin.create_topics([NewTopic(n, 1 if n in single else PARTITIONS, 1) for n in names])
    for future in made.values():
        future.result()


def recreate(bootstrap: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics(list(names)).values():
        future.result()
    deadline = time.monotonic() + 30
    while admin.list_topics(timeout=10).topics.keys() & set(names):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    create(bootstrap, *names)


def test_waits_for_the_registrys_topics_and_is_ready_after_its_first_batch(bench: Bench) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            answer = httpx.get(f"{bench.url}/readyz")
            if "no topic" in answer.text:
                break
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert answer.status_code == 503
    names = [topics.PLANS, topics.ALARMS, topics.FRONTIERS, topics.DEAD_LETTERS]
    create(bench.bootstrap, *names, topic_of("air"), topic_of("soil"))
    bench.plan(plan(1, ["air", "soil"], [sum_alert("warm", 1, "air", "soil", 12.0)]))
    bench.joiner.wait_ready(STARTING)
    until_planning_has_ended(bench)


def test_alarms_equal_duckdbs_and_state_falls(bench: Bench) -> None:
    streams = ["air", "soil"]
    bench.producer.produce(topic_of("air"), b"{not JSON", partition=0)
    bench.producer.produce(topic_of("air"), b'{"k": "k1", "ts": 1, "v": 1.0}', partition=1)
    for _ in range(4):
        bench.tuples(100, streams, 1)
        bench.progress(streams, 1)
    expected = reference(bench.sent["air"], bench.sent["soil"], 12.0)
    assert len(expected) > 20
    bench.until(lambda: len(bench.raised("warm")) >= len(expected) and len(bench.dead) >= 2)
    assert bench.raised("warm") == expected
    reasons = [dict(m.headers())["reason"] for m in bench.dead]
    assert sorted(reasons) == [b"foreign", b"undecodable"]
    assert {m.value() for m in bench.dead} == {b"{not JSON", b'{"k": "k1", "ts": 1, "v": 1.0}'}
    bench.clock += 10 * SECOND
    bench.progress(streams, 1)
    bench.progress(streams, 1)

    def trimmed() -> bool:
        reached = [s.frontier == bench.clock for f in bench.frontiers.values() for s in f.topics.values()]
        return len(reached) == 2 * PARTITIONS and all(reached)

    bench.until(trimmed)
    assert bench.held() == 0

    def shown(metric: str) -> bool:
        return metric in httpx.get(f"{bench.url}/metrics").text

    # The joiner reads what it shows from its own topic of frontiers, a moment later than this test.
    bench.until(lambda: shown('tamis_query_bound_tuples{query="warm"} 500.0'))
    bench.until(lambda: shown('tamis_dead_letters_total{reason="foreign",service="joiner"} 1.0'))


def test_tasks_leave_no_connections_behind(bench: Bench) -> None:
    """Spark 4.2.0 keeps the socket over which a task has read its state."""
    processes = psutil.Process(bench.joiner.pid).children(recursive=True)
    (jvm,) = [process for process in processes if process.name() == "java"]
    before = jvm.num_fds()
    for _ in range(20):
        bench.clock += SECOND
        bench.progress(["air", "soil"], 1)

        def is_read() -> bool:
            reached = [s.frontier for f in bench.frontiers.values() for s in f.topics.values()]
            return all(frontier == bench.clock for frontier in reached)

        bench.until(is_read)
    left = [one for one in jvm.net_connections() if one.status == psutil.CONN_CLOSE_WAIT]
    assert len(left) < 10 and jvm.num_fds() < before + 20


def test_strangers_on_this_machine_are_refused(bench: Bench) -> None:
    """Spark's ports give Java's deserialisation nothing of theirs, and Python's workers have no ports."""
    joiner = psutil.Process(bench.joiner.pid)
    (jvm,) = [one for one in joiner.children(recursive=True) if one.name() == "java"]
    addresses = spark_rpc.listening(joiner)
    assert {address.removeprefix("::ffff:") for address, _ in addresses} == {"127.0.0.1"}
    answers = [spark_rpc.call(address) for address in addresses]
    assert not [answer for answer in answers if spark_rpc.DESERIALISED in answer]
    assert sum(spark_rpc.REFUSED in answer for answer in answers) == 2  # the driver and its block manager
    gateways = [spark_rpc.gateway(address) for address in spark_rpc.listening(jvm)]
    assert sum("Authentication error" in answer for answer in gateways) == 1
    # All others are the JVM's: the telemetry port is the only one of Python's.
    ports = {int(bench.url.rpartition(":")[2])}
    assert {port for _, port in addresses} == ports | {port for _, port in spark_rpc.listening(jvm)}


def test_new_topic_and_plan_while_running(bench: Bench) -> None:
    create(bench.bootstrap, topic_of("wind"))
    # Tuples of a version that the joiner does not know yet wait for its plan.
    bench.tuples(60, ["air", "wind"], 2)
    since = len(bench.sent["air"])
    alerts = [sum_alert("warm", 1, "air", "soil", 12.0), sum_alert("gust", 2, "air", "wind", 11.0)]
    bench.plan(plan(2, ["air", "soil", "wind"], alerts))
    bench.tuples(100, ["air", "wind"], 2)
    first = bench.sent["wind"][0][1] - 10 * SECOND
    air = [row for row in bench.sent["air"] if row[1] > first]
    assert since < len(bench.sent["air"])
    expected = reference(air, bench.sent["wind"], 11.0)
    assert len(expected) > 10
    bench.until(lambda: len(bench.raised("gust")) >= len(expected))
    assert bench.raised("gust") == expected


def test_functions_of_python_run_where_spark_does(bench: Bench) -> None:
    """One that is installed is called in Spark's workers; one that isn't costs no other alert anything."""
    left, right = Column("l", "v", Type.DOUBLE), Column("r", "v", Type.DOUBLE)
    total = Call("+", (opaque("twice", "+", (left,)), right), Type.DOUBLE)
    worn = Call(">", (total, Literal(18.0, Type.DOUBLE)), Type.BOOLEAN)
    lost = Call(">", (opaque("nowhere", "+", (left,)), right), Type.BOOLEAN)
    alerts = [sum_alert("warm", 1, "air", "soil", 12.0), sum_alert("gust", 2, "air", "wind", 11.0)]
    alerts.append(replace(sum_alert("worn", 3, "air", "soil", 0.0), condition=worn))
    alerts.append(replace(sum_alert("lost", 3, "air", "soil", 0.0), condition=lost))
    since = {name: len(bench.sent[name]) for name in ("air", "soil")}
    bench.plan(plan(3, ["air", "soil", "wind"], alerts))
    bench.tuples(100, ["air", "soil"], 3)
    expected = {
        (a, s)
        for a in bench.sent["air"][since["air"] :]
        for s in bench.sent["soil"][since["soil"] :]
        if a[0] == s[0] and abs(a[1] - s[1]) <= 2 * SECOND and 2 * a[2] + s[2] > 18
    }
    assert len(expected) > 5
    bench.until(lambda: len(bench.raised("worn")) >= len(expected))
    assert bench.raised("worn") == expected
    bench.progress(["air", "soil"], 3)
    bench.until(lambda: all("lost" in f.unable for f in bench.frontiers.values()))
    (why,) = {f.unable["lost"] for f in bench.frontiers.values()}
    assert "'nowhere' isn't installed here; set TAMIS_FUNCTIONS" in why
    warm = reference(bench.sent["air"], bench.sent["soil"], 12.0)
    bench.until(lambda: len(bench.raised("warm")) >= len(warm))


def test_killed_in_mid_stream_it_misses_nothing(bench: Bench) -> None:
    """Also when its newest state was damaged meanwhile, and what it said was done about it."""
    streams = ["air", "soil"]
    bench.progress([*streams, "wind"], 2)
    before = len(bench.alarms)
    bench.tuples(150, streams, 2)
    bench.until(lambda: len(bench.alarms) > before)
    bench.tuples(150, streams, 2)
    bench.joiner.kill()
    bench.tuples(50, streams, 2)
    state = newest_state(bench.query)
    flip(state)
    bench.joiner.start()
    said = last_error(bench.joiner)
    assert f"{state}: the checkpoint is damaged: this file doesn't match its checksum" in said
    follow(said, bench.query)
    bench.joiner.start()
    bench.joiner.wait_ready(STARTING)
    bench.tuples(50, streams, 2)
    expected = reference(bench.sent["air"], bench.sent["soil"], 12.0)
    bench.until(lambda: len(bench.raised("warm")) >= len(expected))
    assert bench.raised("warm") == expected
    # Each alarm has one identity: what came twice is known by it.
    assert len([a for a in bench.alarms.values() if a["alert"] == "warm"]) == len(expected)


def test_topics_that_are_created_again_are_read_from_their_beginning(bench: Bench) -> None:
    """All of the joiner is suspended meanwhile, so Spark sees no moment without the topics."""
    streams, before = ["air", "soil"], {name: len(bench.sent[name]) for name in ("air", "soil")}
    alerts = [sum_alert("warm", 1, "air", "soil", 12.0), sum_alert("cold", 4, "air", "soil", 5.0)]
    suspended = _session_members(os.getsid(bench.joiner.pid))
    for pid in suspended:
        os.kill(pid, signal.SIGSTOP)
    try:
        recreate(bench.bootstrap, topics.PLANS, topic_of("soil"))
        bench.connect_producer()
        bench.clock += 10 * SECOND
        bench.plan(plan(4, [*streams, "wind"], alerts))
        bench.tuples(150, streams, 4)
    finally:
        for pid in suspended:
            os.kill(pid, signal.SIGCONT)
    air, soil = (bench.sent[name][before[name] :] for name in streams)
    expected = reference(air, soil, 5.0)
    assert len(expected) > 20
    bench.until(lambda: len(bench.raised("cold")) >= len(expected))
    assert bench.raised("cold") == expected
    warm = reference(bench.sent["air"], bench.sent["soil"], 12.0)
    bench.until(lambda: len(bench.raised("warm")) >= len(warm))
    assert bench.raised("warm") == warm
    until_planning_has_ended(bench)


def test_sigterm_ends_it_with_all_its_processes(bench: Bench) -> None:
    session = os.getsid(bench.joiner.pid)
    began = time.monotonic()
    assert bench.joiner.stop(timeout=15.0) == 0
    assert time.monotonic() - began < 10
    deadline = time.monotonic() + 5
    while _session_members(session):
        assert time.monotonic() < deadline, "something of the joiner still runs"
        time.sleep(0.1)


def test_all_that_it_said_is_json(bench: Bench) -> None:
    """Spark's JVM too, and what that is told by none of its loggers."""
    lines = [orjson.loads(line) for line in bench.joiner.log.read_bytes().splitlines()]
    assert {(line["service"], type(line["event"]), type(line["timestamp"])) for line in lines} == {
        ("joiner", str, str)
    }
    assert {"starting Spark", "stopped"} <= {line["event"] for line in lines}
    assert {"java", "NativeCodeLoader"} <= {line.get("logger") for line in lines}


@pytest.mark.parametrize("damage", ["cut", "flip", "delete"])
def test_damage_to_a_checkpoint_is_found(bench: Bench, damage: str) -> None:
    assert Checkpoint(bench.query).damage() == []
    batch, done = newest_batches(bench.query)
    newest = [f"offsets/{batch}", f"offsets/{batch - 1}", f"commits/{done}"]
    state = bench.query / "state/0"
    # What Spark does without: the commit of a batch that it can run again, a batch that isn't done, and what
    # says of the state the same as a start before.
    spared = {bench.query / newest[2], *((bench.query / newest[0],) if done < batch else ())}
    spared.add(max((state / "_metadata/v2").glob("[0-9]*"), key=lambda file: int(file.name)))
    files = [*(bench.query / name for name in ("metadata", *newest)), *spared]
    files += [newest_state(bench.query), next((state / "_stateSchema").glob("*/[0-9]*"))]
    for file in files:
        content = file.read_bytes()
        if damage == "delete":
            file.unlink()
        elif damage == "cut":
            file.write_bytes(content[: len(content) // 2])
        else:
            flip(file)
        found = [one.file for one in Checkpoint(bench.query).damage()]
        assert found == ([] if damage == "delete" and file in spared else [file])
        file.write_bytes(content)
    assert Checkpoint(bench.query).damage() == []


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(bytes(content))


def newest_batches(query: Path) -> tuple[int, int]:
    """The newest batch, and the newest that is done."""
    logs = (query / log for log in ("offsets", "commits"))
    first, second = (max(int(file.name) for file in log.glob("[0-9]*")) for log in logs)
    return first, second


def newest_state(query: Path) -> Path:
    """The newest file of a partition's state with which the query goes on. There may be newer ones of a batch
    that was cut off.
    """
    last, done = newest_batches(query)
    version = last + (done == last)
    snapshot = query / f"state/0/0/{version}.zip"
    return snapshot if snapshot.exists() else snapshot.with_suffix(".changelog")


def last_error(joiner: ServiceProcess) -> str:
    """The last line of a joiner that ends by a checkpoint that is damaged."""
    deadline = time.monotonic() + STARTING
    while joiner.exit_code() is None:
        with contextlib.suppress(UnavailableError):  # it ends meanwhile
            assert not joiner.is_ready()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert joiner.exit_code() == 2
    said: str = orjson.loads(joiner.log.read_bytes().splitlines()[-1])["event"]
    return said


def follow(said: str, query: Path) -> None:
    """Delete what the message says."""
    again = re.search(r"delete (\S+)/commits/(\d+) and start again", said)
    back = re.search(r"all in offsets above (\d+) and all in commits from (\d+) on", said)
    assert again or back, said
    first = int(again[2] if again else back[2] if back else 0)
    for file in (query / "commits").glob("[0-9]*"):
        if int(file.name) >= first:
            file.unlink()
    for file in (query / "offsets").glob("[0-9]*") if back else ():
        if int(file.name) > first:
            file.unlink()


def until_planning_has_ended(bench: Bench) -> None:
    """Spark keeps none of the processes that it needs to plan a query, and keeps those of the query."""
    deadline = time.monotonic() + 10
    while True:
        members = list(_running(_session_members(os.getsid(bench.joiner.pid))))
        modules = {argument for arguments, _ in members for argument in arguments if "." in argument}
        if not any(module.startswith("pyspark.sql.worker.") for module in modules):
            break
        assert time.monotonic() < deadline, modules
        time.sleep(0.1)
    assert {DAEMON, "pyspark.sql.streaming.python_streaming_source_runner"} <= modules
    paths = [found["PYTHONPATH"] for arguments, found in members if DAEMON in arguments]
    for folder in (Path(name) for path in paths for name in path.split(os.pathsep)):
        assert folder.name != "pyspark.zip" or not folder.exists(), "PySpark is compiled in no zip file"


def _running(pids: Iterable[int]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The arguments and the environment of each process that hasn't ended meanwhile."""
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            yield process.cmdline(), process.environ()


def _session_members(session: int) -> list[int]:
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    os.getsid(int(entry.name)) == session
                    and "Z" not in (entry / "stat").read_text().split()[2]
                ):
                    members.append(int(entry.name))
            except (ProcessLookupError, FileNotFoundError):
                continue
    return members
