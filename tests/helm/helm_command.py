"""Runs `helm`: the one in TAMIS_HELM, or the one on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.helm.chart import CHART, NAMESPACE, RELEASE, VERSIONS


def find_helm() -> str | None:
    """The path of helm; None where there is none."""
    return os.environ.get("TAMIS_HELM") or shutil.which("helm")


def render(
    helm: str, *arguments: str | Path, version: str = VERSIONS[-1]
) -> subprocess.CompletedProcess[str]:
    """`helm template` of the chart. `arguments` are further options, such as `-f FILE`."""
    command = [
        helm,
        "template",
        RELEASE,
        str(CHART),
        "--namespace",
        NAMESPACE,
        "--kube-version",
        f"{version}.0",
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
