"""The packed environment of executors: its files, and its Python in another directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tamis.errors import InputError
from tamis_joiner.environment import contents, pack


def test_packages_are_those_that_the_joiner_requires() -> None:
    names = {name for _, name in contents.packages("tamis", ["joiner"])}
    assert {"site-packages/numpy/__init__.py", "site-packages/pyspark/worker.py"} <= names
    # Needed by packages that the joiner requires, not by Tamis itself.
    assert "site-packages/llvmlite/__init__.py" in names
    # Of other services and of developers, jars, and tests.
    tops = {name.split("/")[1] for name in names}
    assert not tops & {"faust", "paho", "pytest", "hypothesis", "duckdb", "tamis"}
    assert not any(name.endswith(".jar") or "/tests/" in name for name in names)


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(InputError, match="tamis-of-the-future isn't installed"):
        list(contents.packages("tamis-of-the-future", []))
    with pytest.raises(InputError, match="'no_such_module' isn't found"):
        list(contents.modules(["no_such_module"]))


def test_the_modules_of_functions_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plant_of_test.py").write_text("def twice(v):\n    return v * 2\n")
    (tmp_path / "plants_of_test").mkdir()
    (tmp_path / "plants_of_test/__init__.py").touch()
    (tmp_path / "plants_of_test/pumps.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {name for _, name in contents.modules(["plant_of_test", "plants_of_test.pumps"])}
    assert {
        "site-packages/plant_of_test.py",
        "site-packages/plants_of_test/__init__.py",
        "site-packages/plants_of_test/pumps.py",
    } <= found


def test_its_python_runs_in_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the standard library and one module only: all packages together have 250 MB."""
    (tmp_path / "plant_of_test.py").write_text("def twice(v):\n    return v * 2\n")
    (tmp_path / "machine_code").mkdir()
    (tmp_path / "machine_code/kernels.json").write_text("{}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(pack, "OURS", ())
    monkeypatch.setattr(pack, "packages", lambda name, extras: iter(()))
    archive = tmp_path / "environment.tar.gz"
    variables = {"TAMIS_FUNCTIONS": "plant_of_test", "TAMIS_KERNELS": str(tmp_path / "machine_code")}
    pack.pack(archive, variables)
    elsewhere = tmp_path / "else where"
    with tarfile.open(archive) as tar:
        assert {(entry.uid, entry.uname) for entry in tar} == {(0, "")}
        tar.extractall(elsewhere, filter="data")
    program = "import os, plant_of_test as p, sys; print(sys.prefix, p.__file__, os.environ['TAMIS_KERNELS'])"
    environment = {"PATH": os.environ["PATH"], "PYTHONHOME": "/nonexistent", "TAMIS_KERNELS": "/nonexistent"}
    said = subprocess.run(
        [elsewhere / "bin/python", "-P", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    module = elsewhere / "lib" / pack.VERSION / "site-packages/plant_of_test.py"
    assert said.strip() == f"{elsewhere} {module} {elsewhere}/kernels"


def test_an_archive_with_other_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The joiner's own code, a module of functions, an archive of an older release, and a damaged one."""
    function = tmp_path / "plant_of_test.py"
    function.write_text("def twice(v):\n    return v * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(pack, "packages", lambda name, extras: iter(()))
    monkeypatch.setattr(pack, "standard_library", lambda: iter(()))
    archive = tmp_path / "environment.tar.gz"
    variables = {"TAMIS_FUNCTIONS": "plant_of_test"}
    pack.pack(archive, variables)
    contents.check_code(archive, variables)
    refusal = f"{re.escape(str(archive))}: the environment was packed from another version"
    with pytest.raises(InputError, match=refusal):
        contents.check_code(archive, {})
    function.write_text("def twice(v):\n    return v + v\n")
    with pytest.raises(InputError, match=refusal):
        contents.check_code(archive, variables)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(function, "bin/python3.11")
    with pytest.raises(InputError, match=refusal):
        contents.check_code(archive, variables)
    archive.write_bytes(b"no archive")
    with pytest.raises(InputError, match="isn't a packed environment"):
        contents.check_code(archive, variables)


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no_such_module"):
        pack.pack(tmp_path / "environment.tar.gz", {"TAMIS_FUNCTIONS": "no_such_module"})
    assert list(tmp_path.iterdir()) == []


def test_the_stand_in_starts_the_python_of_this_process(tmp_path: Path) -> None:
    contents.stand_in(tmp_path)
    command = [contents.PYTHON, "-c", "import sys; print(sys.executable)"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.strip() == sys.executable
