"""Builds the images and tests them in containers: `make test-containers`.

Exits with 3 and one line that says why where no Docker engine can be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from tests.containers import wheels
from tests.containers.engine import ImpossibleError, docker, engine, have_base

# The exit code of a machine on which no engine can be had.
IMPOSSIBLE = 3


def main() -> int:
    """Run the tests, or only those that the command line names; returns the exit code."""
    try:
        with engine():
            _step("the base image", have_base)
            _step("wheels of all locks", wheels.make)
            for service in wheels.SERVICES:
                _step(f"image of the {service}", partial(build, service))
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
            chosen = sys.argv[1:] or ["tests/containers"]
            return subprocess.run(
                [*command, *chosen], env={**os.environ, "TAMIS_CONTAINERS": "1"}, check=False
            ).returncode
    except ImpossibleError as error:
        print(f"containers can't be tested here: {error}", file=sys.stderr)
        return IMPOSSIBLE


def build(service: str) -> None:
    """Build the image of a service from the working tree."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=wheels.REPOSITORY, capture_output=True, text=True, check=False
    )
    docker(
        *(
            "build",
            "--quiet",
            "--network",
            "host",
            "--build-arg",
            f"REVISION={head.stdout.strip() or 'unknown'}",
        ),
        *(
            "--file",
            str(wheels.REPOSITORY / "services" / service / "Dockerfile"),
            "--tag",
            f"tamis-{service}",
        ),
        str(wheels.REPOSITORY),
    )


def _step(name: str, run: Callable[[], None]) -> None:
    start = time.monotonic()
    run()
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
