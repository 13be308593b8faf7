"""Checks that the mirrors answer from which images are made: Debian's, and the package index of Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

LOCK = Path(__file__).resolve().parents[2] / "requirements.lock"
# Small, without dependencies, in every lock.
PACKAGE = "click"


def unreachable() -> str | None:
    """The mirror that doesn't answer, or None if all do."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        command = [
            "apt-get",
            "-qq",
            "-o",
            "Acquire::Retries=1",
            "-o",
            "APT::Update::Error-Mode=any",
            "update",
        ]
        if not _succeeds(command):
            return "Debian's mirror doesn't answer"
    (version,) = re.findall(rf"^{PACKAGE}==(\S+)", LOCK.read_text(), re.MULTILINE)
    with TemporaryDirectory(prefix="tamis-mirror-") as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "-d", folder]
        if not _succeeds([*command, f"{PACKAGE}=={version}"]):
            return "the package index of Python doesn't answer"
    return None


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0
