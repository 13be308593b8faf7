"""Prints lines for the file .env that pin the images of others by digest: `make pins`.

It pulls each image that a variable of the Compose files names, and asks Docker for the digest of what it got.
The environment variable DOCKER names another program. It needs Python's standard library only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = os.environ.get("DOCKER", "docker")
_VARIABLE = re.compile(r"\$\{([A-Z]+_IMAGE):-([^}]+)\}")


def images() -> dict[str, str]:
    """The variables of the Compose files that name an image, with the image of environment or file."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(REPOSITORY.glob("docker-compose*.yml"))]
    return {name: os.environ.get(name, image) for text in texts for name, image in _VARIABLE.findall(text)}


def pinned(image: str) -> str:
    """The image with the digest of its newest version."""
    name = image.partition("@")[0]
    subprocess.run([DOCKER, "pull", "--quiet", name], check=True, stdout=subprocess.DEVNULL)
    command = [DOCKER, "image", "inspect", "--format", "{{json .RepoDigests}}", name]
    digests = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    repository = re.sub(r":[^:/]+$", "", name)
    # An image may have been pulled from several registries.
    own = [digest for digest in digests if digest.partition("@")[0].removeprefix("docker.io/") == repository]
    return f"{name}@{(own or digests)[0].partition('@')[2]}"


def main() -> int:
    """Print all lines; returns 1 if an image can't be pulled."""
    for variable, image in images().items():
        try:
            print(f"{variable}={pinned(image)}", flush=True)
        except subprocess.CalledProcessError as error:
            print(f"{image} can't be pulled: {DOCKER} ended with {error.returncode}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
