"""Which way an alternative of a query is evaluated."""

from __future__ import annotations

from tamis.bounded.closure import Closure
from tamis.bounded.normal_form import Conjunction
from tamis.evaluation.standing.timeless.alone import Alone
from tamis.evaluation.standing.timeless.counting import Counting
from tamis.evaluation.standing.timeless.distinct import Distinct
from tamis.evaluation.standing.timeless.kept import Kept
from tamis.evaluation.standing.timeless.matches import Alternative, Wanted
from tamis.planning.timeless.minimal import Minimal
from tamis.planning.timeless.translate import Translation


def alternative(
    translation: Translation,
    minimal: Minimal,
    kept: Kept,
    wanted: Wanted,
    asked: tuple[Conjunction, Closure] | None = None,
) -> Alternative:
    """An alternative, fresh; `asked` is by what tuples are kept under DISTINCT, if not by the query alone."""
    if len(minimal.conjunction.streams) == 1:
        return Alone(translation, minimal, wanted)
    if minimal.conjunction.distinct:
        return Distinct(translation, minimal, kept, wanted, asked)
    return Counting(translation, minimal, kept, wanted)
