"""Notices of functions over frames, as warnings of Python."""

from __future__ import annotations

import sys
import warnings


class TamisWarning(UserWarning):
    """Something about a frame that the caller should know, such as rows that an edge would refuse."""


def warn(notice: str) -> None:
    """Give a notice as a warning at the line outside of Tamis that called one of its functions."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tamis."):
        frame, level = frame.f_back, level + 1
    warnings.warn(notice.removeprefix("warning: "), TamisWarning, stacklevel=level)
