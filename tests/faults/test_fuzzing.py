"""Mutated readings, bodies, plans, statements and records: each is accepted, or refused with a reason."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.fuzz import TOOLS
from tests.faults.fuzz_targets import TARGETS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parent.parent.parent
SECONDS = int(os.environ.get("TAMIS_FUZZ_SECONDS", "60"))  # for each target
# A statement takes a hundred times as long as a reading.
LEAST_INPUTS = {"sql": 200}


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_makes_a_reader_fail_hang_or_grow(name: str, tmp_path: Path) -> None:
    assert (TOOLS / "atheris").is_dir(), "`make faults` installs Atheris"
    command = [sys.executable, "-m", "tests.faults.fuzz", name, str(SECONDS), str(tmp_path / "corpus")]
    done = subprocess.run(
        command,
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS + 300,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-5_000:]
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    assert executed is not None, said[-5_000:]
    print(f"{name}: {executed[1]} inputs")
    assert int(executed[1]) >= LEAST_INPUTS.get(name, 2_000)
