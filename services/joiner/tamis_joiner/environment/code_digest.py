"""The code that an environment was packed from, and the check that the joiner runs the same code.

Executors that run other code than the joiner would join by the rules of another release, or evaluate older
functions, without an error.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tamis.errors import InputError
from tamis.expressions.python_functions import SETTING as FUNCTIONS
from tamis_joiner.environment.contents import OURS, modules

# The first file of an archive, so that reading it does not decompress the rest.
NAME = "code.sha256"
_LONGEST = 200  # bytes of this file that are read


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


def check(archive: Path, environment: Mapping[str, str]) -> None:
    """Raises InputError if `archive` has other code than this process, or can't be read."""
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
