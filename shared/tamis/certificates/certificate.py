"""The result of a proof for one source: a certificate, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.expressions.exact.rounding import Margin
from tamis.expressions.nodes import Column, Expr
from tamis.plan.model import Sides


@dataclass(frozen=True)
class Certificate:
    """`value`, an expression over the source's alias, may be bracketed on `sides` among tuples with equal
    `fixed` attributes.

    `rule` names what gave the certificate. It begins with "heuristic" if it is no proof, and with "trusted"
    if it rests on what is declared of a Python function.

    `drop_null`: a tuple for which `present` is NULL raises no alarm, and the entry's filter must drop it.

    `exact`: edges must compare the exact values of `value`. `margin`: how much the computed values may err,
    where edges compare computed values and the joiner allows for the error.
    """

    value: Expr
    sides: Sides
    rule: str
    fixed: tuple[Column, ...]
    drop_null: bool
    present: Expr
    exact: bool = False
    margin: Margin | None = None


@dataclass(frozen=True)
class Unproven:
    """The reason why nothing may be omitted."""

    reason: str
