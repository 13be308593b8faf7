"""Parent-death signal: the kernel kills a child process when its parent has ended for any reason.

This file runs as a program between the parent and the command: it asks the kernel for the signal
(`PR_SET_PDEATHSIG`) and then replaces itself by the command. A `preexec_fn` would run Python between fork and
exec, which may deadlock in a parent with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def with_parent_death_signal(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` with the signal, as a child of the calling process.

    The kernel watches the *thread* that starts the command: use a thread that lives as long as the command
    should. Only Linux has this signal; elsewhere the command runs without it.
    """
    # With -I and -S the program ignores the user's environment and site-packages, and starts in 10 ms.
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def _become(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the signal was set.
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
