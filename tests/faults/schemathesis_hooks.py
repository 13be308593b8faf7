"""Hooks of Schemathesis, which runs them in a process of its own: the text of SQL, and names that exist."""

from __future__ import annotations

import random
from typing import Any

import schemathesis  # type: ignore[import-not-found, unused-ignore]

_NAMES = ("air", "hot", "AIR", "nowhere")
_CHANCE = random.Random(17)

schemathesis.serializer.alias("application/sql", "text/plain")


@schemathesis.hook  # type: ignore[untyped-decorator, unused-ignore]
def map_path_parameters(_: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Name half of the time something that exists: otherwise nearly all answers were 404."""
    if path_parameters and "name" in path_parameters and _CHANCE.random() < 0.5:
        return {**path_parameters, "name": _CHANCE.choice(_NAMES)}
    return path_parameters
