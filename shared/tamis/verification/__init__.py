"""The same alarms with and without Tamis? The plain join by DuckDB over unfiltered input, and the
comparison.
"""

from tamis.verification.aggregates import compare_grouped, keyed
from tamis.verification.compare import Alarms, Verdict, compare
from tamis.verification.reference import Reference, plain_join
from tamis.verification.standing import compare_standing

__all__ = [
    "Alarms",
    "Reference",
    "Verdict",
    "compare",
    "compare_grouped",
    "compare_standing",
    "keyed",
    "plain_join",
]
