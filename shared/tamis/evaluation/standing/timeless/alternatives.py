"""Choose the evaluator of an alternative of a query."""

from __future__ import annotations

from tamis.bounded.conjunctive.normal_form import Conjunction
from tamis.bounded.timeless.minimised_alternatives import Minimal
from tamis.bounded.timeless.translate import Translation
from tamis.difference_bounds import Closure
from tamis.evaluation.standing.kept_columns import KeptColumns
from tamis.evaluation.standing.timeless.counting import CountingAlternative
from tamis.evaluation.standing.timeless.distinct import DistinctAlternative
from tamis.evaluation.standing.timeless.matches import Alternative, Wanted
from tamis.evaluation.standing.timeless.single_stream import SingleStreamAlternative


def compile_alternative(
    translation: Translation,
    minimal: Minimal,
    kept: KeptColumns,
    wanted: Wanted,
    asked: tuple[Conjunction, Closure] | None = None,
) -> Alternative:
    """The evaluator of an alternative, with empty state. `asked`: with DISTINCT, a wider conjunction and its
    closure may decide which tuples are kept; None if it is the query's own.
    """
    if len(minimal.conjunction.streams) == 1:
        return SingleStreamAlternative(translation, minimal, wanted)
    if minimal.conjunction.distinct:
        return DistinctAlternative(translation, minimal, kept, wanted, asked)
    return CountingAlternative(translation, minimal, kept, wanted)
