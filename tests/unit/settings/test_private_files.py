"""Directories and files that only their user can read."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.cli import modules
from tamis.settings.common import private_directory


@pytest.fixture(autouse=True)
def without_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_new_directory_is_its_users_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert mode(private_directory(tmp_path / "spool" / "edge")) == 0o700
    assert caplog.text == ""


@pytest.mark.parametrize("wide", [0o777, 0o755, 0o750, 0o711, 0o2775])
def test_an_earlier_directory_is_closed_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wide: int
) -> None:
    caplog.set_level(logging.INFO)
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "journal.db").touch()
    directory.chmod(wide)
    assert mode(private_directory(directory)) == 0o700
    assert f"{directory}: other users may no longer enter this directory" in caplog.text
    caplog.clear()
    private_directory(directory)
    assert caplog.text == ""


def test_a_directory_that_users_share_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    assert mode(private_directory(shared)) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("foreign", ["data", "data/file"])
def test_what_belongs_to_others_stays_open_to_them(tmp_path: Path, foreign: str) -> None:
    directory = tmp_path / "data"
    directory.mkdir(0o755)
    (directory / "file").touch()
    os.chown(tmp_path / foreign, 12_345, 12_345)
    assert mode(private_directory(directory)) == 0o755


@pytest.mark.parametrize(
    "name", sorted(name for name, path in modules().items() if path.parent.name in ("services", "fleet"))
)
def test_each_service_makes_private_files(tmp_path: Path, name: str) -> None:
    """Every process that keeps readings on disk, also one that is added later: the folder decides."""
    code = (
        "import os, sys; from tamis.cli import main\n"
        f"main(['{name}', '--help'], standalone_mode=False)\n"
        "open('file', 'w').close(); os.mkdir('directory')"
    )
    subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert (mode(tmp_path / "file"), mode(tmp_path / "directory")) == (0o600, 0o700)


def test_a_command_keeps_the_umask_of_its_user_for_the_files_that_were_asked_for(tmp_path: Path) -> None:
    code = (
        "from tamis.cli import main\n"
        "main(['omit', '--help'], standalone_mode=False); open('file', 'w').close()"
    )
    subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert mode(tmp_path / "file") == 0o666
