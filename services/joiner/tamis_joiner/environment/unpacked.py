"""Names of the unpacked environment, relative to the working directory of an executor."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

# The directory into which Spark unpacks the archive.
FOLDER = "tamis-environment"
PYTHON = f"{FOLDER}/bin/python"


def stand_in(directory: Path) -> None:
    """Make `PYTHON` in `directory` start the Python of this process.

    The driver starts a Python worker, too, by the same relative path as executors. Its JVM gets `directory`
    as its working directory.
    """
    python = directory / PYTHON
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
