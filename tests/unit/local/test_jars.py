"""Jars are used only when they are exactly those that are listed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tamis.errors import UnavailableError
from tamis.java import jars
from tamis.java.runtime import find_java, java_version


def _directory(path: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
    return path


def test_differences_name_what_is_missing_wrong_and_too_much(tmp_path: Path) -> None:
    right = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("spark/a-1.jar", "broker/b-1.jar")}
    assert jars.differences(_directory(tmp_path, {name: name.encode() for name in right}), right) == []
    _directory(tmp_path, {"spark/a-1.jar": b"other", "spark/c-1.jar": b"new"})
    (tmp_path / "broker/b-1.jar").unlink()
    missing, wrong, unknown = jars.differences(tmp_path, right)
    assert missing == "broker/b-1.jar is missing"
    assert wrong.startswith("spark/a-1.jar has SHA-256")
    assert unknown.endswith("expected no such jar")


def test_jars_that_were_not_fetched_are_an_error_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAMIS_JARS", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"python -m tamis\.java\.jars"):
        jars.jars("spark")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no java", None),
    ],
)
def test_java_version(said: str, version: int | None) -> None:
    assert java_version(said) == version


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match="Java 11 is too old"):
        find_java()
