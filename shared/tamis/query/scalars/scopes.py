"""Scopes: the columns that an expression can name, and the aggregates that it can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from tamis.expressions.nodes import Expr
from tamis.query.context import Context
from tamis.query.syntax.cursor import Name


class Scope(Protocol):
    """Resolves column names. A mistake in a name is reported, and the result is then None."""

    def column(self, context: Context, node: exp.Expr, table: Name | None, name: Name) -> Expr | None:
        """The expression for a column name, qualified by `table` or not."""
        ...


class AggregateCalls(Protocol):
    """Resolves calls of aggregates, in the clauses where these are allowed."""

    def call(
        self,
        context: Context,
        node: exp.Expr,
        name: str,
        argument: Callable[[exp.Expr], Expr | None],
        only: Expr | None,
    ) -> Expr | None:
        """The expression for the value of a call; None if a mistake was reported. `argument` resolves the
        argument of the call, over single tuples. `only` is the condition of its FILTER. `node` is the call,
        or its WITHIN GROUP.
        """
        ...


class SeriesCalls(Protocol):
    """Resolves calls over the readings of a key, in queries."""

    def call(self, context: Context, node: exp.Expr, name: str, scope: Scope) -> Expr | None:
        """The expression for a call of similar, similarity, scale, shift or pattern; None if a mistake was
        reported.
        """
        ...

    def window(self, context: Context, node: exp.Expr, scope: Scope) -> Expr | None:
        """The expression for a window function, function(…) OVER (…); None if a mistake was reported."""
        ...
