"""What share of a stream's tuples satisfies a predicate: the measure of its union of boxes, with attributes
taken for independent.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.predicates.cover.codes import codes
from tamis.predicates.differences import Difference
from tamis.predicates.predicate import Predicate
from tamis.predicates.selectivity.distributions import Distribution, Observed, Uniform
from tamis.predicates.selectivity.measure import measure
from tamis.predicates.selectivity.sketch import Sketch, merge, observe

__all__ = ["Distribution", "Observed", "Sketch", "Uniform", "merge", "observe", "selectivity"]


def selectivity(predicate: Predicate, distributions: Mapping[str, Distribution]) -> float:
    """The share of tuples that satisfy `predicate`, from 0 to 1: exact for independent attributes. Where two
    attributes are compared with each other, that comparison is taken to hold: at most so many. Of hundreds of
    boxes in many dimensions, which nobody can measure, it is at most so many, too.

    Raises `KeyError` for an attribute without distribution.

    >>> from tamis.predicates import parse
    >>> selectivity(parse("a < 5 OR b < 5"), {"a": Uniform(0, 10), "b": Uniform(0, 10)})
    0.75
    """
    boxes = [
        {name: found for name, found in box.items() if not isinstance(name, Difference)}
        for box in predicate.boxes
    ]
    if not all(boxes):
        return 1.0
    lower, upper, cuts = codes(boxes)
    cumulative = np.zeros((len(cuts), max(map(len, cuts.values()))))
    for d, (name, ends) in enumerate(cuts.items()):
        cumulative[d, : len(ends)] = [distributions[name].below(end) for end in ends]
    return min(measure(lower, upper, cumulative), 1.0)
