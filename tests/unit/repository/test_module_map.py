"""Every module has a first line that docs/modules.md can show, and the page shows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.unit.repository.module_map import (
    CODE,
    PAGE,
    REPOSITORY,
    first_line,
    modules,
    page,
)

COLUMNS = 110
QUESTION_WORD = re.compile(r"(What|Whether|Who|How|Which|Where|When)\b")


def mistake(module: Path) -> str | None:
    """The mistake of the module's first line, if any."""
    line = first_line(module)
    if not line:
        return "has no docstring"
    if not line.endswith("."):
        return "is not one line that ends with a full stop"
    if QUESTION_WORD.match(line):
        return "begins with a question word"
    if len(line) > COLUMNS:
        return f"has more than {COLUMNS} columns"
    return None


def test_first_lines_say_what_a_module_is() -> None:
    mistakes = {
        str(module.relative_to(REPOSITORY)): f"the first line {said}: {first_line(module)!r}"
        for module in modules(*CODE, "tests")
        if (said := mistake(module))
    }
    assert not mistakes


def test_the_page_lists_every_module_with_its_first_line() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.unit.repository.module_map`"


@pytest.mark.parametrize("module", list(modules(*CODE)), ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_docstrings_say_what_a_thing_is_or_does(module: Path) -> None:
    """A docstring that asks, or begins with a question word, leaves the reader to find the statement."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            assert not re.match(r"(What|Whether|Who|How)\b", text), f"{node.name}: {text}"
            assert not asks(text), f"{node.name}: begin with 'True if': {text}"


def asks(docstring: str) -> bool:
    """True if the docstring's first sentence ends with a question mark."""
    sentence = re.split(r"(?<=[.?!])\s|\n\n", docstring, maxsplit=1)[0]
    return sentence.endswith("?")


def test_a_question_is_found_in_the_first_sentence_alone() -> None:
    assert asks("Is it the constant\nNULL?")
    assert asks("Do two boxes overlap? Exact.")
    assert not asks("The condition `a ?= b`.")
    assert not asks("True if two boxes overlap. Why exact?")
