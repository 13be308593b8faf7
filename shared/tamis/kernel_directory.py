"""The directory of the kernels that the set-up compiles ahead of time, for edges of this installation.

An edge may have 120 MB of memory, and numba with LLVM takes 55 of them. `tamis.kernels` uses the directory
that TAMIS_KERNELS names. In images the variable is set. On the machine of a developer `tamis edge` sets it,
if the directory was made from the kernels as they are now.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import orjson

VARIABLE = "TAMIS_KERNELS"
MODULE = "tamis_precompiled_kernels"
TABLE = "kernels.json"
# The hash of each source file, as it was when the kernels were compiled.
SOURCES = "sources.json"

_PACKAGE = Path(__file__).parent


def default() -> Path:
    """The directory for the installation that runs this."""
    return Path(sys.prefix) / "share" / "tamis" / "kernels"


def choose(directory: Path) -> None:
    """Use the kernels of a directory in this process, if they are current and none are in use yet."""
    if VARIABLE not in os.environ and "tamis.kernels" not in sys.modules and current(directory):
        os.environ[VARIABLE] = str(directory)


def sign(directory: Path) -> None:
    """Note from which sources the kernels of a directory were compiled: the modules that are loaded now and
    have kernels.
    """
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith("tamis.") and hasattr(module, "njit")
    ]
    files = [Path(module.__file__) for module in modules if module.__file__ is not None]
    hashes = {str(file.relative_to(_PACKAGE)): _hash(file) for file in files}
    (directory / SOURCES).write_bytes(orjson.dumps(hashes, option=orjson.OPT_INDENT_2))


def current(directory: Path) -> bool:
    """True if a directory has kernels for this Python, made from the sources as they are now."""
    try:
        hashes: dict[str, str] = orjson.loads((directory / SOURCES).read_bytes())
        return (directory / f"{MODULE}{EXTENSION_SUFFIXES[0]}").is_file() and all(
            _hash(_PACKAGE / name) == known for name, known in hashes.items()
        )
    except FileNotFoundError:
        return False


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
