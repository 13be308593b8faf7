"""Images that the tests of containers use: those of the services, and those of others in the Compose file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.containers.engine import docker
from tests.unit.repository.test_compose import defaults, services

REPOSITORY = Path(__file__).resolve().parents[2]
STAND_INS = Path(__file__).parent / "stand_ins"
# Images of others. Debian has no Grafana.
OTHERS = ("kafka", "mosquitto", "prometheus", "alertmanager")


def build(service: str) -> None:
    """Build the image of a service from the working tree."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    dockerfile = REPOSITORY / "services" / service / "Dockerfile"
    docker(
        *("build", "--quiet", "--network", "host", "--file", str(dockerfile), "--tag", f"tamis-{service}"),
        *("--build-arg", f"REVISION={head.stdout.strip() or 'unknown'}", str(REPOSITORY)),
    )


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
