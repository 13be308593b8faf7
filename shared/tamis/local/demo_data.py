"""Input of the demo: real readings of four motes, one recording and one edge for each place.

The published recording has numbers of readings and no times. A reading was taken every five seconds, so
reading n gets the time `START` + 5 n seconds; the start is arbitrary.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import yaml

DEMO = Path(__file__).resolve().parents[3] / "demo"
RECORDING = DEMO / "data" / "suthaharan-single-hop.csv"
ALERTS = DEMO / "alerts.sql"
STREAM = "readings"
# Each partition adds work to a batch, and the demo has two keys.
PARTITIONS = 2

START = 1_272_672_000_000_000  # 2010-05-01T00:00:00Z, in microseconds
SPACING = 5_000_000

PLACES = {"outdoors": 0, "indoors": 1}


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
