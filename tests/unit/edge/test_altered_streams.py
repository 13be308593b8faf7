"""Readings of a stream that was altered: those that are read again are checked as the stream was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.edge.plans import AIR, TEMP, air, domain, plan

from tamis.plan.model import FormerColumns, StreamPlan
from tamis.telemetry.metrics import Metrics
from tamis_edge.shards.intake import Intake
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.base import Payloads


class Source:
    """What an intake asks of its source."""

    name = stream = topic = "air"
    partition = 0
    fields = FieldMap()
    replayed = True


class Run:
    """A run that notes what it is given."""

    def __init__(self) -> None:
        self.batches: list[object] = []
        self.letters: list[object] = []

    def take(self, batch: object, now: int) -> None:
        self.batches.append(batch)

    def is_decided(self, offset: int) -> bool:
        return False

    def add_dead_letter(self, letter: object, arrival: int) -> None:
        self.letters.append(letter)

    def skip(self, offset: int) -> None:
        """Nothing is left out here."""


def altered() -> StreamPlan:
    """Plan 5 has narrowed the domain of `temp` and added `n`; plan 3 had widened it."""
    now = air([], columns=("station", "ts", "temp", "n"))
    narrow = replace(AIR[2], check=domain(TEMP, 0, 20))
    first, second = (replace(AIR[2], check=domain(TEMP, 0, most)) for most in (30, 60))
    return replace(
        now,
        columns=(*now.columns[:2], narrow, now.columns[3]),
        former=tuple(
            FormerColumns(until, (*now.columns[:2], column)) for until, column in ((3, first), (5, second))
        ),
    )


@pytest.mark.parametrize(
    ("version", "accepted"), [(1, [10, 25]), (2, [10, 25]), (3, [10, 25, 50]), (4, [10, 25, 50]), (5, [10])]
)
def test_readings_are_checked_by_the_columns_of_their_plan(version: int, accepted: list[float]) -> None:
    intake = Intake(Source(), "e1", Metrics("edge"))  # type: ignore[arg-type]
    intake.decode_for(plan(altered(), ["air:e1/s"], version), altered(), version)
    run = Run()
    rows = [b'{"station":"a","ts":%d,"temp":%d,"n":7}' % (t, temp) for t, temp in enumerate((10, 25, 50))]
    delivery = Payloads(np.arange(3), np.zeros(3, np.int64), rows)
    intake.take(run, delivery, "air", 0)  # type: ignore[arg-type]
    (batch,) = run.batches
    assert batch.columns["temp"].to_list() == accepted  # type: ignore[attr-defined]
    # A column that the stream didn't have yet is there, and NULL.
    assert batch.columns["n"].to_list() == [7 if version == 5 else None] * len(accepted)  # type: ignore[attr-defined]
    assert len(run.letters) == 3 - len(accepted)
