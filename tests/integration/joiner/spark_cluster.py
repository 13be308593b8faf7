"""A real Spark cluster: a standalone master and workers as processes, started from PySpark's jars."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from tamis.java.runtime import find_java
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import free_ports
from tamis_joiner.spark.authentication import write_file

SPARK_HOME = Path(pyspark.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[3]
EXECUTOR = "CoarseGrainedExecutorBackend"

STARTING = 120.0

Process = subprocess.Popen[bytes]


@dataclass
class SparkCluster:
    """A master and `count` workers of one core each. All files are in `folder`, logs too.

    With `hidden` the workers run in mount namespaces of their own, where the repository, its virtual
    environment and Python are empty directories and Spark is at another path. With `bound` each worker and
    its executor run on one core of the machine, in turn. `memory` is that of a worker.
    """

    folder: Path
    count: int = 2
    memory: str = "600m"
    hidden: bool = False
    bound: bool = False
    ports: list[int] = field(default_factory=list)
    workers: dict[int, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ports = free_ports(2 + 2 * self.count)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self.properties)

    @property
    def properties(self) -> Path:
        """The file of properties that all processes of the cluster have, the joiner too."""
        return self.folder / "spark.conf"

    @property
    def url(self) -> str:
        """The address of the master."""
        return f"spark://127.0.0.1:{self.ports[0]}"

    def start(self) -> None:
        """Start the master and all workers."""
        self.start_master()
        for number in range(self.count):
            self.start_worker(number)

    def start_master(self) -> None:
        """Start the master. It remembers workers and applications from before."""
        recovery = {"recoveryMode": "FILESYSTEM", "recoveryDirectory": f"{self.folder}/master/recovery"}
        java = [f"-Dspark.deploy.{name}={value}" for name, value in recovery.items()]
        deploy = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
        arguments = [*deploy, "--port", str(self.ports[0]), "--webui-port", str(self.ports[1])]
        arguments += ["--properties-file", str(self.properties)]
        self.master = self._start("master", java, arguments)
        deadline = time.monotonic() + STARTING
        while not answers(self.ports[0]):
            assert self.master.poll() is None, f"the master has ended: {self.folder}/master/log"
            assert time.monotonic() < deadline, "the master does not answer"
            time.sleep(0.1)

    def start_worker(self, number: int) -> None:
        """Start a worker, with directories of its own."""
        port, page = self.ports[2 + 2 * number : 4 + 2 * number]
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", str(port)]
        work = str(self.folder / f"worker-{number}" / "work")
        size = ["--cores", "1", "--memory", self.memory, "--work-dir", work]
        arguments = [*worker, "--webui-port", str(page), *size]
        arguments += ["--properties-file", str(self.properties), self.url]
        cores = sorted(os.sched_getaffinity(0))
        core = cores[number % len(cores)] if self.bound else None
        self.workers[number] = self._start(f"worker-{number}", [], arguments, self.hidden, core)

    def executors(self) -> list[psutil.Process]:
        """The executors that run now: children of the workers."""
        return [
            child
            for worker in self.workers.values()
            if worker.poll() is None
            for child in psutil.Process(worker.pid).children()
            if _is_executor(child)
        ]

    def until_executors(self, accepted: Callable[[Sequence[psutil.Process]], bool], seconds: float) -> None:
        """Wait until the running executors are accepted."""
        deadline = time.monotonic() + seconds
        while not accepted(found := self.executors()):
            assert time.monotonic() < deadline, f"executors: {found}"
            time.sleep(0.2)

    def stop(self) -> None:
        """End all processes."""
        for process in (*self.workers.values(), self.master):
            running = process.poll() is None
            for child in psutil.Process(process.pid).children(recursive=True) if running else []:
                child.kill()
            process.kill()
            process.wait()

    def _start(
        self, name: str, java: list[str], arguments: list[str], hidden: bool = False, core: int | None = None
    ) -> Process:
        own = self.folder / name
        (own / "local").mkdir(parents=True, exist_ok=True)
        home = own / "spark" if hidden else SPARK_HOME
        # No variable of Tamis and no path of this environment: what executors know comes from the joiner.
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(own),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(own / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # spark-class, which looks for the version of Scala, is not used here.
            "SPARK_SCALA_VERSION": "2.13",
        }
        runtime = find_java()
        # Where the workers start executors, Spark takes Java from JAVA_HOME or PATH.
        environment["JAVA_HOME"] = str(Path(runtime).resolve().parents[1])
        command = [runtime, "-Xmx128m", "-XX:TieredStopAtLevel=1", *java, "-cp", f"{home}/jars/*", *arguments]
        if hidden:
            command = _hiding(home, command)
        if core is not None:
            command = ["/usr/bin/taskset", "--cpu-list", str(core), *command]
        with (own / "log").open("ab") as out:
            return subprocess.Popen(
                with_parent_death_signal(command), env=environment, cwd=own, stdout=out, stderr=out
            )


def _is_executor(process: psutil.Process) -> bool:
    try:
        return EXECUTOR in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _hiding(home: Path, command: list[str]) -> list[str]:
    """The command in a mount namespace with Spark at `home`, and without this Python and repository."""
    home.mkdir(exist_ok=True)
    steps = [f"mount --bind {shlex.quote(str(SPARK_HOME))} {shlex.quote(str(home))}"]
    # Python of the system can't be hidden: its directory has everything else.
    installed = [path for path in (sys.prefix, sys.base_prefix) if path not in ("/usr", "/usr/local")]
    for path in dict.fromkeys([*installed, str(REPOSITORY)]):
        steps.append(f"mount -t tmpfs none {shlex.quote(path)}")
    steps.append(f"exec {shlex.join(command)}")
    # Without root, a user namespace gives the right to mount.
    own = ["--mount"] if os.geteuid() == 0 else ["--map-root-user", "--mount"]
    return ["/usr/bin/unshare", *own, "/bin/sh", "-ec", " && ".join(steps)]


def answers(port: int) -> bool:
    """True if somebody listens on this port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def running(cluster: SparkCluster) -> Iterator[SparkCluster]:
    """The cluster, started; all its processes are ended at the end."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
