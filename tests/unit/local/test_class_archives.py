"""JVMs get an archive of their classes where there is one, and nothing otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.java import class_archives


def test_options_name_the_archive_of_the_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMIS_JARS", str(tmp_path))
    assert class_archives.options("broker") == []
    class_archives.path("broker").write_bytes(b"")
    assert f"-XX:SharedArchiveFile={tmp_path / 'broker.jsa'}" in class_archives.options("broker")
    assert class_archives.options("spark") == []
