"""A session of Spark for the tests of `tamis.spark`, as a team's own job has one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tamis.java import class_archives
from tamis.java.jars import jars
from tamis_joiner.spark.processes.unzipped_home import unzipped_home
from tamis_joiner.spark.session import JAVA_OPTIONS, LOCAL_FILES, stop

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


# The archive of the set-up has the classes of these jars, too.
JAVA = " ".join(f'"{option}"' for option in (JAVA_OPTIONS, *class_archives.options("spark")))
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraClassPath": os.pathsep.join(map(str, jars("spark"))),
    "spark.driver.extraJavaOptions": JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Not UTC, so that instants and the texts of times differ.
    "spark.sql.session.timeZone": "Asia/Tokyo",
    STATE_STORE: ROCKSDB,
    **LOCAL_FILES,
}


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """A session with two cores and a state store for streams. It starts and writes files as the joiner's."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with unzipped_home() as home:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
            patch.setenv("PYSPARK_PYTHON", sys.executable)
            patch.setenv("SPARK_HOME", str(home))
            session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        # Other tests in this process start Spark with settings of their own.
        stop(session)
