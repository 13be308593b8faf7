"""`tamis up` with a query that is not bounded: its file is named, and it ends with 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

STREAMS = """
CREATE STREAM a (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
CREATE STREAM b (k VARCHAR KEY, ts TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);
"""
UNBOUNDED = "\nCREATE ALERT loose AS SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.v > b.v;\n"


def test_a_query_that_is_not_bounded_ends_it_with_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "streams.sql").write_text(STREAMS)
    (tmp_path / "alerts.sql").write_text(UNBOUNDED)
    done = subprocess.run(
        [sys.executable, "-m", "tamis.cli", "up", "streams.sql", "alerts.sql", "--directory", "fleet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert "Error: alerts.sql:2:14: the memory of alert 'loose' is unbounded" in done.stderr
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [command for command in commands if str(tmp_path) in " ".join(command)]
