"""Reports the type errors of expressions at their positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from sqlglot import exp

from tamis.expressions.nodes import Expr
from tamis.query.context import Context
from tamis.query.scalars.operators import TypeMismatch

P = ParamSpec("P")


def checked(
    context: Context, node: exp.Expr, build: Callable[P, Expr], *args: P.args, **kwargs: P.kwargs
) -> Expr | None:
    """The expression that `build` makes of its arguments; None after a type error, which is reported at
    `node`.
    """
    try:
        return build(*args, **kwargs)
    except TypeMismatch as mismatch:
        context.error(mismatch.what, node, mismatch.hint or "")
        return None
