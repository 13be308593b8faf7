"""Spark's properties for a cluster: addresses of the driver, size and environment of the executors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tamis.errors import InputError
from tamis.java.jars import jars
from tamis_joiner.checkpoint.location import Location
from tamis_joiner.environment import contents
from tamis_joiner.settings import JoinerSettings

# Variables that Tamis' code in the Python workers reads. With a local master the workers inherit them. Paths
# are only right for executors that have Tamis installed where the joiner has it.
_FORWARDED = ("TAMIS_FUNCTIONS",)
_FORWARDED_PATHS = ("NUMBA_CACHE_DIR", "PYTHONPATH")
_LINE = re.compile(r"(?P<name>[^\s=:]+)(?:\s*[=:]\s*|\s+)(?P<value>.*)")


def is_local(master: str) -> bool:
    """True if all of Spark runs on this machine, in one JVM and its Python workers."""
    return master.startswith("local")


def fetches_jars(settings: JoinerSettings) -> bool:
    """True if executors fetch the jars of Spark's connector from the driver."""
    return not is_local(settings.master) and _elsewhere(settings) and settings.executor_jars is None


def cluster_properties(settings: JoinerSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """The properties that follow from `settings` and this process' environment; none for a local master."""
    if is_local(settings.master):
        return {}
    asked: dict[str, object] = {
        # Executors log at the driver's level. By default they log each request to Kafka.
        "spark.executor.syncLogLevel.enabled": "true",
        "spark.driver.host": settings.driver_host,
        "spark.driver.bindAddress": settings.driver_bind or settings.driver_host,
        "spark.driver.port": settings.driver_port,
        "spark.driver.blockManager.port": settings.block_manager_port,
        "spark.executor.instances": settings.executors,
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.cores": settings.executor_cores,
    }
    asked |= _files(settings, environment)
    if settings.executors and settings.master.startswith("spark:"):
        # A standalone master doesn't limit the number of executors, only that of their cores.
        asked["spark.cores.max"] = settings.executors * (settings.executor_cores or 1)
        asked["spark.executor.cores"] = settings.executor_cores or 1
    names = _FORWARDED if _elsewhere(settings) else _FORWARDED + _FORWARDED_PATHS
    asked |= {f"spark.executorEnv.{name}": environment.get(name) for name in names}
    return {name: str(value) for name, value in asked.items() if value is not None}


def read_properties(path: Path | None, fixed: Mapping[str, str]) -> dict[str, str]:
    """Properties of a file in the format of spark-defaults.conf: a name, white space or `=`, and a value.

    Raises InputError if the file can't be read, or names a property that is `fixed` by the joiner.
    """
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read Spark's properties: {error}", where=str(path)) from error
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not (content := line.strip()) or content.startswith(("#", "!")):
            continue
        match = _LINE.fullmatch(content)
        if match is None or not match["name"].startswith("spark."):
            raise InputError(
                "a property of Spark is expected: a name that begins with 'spark.', and a value",
                where=f"{path}:{number}",
            )
        if match["name"] in fixed:
            raise InputError(
                f"the joiner itself sets {match['name']}",
                where=f"{path}:{number}",
                hint="remove the line, or use the variable TAMIS_JOINER_… for it (services/joiner/README.md)",
            )
        found[match["name"]] = match["value"].strip()
    return found


def _elsewhere(settings: JoinerSettings) -> bool:
    """True if the executors' machines have other paths than the joiner's machine."""
    return settings.environment is not None or settings.executor_python is not None


def _files(settings: JoinerSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Paths of the jars of Spark's connector, and files that executors get from the driver: the jars, if
    their machines don't have them, and the packed environment.
    """
    found = {}
    if settings.executor_jars:
        found["spark.executor.extraClassPath"] = f"{settings.executor_jars.rstrip('/')}/*"
    elif fetches_jars(settings):
        found["spark.jars"] = ",".join(str(jar) for jar in jars("spark"))
    else:
        found["spark.executor.extraClassPath"] = os.pathsep.join(str(jar) for jar in jars("spark"))
    if settings.environment:
        archive = Location.parse(settings.environment)
        if archive.path is not None and not archive.path.is_file():
            raise InputError(
                "there is no packed environment",
                where=str(archive.path),
                hint=f"make it: python -m tamis_joiner.environment.pack {archive.path}",
            )
        if archive.path is not None:
            contents.check_code(archive.path, environment)
        uri = archive.uri if archive.path is None else archive.path.as_uri()
        found["spark.archives"] = f"{uri}#{contents.FOLDER}"
        # Encryption makes the transfer of hundreds of megabytes slow on a busy machine.
        found["spark.files.io.connectionTimeout"] = "900s"
    return found
