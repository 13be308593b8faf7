"""All filters of a stream in one pass, against the meaning of each row by row in plain Python."""

from __future__ import annotations

import pytest
from tests.oracle.expressions.expression_trees import (
    COLUMNS,
    Choices,
    Row,
    Seeded,
    meaning,
    rows,
    tree,
    value,
)
from tests.oracle.random_cases import SEED, cases

from tamis.expressions.nodes import (
    COMPARISONS,
    Call,
    Column,
    Expr,
    Literal,
    Type,
    substitute,
)
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.filter_dispatch import Dispatch

BLOCKS = 4


def comparison(choose: Choices, depth: int) -> Expr:
    """A condition that compares attributes with constants: AND, OR, NOT, IS NULL and comparisons."""
    column = choose.one_of(COLUMNS)
    kind = choose.one_of(range(8 if depth else 4))
    if kind == 0:
        return Call("is_null", (column,), Type.BOOLEAN)
    if kind < 4:
        constant = Literal(value(choose, column.type), column.type)
        sides = (column, constant) if choose.one_of((True, False)) else (constant, column)
        return Call(choose.one_of(COMPARISONS), sides, Type.BOOLEAN)
    if kind == 4:
        return Call("not", (comparison(choose, depth - 1),), Type.BOOLEAN)
    args = tuple(comparison(choose, depth - 1) for _ in range(choose.one_of((1, 2, 3))))
    return Call(choose.one_of(("and", "or")), args, Type.BOOLEAN)


def columns(drawn: list[Row]) -> dict[str, Vector]:
    """The rows as services have them, columns of a stream being called by one name."""
    return {
        c.alias + c.name: Vector.from_list([row[c.alias, c.name] for row in drawn], c.type) for c in COLUMNS
    }


def named(filter_: Expr) -> Expr:
    return substitute(filter_, lambda column: Column("", column.alias + column.name, column.type))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_each_filter_holds_where_it_means_to(block: int) -> None:
    for case in range(cases(1 / 40 / BLOCKS)):
        seed = f"{SEED} {block} {case}"
        choose = Seeded(seed)
        count = choose.one_of((1, 2, 5, 30))
        filters = [
            comparison(choose, 3) if choose.one_of(range(4)) else tree(choose, Type.BOOLEAN, 4)
            for _ in range(count)
        ]
        drawn = rows(choose, choose.one_of((1, 20, 40)))
        dispatch = Dispatch(map(named, filters))
        found = dispatch.over(columns(drawn), len(drawn)).found
        for filter_ in filters:
            wanted = [meaning(filter_, row) is True for row in drawn]
            assert found[dispatch.row(named(filter_))].tolist() == wanted, f"seed {seed}: {filter_}"


def test_no_filter_lets_everything_pass() -> None:
    dispatch = Dispatch([None])
    assert dispatch.over(columns(rows(Seeded("0"), 3)), 3).found[dispatch.row(None)].tolist() == [True] * 3
