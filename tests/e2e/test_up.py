"""`tamis up` with a user's file: readings over HTTP, an alarm, killed services, and a clean stop.

Alarms of `tamis up --secure` are read in test_planted_secrets.py.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import httpx
import orjson
import psutil
import pytest
from tests.e2e.feeder import STREAMS, close_alert
from tests.unit.cli.samples import masked, sample

STOP_SECONDS = 15.0
SERVICES = ("kafka", "registry", "joiner", "alerts", "edge")


TAMIS = [sys.executable, "-P", "-m", "tamis.cli"]


def tamis(*arguments: str, stderr: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TAMIS, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        umask=0,  # the widest rights that a shell can give
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


def post(url: str, stream: str, row: dict[str, object], seconds: float = 60) -> None:
    """Post a reading, and again while the edge is away."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            answer = httpx.post(f"{url}/v1/streams/{stream}", json=row, timeout=30)
            if answer.status_code == httpx.codes.ACCEPTED:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.2)


def alarm(url: str, watch: subprocess.Popen[str], minute: int, temp: float) -> dict[str, Any]:
    """The alarm that readings of this minute raise."""
    post(url, "air", {"station": "k1", "ts": f"2026-01-01T06:{minute:02}:00Z", "temp": temp, "rh": 99.0})
    post(url, "surface", {"station": "k1", "ts": f"2026-01-01T06:{minute:02}:03Z", "temp": 3.5})
    said = read_until(watch, rf'"event_time".*"difference":{temp - 3.5}', 300)
    found: dict[str, Any] = orjson.loads(said.splitlines()[-1])
    return found


def open_to_others(directory: Path) -> list[Path]:
    """Files and directories below this one on which anybody else has a right, but for links."""
    found = list(directory.rglob("*"))
    assert len(found) > 10, "there is nothing to look at"
    # Some end between the two looks at them.
    return [file for file in found if file.exists() and not file.is_symlink() and file.stat().st_mode & 0o077]


@pytest.mark.timeout(900)  # several minutes where others want the cores too
def test_up_raises_alarms_though_its_services_are_killed_and_ends_at_ctrl_c(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alerts.sql").write_text(STREAMS + close_alert("warm", 5.0))
    (tmp_path / "fleet/logs").mkdir(parents=True)
    (tmp_path / "fleet/logs").chmod(0o777)  # of an earlier version
    temporary = tmp_path_factory.mktemp("t")  # the path of a socket has 107 bytes at most
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(temporary))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Djava.io.tmpdir={temporary}")
    (tmp_path / "grp.py").write_text("raise SystemExit('of the working directory')\n")
    monkeypatch.chdir(tmp_path)
    told = tmp_path / "told.txt"
    with told.open("wb") as stderr:
        up = tamis("up", "alerts.sql", "--directory", "fleet", stderr=stderr)
    try:
        said = read_until(up, "tamis watch", 400)
        wanted = set(masked(sample("kafka ready")))
        # This wait may be over before somebody looks.
        assert wanted - set(masked(told.read_text())) <= {"joiner: Spark is starting"}
        bootstrap = re.search(r"TAMIS_KAFKA_BOOTSTRAP=(\S+)", said)
        posts = re.search(r"POST (http://127\.0\.0\.1:\d+)", said)
        assert bootstrap and posts
        parent = psutil.Process(up.pid)
        children = parent.children(recursive=True)
        assert len(children) >= 6, "broker, registry, joiner with its JVM, alerts, edge"
        watch = tamis("watch", "warm", "--json", "--from-beginning", "--bootstrap", bootstrap[1])
        try:
            assert alarm(posts[1], watch, minute=0, temp=12.0)["key"] == ["k1"]
            assert open_to_others(tmp_path / "fleet") == [] == open_to_others(temporary)
            services = parent.children()
            assert len(services) == len(SERVICES)
            for service in services:
                service.kill()
            assert alarm(posts[1], watch, minute=1, temp=13.0)["key"] == ["k1"]
            watch.send_signal(signal.SIGINT)
            assert watch.wait(10) == 0
        finally:
            watch.kill()
            watch.communicate()
        for name in SERVICES:
            assert f"{name} was ended by SIGKILL and is started again" in told.read_text()
        children += parent.children(recursive=True)
        # One is dead while all are stopped.
        next(child for child in parent.children() if "joiner" in child.cmdline()).kill()
        began = time.monotonic()
        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0
        assert time.monotonic() - began < STOP_SECONDS
        # Python workers of the one that was killed need a moment to see it.
        _, left = psutil.wait_procs(children, timeout=5)
        assert not [child for child in left if child.status() != psutil.STATUS_ZOMBIE]
    finally:
        up.kill()
        up.communicate()
