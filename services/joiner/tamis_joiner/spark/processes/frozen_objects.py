"""Objects of imported modules, exempt from the garbage collector in Spark's Python workers.

Spark makes a worker collect garbage after each task. To scan the objects of the libraries would take as long
as a small batch itself, and they never become garbage.
"""

from __future__ import annotations

import gc
import sys


class FrozenObjects:
    """The objects of this process that the garbage collector doesn't scan."""

    def __init__(self) -> None:
        self._modules = 0  # how many were imported when objects were frozen last

    def add_imported(self) -> None:
        """Freeze all objects if modules were imported since the last call. Libraries import some of their
        modules only when they are used first.

        Other objects are frozen together with those of the modules. They are deleted as before, unless they
        are part of a reference cycle. Such cycles are few, because few calls freeze anything.
        """
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            gc.collect()
            gc.freeze()


FROZEN = FrozenObjects()
"""Those of this process. A worker has it from the daemon that it is forked from."""
