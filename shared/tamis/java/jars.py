"""Fetches the jars of `deploy/jars/ivy.xml` and checks them against `deploy/jars/SHA256SUMS`.

The jars go to `.jars/{spark,broker}/` in the repository, or to the directory TAMIS_JARS. The tool is Apache
Ivy, which is part of PySpark, with its default repository. Jars that are present and correct are not
fetched again. A directory of jars appears only when it is complete.

    python -m tamis.java.jars
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tamis.errors import TamisError, UnavailableError
from tamis.java.runtime import find_java

Configuration = Literal["spark", "broker"]

_REPOSITORY = Path(__file__).resolve().parents[3]
_MANIFEST = _REPOSITORY / "deploy" / "jars"
_HINT = "run `python -m tamis.java.jars`, or set TAMIS_JARS to a directory that has them"


def root() -> Path:
    """The directory that holds `spark/` and `broker/`: TAMIS_JARS, or `.jars` in the repository."""
    named = os.environ.get("TAMIS_JARS")
    return Path(named).resolve() if named else _REPOSITORY / ".jars"


def jars(configuration: Configuration) -> list[Path]:
    """The jars of one configuration, sorted. Raises UnavailableError if they were not fetched."""
    directory = root() / configuration
    found = sorted(directory.glob("*.jar"))
    if not found:
        raise UnavailableError(
            f"the jars of the {configuration} are missing", where=str(directory), hint=_HINT
        )
    return found


def fetch(
    progress: Callable[[int, int], None] = lambda done, total: None, manifest: Path = _MANIFEST
) -> bool:
    """Fetch the jars if some are missing or wrong; returns whether that was necessary.

    `progress` is called with the number of fetched jars and with the total. `manifest` is the directory of
    `ivy.xml` and `SHA256SUMS`, whose paths begin with the name of a configuration. Raises UnavailableError if
    the jars can't be fetched, and TamisError if they differ from SHA256SUMS.
    """
    sums = read_sums((manifest / "SHA256SUMS").read_text(encoding="utf-8"))
    home = root()
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home / ".lock"):
        if not differences(home, sums):
            return False
        # If a fetch is interrupted, the cache stays, and the next fetch continues from it.
        cache = home / ".ivy"
        with tempfile.TemporaryDirectory(dir=home, prefix=".incoming-") as temporary:
            incoming = Path(temporary)
            _run_ivy(manifest / "ivy.xml", cache, incoming, lambda done: progress(done, len(sums)))
            wrong = differences(incoming, sums)
            if wrong:
                shutil.rmtree(cache, ignore_errors=True)
                raise TamisError(
                    "the fetched jars are not the expected ones: " + "; ".join(wrong),
                    where=str(manifest / "SHA256SUMS"),
                    hint="don't use them, unless you changed ivy.xml and know why they differ",
                )
            for configuration in _configurations(sums):
                _replace(incoming / configuration, home / configuration)
        shutil.rmtree(cache)
    return True


def read_sums(text: str) -> dict[str, str]:
    """The output of `sha256sum` as a map from path to hexadecimal digest.

    >>> read_sums("ab12  spark/a-1.jar")
    {'spark/a-1.jar': 'ab12'}
    """
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {path: digest for digest, path in lines}


def differences(directory: Path, sums: Mapping[str, str]) -> list[str]:
    """A phrase for each jar in `directory` that is missing, wrong or not in `sums`."""
    found = {
        f"{configuration}/{jar.name}": jar
        for configuration in _configurations(sums)
        for jar in (directory / configuration).glob("*.jar")
    }
    problems = [f"{name} is missing" for name in sorted(sums.keys() - found.keys())]
    for name, jar in sorted(found.items()):
        with jar.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sums.get(name):
            problems.append(f"{name} has SHA-256 {digest}, expected {sums.get(name, 'no such jar')}")
    return problems


def _configurations(sums: Mapping[str, str]) -> list[str]:
    return sorted({name.partition("/")[0] for name in sums})


def _run_ivy(ivy_xml: Path, cache: Path, destination: Path, progress: Callable[[int], None]) -> None:
    command = [
        find_java(),
        "-jar",
        str(_ivy_jar()),
        "-ivy",
        str(ivy_xml),
        "-cache",
        str(cache),
        "-retrieve",
        f"{destination}/[conf]/[artifact]-[revision].[ext]",
        "-types",
        "jar",
        "bundle",
    ]
    said = []
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        try:
            for line in ivy.stdout:
                said.append(line.rstrip())
                if "[SUCCESSFUL ]" in line:
                    done += 1
                    progress(done)
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode:
        raise UnavailableError(
            "Ivy could not fetch the jars; its output ends:\n  " + "\n  ".join(said[-15:]),
            where=str(ivy_xml),
            hint="check that this machine reaches a Maven repository, and try again: finished jars are kept",
        )


def _ivy_jar() -> Path:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise UnavailableError(
            "PySpark, which contains Ivy, is not installed", hint="install `tamis[joiner]`"
        )
    folder = Path(spark.origin).parent / "jars"
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise UnavailableError(
            "PySpark contains no Ivy", where=str(folder), hint="install the pinned PySpark"
        )
    return found[-1]


def _replace(new: Path, old: Path) -> None:
    """Replace a directory by another; the old one moves beside the new one's former place."""
    if old.exists():
        old.rename(new.with_name(f"{new.name}-old"))
    new.rename(old)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lock that only one process at a time can hold."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _show(done: int, total: int) -> None:
    """Show the progress on a terminal."""
    if sys.stderr.isatty():
        print(f"\rfetching jars: {done} of {total}", end="", file=sys.stderr, flush=True)


def _main() -> int:
    try:
        fetched = fetch(_show)
    except TamisError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"jars {'fetched into' if fetched else 'are complete in'} {root()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
