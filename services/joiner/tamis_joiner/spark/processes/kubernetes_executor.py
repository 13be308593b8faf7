"""Start of a Spark executor in a pod of Kubernetes, from the variables that Spark's driver sets.

Spark starts its pods with the argument `executor` and expects the script of its own images, which PySpark
doesn't carry. This module does the same with the jars of PySpark. The Helm chart's pod template names it:

    python -m tamis_joiner.spark.processes.kubernetes_executor executor
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tamis.errors import InputError, TamisError
from tamis.java.runtime import find_java
from tamis.settings.common import keep_new_files_private

_MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
# Option of the executor: variable of the pod.
_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
_JAVA_OPTION = "SPARK_JAVA_OPT_"


def command(java: str, jars: Path, environment: Mapping[str, str]) -> list[str]:
    """The command of the executor's JVM. `jars` is the directory of Spark's own jars.

    Raises InputError where a variable is missing: the process wasn't started by Spark's driver.
    """
    needed = [*_OPTIONS.values(), "SPARK_EXECUTOR_MEMORY"]
    if missing := [name for name in needed if name not in environment]:
        raise InputError(
            f"not set: {', '.join(missing)}",
            where="environment",
            hint="this process is started by Spark's driver, in a pod of Kubernetes",
        )
    # Numbered from 0; a JVM takes the last of equal options.
    numbers = sorted(
        int(name.removeprefix(_JAVA_OPTION)) for name in environment if name.startswith(_JAVA_OPTION)
    )
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    # Jars of `spark.executor.extraClassPath` come before Spark's, as in Spark's images.
    class_path = [path for path in (environment.get("SPARK_CLASSPATH"), f"{jars}/*") if path]
    found = [java, *(environment[f"{_JAVA_OPTION}{number}"] for number in numbers)]
    found += [f"-Xms{memory}", f"-Xmx{memory}", "-cp", os.pathsep.join(class_path), _MAIN]
    for option, name in _OPTIONS.items():
        found += [option, environment[name]]
    return found


def main() -> None:
    """Replace this process by the executor's JVM."""
    try:
        asked = command(find_java(), Path(pyspark.__file__).parent / "jars", os.environ)
    except TamisError as error:
        sys.exit(str(error))
    keep_new_files_private()
    os.execv(asked[0], asked)


if __name__ == "__main__":
    main()
