"""Commands in images import only packages that the lock of the image has.

All imports that a command can reach count, also those inside functions. A process that can import nothing but
the packages of the lock then loads the modules, so that packages which modules find at run time count, too.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest
from tests.unit.repository.images.commands import Command, collect
from tests.unit.repository.test_images import LEFT_OUT, REPOSITORY, SERVICES, pins

from tamis.cli import modules

LOCKS = {name: REPOSITORY / "services" / name / "requirements.lock" for name in SERVICES}
LOCKS["build"] = REPOSITORY / "deploy" / "build.lock"
# Programs of the base image.
SYSTEM = {"cat", "curl", "date", "sh", "bash", "timeout", "wget"}
# Another package of Google's shares the name; only tests of Protobuf use it.
DISTRIBUTIONS = {**packages_distributions(), "google": ["protobuf"]}
COMMANDS = collect()


@dataclass
class Reach:
    """What a command can import: modules of Tamis, and the first parts of the names of others."""

    ours: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Every import of the code, also those inside functions."""
    packages = ("tamis", *(f"tamis_{service}" for service in SERVICES))
    return grimp.build_graph(
        *packages, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


def reach(command: Command, graph: grimp.ImportGraph) -> Reach:
    """What the command can import, in functions that it may never call, too."""
    found = Reach()
    for module in _started(list(command.words), command):
        root = module.partition(".")[0]
        if root in sys.stdlib_module_names:
            continue
        if not root.startswith("tamis"):
            found.others.add(root)
            continue
        assert module in graph.modules, f"{command}: there is no module {module}"
        upstream = graph.find_upstream_modules(module) | {module}
        for name in upstream:
            (found.ours if name.startswith("tamis") else found.others).add(name)
    found.others = {name.partition(".")[0] for name in found.others} - sys.stdlib_module_names
    return found


def _started(words: list[str], command: Command) -> Iterator[str]:
    """The modules with which a command begins. An unknown program is an error of this test or of the file."""
    program, rest = words[0].rpartition("/")[2], words[1:]
    match [program, *rest]:
        case ["tamis", *arguments]:
            yield "tamis.cli"
            name = next((word for word in arguments if not word.startswith("-")), None)
            if name is not None:
                assert name in modules(), f"{command}: there is no tamis {name}"
                yield f"tamis.cli.{modules()[name].parent.name}.{modules()[name].stem}"
        case ["python" | "python3", "-m", module, *_]:
            yield module
        case ["python" | "python3", "-c", text, *_]:
            yield from _imported(text)
        case ["python" | "python3", *arguments]:
            file = _script(arguments, command)
            assert file, f"{command}: it is unknown what Python runs"
            yield from _imported(file.read_text())
        case ["sh" | "bash", "-c", text, *_]:
            for part in re.split(r"[;&|]+", text):
                if part.split():
                    yield from _started(part.split(), command)
        case ["spark-class" | "spark-submit", *_]:
            yield "pyspark"
        case _:
            file = command.file(program)
            assert file or program in SYSTEM, f"{command}: {program} is unknown"
            if file:
                yield from _imported(file.read_text())


def _script(words: list[str], command: Command) -> Path | None:
    return next((file for word in words if (file := command.file(word))), None)


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            yield node.module


def missing(roots: Iterable[str], environment: str) -> set[str]:
    """The packages of these modules that the lock lacks."""
    packages = {re.sub(r"[_.]", "-", DISTRIBUTIONS[root][0].lower()) for root in roots}
    return packages - set(pins(LOCKS[environment])) - LEFT_OUT.get(environment, set())


@pytest.mark.parametrize("command", sorted(set(COMMANDS), key=str), ids=str)
def test_a_command_imports_only_packages_of_the_lock(command: Command, graph: grimp.ImportGraph) -> None:
    found = reach(command, graph)
    lacking = {name: missing(found.others, name) for name in command.environments}
    assert set() in lacking.values(), f"{command} imports what is in no lock: {lacking}"


@pytest.mark.parametrize("name", sorted(n for n, path in modules().items() if path.parent.name == "manage"))
def test_commands_for_users_of_a_registry_run_in_its_image(name: str, graph: grimp.ImportGraph) -> None:
    """`tamis redeliver` runs beside the alerts service, whose configuration it reads."""
    environment = "alerts" if name == "redeliver" else "registry"
    found = reach(Command("shared/tamis/cli", (environment,), ("tamis", name)), graph)
    assert missing(found.others, environment) == set()


@pytest.mark.parametrize("environment", LOCKS)
def test_what_commands_load_is_there_with_the_packages_of_the_lock_alone(
    environment: str, graph: grimp.ImportGraph
) -> None:
    """The module of a command that one environment can run is loaded there."""
    found = {
        module
        for command in COMMANDS
        if environment in command.environments
        for reached in [reach(command, graph)]
        if not missing(reached.others, environment)
        for module in _started(list(command.words), command)
        if module.partition(".")[0] not in sys.stdlib_module_names
    }
    assert found
    program = Path(__file__).with_name("only_locked_packages.py")
    names = sorted(set(pins(LOCKS[environment])))
    done = subprocess.run(
        [sys.executable, str(program)],
        input=json.dumps({"packages": names, "modules": sorted(found)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
