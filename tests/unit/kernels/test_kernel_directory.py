"""The kernels that the set-up compiles for edges: used only while they are those of the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import orjson
import pytest

from tamis import kernel_directory
from tamis.kernel_directory import MODULE, SOURCES, TABLE, VARIABLE, current

# Everything that an edge imports and calls before its first reading.
EDGE = """
import sys
from pathlib import Path
from tamis import kernel_directory
kernel_directory.choose(Path(sys.argv[1]))
import tamis_edge.service
tamis_edge.service.warm_up()
print("numba" in sys.modules)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory that is signed, with an empty module."""
    (tmp_path / f"{MODULE}{EXTENSION_SUFFIXES[0]}").touch()
    (tmp_path / TABLE).write_bytes(b"{}")
    kernel_directory.sign(tmp_path)
    return tmp_path


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def numba_in_an_edge(directory: Path) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", EDGE, str(directory)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() == "True"


def test_kernels_are_current_until_a_source_changes(directory: Path) -> None:
    assert current(directory)
    sources = orjson.loads((directory / SOURCES).read_bytes())
    assert "kernels.py" in sources
    (directory / SOURCES).write_bytes(orjson.dumps(sources | {"kernels.py": "0" * 64}))
    assert not current(directory)


def test_kernels_of_a_source_that_is_gone_are_not_current(directory: Path) -> None:
    sources = orjson.loads((directory / SOURCES).read_bytes())
    (directory / SOURCES).write_bytes(orjson.dumps(sources | {"gone.py": "0" * 64}))
    assert not current(directory)


@pytest.mark.parametrize("missing", [SOURCES, f"{MODULE}{EXTENSION_SUFFIXES[0]}"])
def test_a_part_of_a_directory_is_not_current(directory: Path, missing: str) -> None:
    (directory / missing).unlink()
    assert not current(directory)


def test_an_edge_without_current_kernels_uses_numba(tmp_path: Path) -> None:
    assert numba_in_an_edge(tmp_path)


def test_an_edge_with_current_kernels_does_without_numba() -> None:
    directory = kernel_directory.default()
    if not current(directory):
        pytest.skip("`make setup` found no C compiler, or a kernel has changed since")
    assert not numba_in_an_edge(directory)


def test_the_variable_of_the_user_is_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/opt/tamis/kernels")
    monkeypatch.delitem(sys.modules, "tamis.kernels", raising=False)
    kernel_directory.choose(directory)
    assert os.environ[VARIABLE] == "/opt/tamis/kernels"


def test_the_set_up_does_without_a_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tamis.precompile_kernels"],
        env={**environment(), "PATH": "/nonexistent", "CC": "/nonexistent/cc"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no C compiler" in done.stdout
