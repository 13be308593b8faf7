"""Omission rule of one source of a query: the prover decides it, and topic entries are made from it.

Definitions over one stream call Python functions for retained tuples only: these calls are *late*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import overload

from tamis.declarations.definitions import Window
from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Column, Expr, substitute
from tamis.expressions.python_functions import calls
from tamis.plan.model import Definition, Sides


@dataclass(frozen=True)
class Omission:
    """The omission rule of one source.

    `interval`: the omission interval in microseconds; 0 keeps every tuple that passes the filter. With
    `window` it is the size of the window, and each window keeps its extremes. Expressions are over the
    source's alias. `entry_filter` also excludes tuples without a value, where that is proved safe.
    """

    alias: str
    interval: int
    key: tuple[str, ...]  # column names, the partition key's first
    value: Expr | None
    sides: Sides | None
    certificate: str | None
    filter: Expr | None
    entry_filter: Expr | None
    reason: str
    window: Window | None = None
    exact: bool = False  # the exact values of `value` are compared
    margin: Margin | None = (
        None  # the error of `value`, where its computed order differs from the exact order
    )

    null_keys: bool = False  # tuples with NULL in the partition key count, too

    @staticmethod
    def none(alias: str, key: tuple[str, ...], filter_: Expr | None, reason: str) -> Omission:
        """The rule that omits nothing: every tuple that passes the filter is published."""
        return Omission(
            alias,
            interval=0,
            key=key,
            value=None,
            sides=None,
            certificate=None,
            filter=filter_,
            entry_filter=filter_,
            reason=reason,
        )


@overload
def bare(expr: Expr) -> Expr: ...
@overload
def bare(expr: None) -> None: ...
@overload
def bare(expr: Expr | None) -> Expr | None: ...
def bare(expr: Expr | None) -> Expr | None:
    """The expression without the source's alias, as topic entries have it."""
    if expr is None:
        return None
    return substitute(expr, lambda column: Column("", column.name, column.type))


def filters_before_calls(definitions: Iterable[Definition]) -> dict[str, list[Expr | None]]:
    """By topic, the filters of the tuples for which definitions over one stream would call Python functions
    if nothing were omitted, over the empty alias. Each filter stands once; None lets every tuple pass.
    """
    found: dict[str, dict[Expr | None, None]] = {}
    for definition in definitions:
        source = definition.inputs[0]
        selected = (expr for _, expr in definition.select)
        called = any(calls(definition.condition, *selected))
        if len(definition.inputs) == 1 and source.interval and called:
            found.setdefault(source.topic, {})[bare(source.filter)] = None
    return {topic: list(filters) for topic, filters in found.items()}
