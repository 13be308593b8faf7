"""Java runtime of the broker, Spark and Ivy: its path and version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tamis.errors import UnavailableError

# Spark 4 and Kafka 4 need at least this version.
MINIMUM_VERSION = 17

_HINT = f"install a Java {MINIMUM_VERSION} runtime, or set JAVA_HOME to one"


def find_java() -> str:
    """The path of a `java` of version 17 or newer: the one of JAVA_HOME, or else the first on PATH.

    Raises UnavailableError if there is none, or if it is older.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if java is None:
        raise UnavailableError("no java found", where=f"JAVA_HOME={home}" if home else "PATH", hint=_HINT)
    # `java -version` writes to standard error.
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    version = java_version(said)
    if version is None:
        raise UnavailableError("java does not print its version", where=java, hint=_HINT)
    if version < MINIMUM_VERSION:
        raise UnavailableError(
            f"Java {version} is too old, {MINIMUM_VERSION} or newer is needed", where=java, hint=_HINT
        )
    return java


def java_version(said: str) -> int | None:
    """The feature version in the output of `java -version`; None if it has none.

    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> java_version('java version "1.8.0_292"')
    8
    """
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else None
