"""The supervisor of a fleet: which processes it restarts, when, and its messages."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tamis.errors import TamisError, UnavailableError
from tamis.local import supervisor
from tamis.local.service_process import ServiceProcess
from tamis.local.supervisor import FIRST_PAUSE, HEALTHY_SECONDS, LONGEST_PAUSE, Supervisor


class Service:
    """A service whose ends and starts are the test's."""

    name = "joiner"
    log_path = "logs/joiner.log"

    def __init__(self) -> None:
        self.code: int | None = None
        self.ready = False
        self.refusal: TamisError | None = None
        self.words: str | None = None
        self.starts = 0

    def exit_code(self) -> int | None:
        return self.code

    def launch(self) -> None:
        self.starts += 1
        if self.refusal is not None:
            raise self.refusal
        self.code = None

    def is_ready(self) -> bool:
        return self.ready

    def last_error(self) -> str | None:
        return self.words


class Play:
    """A supervisor of one service, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now, self.said = 0.0, list[str]()
        self.service = Service()
        self.supervisor = Supervisor([self.service], self.said.append, lambda: self.now)

    def end(self, code: int) -> None:
        self.service.code, self.service.ready = code, False

    def start_after(self) -> float:
        """Seconds until the service is started again."""
        began, starts = self.now, self.service.starts
        while self.service.starts == starts:
            self.supervisor.look()
            if self.service.starts == starts:
                self.now += 0.25
                assert self.now < began + 1000
        return self.now - began


@pytest.fixture
def play() -> Play:
    return Play()


def test_what_was_killed_is_started_again_and_said_to_be_back(play: Play) -> None:
    play.end(-signal.SIGKILL)
    assert play.start_after() == FIRST_PAUSE
    play.supervisor.look()
    assert play.said == ["joiner was ended by SIGKILL and is started again: its log is logs/joiner.log"]
    play.service.ready = True
    play.supervisor.look()
    assert play.said[1:] == ["joiner is back"]


def test_the_pause_grows_to_a_limit_and_the_same_fault_is_said_once(play: Play) -> None:
    play.service.words = "can't write: No space left on device"
    pauses = []
    for _ in range(9):
        play.end(75)
        pauses.append(play.start_after())
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    told = "joiner ended with exit code 75 and is started again: can't write: No space left on device"
    assert play.said == [told]
    play.end(1)
    play.supervisor.look()
    assert "exit code 1 " in play.said[1], "another fault is told"


def test_the_pause_is_short_again_once_the_service_was_well_for_a_while(play: Play) -> None:
    for _ in range(8):
        play.end(1)
        play.start_after()
    for healthy, pause, said in ((HEALTHY_SECONDS / 2, LONGEST_PAUSE, 2), (HEALTHY_SECONDS, FIRST_PAUSE, 4)):
        play.service.ready = True
        play.supervisor.look()
        play.now += healthy
        play.supervisor.look()
        play.end(1)
        assert play.start_after() == pause
        assert len(play.said) == said


def test_what_has_a_wrong_input_is_not_started_again(play: Play) -> None:
    play.service.words = "edge.yaml: line 1: nam"
    play.end(2)
    for _ in range(100):
        play.supervisor.look()
        play.now += 10
    assert play.service.starts == 0
    assert play.said == ["joiner ended with exit code 2 and is not started again: edge.yaml: line 1: nam"]


def test_what_can_not_be_started_is_said_once_and_tried_again(play: Play) -> None:
    play.service.refusal = UnavailableError("there is no java", where="PATH")
    play.end(-signal.SIGKILL)
    assert play.start_after() == FIRST_PAUSE
    assert play.start_after() == 2 * FIRST_PAUSE
    assert play.start_after() == 4 * FIRST_PAUSE
    assert play.said[1:] == ["joiner can't be started, which is tried again: PATH: there is no java"]
    play.service.refusal = None
    play.start_after()
    play.service.ready = True
    play.supervisor.look()
    assert play.said[2:] == ["joiner is back"]


# A child that does not end with its parent, as Spark's JVM beside the joiner.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
{end}
"""


def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> ServiceProcess:
    program = PARENT.format(end=end)
    command = [sys.executable, "-c", program]
    monkeypatch.setattr("tamis.local.service_process.with_parent_death_signal", lambda _: command)
    process = ServiceProcess("joiner", [], {}, tmp_path / "joiner.log", "http://127.0.0.1:9/readyz")
    process.launch()
    return process


def test_what_a_dead_service_had_started_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep ports and files from its successor."""
    process = started(tmp_path, monkeypatch, "time.sleep(60)")
    try:
        _until(lambda: "child" in process.log.read_text())
        child = psutil.Process(int(process.log.read_text().split()[1]))
        psutil.Process(process.pid).kill()
        _until(lambda: process.exit_code() is not None)
        assert process.exit_code() == -signal.SIGKILL
        _until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("print('Error: a: no such topic'); sys.exit(2)", "a: no such topic"),
        ('print(\'{"level": "error", "event": "the disk is full"}\\n{}\'); sys.exit(75)', "the disk is full"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("sys.exit(1)", None),
    ],
)
def test_the_last_error_is_of_the_current_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, words: str | None
) -> None:
    (tmp_path / "joiner.log").write_text("Error: of a life before\n")
    process = started(tmp_path, monkeypatch, end)
    _until(lambda: process.exit_code() is not None)
    assert process.last_error() == words


def test_it_stops_at_once_when_told_to(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = threading.Event()
    play.end(1)
    monkeypatch.setattr(play.service, "launch", stopping.set)
    monkeypatch.setattr(supervisor, "_LOOK_SECONDS", 0.0)
    play.supervisor._clock = time.monotonic
    play.supervisor.run(stopping)
    assert stopping.is_set()


def _until(done: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
