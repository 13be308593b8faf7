"""A Docker engine for the tests of containers, and the base image of the Dockerfiles if none can be pulled.

An engine that answers already is used as it is. On a bare Debian machine root gets one of its own: the
packages come by apt, and the engine listens on a socket of its own until the tests end. It runs in a PID
namespace, so that it can't outlive this process, and no container can outlive the engine.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tamis.local.parent_death_signal import with_parent_death_signal

BASE = "python:3.11-slim"
SOCKET = Path("/run/tamis-containers.sock")
LOCK = Path("/run/tamis-containers.lock")
# What does not outlast an engine.
RUN = Path("/run/tamis-engine")
# Images and layers stay there between two runs.
DATA = Path("/var/lib/tamis-containers")
# A run adds some gigabytes of layers to the cache of builds, of which the next run needs the newest only.
CACHE = "8GB"
# All images and their layers take about this much when nothing is cached, in bytes.
ROOM = 8 * 10**9
CERTIFICATES = Path("/usr/local/share/ca-certificates")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# An engine needs a second on an idle machine.
STARTING, STOPPING = 180.0, 120.0
# Debian's packages start their services through this file; exit code 101 forbids it.
POLICY = Path("/usr/sbin/policy-rc.d")

# Debian's package by the program that it has.
PACKAGES = {
    "dockerd": "docker.io",
    "/usr/bin/docker": "docker.io",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "docker-compose": "docker-compose",
}


class ImpossibleError(Exception):
    """No engine can be had on this machine; the message says why in one line."""


def program() -> str:
    """The client. Debian's own comes first: it builds with BuildKit, for which others may lack the plugin."""
    return shutil.which("docker", path=f"/usr/bin:{os.environ['PATH']}") or "docker"


def docker(*arguments: str, environment: Mapping[str, str] | None = None, check: bool = True) -> str:
    """Run a command of Docker; returns its output. Raises RuntimeError with the end of its log."""
    done = subprocess.run(
        [program(), *arguments],
        env={**(environment or os.environ), "DOCKER_BUILDKIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"docker {' '.join(arguments)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


@contextmanager
def engine() -> Iterator[None]:
    """An engine that this process's environment names while the context lasts. Raises ImpossibleError."""
    if _answers(os.environ.get("DOCKER_HOST")):
        yield
        return
    if os.geteuid():
        raise ImpossibleError("no Docker engine answers, and only root can start one")
    _install()
    with _alone(), _started():
        os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
        try:
            # An earlier run that was killed may have left them, and a run leaves its layers to the next one.
            for kind in ("container", "network", "volume"):
                docker(kind, "prune", "--force")
            _remove_old_layers()
            free = shutil.disk_usage(DATA).free
            if free < ROOM:
                raise ImpossibleError(f"{DATA} has {free / 1e9:.1f} GB free, images need {ROOM / 1e9:.0f} GB")
            yield
        finally:
            del os.environ["DOCKER_HOST"]


def _remove_old_layers() -> None:
    """Remove layers that no image has any more, and what the cache of builds holds above its limit."""
    docker("image", "prune", "--force", check=False)
    docker("builder", "prune", "--all", "--force", "--keep-storage", CACHE, check=False)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for another run on this machine: two engines can't share the data."""
    with LOCK.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # A run that was killed leaves its files.
        shutil.rmtree(RUN, ignore_errors=True)
        RUN.mkdir()
        try:
            yield
        finally:
            shutil.rmtree(RUN, ignore_errors=True)


@contextmanager
def _started() -> Iterator[None]:
    """An engine that listens at SOCKET while the context lasts. Raises ImpossibleError."""
    DATA.mkdir(parents=True, exist_ok=True)
    # The kernel kills all processes of the PID namespace, containers included, when the engine has ended.
    command = ["/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "dockerd"]
    command += ["--host", f"unix://{SOCKET}", "--data-root", str(DATA)]
    command += ["--exec-root", str(RUN / "exec"), "--pidfile", str(RUN / "pid")]
    log = RUN / "log"
    with log.open("wb") as out:
        # It must not end by a signal to this process's group before the containers are removed.
        process = subprocess.Popen(
            with_parent_death_signal(command), stdout=out, stderr=out, start_new_session=True
        )
    try:
        deadline = time.monotonic() + STARTING
        while not _answers(f"unix://{SOCKET}"):
            if process.poll() is not None or time.monotonic() > deadline:
                last = log.read_text(errors="replace").strip().splitlines()
                raise ImpossibleError(f"dockerd does not start: {last[-1] if last else 'no log'}")
            time.sleep(0.5)
        yield
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the engine: it gets time to stop its containers and is then killed with them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        if process.poll() is None:
            # unshare would not pass the signal on.
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOPPING)
    finally:
        process.kill()
        process.wait()


def have_base() -> None:
    """Have the image from which the Dockerfiles start: pulled, or made of Debian's packages."""
    if docker("images", "--quiet", BASE).strip():
        return
    try:
        docker("pull", "--quiet", BASE)
    except RuntimeError as error:
        if os.geteuid() or shutil.which("mmdebstrap") is None:
            reason = str(error).strip().splitlines()[-1]
            raise ImpossibleError(
                f"{BASE} can't be pulled ({reason}), and only root with mmdebstrap can make it"
            ) from None
        _make_base()


def _make_base() -> None:
    with TemporaryDirectory(prefix="tamis-base-") as folder:
        root, archive = Path(folder) / "root", Path(folder) / "base.tar"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates,python3,python3-venv"]
            # Slim images leave these out; copyright notices stay.
            + [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")]
            + [
                "--dpkgopt=path-include=/usr/share/doc/*/copyright",
                "--dpkgopt=force-unsafe-io",
                "bookworm",
                str(archive),
                *_sources(),
            ],
            check=True,
        )
        root.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", root], check=True)
        (root / "usr/bin/python").symlink_to("python3")
        # The machine's own certificates: its package index may need them.
        if CERTIFICATES.is_dir():
            shutil.copytree(CERTIFICATES, root / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
        subprocess.run(["chroot", root, "update-ca-certificates"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        change = f"ENV PIP_CERT={BUNDLE} SSL_CERT_FILE={BUNDLE}"
        docker("import", "--change", change, "--change", 'CMD ["python3"]', str(archive), BASE)


def _sources() -> list[str]:
    """The machine's own mirrors of Debian 12."""
    form = ["--format", "deb $(REPO_URI) $(CODENAME) main", "Created-By: Packages"]
    lines = subprocess.run(
        ["apt-get", "indextargets", *form], check=True, capture_output=True, text=True
    ).stdout
    return sorted({line for line in lines.splitlines() if line.split()[2].startswith("bookworm")})


def _answers(host: str | None) -> bool:
    """An engine answers at this address, or at the client's default address."""
    if shutil.which("docker") is None:
        return False
    environment = {**os.environ, "DOCKER_HOST": host} if host else None
    return "Server Version" in docker("info", environment=environment, check=False)


def _install() -> None:
    missing = sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ImpossibleError(
            f"the packages {' '.join(missing)} are missing, and there is no apt to install them"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["apt-get", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300"]
    with _services_stay_down():
        for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *missing]):
            done = subprocess.run(
                [*patient, *command], env=quiet, capture_output=True, text=True, check=False
            )
            if done.returncode:
                said = (done.stderr.strip() or done.stdout.strip()).splitlines()
                raise ImpossibleError(
                    f"apt-get {' '.join(command)} failed: {said[-1] if said else 'no reason given'}"
                )


@contextmanager
def _services_stay_down() -> Iterator[None]:
    """Packages that are installed here start no service: the engine of Debian's package would stay."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
