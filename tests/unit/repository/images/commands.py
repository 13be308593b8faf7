"""The commands that run in the images of Tamis, collected from the files that run them.

A command belongs to an environment: the packages of one service (`edge`), or those that build the images
(`build`). systemd's units and the install page make such environments without an image.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tests.helm.chart import EXAMPLES, containers, pod_specs
from tests.unit.repository.test_compose import ADDED, BASE, load
from tests.unit.repository.test_images import REPOSITORY, SERVICES, script, stages

# Pages whose commands are for an installed fleet, not for a clone after `make setup`.
PAGES = (
    *sorted((REPOSITORY / "docs").glob("install*.md")),
    *(REPOSITORY / "docs" / f"{name}.md" for name in ("backup", "notify", "recover", "security", "silences")),
    *(REPOSITORY / "docs" / f"{name}.md" for name in ("runbook", "troubleshoot", "upgrade")),
    REPOSITORY / "helm/tamis/README.md",
    REPOSITORY / "helm/tamis/templates/NOTES.txt",
)
_IMAGE = re.compile(rf"tamis-({'|'.join(SERVICES)})\b")
_PROGRAMS = {"tamis", "python", "python3", "spark-class", "spark-submit"}
# Options of `docker compose run` and `exec`, and of `kubectl exec`, that have no value.
_FLAGS = {"-T", "--rm", "-d", "-i", "-t", "-it", "--no-deps"}


@dataclass(frozen=True)
class Command:
    """A command line, where it is written, and the environments of which one must be enough for it."""

    source: str
    environments: tuple[str, ...]
    words: tuple[str, ...]
    # Files of the repository by their paths in the container.
    mounts: tuple[tuple[str, Path], ...] = ()

    def __str__(self) -> str:
        return f"{self.source}: {' '.join(self.words)[:60]}"

    def file(self, path: str) -> Path | None:
        """The file of the repository at this path of the container."""
        return dict(self.mounts).get(path)


def collect() -> list[Command]:
    """All commands."""
    found = [*dockerfiles(), *build_scripts(), *compose_files(), *chart(), *units()]
    for page in PAGES:
        found += page_commands(page.read_text(), str(page.relative_to(REPOSITORY)))
    return found


def entry_point(service: str) -> list[str]:
    (words,) = stages(service)[-1].all("ENTRYPOINT")
    found: list[str] = orjson.loads(words)
    return found


def dockerfiles() -> Iterator[Command]:
    """What an image runs by itself."""
    healthcheck = (("healthcheck", REPOSITORY / "deploy/images/healthcheck.py"),)
    for service in SERVICES:
        source = f"services/{service}/Dockerfile"
        yield Command(source, (service,), tuple(entry_point(service)))
        for check in stages(service)[-1].all("HEALTHCHECK"):
            words = orjson.loads(check[check.index("[") :])
            yield Command(source, (service,), tuple(words), healthcheck)


def build_scripts() -> Iterator[Command]:
    """What the stages of a Dockerfile run by Python, of the environment /build or of the image's own."""
    for service in SERVICES:
        runs = [run for stage in stages(service) for run in stage.all("RUN")]
        for name in dict.fromkeys(re.findall(r"/(\w+\.sh)", " ".join(runs))):
            for place, line in re.findall(r"(?<!--python )(/build|/opt/tamis)/bin/(python .*)", script(name)):
                words = shlex.split(line.replace("$here", "/images").rstrip(")"))
                environment = "build" if place == "/build" else service
                folder = REPOSITORY / "deploy/images"
                mounts = tuple((f"/images/{file.name}", file) for file in folder.glob("*.py"))
                yield Command(f"deploy/images/{name}", (environment,), tuple(words), mounts)


def compose_files() -> Iterator[Command]:
    """Entry points with their arguments, and health checks, of each service in each file."""
    base: Mapping[str, Any] = load(BASE)["services"]
    for file in (BASE, *ADDED):
        for name, changes in load(file)["services"].items():
            service = {**base.get(name, {}), **changes}
            image = _IMAGE.search(service["image"])
            if not image:
                continue
            entry = _words(service["entrypoint"]) if "entrypoint" in service else entry_point(image[1])
            words = [*entry, *_words(service.get("command", []))]
            mounts = tuple(_mounts([*base.get(name, {}).get("volumes", []), *changes.get("volumes", [])]))
            source = f"{file}: {name}"
            yield Command(source, (image[1],), tuple(words), mounts)
            match service.get("healthcheck", {}).get("test", []):
                case ["CMD", *check]:
                    yield Command(f"{source}: healthcheck", (image[1],), tuple(check), mounts)
                case ["CMD-SHELL", check]:
                    yield Command(f"{source}: healthcheck", (image[1],), ("sh", "-c", check), mounts)


