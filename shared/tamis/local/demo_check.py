"""Check of the demo: the alarms in Kafka beside the plain join of all readings."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import yaml

if TYPE_CHECKING:
    from tamis.plan.model import Definition
    from tamis.query.model import AlertDef
    from tamis.recordings.typed import Recording
    from tamis.verification.compare import Verdict
    from tamis.verification.reference import Reference

DEMO = Path(__file__).resolve().parents[3] / "demo"
RECORDING = DEMO / "data" / "suthaharan-single-hop.csv"
ALERTS = DEMO / "alerts.sql"
STREAM = "readings"
# Each partition adds work to a batch, and the demo has two keys.
PARTITIONS = 2

START = 1_272_672_000_000_000  # 2010-05-01T00:00:00Z, in microseconds
SPACING = 5_000_000

PLACES = {"outdoors": 0, "indoors": 1}

# On a busy processor, a thread of this priority gets a third of the time that a service gets. One of the
# lowest priority gets almost none where other programs run, and the report would wait for it.
_LOWER_PRIORITY = 5


@dataclass(frozen=True)
class Place:
    """One edge of the demo: name, recording, number of tuples in it, and configuration file."""

    name: str
    recording: Path
    tuples: int
    config: Path


def prepare(directory: Path, speed: float) -> list[Place]:
    """Write the recording and the edge configuration of each place; `speed` is relative to event time."""
    table = pyarrow.csv.read_csv(RECORDING)
    times = pc.add(pc.multiply(table["reading"], pa.scalar(SPACING)), pa.scalar(START))
    table = table.append_column("ts", times)
    return [
        _place(name, table.filter(pc.equal(table["indoor"], code)), directory, speed)
        for name, code in PLACES.items()
    ]


def _place(name: str, rows: pa.Table, directory: Path, speed: float) -> Place:
    recording = directory / f"{name}.csv"
    columns = ["indoor", "mote_id", "ts", "humidity", "temperature"]
    pyarrow.csv.write_csv(rows.sort_by("ts").select(columns), recording)
    config = directory / f"{name}.yaml"
    source = {"name": "motes", "kind": "file", "stream": STREAM, "path": str(recording), "speed": speed}
    config.write_text(yaml.safe_dump({"name": name, "sources": [source]}, sort_keys=False))
    return Place(name, recording, rows.num_rows, config)


@dataclass(frozen=True)
class _Joined:
    """One alert, and all combinations of the plain join that raise it."""

    alert: AlertDef
    definition: Definition
    reference: Reference


class PlainJoins:
    """The plain joins of all readings. A thread computes them while the fleet runs. On Linux it has a lower
    priority than the fleet.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = list(places)
        self._found: Future[tuple[dict[str, Recording], list[_Joined]]] = Future()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="plain-joins").start()

    def check(self, alarms: dict[str, list[dict[str, Any]]], published: int) -> list[Verdict]:
        """Compare `alarms`, by alert, with the plain joins; waits for these. `published`: the number of
        tuples that the edges sent.
        """
        from tamis.verification.compare import alarms_of, compare

        recordings, joined = self._found.result()
        return [
            compare(
                one.alert.name,
                one.alert.query,
                definition=one.definition,
                recordings=recordings,
                reference=one.reference,
                alarms=alarms_of(
                    one.alert.query, recordings, [a["tuples"] for a in alarms.get(one.alert.name, [])]
                ),
                retained=published,
            )
            for one in joined
        ]

    def _run(self) -> None:
        if sys.platform == "linux":
            # There, a thread has a priority of its own, and so have the threads that DuckDB starts from it.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWER_PRIORITY)
        try:
            self._found.set_result(self._join())
        except BaseException as error:
            self._found.set_exception(error)

    def _join(self) -> tuple[dict[str, Recording], list[_Joined]]:
        from tamis.planning.build import first_plan
        from tamis.query.parse import catalog_of
        from tamis.recordings.typed import read_recording
        from tamis.verification.reference import plain_join

        catalog = catalog_of(ALERTS.read_text())
        definitions = {d.alert: d for d in first_plan(catalog, partitions=PARTITIONS).definitions}
        paths = [str(place.recording) for place in self.places]
        recordings = {STREAM: read_recording(catalog.streams[STREAM], paths, as_arrived=True)}
        return recordings, [
            _Joined(alert, definitions[name], plain_join(alert.query, recordings))
            for name, alert in catalog.alerts.items()
        ]
