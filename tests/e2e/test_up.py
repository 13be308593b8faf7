"""`tamis up` for a user's own file: readings in by HTTP, an alarm out, Ctrl-C leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import orjson
import psutil
import pytest
from tests.e2e.feeder import STREAMS, close_alert

STOP_SECONDS = 15.0


def tamis(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tamis.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def read_until(process: subprocess.Popen[str], pattern: str, seconds: float) -> str:
    """What the process prints, up to the first line that matches."""
    assert process.stdout is not None
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    said = ""
    try:
        for line in process.stdout:
            said += line
            if re.search(pattern, line):
                return said
    finally:
        timer.cancel()
    raise AssertionError(f"{pattern!r} was not said: {said}")


@pytest.mark.timeout(600)  # several minutes where others want the cores too
def test_up_raises_an_alarm_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "alerts.sql").write_text(STREAMS + close_alert("warm", 5.0))
    up = tamis("up", str(tmp_path / "alerts.sql"), "--directory", str(tmp_path / "fleet"))
    try:
        said = read_until(up, "tamis watch", 400)
        bootstrap = re.search(r"TAMIS_KAFKA_BOOTSTRAP=(\S+)", said)
        posts = re.search(r"POST (http://127\.0\.0\.1:\d+)", said)
        assert bootstrap and posts
        children = psutil.Process(up.pid).children(recursive=True)
        assert len(children) >= 6, "broker, registry, joiner with its JVM, alerts, edge"
        watch = tamis("watch", "warm", "--json", "--from-beginning", "--bootstrap", bootstrap[1])
        try:
            for stream, row in {
                "air": {"station": "k1", "ts": "2026-01-01T06:00:00Z", "temp": 12.0, "rh": 99.0},
                "surface": {"station": "k1", "ts": "2026-01-01T06:00:03Z", "temp": 3.5},
            }.items():
                answer = httpx.post(f"{posts[1]}/v1/streams/{stream}", json=row)
                assert answer.status_code == 202
            alarm = orjson.loads(read_until(watch, '"event_time"', 120).splitlines()[-1])
            assert alarm["row"]["difference"] == 8.5
            assert alarm["key"] == ["k1"]
            watch.send_signal(signal.SIGINT)
            assert watch.wait(10) == 0
        finally:
            watch.kill()
            watch.communicate()
        began = time.monotonic()
        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0
        assert time.monotonic() - began < STOP_SECONDS
        left = [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        assert not left
    finally:
        up.kill()
        up.communicate()
