"""The Helm chart's checks with helm, as a part of `make test-containers`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(1800)
def test_the_chart() -> None:
    if not (shutil.which("helm") or shutil.which("go")):
        pytest.skip("there is neither helm nor Go 1.26 to build it")
    done = subprocess.run(
        ["tests/containers/helm.sh", ".helm"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
