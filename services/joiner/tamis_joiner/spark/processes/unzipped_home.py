"""Home directory of Spark in which Python workers find no archive of PySpark's modules.

Spark puts `python/lib/pyspark.zip` of its home before all other modules of its Python processes. The archive
has no compiled modules, so every process compiles them again, which takes half a second and more. The modules
of the installed package are the same, and compiled.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import UnavailableError
from tamis.java.jars import root

# What Spark's JVM is started from: its scripts and its jars.
_PARTS = ("bin", "jars")


@contextmanager
def unzipped_home() -> Iterator[Path]:
    """A directory with links to the parts of the installed PySpark: that of the set-up, or a temporary one.
    The JVM needs it for as long as it runs.

    Raises UnavailableError if PySpark isn't installed.
    """
    installed, kept = _installed(), _kept()
    if all((kept / part).resolve() == (installed / part).resolve() for part in _PARTS):
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="tamis-spark-") as name:
        _link(Path(name), installed)
        yield Path(name)


def keep_unzipped_home() -> None:
    """Make the directory of the set-up. Its path is in the archive of Spark's classes, so it must last."""
    shutil.rmtree(_kept(), ignore_errors=True)
    _kept().mkdir()
    _link(_kept(), _installed())


def _kept() -> Path:
    return root() / "spark-home"


def _link(home: Path, installed: Path) -> None:
    for part in _PARTS:
        (home / part).symlink_to(installed / part, target_is_directory=True)


def _installed() -> Path:
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise UnavailableError("PySpark is not installed", hint="install `tamis[joiner]`")
    return Path(package.origin).parent
