"""The end of a process whose stop takes too long."""

from __future__ import annotations

import threading

from structlog.testing import capture_logs

from tamis.telemetry.health import end_after


def test_it_ends_the_process_and_logs_what_it_was_doing() -> None:
    codes: list[int] = []
    left = threading.Event()

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    with capture_logs() as logs:
        end_after(0.01, leave)
        _a_step_that_waits(left)
    assert codes == [0]
    (entry,) = logs
    assert entry["event"].startswith("stopped in the middle of a step")
    assert "_a_step_that_waits (test_stop_deadline.py:" in entry["step"]


def _a_step_that_waits(left: threading.Event) -> None:
    assert left.wait(30)
