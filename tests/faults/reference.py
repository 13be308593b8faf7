"""Reference of fault tests: the alarms and episodes that DuckDB finds in the readings that were accepted.

It shares no code with Tamis: the queries are written again in SQL over integers and doubles.

Edges omit readings for the join, so that an alarm may stand for a combination nearby (`docs/omission.md`, the
promise). `hot` reads one stream, and each of its readings must have its alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from tests.faults.load import DIFFERENCE, GAP, HOT, NEAR, Row

# The omission interval: the length of the times at which a partner joins a tuple.
INTERVAL = 2 * NEAR

# Station, time of the reading of air, and time of the reading of surface (NULL: the alert reads air alone).
Combination = tuple[int, int, int | None]
Episode = tuple[int, int, int, int]  # station, first and last event time, number of alarms

_WARM = f"""SELECT a.station, a.ts, s.ts FROM air a JOIN surface s ON a.station = s.station
    WHERE abs(a.ts - s.ts) <= {NEAR} AND a.temp - s.temp > {DIFFERENCE}"""
_HOT = f"SELECT station, ts, NULL FROM air WHERE temp > {HOT}"
# Combinations without an alarm of the same station whose tuples are nearby.
_MISSED = f"""SELECT count(*) FROM wanted w WHERE NOT EXISTS (SELECT 1 FROM found f
    WHERE f.station = w.station AND CASE WHEN w.surface IS NULL THEN f.air = w.air AND f.surface IS NULL
    ELSE abs(f.air - w.air) <= {INTERVAL} AND abs(f.surface - w.surface) <= {INTERVAL} END)"""
_EPISODES = f"""WITH alarms AS (SELECT station, ts,
        lag(ts) OVER (PARTITION BY station ORDER BY ts) AS before FROM air WHERE temp > {HOT}),
    numbered AS (SELECT *, count(*) FILTER (WHERE before IS NULL OR ts - before > {GAP})
        OVER (PARTITION BY station ORDER BY ts) AS episode FROM alarms)
    SELECT station, min(ts), max(ts), count(*) FROM numbered GROUP BY station, episode"""


@dataclass(frozen=True)
class Expected:
    """The combinations of tuples that raise an alarm, by alert, and the closed episodes of `hot`."""

    alarms: Mapping[str, set[Combination]]
    episodes: set[Episode]


def expected(posted: Mapping[str, Sequence[Row]]) -> Expected:
    """Run the alerts over all readings."""
    with duckdb.connect() as base:
        for stream, rows in posted.items():
            types = {"station": pa.int64(), "ts": pa.int64(), "temp": pa.float64()}
            arrays = [
                pa.array([row[column] for row in rows], type_) for column, type_ in enumerate(types.values())
            ]
            base.register(f"{stream}_rows", pa.Table.from_arrays(arrays, names=list(types)))
            # An edge may get a reading twice, and a reading counts once.
            base.execute(f"CREATE TABLE {stream} AS SELECT DISTINCT * FROM {stream}_rows")
        return Expected(
            {name: set(base.execute(sql).fetchall()) for name, sql in (("warm", _WARM), ("hot", _HOT))},
            set(base.execute(_EPISODES).fetchall()),
        )


@dataclass(frozen=True)
class Outcome:
    """The difference between the alarms of a fleet and the expected ones. `repeated`: records with an
    identity that another record has, which readers recognise.
    """

    expected: int
    missed: int
    extra: int
    doubled: int
    repeated: int

    @property
    def right(self) -> bool:
        """True if no alarm is missed, extra or doubled."""
        return not (self.missed or self.extra or self.doubled)


def combination(alarm: Mapping[str, Any]) -> Combination:
    """The combination of an alarm record."""
    if "tuples" not in alarm:
        return int(alarm["row"]["station"]), int(alarm["row"]["ts"]), None
    tuples = alarm["tuples"]
    (first, *rest) = (tuples[alias] for alias in sorted(tuples))
    return int(first["station"]), int(first["ts"]), int(rest[0]["ts"]) if rest else None


def compare(wanted: Mapping[str, set[Combination]], alarms: Iterable[Mapping[str, Any]]) -> Outcome:
    """Compare alarm records with the expected combinations. A combination is missed if no alarm stands for
    it. An alarm is doubled if its combination also has another identity. Other alerts are left out.
    """
    records = [alarm for alarm in alarms if alarm["alert"] in wanted]
    found: dict[str, Counter[Combination]] = {name: Counter() for name in wanted}
    for alarm in {record["id"]: record for record in records}.values():
        found[alarm["alert"]][combination(alarm)] += 1
    return Outcome(
        expected=sum(map(len, wanted.values())),
        missed=sum(_missed(wanted[name], found[name]) for name in wanted),
        extra=sum(len(found[name].keys() - wanted[name]) for name in wanted),
        doubled=sum(count - 1 for counts in found.values() for count in counts.values()),
        repeated=len(records) - sum(sum(counts.values()) for counts in found.values()),
    )


def _missed(wanted: Iterable[Combination], found: Iterable[Combination]) -> int:
    with duckdb.connect() as base:
        for name, rows in (("wanted", list(wanted)), ("found", list(found))):
            columns = [pa.array([row[at] for row in rows], pa.int64()) for at in range(3)]
            base.register(name, pa.Table.from_arrays(columns, names=["station", "air", "surface"]))
        (count,) = base.execute(_MISSED).fetchall()[0]
        return int(count)


def closed_episodes(records: Iterable[Mapping[str, Any]]) -> Counter[Episode]:
    """The closed episodes of `hot` in records of `tamis.episodes`, each identity once."""
    closed = {
        record["episode"]: (int(record["key"][0]), record["start"], record["end"], record["alarms"])
        for record in records
        if record["alert"] == "hot" and record["event"] == "closed"
    }
    return Counter(closed.values())
