"""What a run tells before it begins, so that it can be repeated."""

from __future__ import annotations

from tests.oracle.brackets import SEED, cases


def pytest_report_header() -> str:
    return f"random cases: TAMIS_SEED={SEED} TAMIS_CASES={cases(1.0)}"
