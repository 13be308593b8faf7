"""Seed and number of the random cases of a run: TAMIS_SEED and TAMIS_CASES."""

from __future__ import annotations

import os
from typing import Any

import pytest

SEED = int(os.environ.get("TAMIS_SEED", "1"))


def cases(share: float) -> int:
    """The number of random cases of a test: `share` times TAMIS_CASES, by default 24,000."""
    return max(1, int(int(os.environ.get("TAMIS_CASES", "24000")) * share))


def also_long(times: int) -> list[Any]:
    """Parameters of a test: its share of the cases, and `times` as many in a search for unsoundness."""
    return [pytest.param(1), pytest.param(times, marks=[pytest.mark.soundness, pytest.mark.timeout(0)])]
