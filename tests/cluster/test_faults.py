"""The joiner on a Spark cluster with its checkpoint on HDFS, whose processes are killed in mid stream.

The workers' machines have nothing of Tamis: in their mount namespaces the repository, its virtual environment
and Python are hidden, Spark is at another path, and HOME is another. All that the executors need travels with
the job. After each fault DuckDB joins all tuples that were sent so far: no alarm may be missed, and none may
have two identities.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx
import psutil
import pytest
from tests.cluster.hdfs import Hdfs
from tests.integration.joiner.spark_cluster import SparkCluster, running
from tests.integration.joiner.test_joiner import DAEMON, Bench, create, plan, reference, sum_alert, topic_of

from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import ServiceProcess, free_ports
from tamis.messaging import topics

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

STREAMS = ["air", "soil"]
LEAST = 12.0
PATIENCE = 300.0
# A restarted master waits up to a minute for workers and applications from before, and starts none meanwhile.
REPLACED = 180.0
ROUNDS, TUPLES = 15, 200
"""Tuples are sent in rounds; a fault is in the middle of them."""


@dataclass
class Fleet:
    """The processes of a test."""

    cluster: SparkCluster
    bench: Bench
    hdfs: Hdfs | None

    def right(self) -> None:
        """Wait for all alarms on the tuples that were sent so far, and compare them with DuckDB's join. A
        joiner that has ended is started again, as a supervisor does.
        """
        expected = reference(self.bench.sent["air"], self.bench.sent["soil"], LEAST)
        assert len(expected) > 100

        def complete() -> bool:
            if (code := self.bench.joiner.exit_code()) is not None:
                assert code == 2, self.bench.joiner.last_error()
                self.bench.joiner.start()
            return len(self.bench.raised("warm")) >= len(expected)

        self.bench.until(complete, PATIENCE)
        assert self.bench.raised("warm") == expected
        assert len(self.bench.alarms) == len(expected)


def settings(folder: Path, cluster: SparkCluster, bootstrap: str, checkpoint: str) -> dict[str, str]:
    driver, blocks, telemetry = free_ports(3)
    return {
        "TAMIS_KAFKA_BOOTSTRAP": bootstrap,
        "TAMIS_TELEMETRY_PORT": str(telemetry),
        "TAMIS_JOINER_MASTER": cluster.url,
        "TAMIS_JOINER_SPARK_CONF": str(cluster.properties),
        "TAMIS_JOINER_MEMORY": "700m",
        "TAMIS_JOINER_CHECKPOINT": checkpoint,
        "TAMIS_JOINER_ENVIRONMENT": str(folder / "environment.tar.gz"),
        "TAMIS_JOINER_DRIVER_HOST": "127.0.0.1",
        "TAMIS_JOINER_DRIVER_PORT": str(driver),
        "TAMIS_JOINER_BLOCK_MANAGER_PORT": str(blocks),
        "TAMIS_JOINER_EXECUTORS": "2",
        "TAMIS_JOINER_EXECUTOR_MEMORY": "600m",
        # Paths of the driver's machine that executors must not get.
        "NUMBA_CACHE_DIR": str(folder / "kernels-of-the-driver"),
        "PYTHONPATH": str(folder),
    }


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the packed environment."""
    folder = tmp_path_factory.mktemp("environment")
    archive = folder / "environment.tar.gz"
    subprocess.run([sys.executable, "-m", "tamis_joiner.environment.pack", str(archive)], check=True)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def fleet(folder: Path, environment: Path, hdfs: Hdfs | None) -> Iterator[Fleet]:
    checkpoint = f"{hdfs.uri}/joiner" if hdfs else (folder / "checkpoint").as_uri()
    with (
        EmbeddedKafka(folder / "kafka") as broker,
        running(SparkCluster(folder / "cluster", memory="700m", hidden=True)) as cluster,
    ):
        create(broker.bootstrap, topics.PLANS, topics.ALARMS, topics.FRONTIERS, topics.DEAD_LETTERS)
        create(broker.bootstrap, *map(topic_of, STREAMS))
        chosen = settings(environment, cluster, broker.bootstrap, checkpoint)
        url = f"http://127.0.0.1:{chosen['TAMIS_TELEMETRY_PORT']}"
        joiner = ServiceProcess("joiner", ["joiner"], chosen, folder / "joiner.log", f"{url}/readyz")
        bench = Bench(broker.bootstrap, joiner, url, folder, random.Random(17))
        joiner.start()
        try:
            bench.plan(plan(1, STREAMS, [sum_alert("warm", 1, "air", "soil", LEAST)]))
            joiner.wait_ready(PATIENCE)
            yield Fleet(cluster, bench, hdfs)
        finally:
            bench.consumer.close()
            if joiner.exit_code() is None:
                joiner.stop(timeout=20.0)
            # Each executor has unpacked the environment there.
            for work in (folder / "cluster").glob("worker-*/work"):
                shutil.rmtree(work, ignore_errors=True)


