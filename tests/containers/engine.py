"""A Docker engine for the tests of containers, and the base image of the Dockerfiles if none can be pulled.

An engine that answers already is used as it is. On a bare Debian machine root gets one of its own: the
packages come by apt, and the engine listens on a socket of its own until the tests end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

BASE = "python:3.11-slim"
SOCKET = Path("/run/tamis-containers.sock")
# Images and layers stay there between two runs.
DATA = Path("/var/lib/tamis-containers")
CERTIFICATES = Path("/usr/local/share/ca-certificates")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

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


def docker(*arguments: str, environment: Mapping[str, str] | None = None, check: bool = True) -> str:
    """Run a command of Docker; returns its output. Raises RuntimeError with the end of its log."""
    # Debian's own comes first: it builds with BuildKit. Clients from elsewhere may lack the plugin for it.
    program = shutil.which("docker", path=f"/usr/bin:{os.environ['PATH']}") or "docker"
    done = subprocess.run(
        [program, *arguments],
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
    if _answers():
        yield
        return
    if os.geteuid():
        raise ImpossibleError("no Docker engine answers, and only root can start one")
    _install()
    DATA.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="tamis-engine-", dir="/run") as run:
        log = Path(run) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    *("dockerd", "--host", f"unix://{SOCKET}", "--data-root", str(DATA)),
                    *("--exec-root", f"{run}/exec", "--pidfile", f"{run}/pid"),
                ],
                stdout=out,
                stderr=out,
            )
        os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
        try:
            deadline = time.monotonic() + 60
            while not _answers():
                if process.poll() is not None or time.monotonic() > deadline:
                    last = log.read_text(errors="replace").strip().splitlines()
                    raise ImpossibleError(f"dockerd does not start: {last[-1] if last else 'no log'}")
                time.sleep(0.5)
            yield
        finally:
            del os.environ["DOCKER_HOST"]
            process.terminate()
            process.wait(60)


def have_base() -> None:
    """Have the image from which the Dockerfiles start: pulled, or made of Debian's packages."""
    if docker("images", "--quiet", BASE).strip():
        return
    try:
        docker("pull", "--quiet", BASE)
    except RuntimeError:
        _make_base()


def _make_base() -> None:
    with TemporaryDirectory(prefix="tamis-base-") as folder:
        root, archive = Path(folder) / "root", Path(folder) / "base.tar"
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates,python3,python3-venv"]
            # Slim images leave these out; copyright notices stay.
            + [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")]
            + ["--dpkgopt=path-include=/usr/share/doc/*/copyright", "bookworm", str(archive), *_sources()],
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


def _answers() -> bool:
    if shutil.which("docker") is None:
        return False
    return "Server Version" in docker("info", check=False)


def _install() -> None:
    missing = sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ImpossibleError(
            f"the packages {' '.join(missing)} are missing, and there is no apt to install them"
        )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", *command], env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise ImpossibleError(
                f"apt-get {' '.join(command)} failed: {said[-1] if said else 'no reason given'}"
            )
