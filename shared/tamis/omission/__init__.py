"""Bracket omission: decides which tuples can be dropped without losing an alarm (cai-2021).

The rule: in every time window of a given length (the *omission interval*), the retained tuples have the same
maximum and the same minimum as all tuples. The maximum doesn't need a tuple between two greater tuples, and
the minimum doesn't need a tuple between two lesser tuples, if the two are close enough in time. The two are
then *brackets* of the tuple.

There are two implementations:

- The batch form (`retained`, `retained_by_key`) decides a whole recording. `batch` orders the rows, drops
  bracketed tuples by `nearest_neighbours` or `bracket_prefilter`, and decides the rest by `bracket_sweep`.
- The stream form (`OmissionState`) decides batches of tuples as they arrive. Its live tuples are in a
  `slot_pool`, and `stream_kernel` advances them.

`window_batch` and `window_stream` are the same for hopping and tumbling windows. The whole package is pure:
it takes columns and returns decisions.
"""

from tamis.omission.batch import Ties, retained, retained_by_key
from tamis.omission.columns import Sides
from tamis.omission.stream import Decided, Live, OmissionState

__all__ = ["Decided", "Live", "OmissionState", "Sides", "Ties", "retained", "retained_by_key"]
