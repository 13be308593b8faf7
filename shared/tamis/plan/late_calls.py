"""Late calls: definitions over one stream that call Python functions for retained tuples only."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.expressions.nodes import Expr
from tamis.expressions.python_functions import calls
from tamis.plan.model import Definition
from tamis.plan.omission import bare


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
