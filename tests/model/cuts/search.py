"""Many schedules, one after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from tests.model.cuts.judge import Violation
from tests.model.cuts.schedule import play


@dataclass
class Series:
    """`violated`: the violations of each seed that has any. `kinds`: in how many schedules each kind was."""

    runs: int = 0
    violated: dict[int, list[Violation]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)


def series(
    runs: int,
    seed: int,
    off: Collection[str] = (),
    *,
    enough: int | None = None,
    seconds: float | None = None,
) -> Series:
    """Play schedules until `enough` are violated, or for some seconds."""
    found, started = Series(), time.monotonic()
    for number in range(seed * 1_000_003 + 1, seed * 1_000_003 + runs + 1):
        violations, fleet = play(number, off)
        found.runs += 1
        found.seen += fleet.seen
        found.seen["went back"] += sum(joiner.went_back for joiner in fleet.joiners.values())
        if violations:
            found.violated[number] = violations
            found.kinds.update({violation.kind for violation in violations})
        if enough is not None and len(found.violated) >= enough:
            break
        if seconds is not None and time.monotonic() - started > seconds:
            break
    return found
