"""The notebooks of the repository run in a Jupyter kernel, and show what they promise."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "demo").rglob("*.ipynb"))

pytestmark = pytest.mark.notebooks


@cache
def executed(path: Path) -> list[Any]:
    """The cells after a kernel has run all of them. Raises CellExecutionError at the first error."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(path.parent))
    cells: list[Any] = notebook.cells
    return cells


def outputs(cells: list[Any], kind: str) -> list[str]:
    """What cells display in this form."""
    found = (output.get("data", {}) for cell in cells for output in cell.get("outputs", ()))
    return [data[kind] for data in found if kind in data]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_without_an_error_or_a_warning(path: Path) -> None:
    cells = executed(path)
    printed = [
        output for cell in cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"
    ]
    assert not printed, printed


def test_the_first_notebook_shows_proofs_alarms_and_plots() -> None:
    cells = executed(REPOSITORY / "demo" / "first" / "condensation.ipynb")
    html = "".join(outputs(cells, "text/html"))
    assert "alert condensation <strong" in html and ">accepted</strong>" in html and ">same</strong>" in html
    assert len(outputs(cells, "image/png")) == 2
    assert "'191 of 320 readings'" in outputs(cells, "text/plain")
    assert re.search(r"condensation\s+640 tuples, 436 retained", html)


def test_the_second_notebook_shows_what_is_retained_of_the_recording() -> None:
    cells = executed(REPOSITORY / "demo" / "motes" / "retained.ipynb")
    html, text = "".join(outputs(cells, "text/html")), outputs(cells, "text/plain")
    assert "'5,119 of 18,914 readings retained'" in text
    assert "'18,914 windows have the same greatest temperature'" in text
    for alert in ("condensation", "heat_stress", "runaway"):
        assert f"alert {alert} <strong" in html
        assert re.search(rf"{alert}\s+18914 tuples, 4741 retained", html)
    assert ">same</strong>" in html and ">differs</strong>" not in html
    assert len(outputs(cells, "image/png")) == 3
