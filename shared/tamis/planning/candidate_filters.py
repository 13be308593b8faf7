"""Conditions on the candidates of an ASOF JOIN: the tuples that may be chosen, or hide another one."""

from __future__ import annotations

from tamis.analysis.conjuncts import flatten_and
from tamis.expressions.nodes import Expr, Type, columns, substitute
from tamis.query.model import AsOfJoin, Query


def candidate_filters(query: Query, join: AsOfJoin) -> tuple[Expr, ...]:
    """The conditions that a tuple must meet to be chosen by an ASOF JOIN, or to hide another one.

    Conditions in WHERE apply to the chosen tuple. But the equated columns of all rows have the values of the
    first source, if they are equated with it. So its conditions on these columns hold for both.
    """
    first = query.sources[0].alias
    equal = {
        left: right
        for left, right in join.keys
        if left.alias == first and left.type is right.type is not Type.DOUBLE  # -0.0 and 0.0 are equal
    }
    same = [
        substitute(part, lambda column: equal[column])
        for conjunct in query.conjuncts
        for part in flatten_and(conjunct.expr)
        if (read := set(columns(part))) and read <= set(equal)
    ]
    own = [part for conjunct in join.filters for part in flatten_and(conjunct.expr)]
    return tuple(dict.fromkeys((*own, *same)))
