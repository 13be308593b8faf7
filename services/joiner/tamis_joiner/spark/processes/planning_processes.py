"""Python processes that Spark starts to plan a query with a source in Python, and keeps for another query.

Each step of planning has a daemon of its own, and a worker that ends after an idle minute: 70 to 90 MB for a
step. The joiner has one query, so nothing needs them once its first batch has ended.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_STEPS = "pyspark.sql.worker."  # the package of the modules that these processes run


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
