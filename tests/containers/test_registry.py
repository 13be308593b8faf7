"""`make images` and `make pins` with a real registry on loopback: digests are those of what was pushed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from deploy.compose import pin_images
from tests.containers.engine import docker, program
from tests.containers.images import REPOSITORY, have_images, make

from tamis.local.parent_death_signal import with_parent_death_signal
from tamis.local.service_process import free_ports

SERVICES = ("alerts", "edge", "joiner", "registry")
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty registry: Debian's package, started here."""
    if shutil.which("docker-registry") is None:
        if os.geteuid() or shutil.which("apt-get") is None:
            pytest.skip("NOT TESTED: there is no docker-registry, and only root on Debian can install it")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-qy", "--no-install-recommends", "docker-registry"]
        subprocess.run(command, env=quiet, check=True, capture_output=True)
    folder = tmp_path_factory.mktemp("registry")
    (port,) = free_ports(1)
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {folder / 'data'}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    with (folder / "log").open("wb") as log:
        server = shutil.which("docker-registry")
        assert server is not None
        command = with_parent_death_signal([server, "serve", str(config)])
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5):
            return True
    except URLError:
        return False


def test_images_are_pushed_and_their_digests_printed(registry: str) -> None:
    said = make("images", f"REGISTRY={registry}/plant", "DOCKER_OPTIONS=--quiet --network host")
    pushed = re.findall(r"pushed (\S+@sha256:[0-9a-f]{64})", said)
    assert [image.partition("@")[0] for image in pushed] == [f"{registry}/plant/tamis-{s}" for s in SERVICES]
    edge = pushed[SERVICES.index("edge")]
    docker("image", "rm", f"{registry}/plant/tamis-edge:latest", f"{registry}/plant/tamis-edge:0.1.0")
    docker("pull", "--quiet", edge)
    assert docker("run", "--rm", "--entrypoint", "tamis", edge, "--version").startswith("tamis")


def test_images_of_others_are_pinned(registry: str, tmp_path: Path) -> None:
    have_images()
    variables = {}
    for name, image in pin_images.images().items():
        # Debian has no Grafana; any image will do.
        source = image if docker("images", "--quiet", image).strip() else pin_images.images()["BASE_IMAGE"]
        variables[name] = f"{registry}/{image}"
        docker("tag", source, variables[name])
        docker("push", "--quiet", variables[name])
    done = subprocess.run(
        ["make", "--no-print-directory", "pins"],
        cwd=REPOSITORY,
        env={**os.environ, **variables, "DOCKER": program()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert lines.keys() == variables.keys()
    for name, image in lines.items():
        assert re.fullmatch(rf"{re.escape(variables[name])}@sha256:[0-9a-f]{{64}}", image), image
        docker("pull", "--quiet", image)
