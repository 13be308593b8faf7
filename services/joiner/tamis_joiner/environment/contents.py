"""Files of the environment of executors: the standard library, the packages of the joiner, and modules."""

from __future__ import annotations

import re
import shlex
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from tamis.errors import InputError
from tamis.expressions.python_functions import SETTING as FUNCTIONS

# Packages of Tamis that run in executors.
OURS = ("tamis", "tamis_joiner")

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[^\]]*)\])?(?P<rest>.*)")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([^\"']+)[\"']")

# Of the standard library: what needs a screen, installs packages, or tests Python itself.
_NOT_OF_LIBRARY = {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "dist-packages"}
# Of PySpark: the executors have a Spark of their own.
_NOT_OF_SPARK = {"jars", "bin", "sbin", "examples", "data", "licenses", "python"}

Files = Iterator[tuple[Path, str]]
"""Each file, and its name in the directory `lib/pythonX.Y` of the environment."""

# The first file of an archive, so that reading it does not decompress the rest.
NAME = "code.sha256"
_LONGEST = 200  # bytes of this file that are read

# The directory into which Spark unpacks the archive.
FOLDER = "tamis-environment"
PYTHON = f"{FOLDER}/bin/python"


def standard_library() -> Files:
    """The standard library of the Python that runs this, without site-packages."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.iterdir()):
        if path.name in _NOT_OF_LIBRARY or path.name.startswith("config-"):
            continue
        for file in _files(path):
            if "test" not in (parts := file.relative_to(root).parts) and "tests" not in parts:
                yield file, file.relative_to(root).as_posix()


def packages(name: str, extras: Sequence[str]) -> Files:
    """The files of all distributions that `name[extras]` requires, without those of `name` itself.

    Raises InputError if `name` isn't installed.
    """
    found: dict[str, Distribution] = {}
    done: set[tuple[str, str]] = set()
    _require(name, ["", *extras], found, done)
    if name not in found:
        raise InputError(f"the package {name} isn't installed", hint="run this in the joiner's environment")
    for other in sorted(found.keys() - {name}):
        for entry in found[other].files or ():
            parts = entry.parts
            spark = parts[0] == "pyspark" and len(parts) > 2 and parts[1] in _NOT_OF_SPARK
            if ".." in parts or spark or "tests" in parts:
                continue
            if (file := Path(str(entry.locate()))).is_file():
                yield file, f"site-packages/{entry.as_posix()}"


def modules(names: Sequence[str]) -> Files:
    """The files of importable modules or packages. Raises InputError if one isn't found."""
    for name in names:
        top = name.partition(".")[0]
        spec = find_spec(top)
        if spec is None or (spec.origin is None and not spec.submodule_search_locations):
            raise InputError(
                f"the module {name!r} isn't found", hint="install it, or correct TAMIS_FUNCTIONS"
            )
        places = spec.submodule_search_locations
        for path in map(Path, places or [str(spec.origin)]):
            for file in _files(path):
                yield file, f"site-packages/{file.relative_to(path.parent).as_posix()}"


def _require(
    name: str, extras: Sequence[str], found: dict[str, Distribution], done: set[tuple[str, str]]
) -> None:
    """Add a distribution and all that it requires to `found`. Other platforms' packages aren't installed."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if not (new := [extra for extra in extras if (key, extra) not in done]):
        return
    done |= {(key, extra) for extra in new}
    try:
        found.setdefault(key, distribution(name))
    except PackageNotFoundError:
        return
    for line in found[key].requires or ():
        match = _REQUIREMENT.match(line)
        assert match is not None
        of_extra = _EXTRA.search(match["rest"])
        if (of_extra[1] if of_extra else "") in new:
            wanted = [extra.strip() for extra in (match["extras"] or "").split(",") if extra.strip()]
            _require(match["name"], ["", *wanted], found, done)


def _files(path: Path) -> Iterator[Path]:
    return (file for file in sorted(path.rglob("*")) if file.is_file()) if path.is_dir() else iter([path])


def function_modules(environment: Mapping[str, str]) -> list[str]:
    """The modules that the variable TAMIS_FUNCTIONS names."""
    return environment.get(FUNCTIONS, "").replace(",", " ").split()


def code_digest(environment: Mapping[str, str]) -> str:
    """SHA-256 of the Python files of Tamis and of the modules in TAMIS_FUNCTIONS, with their names.

    Raises InputError if a module isn't found.
    """
    found = sha256()
    files = {name: file for file, name in modules([*OURS, *function_modules(environment)])}
    for name in sorted(name for name in files if name.endswith(".py")):
        content = files[name].read_bytes()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def check_code(archive: Path, environment: Mapping[str, str]) -> None:
    """Raises InputError if `archive` has other code than this process, or can't be read.

    Executors that run other code than the joiner would join by the rules of another release, or evaluate
    older functions, without an error.
    """
    try:
        with tarfile.open(archive) as tar:
            first = tar.next()
            member = tar.extractfile(first) if first is not None and first.name == NAME else None
            packed = "" if member is None else member.read(_LONGEST).decode("ascii", "replace")
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(
            f"this isn't a packed environment: {error}", where=str(archive), hint=_hint(archive)
        ) from error
    if packed != code_digest(environment):
        raise InputError(
            "the environment was packed from another version of Tamis, or of the modules in TAMIS_FUNCTIONS",
            where=str(archive),
            hint=_hint(archive),
        )


def _hint(archive: Path) -> str:
    return f"pack it again: python -m tamis_joiner.environment.pack {archive}"


def stand_in(directory: Path) -> None:
    """Make `PYTHON` in `directory` start the Python of this process.

    The driver starts a Python worker, too, by the same relative path as executors. Its JVM gets `directory`
    as its working directory.
    """
    python = directory / PYTHON
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
