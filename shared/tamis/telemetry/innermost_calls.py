"""The innermost calls of a thread, for logs about steps that take too long."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

_CALLS = 5


def innermost_calls(thread: int | None) -> str:
    """The innermost calls of a thread (its `ident`) now, the innermost first; empty if it has ended."""
    frame = sys._current_frames().get(thread or 0)
    calls = traceback.extract_stack(frame)[-_CALLS:] if frame is not None else []
    return " in ".join(f"{call.name} ({Path(call.filename).name}:{call.lineno})" for call in reversed(calls))
