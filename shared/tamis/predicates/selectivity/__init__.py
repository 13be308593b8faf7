"""Selectivity: the estimated share of a stream's tuples that satisfies a predicate.

The share is the measure (volume) of the union of the predicate's boxes (`measure`). Each attribute has a
distribution (`distributions`), which comes from declarations or from a `sample` of the stream's tuples.
Attributes are treated as independent.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tamis.predicates.cover.coordinate_compression import compress
from tamis.predicates.differences import Difference
from tamis.predicates.predicate import Predicate
from tamis.predicates.selectivity.distributions import Distribution, Observed, Uniform
from tamis.predicates.selectivity.measure import measure
from tamis.predicates.selectivity.sample import Sketch, merge, observe

__all__ = ["Distribution", "Observed", "Sketch", "Uniform", "merge", "observe", "selectivity"]


def selectivity(predicate: Predicate, distributions: Mapping[str, Distribution]) -> float:
    """The share of tuples that satisfy `predicate`, from 0 to 1. It is exact for independent attributes.

    It overestimates in two cases: a comparison between two attributes counts as true, and a union of hundreds
    of boxes in many dimensions takes too long to measure.

    Raises `KeyError` for an attribute without distribution.

    >>> from tamis.predicates.parse import parse
    >>> selectivity(parse("a < 5 OR b < 5"), {"a": Uniform(0, 10), "b": Uniform(0, 10)})
    0.75
    """
    boxes = [
        {name: found for name, found in box.items() if not isinstance(name, Difference)}
        for box in predicate.boxes
    ]
    if not all(boxes):
        return 1.0
    lower, upper, cuts = compress(boxes)
    cumulative = np.zeros((len(cuts), max(map(len, cuts.values()))))
    for d, (name, ends) in enumerate(cuts.items()):
        cumulative[d, : len(ends)] = [distributions[name].below(end) for end in ends]
    return min(measure(lower, upper, cumulative), 1.0)
