"""Numbers of panes and windows: which panes a window consists of, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tamis.evaluation.standing.window_aggregates.table import Places
from tamis.query.model import Window


@dataclass(frozen=True)
class Panes:
    """Panes are as long as the slide and are numbered in order of time, from the one that begins at the
    offset. The window with the number w ends together with the pane w + width - 1. Of HOP and TUMBLE it
    begins with the pane w; of CUMULATE with the last pane before its end
    whose number is a multiple of `width`.

    >>> panes = Panes(Window(slide=10, size=30, cumulative=True))
    >>> panes.of(np.array([0, 35])).tolist(), panes.starts(np.array([-2, 0])).tolist()
    ([0, 3], [0, 0])
    """

    window: Window

    @property
    def width(self) -> int:
        """The number of panes in the size of a window."""
        return self.window.size // self.window.slide

    def of(self, times: Places) -> Places:
        """The panes of times in microseconds."""
        found: Places = (times - self.window.offset) // self.window.slide
        return found

    def ended(self, watermark: int) -> int:
        """The last window that ends at the watermark or before."""
        return (watermark - self.window.offset) // self.window.slide - self.width

    def last_window(self, panes: Places) -> Places:
        """The last window that contains each pane; the first one has the number of the pane - `width` + 1."""
        return panes // self.width * self.width if self.window.cumulative else panes

    def starts(self, windows: Places) -> Places:
        """The times at which windows begin."""
        first = windows
        if self.window.cumulative:
            first = (windows + self.width - 1) // self.width * self.width
        return first * self.window.slide + self.window.offset

    def ends(self, windows: Places) -> Places:
        """The times at which windows end, which they don't include."""
        return (windows + self.width) * self.window.slide + self.window.offset

    def joined(self, panes: Places, ended: int) -> Places:
        """The panes with those that no window still has to tell apart under one number. `ended`: the last
        window that has ended; all panes are in later windows, too.
        """
        if not self.window.cumulative:
            return panes
        return np.where(panes < ended + self.width, panes // self.width * self.width, panes)
