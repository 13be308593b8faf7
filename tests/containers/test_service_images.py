"""The images: what is in them, and that they run with a read-only root on a real broker.

The containers use the host's network and listen on loopback, so that the broker of the tests serves them.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import httpx
import pytest
from tests.containers.engine import docker
from tests.integration.edges import Bench, everything, wait_for

from tamis.local.broker import EmbeddedKafka
from tamis.local.service_process import free_ports

REPOSITORY = Path(__file__).resolve().parents[2]
MEGABYTE = 1_000_000
# Unpacked. Most of the joiner is Spark with its Java, and most of the registry is LLVM, which numba needs.
LARGEST = {"edge": 300, "alerts": 300, "registry": 600, "joiner": 1400}
SERVICES = tuple(LARGEST)
# An edge's memory, with its process's pages alone; and the time from `docker run` until it takes readings.
MOST_MEMORY, READY_SECONDS = 120 * 1024, 5.0


@pytest.fixture(scope="module", params=SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def files(service: str) -> dict[str, tarfile.TarInfo]:
    """All files of a service's image by path."""
    container = docker("create", f"tamis-{service}").strip()
    try:
        with tarfile.open(fileobj=io.BytesIO(exported(container))) as archive:
            return {member.name.removeprefix("./"): member for member in archive}
    finally:
        docker("rm", container)


def exported(container: str) -> bytes:
    return subprocess.run(["docker", "export", container], check=True, capture_output=True).stdout


def inspected(service: str) -> dict[str, Any]:
    (found,) = json.loads(docker("image", "inspect", f"tamis-{service}"))
    return dict(found)


def python(service: str, program: str) -> str:
    """The output of a Python program in a container with a read-only root."""
    return docker(*("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--network", "none"),
                  *("--entrypoint", "python", f"tamis-{service}", "-c", program))  # fmt: skip


def test_an_image_is_small(service: str) -> None:
    size = inspected(service)["Size"]
    print(f"tamis-{service}: {size / MEGABYTE:.0f} MB unpacked")
    assert size <= LARGEST[service] * MEGABYTE


def test_an_image_has_no_compiler_installer_or_tests(files: dict[str, tarfile.TarInfo]) -> None:
    programs = {Path(name).name for name in files if re.match(r"(usr/|usr/local/|opt/tamis/)?s?bin/", name)}
    assert not programs & {
        "gcc",
        "g++",
        "cc",
        "c++",
        "ld",
        "as",
        "make",
        "pip",
        "pip3",
        "apt",
        "apt-get",
        "perl",
    }
    assert not [name for name in files if re.search(r"site-packages/(pip|setuptools|wheel|pytest)/", name)]
    assert not [
        name for name in files if re.search(r"site-packages/.*\btests/", name) or "/ensurepip/" in name
    ]
    assert not [name for name in files if name.startswith(("src/", "wheels/", "build/", "images/"))]


def test_only_the_directories_of_volumes_belong_to_the_user(files: dict[str, tarfile.TarInfo]) -> None:
    assert {name for name, file in files.items() if file.uid == 10001} == {"data", "run/tamis"}
    writable = [name for name, file in files.items() if file.mode & 0o002 and not file.issym()]
    assert {name for name in writable if not name.startswith("dev/")} <= {
        "tmp",
        "var/tmp",
        "run/lock",
        "var/lock",
    }
    raised = [name for name, file in files.items() if file.isreg() and file.mode & 0o6000]
    assert not raised, raised


def test_an_image_says_what_it_is_and_has_a_health_check(service: str) -> None:
    config = inspected(service)["Config"]
    assert config["User"] == "10001" and config["Healthcheck"]["Test"] == ["CMD", "healthcheck", "9464"]
    assert config["Labels"]["org.opencontainers.image.title"] == f"Tamis {service}"
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", config["Labels"]["org.opencontainers.image.revision"])


def test_the_bill_of_materials_names_what_is_installed(service: str) -> None:
    program = """
import json, pathlib
from importlib.metadata import distributions

def pairs(packages):
    return sorted((name.lower().replace("_", "-"), version) for name, version in packages)

said = json.loads(pathlib.Path("/opt/tamis/share/doc/sbom.cdx.json").read_text())
named = pairs((one["name"], one["version"]) for one in said["components"])
print(json.dumps([said["bomFormat"], named, pairs((one.name, one.version) for one in distributions())]))
"""
    form, named, installed = json.loads(python(service, program))
    assert form == "CycloneDX" and named == installed
    lock = (REPOSITORY / "services" / service / "requirements.lock").read_text()
    pinned = {tuple(one) for one in re.findall(r"^([a-z0-9-]+)==([^ ;]+)", lock, re.MULTILINE)}
    assert {tuple(one) for one in installed} - {("tamis", "0.1.0")} <= pinned


