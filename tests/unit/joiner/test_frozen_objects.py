"""Objects that the garbage collector of a Python worker doesn't scan after each task."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tamis_joiner.spark.processor import FrozenObjects


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """The collector of this process scans all objects again."""
    yield
    gc.unfreeze()


def test_the_objects_of_a_late_import_are_frozen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_late.py").write_text("found = [[] for _ in range(5_000)]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    frozen = FrozenObjects()
    frozen.add_imported()
    state: list[list[int]] = [[] for _ in range(5_000)]
    frozen.add_imported()
    before = _scanned()
    assert before > len(state)
    late = import_module("imported_late").found
    assert _scanned() > before + len(late)
    frozen.add_imported()
    assert _scanned() < len(late)


def test_frozen_objects_are_still_deleted() -> None:
    frozen = FrozenObjects()
    state: list[list[int]] = [[] for _ in range(5_000)]
    frozen.add_imported()
    before = gc.get_freeze_count()
    state.clear()
    assert gc.get_freeze_count() <= before - 5_000


def _scanned() -> int:
    return len(gc.get_objects())
