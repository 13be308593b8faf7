"""Parsing of a predicate from SQL text."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.expressions.nodes import Type
from tamis.predicates.predicate import Predicate
from tamis.query.condition import read_condition


def parse(sql: str, types: Mapping[str, Type] | None = None) -> Predicate:
    """The predicate in `sql`: AND, OR, NOT, IN, BETWEEN, IS [NOT] NULL and comparisons of attributes with
    constants.

    `types` has the types of all columns; without it they follow from the constants. Raises `SqlErrors` for
    mistakes and `RefusedError` for a predicate with too many clauses.

    >>> parse("NOT (a < 5 OR b BETWEEN 1 AND 2)").sql()
    'a >= 5 AND b < 1 OR a >= 5 AND b > 2'
    """
    return Predicate.of(read_condition(sql, types))
