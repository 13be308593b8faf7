"""Wrong columns of similar(…) are missed or extra alarms of `tamis verify`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tamis.cli.common.recordings import read_recordings
from tamis.expressions.vectors import Vector
from tamis.offline.verify import verify
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification.watched_columns import checked_recording

SECOND = 1_000_000
START = 1_700_000_000
SQL = """
CREATE STREAM vib (machine VARCHAR KEY, ts TIMESTAMP, value DOUBLE, WATERMARK FOR ts AS ts)
  WITH (keys = 10, rate = '10/s');
CREATE PATTERN ramp VALUES (0, 1, 2);
CREATE PATTERN bent VALUES (0, 1, 1.5);
CREATE ALERT q AS
SELECT v.machine, similarity(v.value, ANY), scale(v.value, ANY), shift(v.value, ANY), pattern(v.value, ANY)
FROM vib v WHERE similar(v.value, ANY, 0.2, scale => (0.1, 10));
"""
# Machine a rises twice; nothing else matches.
VALUES = [0.0, 1.0, 2.1, 2.0, 2.0, 1.0, 0.0, 3.0, 5.9]
MATCHES = [2, 8]
NOTHING = (None, None, None, None)


@pytest.fixture
def computed(tmp_path: Path) -> tuple[Catalog, dict[str, Recording]]:
    """The alert, and the recording with right columns."""
    lines = [f"a,{(START + second) * SECOND},{value!r}" for second, value in enumerate(VALUES)]
    (tmp_path / "vib.csv").write_text("\n".join(["machine,ts,value", *lines]) + "\n")
    catalog = catalog_of(SQL)
    alerts = list(catalog.alerts.values())
    return catalog, read_recordings(catalog, alerts, {"vib": [str(tmp_path / "vib.csv")]}, None)


def _rows(recording: Recording) -> list[tuple[Any, ...]]:
    (watch,) = recording.stream.watches
    return list(zip(*(recording.columns[one.name].to_list() for one in watch.columns), strict=True))


def _with_row(recording: Recording, row: int, values: tuple[Any, ...]) -> Recording:
    (watch,) = recording.stream.watches
    columns = dict(recording.columns)
    for column, value in zip(watch.columns, values, strict=True):
        found = columns[column.name].to_list()
        found[row] = value
        columns[column.name] = Vector.from_list(found, column.type)
    return replace(recording, columns=columns)


def _verdict(catalog: Catalog, recordings: dict[str, Recording], row: int, values: Any) -> tuple[int, ...]:
    """The numbers of reference alarms, alarms, missed and extra ones."""
    wrong = {name: _with_row(one, row, values) for name, one in recordings.items()}
    (found,) = verify(catalog, wrong)
    assert found.at_threshold == 0
    return found.reference_alarms, found.alarms, found.missed, found.extra


def test_columns_that_are_right_up_to_rounding_are_taken(
    computed: tuple[Catalog, dict[str, Recording]],
) -> None:
    catalog, recordings = computed
    (recording,) = recordings.values()
    rows = _rows(recording)
    assert [row for row, one in enumerate(rows) if one[3] is not None] == MATCHES
    assert _rows(checked_recording(recording)) == rows
    distance, scale, shift, name = rows[2]
    rounded = (distance + 1e-12, scale * (1 + 1e-12), shift + 1e-12, name)
    assert _verdict(catalog, recordings, 2, rounded) == (2, 2, 0, 0)
    assert _rows(checked_recording(_with_row(recording, 2, rounded)))[2] == rounded


def test_other_columns_are_missed_or_extra_alarms(computed: tuple[Catalog, dict[str, Recording]]) -> None:
    catalog, recordings = computed
    (recording,) = recordings.values()
    distance, scale, shift, name = _rows(recording)[2]
    assert name == "ramp"
    assert _verdict(catalog, recordings, 2, NOTHING) == (2, 1, 1, 0)
    assert _verdict(catalog, recordings, 5, (distance, scale, shift, name)) == (2, 3, 0, 1)
    for wrong in (
        (distance + 1e-6, scale, shift, name),
        (distance, scale + 1e-6, shift, name),
        (distance, scale, shift + 1e-6, name),
        (distance, None, shift, name),
        (distance, scale, shift, "bent"),
    ):
        _, alarms, _, extra = _verdict(catalog, recordings, 2, wrong)
        assert (alarms, extra) == (2, 1), wrong
