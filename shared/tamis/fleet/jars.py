"""Fetches the jars of `deploy/jars/ivy.xml` and checks each against `deploy/jars/SHA256SUMS`.

They go to `.jars/{spark,broker}/` of the repository, or to the directory that TAMIS_JARS names. The tool is
Apache Ivy, which PySpark carries; where it fetches from is its own default. What is there and right is not
fetched again, and a directory of jars appears whole or not at all.

    python -m tamis.fleet.jars
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

from rich.console import Console
from rich.progress import Progress

from tamis.errors import TamisError, UnavailableError
from tamis.fleet.java import find_java

Configuration = Literal["spark", "broker"]
CONFIGURATIONS: tuple[Configuration, ...] = ("spark", "broker")

_REPOSITORY = Path(__file__).resolve().parents[3]
_MANIFEST = _REPOSITORY / "deploy" / "jars"
_HINT = "run `python -m tamis.fleet.jars`, or set TAMIS_JARS to a directory that has them"


def root() -> Path:
    """The directory that holds `spark/` and `broker/`: TAMIS_JARS, or `.jars` in the repository."""
    named = os.environ.get("TAMIS_JARS")
    return Path(named).resolve() if named else _REPOSITORY / ".jars"


def jars(configuration: Configuration) -> list[Path]:
    """The jars of one configuration, sorted. Raises UnavailableError when they were not fetched."""
    directory = root() / configuration
    found = sorted(directory.glob("*.jar"))
    if not found:
        raise UnavailableError(
            f"the jars of the {configuration} are not there", where=str(directory), hint=_HINT
        )
    return found


def fetch(progress: Callable[[int, int], None] = lambda done, total: None) -> bool:
    """Makes sure that all jars are there; True when some had to be fetched.

    `progress` is called with the jars fetched so far and their total. Raises UnavailableError when they
    can't be fetched, TamisError when what came is not what SHA256SUMS lists.
    """
    sums = read_sums((_MANIFEST / "SHA256SUMS").read_text(encoding="utf-8"))
    home = root()
    home.mkdir(parents=True, exist_ok=True)
    with _lock(home / ".lock"):
        if not differences(home, sums):
            return False
        # Kept when a fetch breaks off, so that the next one goes on where it stopped.
        cache = home / ".ivy"
        with tempfile.TemporaryDirectory(dir=home, prefix=".incoming-") as temporary:
            incoming = Path(temporary)
            _run_ivy(cache, incoming, lambda done: progress(done, len(sums)))
            wrong = differences(incoming, sums)
            if wrong:
                shutil.rmtree(cache, ignore_errors=True)
                raise TamisError(
                    "the jars that came are not those that are expected: " + "; ".join(wrong),
                    where=str(_MANIFEST / "SHA256SUMS"),
                    hint="don't use them unless you changed ivy.xml and know why they differ",
                )
            for configuration in CONFIGURATIONS:
                _replace(incoming / configuration, home / configuration)
        shutil.rmtree(cache)
    return True


def read_sums(text: str) -> dict[str, str]:
    """The lines of `sha256sum`, as path -> hexadecimal digest.

    >>> read_sums("ab12  spark/a-1.jar")
    {'spark/a-1.jar': 'ab12'}
    """
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {path: digest for digest, path in lines}


def differences(directory: Path, sums: Mapping[str, str]) -> list[str]:
    """What in `directory` is missing, wrong or too much, one phrase each; empty when all is as in `sums`."""
    found = {
        f"{configuration}/{jar.name}": jar
        for configuration in CONFIGURATIONS
        for jar in (directory / configuration).glob("*.jar")
    }
    problems = [f"{name} is missing" for name in sorted(sums.keys() - found.keys())]
    for name, jar in sorted(found.items()):
        with jar.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sums.get(name):
            problems.append(f"{name} has SHA-256 {digest}, expected {sums.get(name, 'no such jar')}")
    return problems


def _run_ivy(cache: Path, destination: Path, progress: Callable[[int], None]) -> None:
    command = [
        find_java(),
        "-jar",
        str(_ivy_jar()),
        "-ivy",
        str(_MANIFEST / "ivy.xml"),
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
            "Ivy could not fetch the jars; its last words:\n  " + "\n  ".join(said[-15:]),
            where=str(_MANIFEST / "ivy.xml"),
            hint="see that this machine reaches a Maven repository and run it again: it resumes",
        )


def _ivy_jar() -> Path:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise UnavailableError("PySpark, which carries Ivy, is not installed", hint="install `tamis[joiner]`")
    folder = Path(spark.origin).parent / "jars"
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise UnavailableError("PySpark carries no Ivy", where=str(folder), hint="install the pinned PySpark")
    return found[-1]


def _replace(new: Path, old: Path) -> None:
    """Puts a directory in another's place; the old one goes to where the new one was."""
    if old.exists():
        old.rename(new.with_name(f"{new.name}-old"))
    new.rename(old)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Lets one process at a time fetch into a directory."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _main() -> int:
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("Fetching jars", total=None)
        try:
            fetched = fetch(lambda done, total: shown.update(task, completed=done, total=total))
        except TamisError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    print(f"jars {'fetched into' if fetched else 'are complete in'} {root()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
