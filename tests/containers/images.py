"""Images that the tests of containers use: those of the services, and those of others in the Compose file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.containers.engine import docker, program
from tests.unit.repository.test_compose import defaults, services

REPOSITORY = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).parent / "stand_ins"
# Images of others. Debian has no Grafana.
OTHERS = ("kafka", "mosquitto", "prometheus", "alertmanager")


def build(service: str) -> None:
    """Build the image of a service from the working tree."""
    make(f"image-{service}", "DOCKER_OPTIONS=--quiet --network host")


def make(*arguments: str) -> str:
    """Run make with Docker's program; returns its output. Raises RuntimeError with the end of its log."""
    done = subprocess.run(
        ["make", "--no-print-directory", f"DOCKER={program()}", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"make {' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def have_images() -> None:
    """The images of others by the names in the Compose file: pulled, or built with Debian's programs."""
    known = docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    for name in OTHERS:
        image = defaults(services()[name]["image"])
        if image in known:
            continue
        try:
            docker("pull", "--quiet", image)
        except RuntimeError:
            build = ["build", "--network", "host", "--tag", image]
            if name == "kafka":
                build += ["--file", str(STAND_INS / "kafka.Dockerfile"), str(REPOSITORY / ".jars")]
            else:
                build += ["--target", name, str(STAND_INS)]
            docker(*build)
