"""What can be told of the images without building them: no root, what they copy is there, nothing listens on
loopback alone, and only what a service needs is installed, as the lock of everything has it.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
SERVICES = ("alerts", "edge", "joiner", "registry")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@dataclass(frozen=True)
class Stage:
    """The instructions behind one FROM: (word, rest)."""

    instructions: tuple[tuple[str, str], ...]

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == word]

    def environment(self) -> dict[str, str]:
        pairs = [pair.split("=", 1) for rest in self.all("ENV") for pair in shlex.split(rest)]
        return {name: value for name, value in pairs}


def stages(service: str) -> list[Stage]:
    """The stages of a service's Dockerfile."""
    text = (REPOSITORY / "services" / service / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found: list[list[tuple[str, str]]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest.strip()))
    return [Stage(tuple(stage)) for stage in found]


def pins(lock: Path) -> dict[str, set[str]]:
    """The versions of each package in a lock."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()


@pytest.mark.parametrize("service", SERVICES)
def test_the_image_runs_the_service_and_not_as_root(service: str) -> None:
    last = stages(service)[-1]
    assert last.all("USER") == ["10001"]
    assert any("useradd --system --uid 10001" in run for run in last.all("RUN"))
    (entry,) = last.all("ENTRYPOINT")
    program, command = orjson.loads(entry)
    assert program in PROJECT["scripts"] and command == service
    assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0
    assert last.all("HEALTHCHECK")
    for volume in last.all("VOLUME"):
        assert any(f"install -d -o tamis {volume}" in run for run in last.all("RUN"))
        assert last.environment()["TAMIS_DATA"] == volume


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_copied_is_there_and_not_ignored(service: str) -> None:
    kept = [
        line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    copied = 0
    for stage in stages(service):
        for copy in stage.all("COPY"):
            *sources, _ = [part for part in copy.split() if not part.startswith("--")]
            if "--from=" in copy:
                assert all(source.startswith("/opt/tamis") for source in sources)
                continue
            for source in sources:
                copied += 1
                assert (REPOSITORY / source).exists(), source
                assert source.split("/")[0] in kept, f"{source} is in .dockerignore"
    assert copied > 5


@pytest.mark.parametrize("service", SERVICES)
def test_only_locked_packages_of_the_service_are_installed(service: str) -> None:
    first, *others = stages(service)
    locks = [part for copy in first.all("COPY") for part in copy.split() if part.endswith(".lock")]
    assert sorted(locks) == ["deploy/build.lock", f"services/{service}/requirements.lock"]
    for stage in (first, *others):
        for run in stage.all("RUN"):
            for install in re.findall(r"pip (?:install|wheel) [^&]*", run):
                assert "--require-hashes" in install or "--no-deps" in install, install
                assert "-e " not in install
    pinned, everything = pins(REPOSITORY / locks[1]), pins(REPOSITORY / "requirements.lock")
    assert all(versions <= everything[name] for name, versions in pinned.items())
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][service]]
    assert {name_of(requirement) for requirement in wanted} <= pinned.keys()
    assert not {"pytest", "mypy", "ruff", "hypothesis", "scipy", "setuptools", "wheel"} & pinned.keys()


@pytest.mark.parametrize(
    "lock",
    ["requirements.lock", "deploy/build.lock", *(f"services/{name}/requirements.lock" for name in SERVICES)],
)
def test_locks_have_hashes_and_no_addresses(lock: str) -> None:
    text = (REPOSITORY / lock).read_text()
    assert "://" not in text and "index-url" not in text
    blocks = re.split(r"^(?=[A-Za-z])", text, flags=re.MULTILINE)
    packages = [block for block in blocks if "==" in block]
    assert packages and all("--hash=sha256:" in block for block in packages)


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_exposed_listens_on_every_address(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last = stages(service)[-1]
    environment = last.environment()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    exposed = {int(port) for rest in last.all("EXPOSE") for port in rest.split()}
    assert listening(service, monkeypatch) == {("0.0.0.0", port) for port in exposed}


def listening(service: str, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """Where the service listens, by the environment as it is."""
    from tamis.settings import ServiceSettings, load

    if service == "registry":
        from tamis_registry.settings import RegistrySettings

        registry = load(RegistrySettings)
        return {(registry.registry_host, registry.registry_port)}
    settings = load(ServiceSettings)
    telemetry = (settings.telemetry_host, settings.telemetry_port)
    if service != "edge":
        return {telemetry}
    import tamis_edge.service

    served: list[Any] = []
    monkeypatch.setattr(tamis_edge.service, "serve", lambda config, *_: served.append(config))
    monkeypatch.setenv("TAMIS_LOG_FORMAT", "text")  # JSON would be this process's way from here on
    result = CliRunner().invoke(main, ["edge"])
    assert result.exit_code == 0, result.output
    (config,) = served
    return {telemetry, (config.http.host, config.http.port)}
