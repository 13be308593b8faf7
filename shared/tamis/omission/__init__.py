"""Bracket omission: which tuples may be dropped without losing an alarm (cai-2021). Pure: columns in,
decisions out.

`retained` and `retained_by_key` decide a recording, `OmissionState` a stream.
"""

from tamis.omission.columns import Sides
from tamis.omission.kernel import Ties, retained, retained_by_key
from tamis.omission.stream import Decided, OmissionState

__all__ = ["Decided", "OmissionState", "Sides", "Ties", "retained", "retained_by_key"]
