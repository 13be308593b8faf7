"""The table of functions in docs/sql.md is that of the code, and random tests have a template of each."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.unit.repository.functions_page import PAGE, page, table

from tamis.expressions.functions.entry import FUNCTIONS, SPELLINGS
from tamis.expressions.nodes import OPAQUE

REPOSITORY = Path(__file__).resolve().parents[3]
CONSTRUCTS = (REPOSITORY / "tests" / "fixtures" / "sql" / "constructs.txt").read_text()
PROVERS_OWN = {"difference"}  # operators that no evaluator computes


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(), "python -m tests.unit.repository.functions_page writes it anew"


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_function_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{name}[(`]", table()), f"its entry needs a Reference with `{name}(…)`"


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_function_has_a_template(name: str) -> None:
    """Random tests of pairs draw from these."""
    first = SPELLINGS[name].names[0]
    assert re.search(rf"\b{first}\(", CONSTRUCTS), f"add {first}(…) to tests/fixtures/sql/constructs.txt"


def named_operators(tree: ast.AST) -> set[str]:
    """The texts that a module compares with `.op`, or makes calls of."""
    names: set[str] = set()
    for node in ast.walk(tree):
        texts: list[ast.AST] = []
        match node:
            case ast.Compare(left=ast.Attribute(attr="op"), comparators=sides):
                texts = [each for side in sides for each in ast.walk(side)]
            case ast.Match(subject=ast.Attribute(attr="op"), cases=cases):
                texts = [each for case in cases for each in ast.walk(case.pattern)]
            case ast.Call(func=ast.Name(id="Call"), args=[ast.Constant() as text, *_]):
                texts = [text]
        names.update(
            text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)
        )
    return names


def test_code_names_only_operators_of_the_table() -> None:
    modules = [
        module
        for room in ("shared", "services")
        for module in (REPOSITORY / room).rglob("*.py")
        if "tamis.expressions" in module.read_text()
    ]
    unknown = {
        f"{module.relative_to(REPOSITORY)}: {name}"
        for module in modules
        for name in named_operators(ast.parse(module.read_text())) - FUNCTIONS.keys() - PROVERS_OWN - {OPAQUE}
    }
    assert not unknown
