"""Pack the environment of executors: `python -m tamis_joiner.environment.pack ARCHIVE.tar.gz`.

The archive has the Python that runs this, its standard library, and the packages of the joiner, so that
the machines of a cluster need nothing of Tamis. It also has the modules that TAMIS_FUNCTIONS names, and the
compiled kernels: numba's cache, and the directory TAMIS_KERNELS if the variable is set. The machines need the
same Linux distribution and the same kind of processor as this one.
"""

from __future__ import annotations

import io
import os
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from tamis import kernel_directory
from tamis.errors import TamisError
from tamis_joiner.environment.contents import (
    NAME,
    OURS,
    Files,
    code_digest,
    function_modules,
    modules,
    packages,
    standard_library,
)

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
KERNELS = "kernels"

# Starts the archive's Python, wherever the archive was unpacked. Kernels are compiled into its own directory.
_PYTHON = f"""#!/bin/sh
home=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
unset PYTHONHOME NUMBA_CACHE_DIR {kernel_directory.VARIABLE}
[ ! -d "$home/{KERNELS}" ] || export {kernel_directory.VARIABLE}="$home/{KERNELS}"
export LD_LIBRARY_PATH="$home/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$home/bin/{VERSION}" "$@"
"""
# A higher level takes six times as long and saves a tenth.
_COMPRESSION = 1


def pack(archive: Path, environment: Mapping[str, str]) -> int:
    """Write the archive; returns the number of its files. `environment` are the joiner's variables.

    Raises TamisError if a module isn't found, and OSError if the archive can't be written.
    """
    draft = archive.with_name(f"{archive.name}.new")
    added: set[str] = set()
    try:
        with tarfile.open(draft, "w:gz", compresslevel=_COMPRESSION) as tar:
            _add(tar, NAME, code_digest(environment).encode(), 0o644)
            for file, name in _contents(environment):
                if name not in added:
                    added.add(name)
                    # Links lead to files of this machine. Times are kept: numba compares them with its cache.
                    tar.add(file.resolve(), name, filter=_anonymous)
            _add(tar, "bin/python", _PYTHON.encode(), 0o755)
        draft.replace(archive)
    finally:
        draft.unlink(missing_ok=True)
    return len(added) + 2


def _contents(environment: Mapping[str, str]) -> Files:
    yield Path(sys.executable), f"bin/{VERSION}"
    yield from _shared_library()
    library = chain(
        modules([*OURS, *function_modules(environment)]), packages("tamis", ["joiner"]), standard_library()
    )
    yield from ((file, f"lib/{VERSION}/{name}") for file, name in library)
    if kernels := environment.get(kernel_directory.VARIABLE):
        root = Path(kernels)
        yield from ((file, f"{KERNELS}/{file.name}") for file in sorted(root.iterdir()) if file.is_file())


def _shared_library() -> Iterator[tuple[Path, str]]:
    """The library of Python itself, if the interpreter is linked with one."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if sysconfig.get_config_var("Py_ENABLE_SHARED") and (file := Path(folder) / name).exists():
        yield file, f"lib/{name}"


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> int:
    """Pack the environment; returns the exit code."""
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".tar.gz"):
        print(f"usage: python -m {__spec__.name} ARCHIVE.tar.gz", file=sys.stderr)
        return 2
    archive = Path(sys.argv[1])
    try:
        count = pack(archive, os.environ)
    except (TamisError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{archive}: {count} files, {archive.stat().st_size / 1e6:.0f} MB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
