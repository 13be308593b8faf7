"""The command of an executor in a pod of Kubernetes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.errors import InputError
from tamis_joiner.spark.processes.kubernetes_executor import command

# As Spark 4.2 sets them.
ENVIRONMENT = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@tamis-joiner.plant.svc:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "tamis-joiner-executor-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_CLASSPATH": "/opt/tamis/jars/spark/a.jar:/opt/tamis/jars/spark/b.jar",
    **{f"SPARK_JAVA_OPT_{number}": f"-Doption={number}" for number in range(11)},
}


def test_the_jvm_gets_the_driver_and_its_part_of_the_work() -> None:
    found = command("/usr/bin/java", Path("/opt/spark/jars"), ENVIRONMENT)
    main = found.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    options = dict(zip(found[main + 1 :: 2], found[main + 2 :: 2], strict=True))
    assert options == {
        "--driver-url": "spark://CoarseGrainedScheduler@tamis-joiner.plant.svc:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "tamis-joiner-executor-exec-3",
    }
    assert found[main - 1] == "/opt/tamis/jars/spark/a.jar:/opt/tamis/jars/spark/b.jar:/opt/spark/jars/*"
    assert {"-Xms1024m", "-Xmx1024m"} <= set(found[:main])


def test_options_of_java_keep_their_order() -> None:
    found = command("java", Path("/jars"), ENVIRONMENT)
    assert [option for option in found if option.startswith("-Doption=")] == [
        f"-Doption={number}" for number in range(11)
    ]


def test_a_process_that_spark_did_not_start_says_what_is_missing() -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "SPARK_DRIVER_URL"}
    with pytest.raises(InputError, match="not set: SPARK_DRIVER_URL"):
        command("java", Path("/jars"), environment)
