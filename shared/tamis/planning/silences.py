"""Silences: rows of one stream without a later tuple of the same key within a length d, as NO READING says.

Both occurrences of the stream may omit tuples by the rule for values that don't matter, with the interval
d - 1 microsecond. The rule keeps a tuple in each closed span of this length that contains one (of the same
key). Let x be a tuple without another one in (t_x, t_x + d]. The span [t_x, t_x + d - 1] contains x, and no
tuple of another time, so a tuple of the time t_x is kept. It passes the same filter, and it is a row. Let y
be a kept tuple with no kept one in (t_y, t_y + d], which is the span [t_y + 1, t_y + d]. That span contains
no tuple at all. So the rows are the same, except that one of several last tuples of one time may stand for
all of them.

Each filter of the later occurrence must be one of the row's. Otherwise a kept tuple that ends no silence
could stand for one that does.
"""

from __future__ import annotations

from tamis.analysis.conjuncts import Analysis
from tamis.plan.omission import bare


def silence_of(alias: str, analysis: Analysis) -> int | None:
    """The length d in microseconds, if the rows of `alias` are silences; None otherwise."""
    if len(analysis.aliases) != 2 or len(analysis.absences) != 1 or analysis.conditions:
        return None
    (part,) = analysis.absences
    (later,) = part.aliases
    if alias == later or analysis.streams[alias].name != analysis.streams[later].name or part.conditions:
        return None
    if any(left.name != right.name for left, right in part.equalities):
        return None
    predicates = analysis.predicates
    own = {bare(one) for one in predicates[alias]}
    if not all(bare(one) in own for one in predicates[later]):
        return None
    longest, shortest = analysis.reach(later, alias), analysis.reach(alias, later)
    return longest if shortest == -1 else None
