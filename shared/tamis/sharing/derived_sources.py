"""Derived streams as sources of other queries: their topics may have all tuples that an alert needs.

A derived stream filters one stream, and its topic has every tuple that passes. An alert over the same stream
may read this topic if its filter implies the derived stream's filter, and if the topic has all columns that
the alert reads. The edges then publish these tuples once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tamis.errors import RefusedError
from tamis.expressions.nodes import Expr, conjunction, conjuncts
from tamis.predicates.matching import implies
from tamis.sharing.bounding_boxes import BoxFilter, box_filter


@dataclass(frozen=True, eq=False)
class DerivedSource:
    """A derived stream whose topic the joiner reads.

    `filter`: over bare columns of the base stream; `columns`: the columns of the base stream that its
    messages have unchanged.
    """

    name: str
    topic: str
    filter: Expr | None
    columns: frozenset[str]


def implies_filter(narrow: Expr | None, wide: Expr | None) -> bool:
    """True if every tuple that passes `narrow` certainly passes `wide`; None lets every tuple pass.

    Each conjunct of `wide` must be a conjunct of `narrow`, or follow from those conjuncts of `narrow` that
    compare columns with constants. A tuple passes a filter that is true, and not one that is NULL.
    """
    known = dict.fromkeys(conjuncts(narrow))
    boxes: BoxFilter | None = None
    for part in conjuncts(wide):
        if part in known:
            continue
        boxes = boxes or _boxes(list(known))
        target = box_filter(part)
        if boxes is None or target is None:
            return False
        with suppress(RefusedError):  # undecided, as comparisons of DOUBLE columns may be
            if implies(boxes.predicate, target.predicate):
                continue
        return False
    return True


def _boxes(parts: list[Expr]) -> BoxFilter | None:
    """The conjuncts that are unions of boxes, together as boxes; None if there are none, or too many."""
    found = conjunction(tuple(part for part in parts if box_filter(part)))
    return None if found is None else box_filter(found)
