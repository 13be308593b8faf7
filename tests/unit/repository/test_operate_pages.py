"""The systemd units: their commands exist, and systemd takes them. Checks of the commands of pages."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from tamis.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]
UNITS = sorted((REPOSITORY / "deploy" / "systemd").glob("*.service"))
SYSTEMD = shutil.which("systemd-analyze")
# Points of exposure of `systemd-analyze security`, from 0 to 10; less is better.
EXPOSURE = 20  # in tenths


def commands(text: str) -> list[list[str]]:
    """The calls of tamis in a text of shell commands, without their variables and paths."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    found = []
    for line in lines:
        words = shlex.split(line.partition("  #")[0], comments=True)
        while words and "=" in words[0]:
            del words[0]
        if words and words[0].rpartition("/")[2] == "tamis":
            found.append(words[1:])
    return found


def check(words: list[str]) -> None:
    name, *rest = words
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None, f"there is no tamis {name}"
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in rest:
        if word in ("|", ">", "&&", ";"):
            break
        if word.startswith("--"):
            assert word.partition("=")[0] in {*known, "--help"}, f"tamis {name} has no {word}"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_a_service_in_its_own_directory(unit: Path) -> None:
    name = unit.stem.removeprefix("tamis-")
    text = unit.read_text()
    (start,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    (words,) = commands(start)
    assert words[0] == name
    check(words)
    assert f"StateDirectory=tamis/{name}" in text and f"TAMIS_DATA=/var/lib/tamis/{name}" in text
    assert {"User=tamis", "RestartPreventExitStatus=2"} <= set(text.splitlines())
    assert len(UNITS) == 4


@pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    assert SYSTEMD is not None
    for unit in UNITS:
        # The program isn't installed here.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M)
        (tmp_path / unit.name).write_text(text)
    copies = sorted(map(str, tmp_path.iterdir()))
    checked = subprocess.run(
        [SYSTEMD, "verify", "--man=no", *copies], capture_output=True, text=True, check=False
    )
    if "Failed to" in checked.stderr and "manager" in checked.stderr:
        pytest.skip(f"systemd-analyze doesn't work here: {checked.stderr.strip()}")
    assert (checked.returncode, checked.stderr) == (0, "")
    for copy in copies:
        exposed = subprocess.run(
            [SYSTEMD, "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", copy],
            capture_output=True,
            text=True,
            check=False,
        )
        assert exposed.returncode == 0, exposed.stdout[-200:]
