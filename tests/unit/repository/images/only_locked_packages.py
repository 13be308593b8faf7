"""Loads modules in a process that can import the packages of a lock only: JSON with both on standard input.

The packages of Tamis, and Python's own modules, can be imported always. A module of any other package isn't
there, as in an image that doesn't have it.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions
from types import ModuleType


class Blocker(MetaPathFinder):
    """Hides the packages of all other distributions."""

    def __init__(self, packages: set[str]) -> None:
        self._hidden = {
            module
            for module, distributions in packages_distributions().items()
            if not packages & {re.sub(r"[_.]", "-", name.lower()) for name in distributions}
        } - {"tamis", *(f"tamis_{service}" for service in ("alerts", "edge", "joiner", "registry"))}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self._hidden:
            raise ModuleNotFoundError(f"No module named {name!r}: it isn't in the lock", name=name)
        return None


if __name__ == "__main__":
    task = json.load(sys.stdin)
    sys.meta_path.insert(0, Blocker(set(task["packages"])))
    for module in task["modules"]:
        importlib.import_module(module)
