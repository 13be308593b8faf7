"""What share of a stream's tuples satisfies a predicate: the measure of its union of boxes, with attributes
taken for independent.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.predicates.cover.codes import Codes, codes, cuts_of
from tamis.predicates.predicate import Predicate
from tamis.predicates.selectivity.distributions import Distribution, Observed, Uniform
from tamis.predicates.selectivity.measure import measure

__all__ = ["Distribution", "Observed", "Uniform", "selectivity"]


def selectivity(predicate: Predicate, distributions: Mapping[str, Distribution]) -> float:
    """The share of tuples that satisfy `predicate`, from 0 to 1: exact for independent attributes.

    Raises `KeyError` for an attribute without distribution.

    >>> from tamis.predicates import parse
    >>> selectivity(parse("a < 5 OR b < 5"), {"a": Uniform(0, 10), "b": Uniform(0, 10)})
    0.75
    """
    if predicate.always or predicate.never:
        return 1.0 if predicate.always else 0.0
    boxes: Codes
    (boxes,) = codes(predicate.boxes)
    cuts = cuts_of(predicate.boxes)
    cumulative = np.zeros((len(cuts), max(map(len, cuts.values()))))
    for d, (name, ends) in enumerate(cuts.items()):
        cumulative[d, : len(ends)] = [distributions[name].below(end) for end in ends]
    return min(measure(boxes.lower, boxes.upper, cumulative), 1.0)
