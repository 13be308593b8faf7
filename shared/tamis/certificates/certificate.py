"""The result of a proof for one source: a certificate, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.expressions.margin import Margin
from tamis.expressions.nodes import Column, Expr
from tamis.plan.model import Sides


@dataclass(frozen=True)
class Certificate:
    """Permission to omit tuples of a source whose `value` (an expression over the source's alias) is
    bracketed on `sides`, among tuples with equal `fixed` attributes.

    - `rule`: the way in which the certificate was found. It begins with "heuristic" if it is no proof, and
      with "trusted" if it relies on the declaration of a Python function.
    - `drop_null`: a tuple for which `present` is NULL raises no alarm, so the filter of the entry must drop
      it.
    - `exact`: edges must compare the exact values of `value`.
    - `margin`: the possible error of computed values. Edges compare computed values, and the joiner allows
      for this error. None if it isn't needed.
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
