"""Examples in the help of every subcommand: those that need no fleet work in a shell in the repository."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tamis.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
NAMES = main.list_commands(click.Context(main))
# What talks to a registry or to Kafka, or runs until it is stopped.
FLEET = {
    "acknowledge",
    "alerts",
    "apply",
    "demo",
    "doctor",
    "drop",
    "edge",
    "get",
    "joiner",
    "kafka",
    "redeliver",
    "registry",
    "silence",
    "sql",
    "unsilence",
    "up",
    "watch",
}
ANSWERS = {"match"}  # exits with 1 where the answer is no


def examples(name: str) -> list[str]:
    """The examples of a subcommand's help, as they stand there."""
    lines = CliRunner().invoke(main, [name, "--help"], terminal_width=500).output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() in ("Example:", "Examples:"))
    block = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        block.append(line.strip())
    return "\n".join(block).replace("\\\n", "").splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example_of_the_command(name: str) -> None:
    assert examples(name) and all(f"tamis {name}" in example for example in examples(name))


EXAMPLES = [(name, example) for name in NAMES if name not in FLEET for example in examples(name)]
# A process takes two seconds of CPU to start, so only examples with a pipe get a shell.
PASTED = [pair for pair in EXAMPLES if "|" in pair[1]]
OTHERS = [pair for pair in EXAMPLES if pair not in PASTED]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an example finds what is in the repository, with a home directory of its own."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "demo").symlink_to(REPOSITORY / "demo")
    return tmp_path


@pytest.mark.parametrize(("name", "example"), PASTED, ids=[example for _, example in PASTED])
def test_an_example_works_when_pasted(name: str, example: str, folder: Path) -> None:
    command = folder / "bin" / "tamis"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error -m tamis.cli "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", example],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in answers(name), done.stderr
    assert done.stdout or wrote(folder)


@pytest.mark.parametrize(("name", "example"), OTHERS, ids=[example for _, example in OTHERS])
def test_the_other_examples_work(
    name: str, example: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, shlex.split(example)[1:])
    assert done.exit_code in answers(name), done.output
    assert done.stdout or wrote(folder)


def answers(name: str) -> set[int]:
    """The exit codes of a subcommand that has done its work."""
    return {0, 1} if name in ANSWERS else {0}


def wrote(folder: Path) -> bool:
    """True if there is a recording or a picture that was not there before."""
    return any(next(folder.glob(f"*.{form}"), None) for form in ("csv", "parquet", "png"))
