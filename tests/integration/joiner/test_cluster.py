"""The joiner on a real Spark cluster: a master and two workers as processes.

The executors know nothing of Tamis' settings but what the joiner forwards, and the checkpoint is on a file
system that only Hadoop can read: viewfs, whose one directory is a directory of this machine.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.integration.joiner import spark_rpc
from tests.integration.joiner.spark_cluster import SparkCluster, running
from tests.integration.joiner.test_joiner import SECOND, Bench, create, plan, sum_alert, topic_of

from tamis.expressions.nodes import Call, Column, Literal, Type
from tamis.expressions.python_functions import opaque
from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging import topics
from tamis_joiner.spark.authentication import SECRET

STARTING = 240.0  # on a busy machine


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    with running(SparkCluster(tmp_path / "cluster")) as made:
        yield made


def joiner_settings(folder: Path, cluster: SparkCluster, bootstrap: str, telemetry: int) -> dict[str, str]:
    driver, blocks = free_ports(2)
    (folder / "plant_functions.py").write_text("def twice(v):\n    return v * 2\n")
    (folder / "checkpoint").mkdir()
    conf = folder / "spark.conf"
    link = f"spark.hadoop.fs.viewfs.mounttable.tamis.link./joiner file://{folder}/checkpoint\n"
    conf.touch(0o600)
    conf.write_text(cluster.properties.read_text() + link)
    return {
        "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
        "TAMIS_TELEMETRY_PORT": str(telemetry),
        "TAMIS_FUNCTIONS": "plant_functions",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TAMIS_JOINER_MASTER": cluster.url,
        "TAMIS_JOINER_MEMORY": "600m",
        "TAMIS_JOINER_CHECKPOINT": "viewfs://tamis/joiner",
        "TAMIS_JOINER_SPARK_CONF": str(conf),
        "TAMIS_JOINER_DRIVER_HOST": "127.0.0.1",
        "TAMIS_JOINER_DRIVER_PORT": str(driver),
        "TAMIS_JOINER_BLOCK_MANAGER_PORT": str(blocks),
        "TAMIS_JOINER_EXECUTORS": "2",
        "TAMIS_JOINER_EXECUTOR_CORES": "1",
        "TAMIS_JOINER_EXECUTOR_MEMORY": "512m",
    }


def test_on_a_cluster_an_executor_is_killed_and_no_alarm_is_missed(
    empty: EmbeddedKafka, cluster: SparkCluster, tmp_path: Path
) -> None:
    (telemetry,) = free_ports(1)
    url = f"http://127.0.0.1:{telemetry}"
    streams = [topic_of("air"), topic_of("soil")]
    create(empty.bootstrap, topics.PLANS, topics.ALARMS, topics.FRONTIERS, topics.DEAD_LETTERS, *streams)
    environment = joiner_settings(tmp_path, cluster, empty.bootstrap, telemetry)
    joiner = ServiceProcess("joiner", ["joiner"], environment, tmp_path / "joiner.log", f"{url}/readyz")
    bench = Bench(empty.bootstrap, joiner, url, tmp_path / "checkpoint/query", random.Random(5))
    joiner.start()
    try:
        left, right = Column("l", "v", Type.DOUBLE), Column("r", "v", Type.DOUBLE)
        total = Call("+", (opaque("twice", "+", (left,)), right), Type.DOUBLE)
        condition = Call(">", (total, Literal(18.0, Type.DOUBLE)), Type.BOOLEAN)
        alert = replace(sum_alert("worn", 1, "air", "soil", 0.0), condition=condition)
        bench.plan(plan(1, ["air", "soil"], [alert]))
        bench.tuples(150, ["air", "soil"], 1)
        bench.until(lambda: bench.raised("worn") >= expected(bench), STARTING)
        state = tmp_path / "checkpoint/query/state/0"
        bench.until(lambda: any(state.rglob("*.changelog")))
        strangers_are_refused(cluster, joiner)

        victim, *_ = cluster.executors()
        os.kill(victim.pid, signal.SIGKILL)
        bench.tuples(150, ["air", "soil"], 1)
        bench.until(lambda: bench.raised("worn") >= expected(bench), STARTING)
        assert bench.raised("worn") == expected(bench)
        assert joiner.exit_code() is None
        # The killed executor is replaced.
        cluster.until_executors(lambda running: len(running) == 2, 30)
    finally:
        bench.consumer.close()
        joiner.stop(timeout=15.0)


def strangers_are_refused(cluster: SparkCluster, joiner: ServiceProcess) -> None:
    """Nobody without the secret speaks to any process of Spark, and no command line has the secret."""
    roots = [psutil.Process(one.pid) for one in (cluster.master, *cluster.workers.values())]
    roots.append(psutil.Process(joiner.pid))
    asked = 0
    for root in roots:
        answers = [spark_rpc.call(address) for address in spark_rpc.listening(root)]
        assert not [answer for answer in answers if spark_rpc.DESERIALISED in answer]
        asked += sum(spark_rpc.REFUSED in answer for answer in answers)
    # The RPC of master, two workers and driver, and the block managers of two executors and the driver.
    assert asked >= 7
    secret = cluster.properties.read_text().split(f"{SECRET} ")[1].split()[0]
    shown = [command_line(one) for root in roots for one in (root, *root.children(recursive=True))]
    assert len(shown) > 6 and not [line for line in shown if any(secret in part for part in line)]


def command_line(process: psutil.Process) -> list[str]:
    """The command line of a process; empty if it has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def expected(bench: Bench) -> set[object]:
    """Pairs for which `twice(air.v) + soil.v > 18`."""
    return {
        (a, s)
        for a in bench.sent["air"]
        for s in bench.sent["soil"]
        if a[0] == s[0] and abs(a[1] - s[1]) <= 2 * SECOND and 2 * a[2] + s[2] > 18
    }
