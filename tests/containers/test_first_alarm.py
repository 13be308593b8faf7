"""The Compose file as a new user starts it: its jobs end well, alarms come, and the page's commands work.

`.ci/run` runs it before slower tests. Nothing but ports and the project's name differs from the file. Grafana
is left out, since no other image can take its place where images can't be pulled.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.containers.compose import PORTS, compose, environment, program, running, until
from tests.containers.engine import docker
from tests.unit.repository.test_compose import JOBS, REPOSITORY, services

PAGE = REPOSITORY / "docs/install-compose.md"
# The test waits for the whole fleet to start.
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def fleet() -> Iterator[None]:
    with running("docker-compose.yml", names=[name for name in services() if name != "grafana"]):
        yield


def test_the_jobs_end_well_and_alarms_are_raised(fleet: None) -> None:
    def first_alarm() -> bool:
        said = compose("logs", "--no-color", *(JOBS & services().keys()))
        assert not re.search("Traceback|is not installed", said), said[-3000:]
        return "  alarm  " in compose("logs", "--no-color", "watch")

    until("an alarm", first_alarm)
    for job in JOBS & services().keys():
        container = compose("ps", "--quiet", job).strip()
        state = json.loads(docker("inspect", container))[0]["State"]
        assert (state["Status"], state["ExitCode"]) == ("exited", 0), f"{job}: {compose('logs', job)[-2000:]}"
    until("an episode", lambda: "episode opened" in compose("logs", "--no-color", "alerts"))


def test_the_commands_of_the_page_work(fleet: None, tmp_path: Path) -> None:
    """They are those of the section *Use it*, with the free ports of this fleet."""
    section = PAGE.read_text().partition("\n## Use it\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    statements = tmp_path / "my.sql"
    statements.write_text(
        "CREATE ALERT damp AS SELECT r.mote_id, r.ts FROM readings r WHERE r.humidity > 99;\n"
    )
    text = block.replace("docker compose", program()).replace("my.sql", str(statements))
    for used, free in (("8181", "REGISTRY_PORT"), ("8282", "EDGE_PORT")):
        assert f"127.0.0.1:{used}" in text
        text = text.replace(f"127.0.0.1:{used}", f"127.0.0.1:{PORTS[free]}")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text.replace("curl ", "curl --fail-with-body -sS ")],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "damp" in done.stdout
