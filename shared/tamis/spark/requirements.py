"""Requirements of `tamis.spark`: the versions of PySpark that have stateful operators over rows."""

from __future__ import annotations

import re
from importlib import import_module

# `DataFrame.groupBy(…).transformWithState` of Python exists since this version.
OLDEST = (4, 1)
# PySpark needs protobuf for stateful operators, and doesn't declare it.
_PACKAGES = {"pyspark": "pyspark", "pandas": "pandas", "google.protobuf": "protobuf"}


def check_requirements() -> None:
    """Raise ModuleNotFoundError for a missing package, and ImportError for an older PySpark."""
    for module, package in _PACKAGES.items():
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            text = f"tamis.spark needs the Python package {package!r}; install tamis[spark]"
            raise ModuleNotFoundError(text, name=error.name) from error
        if module == "pyspark":
            check_version(str(found.__version__))


def check_version(version: str) -> None:
    """Raise ImportError for a version of PySpark that is too old."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"tamis.spark needs PySpark {oldest} or newer, and {version} is installed; install tamis[spark]"
        )
