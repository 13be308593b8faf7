"""Makes the wheels of all locks once, for the builds of all images: `python -m tests.containers.wheels`.

They go to deploy/images/wheels with one lock a service, which has the hashes of these files. A package that
has no wheel (PySpark: 450 MB of source) is built here, after its source was compared with the repository's
lock, and pip keeps it in its cache.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WHEELS = REPOSITORY / "deploy" / "images" / "wheels"
SERVICES = ("alerts", "edge", "joiner", "registry")
LOCKS = {"build": REPOSITORY / "deploy" / "build.lock"} | {
    name: REPOSITORY / "services" / name / "requirements.lock" for name in SERVICES
}


def make() -> None:
    """Make what is missing. A lock that did not change since then costs nothing."""
    WHEELS.mkdir(exist_ok=True)
    for name, lock in LOCKS.items():
        made = WHEELS / f"{name}.lock"
        source = WHEELS / f"{name}.source"
        if not (made.exists() and source.exists() and source.read_bytes() == lock.read_bytes()):
            made.write_text(_lock_of(_wheels(name, lock)))
            shutil.copy(lock, source)
    jars = REPOSITORY / ".jars"
    if jars.is_dir() and not (WHEELS / "jars").exists():
        shutil.copytree(jars, WHEELS / "jars", ignore=shutil.ignore_patterns(".ivy", ".lock"))


def _wheels(name: str, lock: Path) -> list[Path]:
    folder = WHEELS / f".{name}"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--require-hashes", "--requirement", str(lock)]
    subprocess.run([*pip, "--wheel-dir", str(folder), "--find-links", str(WHEELS)], check=True)
    wheels = [wheel.replace(WHEELS / wheel.name) for wheel in sorted(folder.glob("*.whl"))]
    folder.rmdir()
    return wheels


def _lock_of(wheels: list[Path]) -> str:
    lines = []
    for wheel in wheels:
        name, version = re.match(r"([^-]+)-([^-]+)-", wheel.name).groups()  # type: ignore[union-attr]
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return "".join(lines)


if __name__ == "__main__":
    make()
