"""Unit of a proven bound of memory: tuples or entries."""

from __future__ import annotations

from typing import Literal

Unit = Literal["tuples", "entries"]

# The theorem of a bound that counts tuples, as verdicts name it.
TIME_BOUNDED = "time-bounded join (rate x span x keys)"


def bound_unit(theorem: str) -> Unit:
    """The unit of a bound that follows from this theorem. An entry may stand for many tuples.

    >>> bound_unit(TIME_BOUNDED), bound_unit("one stream: each tuple is decided alone")
    ('tuples', 'entries')
    """
    return "tuples" if theorem == TIME_BOUNDED else "entries"
