"""Queries in application time as standing queries: `standing`, and `recorded` over recordings."""

from tamis.evaluation.standing.in_time.recorded import play_in_time
from tamis.evaluation.standing.in_time.standing import InTime

__all__ = ["InTime", "play_in_time"]
