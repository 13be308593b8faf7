"""The reference of `tamis verify` shares with Tamis the parsed SQL and the recordings, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tamis.verification

FOLDER = Path(tamis.verification.__file__).parent
SHARED = {
    "tamis.expressions.nodes",
    "tamis.expressions.duckdb_sql",  # has an oracle of its own
    "tamis.expressions.functions.entry",  # which functions are computed, beside the nodes
    "tamis.expressions.exact.conditions",  # has an oracle of its own
    "tamis.expressions.exact.rounding",  # has an oracle of its own
    "tamis.expressions.margin",  # the errors of values that plans say
    "tamis.expressions.python_functions",  # finds the operator's functions by their names
    "tamis.expressions.vectors",  # what the columns of recordings are
    "tamis.query.computed_columns",  # the expressions that columns of the parsed SQL stand for
    "tamis.query.model",
    "tamis.declarations.aggregates",
    "tamis.declarations.definitions",
    "tamis.declarations.streams",
    "tamis.declarations.watches",
    "tamis.recordings.typed",
}
PROMISE = {"tamis.plan.model"}  # the intervals and keys that the promise is about


def imported(module: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("tamis") and not name.startswith("tamis.verification")}


@pytest.mark.parametrize(
    "module",
    [
        "reference",
        "rounded_values",
        "hash_joins",
        "database",
        "aggregates",
        "standing",
        "watched_series",
        "window_matches",
        "watched_columns",
    ],
)
def test_the_plain_join_uses_no_code_that_it_checks(module: str) -> None:
    assert imported(module) <= SHARED


def test_the_comparison_reads_the_plan_and_uses_no_code_that_it_checks() -> None:
    assert imported("compare") <= SHARED | PROMISE
