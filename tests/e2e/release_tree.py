"""Source tree of an earlier commit, whose services run in this venv by PYTHONPATH."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Trees are kept here: compiling their kernels takes half a minute.
RELEASES = Path(sys.prefix) / "releases"
_ROOTS = ("shared", "services/edge", "services/registry", "services/joiner", "services/alerts")


class NoCommitError(LookupError):
    """The clone doesn't have the commit."""


def release_tree(commit: str) -> dict[str, str]:
    """Unpack the sources of a commit, unless they are there; returns the environment with which services run
    them.

    Raises NoCommitError if the clone doesn't have the commit, such as a shallow clone.
    """
    tree = RELEASES / commit
    if not tree.exists():
        packed = _archive(commit)
        RELEASES.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=RELEASES) as temporary:
            made = Path(temporary) / commit
            with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                tar.extractall(made, filter="data")
            _python(made, "-m", "tamis.compile_kernels")
            try:
                made.rename(tree)
            except OSError:
                if not tree.exists():  # else another process was faster
                    raise
    found = _python(tree, "-c", "import tamis; print(tamis.__file__)")
    assert Path(found.strip()).is_relative_to(tree), found
    return _environment(tree)


def _archive(commit: str) -> bytes:
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        raise NoCommitError("this is not a git clone")
    command = [git, "archive", commit, "shared", "services"]
    packed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, timeout=60, check=False)
    if packed.returncode:
        raise NoCommitError(packed.stderr.decode().strip())
    return packed.stdout


def _environment(tree: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": os.pathsep.join(str(tree / root) for root in _ROOTS),
        "TAMIS_JARS": os.environ.get("TAMIS_JARS", str(REPOSITORY / ".jars")),
    }


def _python(tree: Path, *arguments: str) -> str:
    """The output of Python with the sources of a tree."""
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        env={**os.environ, **_environment(tree)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
