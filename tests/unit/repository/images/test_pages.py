"""Install pages begin with images: `make images` builds and pushes what Compose and the chart name."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml
from deploy.compose import pin_images
from tests.helm.chart import CHART
from tests.unit.repository.test_compose import ADDED, BASE, services
from tests.unit.repository.test_images import PROJECT, REPOSITORY, SERVICES, stages

PLACE = "registry.example.com/tamis"


def pushed(registry: str) -> set[str]:
    """The images that `make images` would push; nothing is built."""
    command = ["make", "-n", "images", f"REGISTRY={registry}"]
    steps = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"docker push --quiet (\S+)", steps))


@pytest.mark.parametrize("registry", [PLACE, f"{PLACE}/"])
def test_every_image_is_pushed_with_the_tags_of_compose_and_chart(registry: str) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert version == PROJECT["version"]
    assert pushed(registry) == {f"{PLACE}/tamis-{s}:{tag}" for s in SERVICES for tag in (version, "latest")}


def test_without_a_registry_nothing_is_pushed() -> None:
    assert pushed("") == set()


@pytest.mark.parametrize("file", [BASE, *ADDED])
def test_compose_names_the_images_that_were_pushed(file: str) -> None:
    found = {service["image"] for service in services(file).values() if "image" in service}
    for image in found:
        if "tamis-" in image:
            full = image.replace("${TAMIS_IMAGES:-}", f"{PLACE}/").replace(
                "${TAMIS_VERSION:-latest}", "latest"
            )
            assert full in pushed(PLACE), image


@pytest.mark.parametrize(
    ("page", "use"),
    [
        ("docs/install-helm.md", "helm install "),
        ("helm/tamis/README.md", "helm install "),
        ("docs/install-compose.md", "docker compose pull"),
    ],
)
def test_a_page_builds_images_before_it_uses_them(page: str, use: str) -> None:
    text = (REPOSITORY / page).read_text()
    assert 0 < text.index("make images REGISTRY=") < text.index(use)


def test_every_image_of_others_can_be_pinned_by_a_variable() -> None:
    found = {s["image"] for f in (BASE, *ADDED) for s in services(f).values() if "image" in s}
    others = {image for image in found if "tamis-" not in image}
    assert {
        f"${{{name}:-{image}}}" for name, image in pin_images.images().items() if name != "BASE_IMAGE"
    } == others
    for service in SERVICES:
        text = (REPOSITORY / "services" / service / "Dockerfile").read_text()
        assert f"\nARG BASE={pin_images.images()['BASE_IMAGE']}\n" in text
        assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"$BASE", "scratch"}
        assert len(stages(service)) == 3
        build = services()[service if service != "edge" else "edge-a"]["build"]
        assert build["args"] == {"BASE": "${BASE_IMAGE:-python:3.11-slim}"}