def _mounts(volumes: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for volume in volumes:
        source, path = volume.split(":")[:2]
        if source.startswith("."):
            yield path, REPOSITORY / source


def _words(command: str | Sequence[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)


def chart() -> Iterator[Command]:
    """Containers of the kept renderings, with what probes and hooks execute."""
    for example in EXAMPLES:
        for container in (c for _, pod in pod_specs(example.objects()) for c in containers(pod)):
            image = _IMAGE.search(container.get("image", ""))
            if not image:
                continue
            source = f"helm/tamis/examples/{example.name}: {container['name']}"
            words = [*container.get("command", entry_point(image[1])), *container.get("args", [])]
            yield Command(source, (image[1],), tuple(map(str, words)))
            for name in ("startupProbe", "livenessProbe", "readinessProbe"):
                if "exec" in (probe := container.get(name, {})):
                    yield Command(f"{source}: {name}", (image[1],), tuple(probe["exec"]["command"]))
            for name, hook in container.get("lifecycle", {}).items():
                if "exec" in hook:
                    yield Command(f"{source}: {name}", (image[1],), tuple(hook["exec"]["command"]))


def units() -> Iterator[Command]:
    """What systemd runs; the unit's name tells the service whose packages are installed."""
    for unit in sorted((REPOSITORY / "deploy/systemd").glob("*.service")):
        for line in re.findall(r"^Exec\w+=[-+!@:|]*(.*)$", unit.read_text(), re.MULTILINE):
            program, *rest = shlex.split(line)
            service = unit.stem.removeprefix("tamis-")
            yield Command(f"deploy/systemd/{unit.name}", (service,), (Path(program).name, *rest))


def page_commands(text: str, source: str) -> Iterator[Command]:
    """Commands in the code blocks of a page, also behind `docker compose run` and `kubectl exec`.

    A command beside them runs where one service is installed; the page says where.

    >>> text = "```sh\\ndocker compose exec -T watch tamis get  # all\\nX=1 tamis apply a.sql\\n```\\n"
    >>> for found in page_commands(text, "page.md"):
    ...     print(found.environments, found.words)
    ('registry',) ('tamis', 'get')
    ('alerts', 'edge', 'joiner', 'registry') ('tamis', 'apply', 'a.sql')
    """
    for line in _shell_lines(text):
        for part in re.split(r"\$\(|\||&&|;|\)", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:  # such as a quotation that `$(` or `|` is a part of
                words = part.split()
            while words and re.fullmatch(r"\w+=.*|sudo|export", words[0]):
                del words[0]
            if words:
                yield from _page_command(words, source)


def _page_command(words: list[str], source: str) -> Iterator[Command]:
    program = words[0].rpartition("/")[2]
    if program in {"docker", "docker-compose"} and {"run", "exec"} & set(words):
        image, inner = _in_container(words)
        if image:
            yield Command(source, (image,), tuple(inner))
    elif program == "kubectl" and "--" in words:
        image_of = _IMAGE.search(" ".join(words[: words.index("--")]))
        if image_of:
            yield Command(source, (image_of[1],), tuple(words[words.index("--") + 1 :]))
    elif program in _PROGRAMS and (words[0].startswith("/opt/tamis/bin/") or program == "tamis"):
        own = SERVICES if len(words) < 2 or words[1] not in SERVICES else (words[1],)
        yield Command(source, own, (program, *words[1:]))


def _in_container(words: list[str]) -> tuple[str | None, list[str]]:
    """The image and the command of `docker compose run` and `exec`, or of `docker run`."""
    at = next(i for i, word in enumerate(words) if word in {"run", "exec"})
    rest, entry = words[at + 1 :], None
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--entrypoint":
            entry = rest.pop(0)
        elif option not in _FLAGS and "=" not in option:
            rest.pop(0)
    name, *inner = rest
    inner = inner[: inner.index("<")] if "<" in inner else inner
    files = {n: s for file in (BASE, *ADDED) for n, s in load(file)["services"].items() if "image" in s}
    image = _IMAGE.search(files[name]["image"] if name in files else name)
    if image and words[at] == "run":
        default = _words(files[name]["entrypoint"]) if "entrypoint" in files.get(name, {}) else None
        inner = [*([entry] if entry else default or entry_point(image[1])), *inner]
    return (image[1] if image else None), inner


def _shell_lines(text: str) -> Iterator[str]:
    """The lines of code blocks: fenced ones of a shell, and indented ones."""
    fence = None
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if opened := re.match(r"\s*```(\w*)", line):
            fence = None if fence is not None else opened[1]
        elif fence in {"sh", "bash"} or (fence is None and line.startswith(("    ", "  kubectl", "  TAMIS"))):
            yield line.strip()
