"""Bracket omission: decides which tuples can be dropped without losing an alarm (cai-2021).

Two forms share one rule. The batch form (`retained`, `retained_by_key`) decides a recording: `batch` orders
the rows, drops bracketed tuples with `nearest_neighbours` or `bracket_prefilter`, and decides the rest with
`bracket_sweep`. The stream form (`OmissionState`) decides batches of tuples as they arrive: its live tuples
are in a `slot_pool`, and `stream_kernel` advances them. `window_extremes` has both forms for hopping and
tumbling windows. `cai_algorithm_1` is the paper's algorithm, for comparison. The whole package is pure: it
takes columns and returns decisions.
"""

from tamis.omission.batch import Ties, retained, retained_by_key
from tamis.omission.columns import Sides
from tamis.omission.stream import Decided, OmissionState

__all__ = ["Decided", "OmissionState", "Sides", "Ties", "retained", "retained_by_key"]