@pytest.fixture(scope="module")
def on_hdfs(tmp_path_factory: pytest.TempPathFactory, environment: Path) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("hdfs")
    hdfs = Hdfs(folder / "hdfs")
    try:
        hdfs.start()
        with fleet(folder, environment, hdfs) as made:
            yield made
    finally:
        hdfs.stop()


def send(bench: Bench, fault: Callable[[], None]) -> None:
    """Send tuples for some seconds, and let the fault happen while they are sent.

    The fault is in this thread: a process that it starts ends with the thread that has started it.
    """
    half = Event()

    def rounds() -> None:
        for number in range(ROUNDS):
            bench.tuples(TUPLES, STREAMS, 1)
            bench.progress(STREAMS, 1)
            if number == ROUNDS // 2:
                half.set()
            time.sleep(0.2)

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(rounds)
        half.wait(60)
        fault()
        sending.result()


def test_executors_need_nothing_of_the_workers_machines(on_hdfs: Fleet) -> None:
    bench = on_hdfs.bench
    send(bench, lambda: None)
    on_hdfs.right()
    on_hdfs.cluster.until_executors(lambda found: len(found) == 2, 30)
    for executor in on_hdfs.cluster.executors():
        daemons = [child for child in executor.children() if DAEMON in child.cmdline()]
        assert daemons
        for daemon in daemons:
            assert daemon.exe().startswith(f"{executor.cwd()}/tamis-environment/bin/python")
            assert "NUMBA_CACHE_DIR" not in daemon.environ()
            assert not any(sys.prefix in value for value in daemon.environ().values())


def kill(process: psutil.Process | subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def an_executor(fleet: Fleet) -> None:
    kill(fleet.cluster.executors()[0])


def a_python_worker(fleet: Fleet) -> None:
    """The workers of an executor, with the daemon that forks them."""
    for child in fleet.cluster.executors()[-1].children(recursive=True):
        child.kill()


def a_worker(fleet: Fleet) -> None:
    kill(fleet.cluster.workers[0])
    time.sleep(3)
    fleet.cluster.start_worker(0)


def the_master(fleet: Fleet) -> None:
    """The query goes on without a master. A restarted one replaces executors again."""
    kill(fleet.cluster.master)
    time.sleep(3)
    fleet.cluster.start_master()


def the_driver(fleet: Fleet) -> None:
    fleet.bench.joiner.kill()
    fleet.bench.joiner.start()


def a_data_node(fleet: Fleet) -> None:
    assert fleet.hdfs is not None
    kill(fleet.hdfs.datanodes[1])
    time.sleep(3)
    fleet.hdfs.start_datanode(1)


def the_name_node(fleet: Fleet) -> None:
    assert fleet.hdfs is not None
    kill(fleet.hdfs.namenode)
    time.sleep(3)
    fleet.hdfs.start_namenode()


FAULTS = [
    an_executor,
    a_python_worker,
    a_worker,
    the_master,
    an_executor,
    the_driver,
    a_data_node,
    the_name_node,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_killed_in_mid_stream(on_hdfs: Fleet, fault: Callable[[Fleet], None]) -> None:
    batches = done(on_hdfs.bench)
    send(on_hdfs.bench, lambda: fault(on_hdfs))
    on_hdfs.right()
    assert fault is the_driver or done(on_hdfs.bench) != batches
    # Also after a fault of the master: an executor that was lost is replaced.
    on_hdfs.cluster.until_executors(lambda found: len(found) == 2, REPLACED)


def test_on_a_volume_that_all_machines_mount(tmp_path: Path, environment: Path) -> None:
    with fleet(tmp_path, environment, None) as made:
        send(made.bench, lambda: None)
        made.right()
        send(made.bench, lambda: an_executor(made))
        made.right()
        assert (tmp_path / "checkpoint/query/commits").is_dir()


def done(bench: Bench) -> str:
    """The number of the joiner's rows so far, as its metrics show it."""
    lines = httpx.get(f"{bench.url}/metrics").text.splitlines()
    return next((line for line in lines if line.startswith("tamis_joiner_rows_total")), "")
