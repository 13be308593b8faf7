"""Runs a command that the kernel kills when its parent is gone, however that ended.

This file is run as a program between the parent and the command: it puts the leash on itself and becomes the
command. A `preexec_fn` would run Python between fork and exec, which may deadlock in a parent with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def leashed(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` on a leash, as a child of the calling process.

    The kernel watches the *thread* that starts it: start it from one that lives as long as the command
    should. Elsewhere than on Linux there is no leash, and the command runs without one.
    """
    # -I and -S: neither the user's environment nor site-packages matter to it, and it starts in 10 ms.
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def _become(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the leash was on.
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
