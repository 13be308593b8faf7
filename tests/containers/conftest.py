"""Tests of containers run only where `make test-containers` has built the images."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder elsewhere."""
    if "TAMIS_CONTAINERS" not in os.environ:
        skip = pytest.mark.skip(reason="`make test-containers` builds the images first")
        for item in items:
            if "tests/containers" in item.path.as_posix():
                item.add_marker(skip)
