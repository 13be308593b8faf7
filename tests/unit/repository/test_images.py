"""Images, checked without building them.

They don't run as root, the files that they copy exist, and they listen beyond loopback. They install only
packages that their service imports, in the versions of the lock of everything.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grimp
import orjson
import pytest
from click.testing import CliRunner

from tamis.cli import main, modules

REPOSITORY = Path(__file__).resolve().parents[3]
LOCK = REPOSITORY / "requirements.lock"
SERVICES = ("alerts", "edge", "joiner", "registry")
# The kernels of an image are compiled ahead of time; an edge has them all, and does without the compiler.
LEFT_OUT = {"edge": {"numba"}}
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
        if found:  # arguments of FROM come before it
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


def required(extra: str) -> set[str]:
    """The packages that `tamis[extra]` asks for, with those of the extras that it includes."""
    found = {name_of(requirement) for requirement in PROJECT["dependencies"]}
    for requirement in PROJECT["optional-dependencies"][extra]:
        included = re.fullmatch(r"tamis\[(\w+)\]", requirement)
        found |= required(included[1]) if included else {name_of(requirement)}
    return found


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Every import of the code, also those inside functions."""
    packages = ("tamis", *(f"tamis_{service}" for service in SERVICES))
    return grimp.build_graph(
        *packages, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_imports_only_packages_of_its_lock(service: str, imports: grimp.ImportGraph) -> None:
    found = imports.find_upstream_modules(f"tamis_{service}", as_package=True)
    needed = distributions_of(found | imports.find_upstream_modules(f"tamis.cli.services.{service}"))
    assert needed and needed - LEFT_OUT.get(service, set()) <= locked(service)


def test_commands_for_users_import_only_packages_of_the_extras_tools_and_plots(
    imports: grimp.ImportGraph,
) -> None:
    """Only `tamis plot` needs the extra `plots`, and names it where it is missing."""
    commands = [path for name, path in modules().items() if name not in SERVICES]
    found = [imports.find_upstream_modules(f"tamis.cli.{path.parent.name}.{path.stem}") for path in commands]
    assert distributions_of(set().union(*found)) <= required("tools") | required("plots")


def distributions_of(modules: set[str]) -> set[str]:
    """The packages to install for modules, without Python's own and those of this repository."""
    roots = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    # Another package of Google's shares the name; only tests of Protobuf use it.
    known = {**packages_distributions(), "google": ["protobuf"]}
    found = {name for root in roots if not root.startswith("tamis") for name in known[root]}
    return {re.sub(r"[_.]", "-", name.lower()) for name in found}


def locked(service: str) -> set[str]:
    return set(pins(REPOSITORY / "services" / service / "requirements.lock"))


def test_an_edge_needs_no_prover() -> None:
    kept_out = {
        "llvmlite",
        "numba",
        "duckdb",
        "fastapi",
        "httpx",
        "pandas",
        "pyspark",
        "python-flint",
        "rich",
        "scipy",
        "sqlglot",
    }
    assert not kept_out & locked("edge")


@pytest.mark.parametrize("service", SERVICES)
def test_the_image_runs_the_service_and_not_as_root(service: str) -> None:
    last = stages(service)[-1]
    assert last.all("USER") == ["10001"]
    assert last.all("COPY") == ["--from=root / /"] and not last.all("RUN")
    (entry,) = last.all("ENTRYPOINT")
    program, command = orjson.loads(entry)
    assert program in PROJECT["scripts"] and command == service
    assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0
    (check,) = last.all("HEALTHCHECK")
    (exposed,) = last.all("EXPOSE")
    assert check.endswith('CMD ["healthcheck", "9464"]') and "9464" in exposed.split()
    for volume in last.all("VOLUME"):
        assert f"install -d -o tamis -g tamis -m 700 {volume}" in script("root.sh")
        assert last.environment()["TAMIS_DATA"] == volume


@pytest.mark.parametrize("service", SERVICES)
def test_the_image_says_what_it_is(service: str) -> None:
    (label,) = stages(service)[-1].all("LABEL")
    labels = dict(pair.split("=", 1) for pair in shlex.split(label))
    prefix = "org.opencontainers.image."
    assert labels[f"{prefix}title"] == f"Tamis {service}"
    assert labels[f"{prefix}version"] == PROJECT["version"]
    assert labels[f"{prefix}licenses"] == PROJECT["license"]
    assert {f"{prefix}description", f"{prefix}revision"} <= labels.keys()


def script(name: str) -> str:
    return (REPOSITORY / "deploy" / "images" / name).read_text()


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
                continue
            for source in sources:
                copied += 1
                assert (REPOSITORY / source).exists(), source
                assert source.split("/")[0] in kept, f"{source} is in .dockerignore"
        for run in stage.all("RUN"):
            for name in re.findall(r"/images/(\S+\.sh)", run):
                assert (REPOSITORY / "deploy" / "images" / name).is_file()
    assert copied > 5


@pytest.mark.parametrize("service", SERVICES)
def test_only_locked_packages_of_the_service_are_installed(service: str) -> None:
    first = stages(service)[0]
    locks = [part for copy in first.all("COPY") for part in copy.split() if part.endswith(".lock")]
    assert set(locks) == {"deploy/build.lock", f"services/{service}/requirements.lock"}
    assert first.all("RUN")[-1].endswith(f"sh /images/service.sh {service}")
    pinned, everything = pins(REPOSITORY / f"services/{service}/requirements.lock"), pins(LOCK)
    assert all(versions <= everything[name] for name, versions in pinned.items())
    assert required(service) - LEFT_OUT.get(service, set()) <= pinned.keys()
    for_developers = {"pytest", "mypy", "ruff", "hypothesis", "scipy", "setuptools", "wheel"}
    # The image of the registry has the commands of its users.
    assert (
        not (for_developers | ({"prompt-toolkit", "rich"} if service != "registry" else set()))
        & pinned.keys()
    )


@pytest.mark.parametrize("name", ["install.sh", "service.sh", "tools.sh", "wheel.sh"])
def test_every_installation_compares_hashes_or_installs_what_the_build_made(name: str) -> None:
    text = script(name).replace("\\\n", " ")
    for install in re.findall(r"(?:\$pip|pip.* install|pip wheel).*", text):
        if not install.startswith("pip=") and "pip=" not in install:
            alone = "--no-deps" in install and ("--no-index" in install or "--no-build-isolation" in install)
            assert "--require-hashes" in install or alone or install.startswith("pip --python $1"), install
            assert "-e " not in install


def test_images_are_built_alike() -> None:
    """The first stages have the same instructions, so that a machine builds them once for all images."""
    begun = [stages(service)[0].instructions[:8] for service in SERVICES]
    assert all(one == begun[0] for one in begun)
    assert begun[0][-1] == (
        "RUN",
        "--mount=type=bind,source=deploy/images,target=/images sh /images/wheel.sh",
    )


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
        if name != "TAMIS_KERNELS":  # they exist only in the image
            monkeypatch.setenv(name, value)
    exposed = {int(port) for rest in last.all("EXPOSE") for port in rest.split()}
    assert listening(service, monkeypatch) == {("0.0.0.0", port) for port in exposed}


def listening(service: str, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, int]]:
    """Where the service listens, by the environment as it is."""
    from tamis.settings import ServiceSettings, load

    settings = load(ServiceSettings)
    telemetry = (settings.telemetry_host, settings.telemetry_port)
    if service == "registry":
        from tamis_registry.settings import RegistrySettings

        registry = load(RegistrySettings)
        return {(registry.registry_host, registry.registry_port), telemetry}
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


def test_what_a_build_runs_of_tamis_is_there() -> None:
    modules = [
        module
        for path in (REPOSITORY / "deploy" / "images").glob("*.sh")
        for module in re.findall(r"python -m (tamis\S+)", path.read_text())
    ]
    assert set(modules) == {"tamis.java.jars", "tamis.precompile_kernels"}
    assert all(find_spec(module) is not None for module in modules)
