"""Spark's JVM is killed, as by a system that is short of memory: the joiner's error says so."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: PySpark can't start again in one whose JVM was killed.
JOINER = """
from tamis.errors import UnavailableError
from tamis_joiner.settings import JoinerSettings
from tamis_joiner.spark.session import running_spark

try:
    with running_spark(JoinerSettings(master="local[1]", memory="512m"), local_files=True) as spark:
        spark.sparkContext._gateway.proc.kill()
        spark.range(1).collect()
except UnavailableError as error:
    print("ended with:", error)
"""


def test_a_killed_jvm_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOINER], check=False, capture_output=True, text=True, timeout=120
    )
    assert "Spark's JVM was killed by SIGKILL; if the system's log says that memory" in done.stdout, (
        done.stderr
    )