def test_an_edge_has_no_compiler_of_kernels_and_imports_every_source() -> None:
    modules = [
        *("tamis_edge.service", "tamis_edge.sources.file", "tamis_edge.sources.mqtt"),
        "tamis.recordings.times",
    ]
    program = f"""
import importlib, sys
for module in {modules}:
    importlib.import_module(module)
print("numba" in sys.modules)
"""
    assert python("edge", program).strip() == "False"
    with pytest.raises(RuntimeError, match="No module named 'numba'"):
        python("edge", "import numba")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    directory = tmp_path_factory.mktemp("bench")
    with EmbeddedKafka(directory / "kafka") as broker:
        broker.start()
        made = Bench(broker, directory)
        yield made
        made.close()


@contextmanager
def running(service: str, bench: Bench, *arguments: str, **environment: str) -> Iterator[str]:
    """A container as it is run in production: read-only root, no rights, a volume for its data."""
    name = f"tamis-test-{uuid.uuid4().hex[:8]}"
    variables = {"TAMIS_KAFKA_BOOTSTRAP": bench.bootstrap, "TAMIS_TELEMETRY_HOST": "127.0.0.1", **environment}
    options = [part for pair in variables.items() for part in ("--env", "=".join(pair))]
    docker(*("run", "--detach", "--name", name, "--network", "host", "--read-only", "--tmpfs", "/tmp"),
           *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--volume", f"{name}:/data"),
           *options, f"tamis-{service}", *arguments)  # fmt: skip
    try:
        yield name
    except BaseException:
        subprocess.run(["docker", "logs", "--tail", "40", name], check=False)
        raise
    finally:
        docker("rm", "--force", "--volumes", name)
        docker("volume", "rm", "--force", name)


def answers(url: str) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            with urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    return ask


def resident(container: str) -> int:
    """Resident memory of a container's process, in KiB."""
    status = docker("exec", container, "cat", "/proc/1/status")
    (line,) = [one for one in status.splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1])


def health(container: str) -> str:
    return docker("inspect", "--format", "{{.State.Health.Status}}", container).strip()


def test_an_edge_is_ready_quickly_and_small_after_many_readings(bench: Bench) -> None:
    bench.publish(everything("air:box/http"))
    http, telemetry = free_ports(2)
    began = time.monotonic()
    environment = {"TAMIS_EDGE_HTTP_HOST": "127.0.0.1", "TAMIS_TELEMETRY_PORT": str(telemetry)}
    with running("edge", bench, "--name", "box", "--http-port", str(http), **environment) as container:
        wait_for("the edge is ready", answers(f"http://127.0.0.1:{telemetry}/readyz"), 60)
        took = time.monotonic() - began
        reader = bench.reader(*[topic.name for topic in everything("air:box/http").streams[0].topics])
        for start in range(0, 50_000, 2_000):
            readings = [
                {"station": f"s{at % 50}", "ts": at, "temp": at % 7.0} for at in range(start, start + 2_000)
            ]
            assert httpx.post(f"http://127.0.0.1:{http}/v1/streams/air", json=readings, timeout=10).is_success
        wait_for("readings are published", lambda: len(reader.read(1.0)) > 40_000, 60)
        memory = resident(container)
        print(f"ready after {took:.1f} s, {memory / 1024:.0f} MB resident")
        assert memory <= MOST_MEMORY
        assert took <= READY_SECONDS * slowness()


def slowness() -> float:
    """How much slower than an idle machine this one is now: the time of a fixed computation."""
    began = time.perf_counter()
    sum(range(10_000_000))
    return max(1.0, (time.perf_counter() - began) / 0.15)


@pytest.mark.parametrize("service", ["registry", "alerts", "joiner"])
def test_a_service_starts_with_a_read_only_root_and_is_healthy(service: str, bench: Bench) -> None:
    (api,) = free_ports(1)
    environment = {
        "TAMIS_REGISTRY_HOST": "127.0.0.1",
        "TAMIS_REGISTRY_PORT": str(api),
        "TAMIS_PARTITIONS": "2",
    }
    if service == "joiner":
        bench.publish(everything("air:box/http"))
    with running(service, bench, **environment) as container:
        wait_for(f"the {service} is healthy", lambda: health(container) == "healthy", 180)


# What an edge computes, and its oracles. Kernels of the paper's other methods are not compiled ahead of time.
KERNEL_TESTS = [
    *("tests/unit/edge", "tests/unit/omission", "tests/unit/expressions"),
    *(f"tests/unit/predicates/test_{name}.py" for name in ("columns", "differences", "parse")),
    *(
        f"tests/oracle/omission/test_{name}.py"
        for name in ("batch", "neighbours", "readings", "stream", "windows")
    ),
    "tests/oracle/expressions",
]
# Numba's own list of compiled versions is compared there.
LEFT_OUT = "tests/unit/omission/test_kernels.py"


def test_kernels_of_the_image_pass_the_tests_of_kernels_without_numba(tmp_path: Path) -> None:
    container = docker("create", "tamis-edge").strip()
    try:
        docker("cp", f"{container}:/opt/tamis/kernels", str(tmp_path))
    finally:
        docker("rm", container)
    program = "import sys; sys.modules['numba'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            program,
            "-q",
            "-p",
            "no:cacheprovider",
            f"--ignore={LEFT_OUT}",
            *KERNEL_TESTS,
        ],
        cwd=REPOSITORY,
        env={**os.environ, "TAMIS_KERNELS": str(tmp_path / "kernels")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
