"""Notebooks are kept without outputs, and their code runs (`make notebooks` runs them in a kernel)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import nbformat
import pytest
from matplotlib import pyplot

REPOSITORY = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((REPOSITORY / "demo").rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_no_outputs_and_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    monkeypatch.chdir(path.parent)
    matplotlib.use("Agg")
    names: dict[str, object] = {}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == [] and cell.execution_count is None
        exec(compile(cell.source, path.name, "exec"), names)
    pyplot.close("all")
