"""Similarity of time series: which windows of readings look like a pattern, up to scale and shift.

The definitions and the index are those of goldin-1997, chapter 7, with the corrections of decision 56.

| module | contents |
|---|---|
| `normal_form` | mean, deviation, normal form and similarity distance |
| `pattern` | patterns, with tolerance and ranges of scale and shift |
| `internal_query` | limits on the windows that may match a pattern |
| `best_fit`, `double_double` | the exact distance, with the best scale and shift |
| `sliding_transform`, `fingerprint` | sums and DFT coefficients of a sliding window |
| `pattern_index`, `pattern_search` | the index of many patterns, and its search |
| `watch_kernel`, `keyed_patterns`, `patterns` | matches of the latest readings of many series, or of one |
| `columns` | columns for kernels |

`Patterns` watches one series, `KeyedPatterns` many series in columns. The whole package is pure.
"""

from tamis.similarity.fingerprint import Fingerprint, Fingerprints, WindowFingerprint
from tamis.similarity.internal_query import InternalQuery, internal_query
from tamis.similarity.keyed_patterns import KeyedPatterns, Matches
from tamis.similarity.normal_form import distance, normal_form
from tamis.similarity.pattern import Pattern
from tamis.similarity.patterns import Match, Patterns

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
