"""The figures of the code's size, on a tree whose figures are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.repository.house import ROOTS, House

EDGE = '''"""An edge."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis import types_alone


def run() -> None:
    """Work."""
    from tamis import inside
    import_module("tamis.dynamic")
    [executable, "-m", "tamis.child"]  # "tamis.comment"


def undocumented() -> str:
    return "tamis.text"
'''


@pytest.fixture
def house(tmp_path: Path) -> House:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 110\n")
    for package, root in ROOTS.items():
        (tmp_path / root / package).mkdir(parents=True)
        (tmp_path / root / package / "__init__.py").write_text('"""A package."""\n')
    for name in ("types_alone", "inside", "dynamic", "child", "text"):
        (tmp_path / "shared/tamis" / f"{name}.py").write_text("x = 1\n")
    (tmp_path / "shared/tamis/inside.py").write_text("import sqlglot.expressions\n")
    (tmp_path / "services/edge/tamis_edge/edge.py").write_text(EDGE)
    return House(tmp_path)


def test_statements_and_tokens_are_those_without_docstrings_comments_and_layout(house: House) -> None:
    edge = house.modules["tamis_edge.edge"]
    assert edge.lines == EDGE.count("\n") == 16
    # from, if, from, def, from, call, list, def, return.
    assert edge.statements == 9
    assert house.modules["tamis.text"].tokens == 3
    assert house.modules["tamis"].tokens == 0


def test_what_a_service_loads_is_followed_into_functions_and_children(house: House) -> None:
    loaded, libraries = house.closure("tamis_edge")
    assert loaded == {
        "tamis_edge",
        "tamis_edge.edge",
        "tamis",
        "tamis.inside",
        "tamis.dynamic",
        "tamis.child",
    }
    assert libraries == {"sqlglot"}


def test_the_figures_of_a_tree(house: House) -> None:
    figures = house.figures()
    assert figures["files"] == "11"
    assert figures["public functions with a docstring"] == "50.0% of 2"
    assert figures["tamis_edge loads"] == "21 lines in 6 files, with sqlglot"
