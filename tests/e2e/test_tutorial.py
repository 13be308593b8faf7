"""The tutorial's last sections in a real fleet, with the commands and files of the page itself."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.e2e.test_up import read_until
from tests.unit.repository.test_tutorial import REPOSITORY, SET_UP, TUTORIAL, blocks, without_files

from tamis.local.service_process import free_ports

pytestmark = pytest.mark.tutorial
# Commands that run until they are ended, and what each of them says when it is ready.
READY = {
    "tamis up": "tamis watch",
    "tamis watch": "k1",
    "amqtt -c": "Listener",
    "python3 tutorial/receiver.py": "",
}
SECONDS = 400  # of one step, where others want the cores too


class Terminals:
    """Runs the page's commands as a reader does. `ports`: the port to use for each that the page names."""

    def __init__(self, folder: Path, ports: dict[str, str], stack: ExitStack) -> None:
        self.folder = folder
        self.ports = ports
        self.stack = stack
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.said: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, line: str) -> str:
        """Run a line; what it says, up to the word with which a command that goes on is ready."""
        line = self.with_ports(line)
        name = next((name for name in READY if line.startswith(name)), None)
        if name is None:
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
            return done.stdout
        process = self.stack.enter_context(started(shlex.split(line), self.folder, self.environment))
        self.running[name] = process
        self.said[name] = read_until(process, READY[name], SECONDS) if READY[name] else ""
        return self.said[name]

    def with_ports(self, text: str) -> str:
        """The text with the ports of this run."""
        return re.sub(
            "|".join(rf"\b{port}\b" for port in self.ports), lambda found: self.ports[found[0]], text
        )

    def end(self, name: str) -> None:
        """Ctrl-C in the terminal of a command."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@contextmanager
def started(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program that is ended with the block."""
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        # Without this a program that doesn't end would keep the test.
        timer = threading.Timer(30, process.kill)
        timer.start()
        process.communicate()
        timer.cancel()


@pytest.mark.timeout(1800)  # two starts of a fleet, where others want the cores too
def test_the_fleet_of_the_tutorial_notifies_of_readings_by_http_mqtt_and_kafka(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "demo").symlink_to(REPOSITORY / "demo")
    (tmp_path / "tutorial").mkdir()
    monkeypatch.chdir(tmp_path)
    alerts, steps = TUTORIAL.split("## 7. Start a fleet")
    for block, _ in blocks(alerts):
        without_files(block)
    # Another fleet of the machine may have the usual ports.
    fixed = dict(zip(("1883", "9000"), map(str, free_ports(2)), strict=True))
    with ExitStack() as stack:
        terminals = Terminals(tmp_path, fixed, stack)
        for block, _ in blocks(steps):
            for line in without_files(terminals.with_ports(block)).splitlines():
                if line.split()[0] in SET_UP:
                    continue
                if line.startswith("tamis up") and "tamis up" in terminals.running:
                    terminals.end("tamis up")
                said = terminals.run(line)
                if line.startswith("tamis up"):
                    use_printed_addresses(terminals, said)
                elif line.startswith("tamis get alerts"):
                    assert "wet" in said
                elif line.startswith("tamis sql"):
                    assert "3.5" in said
                elif line.startswith("tamis watch"):
                    terminals.end("tamis watch")
        stack.enter_context(told_of_the_fleet(terminals))
        opened, closed = notified(terminals), notified(terminals)
        assert (opened["alert"], opened["key"], opened["event"]) == ("wet", ["k2"], "opened")
        assert (round(opened["row"]["dew"], 1), opened["row"]["surface"]) == (13.2, 5.0)
        # The later readings have moved event time past the gap.
        assert (closed["episode"], closed["event"]) == (opened["episode"], "closed")
        # What the page says about five minutes without readings, with a shorter time.
        set_max_stall(terminals, "10 seconds")
        state_of_the_alert(terminals, "degraded .*max_stall")
        set_max_stall(terminals, "5 minutes")
        for line in later_readings(steps):
            terminals.run(line)
        state_of_the_alert(terminals, "running")


@contextmanager
def told_of_the_fleet(terminals: Terminals) -> Iterator[None]:
    """What the fleet says of itself, beside the failure of a step."""
    try:
        yield
    except BaseException:
        for what in ("alerts", "edges", "joiner", "sinks", "plans"):
            print(terminals.run(f"tamis get {what}"))
        for file in sorted((terminals.folder / "tutorial/fleet/logs").glob("*.log")):
            print(file.name, *file.read_text().splitlines()[-30:], sep="\n  ")
        raise


def notified(terminals: Terminals) -> dict[str, Any]:
    """The next notification of the station that sends by MQTT and Kafka."""
    receiver = terminals.running["python3 tutorial/receiver.py"]
    found: dict[str, Any] = orjson.loads(read_until(receiver, '"k2"', SECONDS).splitlines()[-1])
    return found


def later_readings(steps: str) -> list[str]:
    """The page's commands that send a reading by each source, each reading later by an hour."""
    *_, (block, _) = blocks(steps)
    return block.replace("T06:", "T07:").splitlines()


def set_max_stall(terminals: Terminals, duration: str) -> None:
    """Let the sources of both streams be silent for another time."""
    for stream in ("air", "surface"):
        terminals.run(f"tamis sql -c \"ALTER STREAM {stream} SET (max_stall = '{duration}')\"")


def state_of_the_alert(terminals: Terminals, wanted: str) -> None:
    """Wait until `tamis get alerts` shows the state."""
    until = time.monotonic() + SECONDS
    while not re.search(rf"wet +{wanted}", said := terminals.run("tamis get alerts")):
        assert time.monotonic() < until, said
        time.sleep(1)


def use_printed_addresses(terminals: Terminals, said: str) -> None:
    """Let the following commands use the addresses that `tamis up` has printed."""
    kafka = re.search(r"kafka +\S+?:(\d+)", said)
    registry = re.search(r"registry +(http://\S+?)/docs", said)
    readings = re.search(r"POST http://127\.0\.0\.1:(\d+)/", said)
    # With a file of its own, the edge's address is in the file.
    assert kafka and registry and (readings or "8282" in terminals.ports), said
    if (
        program := terminals.folder / "tutorial/send.py"
    ).exists():  # a fleet that starts again may have another port
        program.write_text(program.read_text().replace(f":{terminals.ports['9092']}", f":{kafka[1]}"))
    terminals.ports |= {"9092": kafka[1]} | ({"8282": readings[1]} if readings else {})
    terminals.environment |= {
        "TAMIS_KAFKA_BOOTSTRAP": f"127.0.0.1:{kafka[1]}",
        "TAMIS_REGISTRY": registry[1],
    }
