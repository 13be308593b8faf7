"""Report header with the seed and the number of random cases, so that a run can be repeated."""

from __future__ import annotations

from tests.oracle.random_cases import SEED, cases


def pytest_report_header() -> str:
    return f"random cases: TAMIS_SEED={SEED} TAMIS_CASES={cases(1.0)}"
