"""The omission rule of an entry, in its stream form and in its batch form."""

from __future__ import annotations

from typing import NamedTuple

import numpy.typing as npt

from tamis.expressions.vectors import Mask
from tamis.omission.batch import retained_by_key
from tamis.omission.columns import Sides
from tamis.omission.stream import OmissionState
from tamis.omission.window_batch import retained_in_windows
from tamis.omission.window_stream import WindowState
from tamis.plan.model import Entry
from tamis.query.model import Window


class OmissionRule(NamedTuple):
    """The parameters of omission. An edge decides entries together if all of their parameters are equal.

    `interval` and `max_delay` are microseconds. For a `window` another rule applies: the extremes of each
    window are retained.
    """

    interval: int
    sides: Sides
    max_delay: int | None
    window: Window | None

    @classmethod
    def of(cls, entry: Entry) -> OmissionRule:
        """The rule of an entry with omission."""
        return cls(entry.interval, entry.sides, entry.max_delay, entry.window)

    def state(self) -> OmissionState | WindowState:
        """The state of the stream form, without tuples."""
        if self.window is None:
            return OmissionState(self.interval, self.sides, self.max_delay)
        slide, size, offset = self.window.slide, self.window.size, self.window.offset
        return WindowState(slide, size, self.sides, self.max_delay, offset)

    def retained(self, keys: npt.ArrayLike, times: npt.ArrayLike, values: npt.ArrayLike) -> Mask:
        """The tuples that the batch form retains, in any order of their times."""
        if self.window is None:
            return retained_by_key(
                keys, times, values, self.interval, sides=self.sides, max_delay=self.max_delay
            )
        slide, size, offset = self.window.slide, self.window.size, self.window.offset
        return retained_in_windows(
            keys, times, values, slide, size, sides=self.sides, max_delay=self.max_delay, offset=offset
        )
