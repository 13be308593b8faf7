"""Python processes of Spark until its first batch: an early worker, and those that plan the query.

The daemon of the workers imports their modules for two seconds. Without a worker that is started while Spark
plans the query, it would do so in the first batch, after the planning.

Spark starts Python processes to plan a query with a source in Python, and keeps them for another query. Each
step of planning has a daemon of its own, and a worker that ends after an idle minute: 70 to 90 MB for a step.
The joiner has one query, so nothing needs them once its first batch has ended.
"""

from __future__ import annotations

import threading
from typing import Any

from pyspark.sql import SparkSession

from tamis.telemetry import get_logger

log = get_logger("joiner")

_STEPS = "pyspark.sql.worker."  # the package of the modules that these processes run


def start_first_worker(spark: SparkSession) -> None:
    """Have a worker do nothing, in a thread. The first batch finds it idle, and its daemon ready."""
    threading.Thread(target=_run, args=(spark,), name="first-worker", daemon=True).start()


def _run(spark: SparkSession) -> None:
    try:
        spark.sparkContext.parallelize([0], 1).foreach(_nothing)
    except Exception as error:
        # Errors of a Spark that is stopped meanwhile have no common class. Otherwise the query starts workers
        # itself, and reports if they are too slow.
        log.info("no Python worker before the first batch", reason=str(error).partition("\n")[0])


def _nothing(_: int) -> None:
    """Work of the first worker: none."""


def skip_lookup(spark: SparkSession) -> None:
    """Let Spark not look for packages of Python with sources, which takes a process and a second. The joiner
    registers the only source that it uses.
    """
    jvm: Any = spark._jvm
    manager = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$")
    none = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    getattr(getattr(manager, "MODULE$"), "dataSourceBuilders_$eq")(jvm.scala.Option.apply(none))


def end_planning_processes(spark: SparkSession) -> None:
    """End them. Spark starts them again when it plans another query. Not to be called while it plans one."""
    # Spark has no public name for them. It must end them itself: it expects those to live that it knows.
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    env = jvm.org.apache.spark.SparkEnv.get()
    workers = env.getClass().getDeclaredMethod("pythonWorkers", gateway.new_array(jvm.java.lang.Class, 0))
    workers.setAccessible(True)
    factories = workers.invoke(env, gateway.new_array(jvm.java.lang.Object, 0)).values().iterator()
    while factories.hasNext():
        factory = factories.next()
        module = factory.getClass().getDeclaredField("workerModule")
        module.setAccessible(True)
        if module.get(factory).startswith(_STEPS):
            factory.stop()
