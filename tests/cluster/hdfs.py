"""A real HDFS on loopback: a name node and data nodes as processes that can be killed and started again."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark
from tests.integration.joiner.spark_cluster import STARTING, answers

from tamis.java.jars import fetch, root
from tamis.java.runtime import find_java
from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import free_ports

MANIFEST = Path(__file__).with_name("jars")
SERVER = "org.apache.hadoop.hdfs.server"
# Of PySpark's jars: Hadoop's client, on which the server's jar builds, and logging.
_OF_SPARK = ("hadoop-client-*.jar", "slf4j-*.jar", "jcl-*.jar", "log4j-*.jar")

Process = subprocess.Popen[bytes]


@dataclass
class Hdfs:
    """A name node and two data nodes. Each block has two replicas. All files are in `folder`, logs too."""

    folder: Path
    datanodes: dict[int, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fetch(manifest=MANIFEST)
        self.folder.mkdir(parents=True)
        (self._port,) = free_ports(1)
        self._configure()

    @property
    def uri(self) -> str:
        """The file system's URI."""
        return f"hdfs://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Format the disk of the name node and start all nodes."""
        command = self._command(0, "namenode.NameNode", "-format", "-nonInteractive")
        subprocess.run(command, check=True, capture_output=True, timeout=STARTING)
        self.start_namenode()
        for number in (1, 2):
            self.start_datanode(number)

    def start_namenode(self) -> None:
        """Start the name node and wait until it answers."""
        self.namenode = self._start(0, "namenode.NameNode")
        deadline = time.monotonic() + STARTING
        while not answers(self._port):
            assert time.monotonic() < deadline, "the name node does not answer"
            assert self.namenode.poll() is None, "the name node has ended"
            time.sleep(0.1)

    def start_datanode(self, number: int) -> None:
        """Start data node 1 or 2."""
        self.datanodes[number] = self._start(number, "datanode.DataNode")

    def stop(self) -> None:
        """End all nodes."""
        for process in (*self.datanodes.values(), self.namenode):
            process.kill()
            process.wait()

    def _configure(self) -> None:
        # Each node has a directory of its own, and therefore its own configuration.
        for number in range(3):
            properties = {
                "fs.defaultFS": self.uri,
                "hadoop.tmp.dir": str(self.folder / f"node-{number}"),
                "dfs.replication": "2",
                "dfs.namenode.http-address": "127.0.0.1:0",
                "dfs.datanode.address": "127.0.0.1:0",
                "dfs.datanode.ipc.address": "127.0.0.1:0",
                "dfs.datanode.http.address": "127.0.0.1:0",
                # A name node that is back takes writes as soon as it knows the blocks again.
                "dfs.namenode.safemode.extension": "0",
                "dfs.permissions.enabled": "false",
            }
            own = self.folder / f"conf-{number}"
            own.mkdir()
            lines = "".join(
                f"<property><name>{name}</name><value>{escape(value)}</value></property>"
                for name, value in properties.items()
            )
            # Hadoop reads this file last.
            (own / "hdfs-site.xml").write_text(f"<configuration>{lines}</configuration>")

    def _command(self, number: int, main: str, *arguments: str) -> list[str]:
        spark = Path(pyspark.__file__).parent / "jars"
        jars = [*(root() / "hdfs").glob("*.jar"), *(jar for name in _OF_SPARK for jar in spark.glob(name))]
        path = ":".join(map(str, [self.folder / f"conf-{number}", *jars]))
        return [
            find_java(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            path,
            f"{SERVER}.{main}",
            *arguments,
        ]

    def _start(self, number: int, main: str) -> Process:
        with (self.folder / f"node-{number}.log").open("ab") as out:
            return subprocess.Popen(
                with_parent_death_signal(self._command(number, main)), cwd=self.folder, stdout=out, stderr=out
            )
