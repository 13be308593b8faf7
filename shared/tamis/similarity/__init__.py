"""Similarity of time series: which windows of readings look like a pattern, up to scale and shift.

The definitions and the index are those of goldin-1997, chapter 7, with the corrections of decision 56.

| module | contents |
|---|---|
| `normal_form` | mean, deviation, normal form and similarity distance |
| `pattern` | patterns, with tolerance and ranges of scale and shift, and limits of windows that may match |
| `best_fit` | the exact distance, with the best scale and shift |
| `sliding_transform`, `fingerprint` | sums and DFT coefficients of a sliding window |
| `pattern_index` | the index of many patterns |
| `watch_kernel`, `patterns` | its search: matches of the latest readings of many series, or of one |

`Patterns` watches one series, `KeyedPatterns` many series in columns. The whole package is pure.
"""

from tamis.similarity.fingerprint import Fingerprint, Fingerprints, WindowFingerprint
from tamis.similarity.normal_form import distance, normal_form
from tamis.similarity.pattern import InternalQuery, Pattern, internal_query
from tamis.similarity.patterns import KeyedPatterns, Match, Matches, Patterns

__all__ = [
    "Fingerprint",
    "Fingerprints",
    "InternalQuery",
    "KeyedPatterns",
    "Match",
    "Matches",
    "Pattern",
    "Patterns",
    "WindowFingerprint",
    "distance",
    "internal_query",
    "normal_form",
]
