"""Doubts about the readings of a shard: a misspelt path in `map`, and numbers in another unit of time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest
from tests.unit.edge.plans import air, entry, plan, topic
from tests.unit.edge.test_silent_shard import SECOND, SHARD, Shard

from tamis.expressions.vectors import Vector
from tamis.messaging.records import Ack
from tamis.plan.model import Plan
from tamis.telemetry.metrics import Metrics
from tamis_edge.shards import intake
from tamis_edge.shards.doubts import READINGS, TOLD, Doubts, read_columns
from tamis_edge.shards.worker import Worker
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.journal_shard import JournalShard

COLUMNS = ("station", "ts", "temp", "site", "n", "ok")
AT = 1_760_000_000  # in seconds


class Mapped(Shard):
    """A shard with a field map. Its readings have nested values."""

    def __init__(self, directory: Path, fields: dict[str, str]) -> None:
        super().__init__(directory)
        self.source = JournalShard(
            self.journal,
            stream="air",
            edge="e",
            source="http",
            topic="/",
            fields=FieldMap(fields),
            declared=True,
        )
        self.worker = Worker(self.source, "e", cast(Any, self.broker), Metrics("edge"))

    def send(self, count: int, **more: Any) -> Ack:
        """Send readings; the acknowledgement after them."""
        common: dict[str, Any] = {"id": "a", "ts": AT * SECOND, "v": {"temp": 20}, "ok": True, **more}
        lines = [orjson.dumps({**common, "ts": common["ts"] + i}) for i in range(count)]
        self.journal.append(SHARD, lines, self.now).result()
        return self.turns(found(), 5)


def found() -> Plan:
    """A plan in which queries read `temp` and `site`, and nothing reads `n`."""
    return plan(air([topic([entry(0)], columns=("temp", "site"))], columns=COLUMNS), [SHARD])


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(intake._log, "warning", lambda what, **fields: said.append({"what": what, **fields}))
    return said


@pytest.fixture
def misspelt(tmp_path: Path) -> Iterator[Mapped]:
    """`temp` and the key are misspelt; `site` isn't in the readings."""
    made = Mapped(tmp_path, {"station": "idd", "temp": "v.tmep"})
    yield made
    made.journal.close()


def test_columns_without_a_value_in_the_last_readings_are_reported(
    misspelt: Mapped, logged: list[dict[str, Any]]
) -> None:
    early = (
        "no reading has had a value for station (field idd), temp (field v.tmep) yet: compare `map` with them"
    )
    assert misspelt.send(1).doubts == [early]
    assert misspelt.send(READINGS - 2).doubts == [early]
    assert logged == []
    told = (
        "none of the last 100 readings has a value for site (field site), station (field idd),"
        " temp (field v.tmep): compare `map` with them"
    )
    assert misspelt.send(1).doubts == [told]
    # Once a column has a value, it is no longer doubted; nothing is logged twice.
    assert misspelt.send(50, site="roof").doubts == [told.replace("site (field site), ", "")]
    assert misspelt.send(READINGS).doubts == [told]
    assert [(one["columns"], one["fields"]) for one in logged] == [
        ("site, station, temp", "site, idd, v.tmep"),
        ("site, station, temp", "site, idd, v.tmep"),
    ]


def test_a_right_map_raises_no_doubt(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    right = Mapped(tmp_path, {"station": "id", "temp": "v.temp"})
    assert right.send(3 * READINGS, site="roof").doubts is None
    assert logged == []
    right.journal.close()


def test_numbers_in_another_unit_are_told_for_some_minutes(
    tmp_path: Path, logged: list[dict[str, Any]]
) -> None:
    """The readings are late: they are published, and no alarm comes."""
    shard = Mapped(tmp_path, {"station": "id", "temp": "v.temp"})
    (doubt,) = shard.send(1, site="roof", ts=AT).doubts or [""]
    assert doubt.startswith("all times lie before 2000, the first of them at 1970-01-01T00:29:20Z")
    assert "as seconds (s) it would be 2025-10-09T08:53:20Z; set time_unit of the source" in doubt
    assert "aggregates and the end of episodes wait" in doubt
    # With other times among them, the unit is right and nothing waits.
    shard.send(400, site="roof")
    (doubt,) = shard.send(1, site="roof", ts=AT).doubts or [""]
    assert doubt.startswith("2 of 402 times lie before 2000, the first of them at 1970-01-01T00:29:20Z")
    assert doubt.endswith("it would be 2025-10-09T08:53:20Z; correct their sender")
    assert [one["what"] for one in logged] == ["event times are implausible"]
    shard.now += TOLD
    assert shard.send(10, site="roof").doubts is None
    (doubt,) = shard.send(1, site="roof", ts=AT).doubts or [""]
    assert doubt.startswith("1 of 11 times lie before 2000")
    shard.now += TOLD
    assert shard.send(1, site="roof").doubts is None
    shard.journal.close()


def test_readings_without_a_value_are_counted_over_batches() -> None:
    doubts, times = Doubts(), np.zeros(0, np.int64)

    def take(*values: float | None) -> list[str]:
        null = np.array([value is None for value in values])
        vector = Vector(np.array([value or 0.0 for value in values]), null if null.any() else None)
        doubts.take({"temp": vector}, frozenset({"temp"}), times, "us", 0)
        return doubts.empty

    assert take(1.0, *[None] * (READINGS - 1)) == []
    assert take(None) == ["temp"]
    assert take(None, 2.0, None) == []
    assert take(*[None] * (READINGS - 2)) == []
    assert take(None) == ["temp"]
    assert take(3.0) == []


def test_columns_that_nobody_reads_and_those_that_must_have_values_are_not_doubted() -> None:
    one = found()
    assert read_columns(one, one.streams[0], FieldMap()) == {"station", "temp", "site"}
    assert read_columns(one, one.streams[0], FieldMap({"n": "m.n", "ok": "m.ok", "ts": "at"})) == {
        "station",
        "temp",
        "site",
        "n",
    }
