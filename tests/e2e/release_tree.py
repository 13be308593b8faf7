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
    """The commit can't be in this directory: it is no git clone, or a shallow one."""


def release_tree(commit: str) -> dict[str, str]:
    """Unpack the sources of a commit, unless they are there; returns the environment with which services run
    them.

    Raises NoCommitError in a shallow clone that doesn't have the commit, and outside of a clone.
    """
    tree = RELEASES / commit
    if not tree.exists():
        packed = _archive(commit)
        RELEASES.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=RELEASES) as temporary:
            made = Path(temporary) / commit
            with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                tar.extractall(made, filter="data")
            _python(made, "-m", _kernel_module(made))
            try:
                made.rename(tree)
            except OSError:
                if not tree.exists():  # else another process was faster
                    raise
    found = _python(tree, "-c", "import tamis; print(tamis.__file__)")
    assert Path(found.strip()).is_relative_to(tree), found
    return _environment(tree)


def _kernel_module(tree: Path) -> str:
    """The module that compiles the kernels of a tree."""
    former = tree / "shared/tamis/fleet/kernels.py"
    return "tamis.fleet.kernels" if former.exists() else "tamis.compile_kernels"


def _archive(commit: str) -> bytes:
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        raise NoCommitError(f"{REPOSITORY} is no git clone, or git isn't installed")
    packed = _git(git, "archive", commit, "shared", "services")
    if packed.returncode:
        why = packed.stderr.decode().strip()
        # In a full clone a missing commit is a mistake: the commit is no longer a part of the history.
        assert _git(git, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true", why
        raise NoCommitError(f"this clone is shallow (`git fetch --unshallow` completes it): {why}")
    return packed.stdout


def _git(git: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([git, *arguments], cwd=REPOSITORY, capture_output=True, timeout=60, check=False)


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
