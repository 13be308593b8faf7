"""Docker Compose for the tests of containers: a fleet with a project name of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.containers.images import have_images
from tests.unit.repository.test_compose import REPOSITORY

from tamis.local.service_process import free_ports

STARTING = 600.0  # on a busy machine with two cores
# The Compose files in use, ports that are free (another fleet may have the usual ones), and other variables.
FILES: list[str] = []
PORTS: dict[str, int] = {}
VARIABLES: dict[str, str] = {}


def program() -> str:
    """Docker Compose with the files in use: version 2 if it is there, else 1."""
    standalone = shutil.which("docker-compose", path=f"/usr/bin:{os.environ['PATH']}")
    return " ".join([standalone or "docker compose", *(f"-f {name}" for name in FILES)])


def compose(*arguments: str, check: bool = True) -> str:
    """Run a command of Docker Compose; returns its output."""
    command = [*program().split(), *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def environment() -> dict[str, str]:
    """A project of its own, with the variables that were asked for."""
    return {
        **os.environ,
        "COMPOSE_PROJECT_NAME": "tamistest",
        **{name: str(port) for name, port in PORTS.items()},
        **VARIABLES,
    }


@contextmanager
def running(*files: str, names: list[str], variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """The services `names` of these Compose files; their data is removed afterwards."""
    have_images()
    FILES[:] = files
    VARIABLES.clear()
    VARIABLES.update(variables or {})
    published = ("REGISTRY_PORT", "EDGE_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT")
    PORTS.update(zip(published, free_ports(len(published)), strict=True))
    compose("down", "-v", "-t", "5", check=False)
    try:
        compose("up", "-d", "--no-build", *names)
        yield
    finally:
        write_logs()
        compose("down", "-v", "-t", "10")


def write_logs() -> None:
    """Keep what the services said, for whoever looks into a failure."""
    folder = os.environ.get("TAMIS_TEST_LOGS")
    if folder:
        for name in compose("ps", "--services", check=False).split():
            text = compose("logs", "--no-color", name, check=False)
            (Path(folder) / f"{name}.log").write_text(text)


def until(what: str, done: Any, seconds: float = STARTING) -> Any:
    """Wait until `done()` returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < deadline, f"not in time: {what}\n{compose('ps')}"
        time.sleep(2)
    return found
