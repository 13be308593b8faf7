"""Memory of the joiner while one stream of a join stalls for an hour, with and without omission.

The cores of edge and joiner run alone, without Kafka and Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv
from tests.fixtures.dict_state import DictState

from benchmarks.harness import Cell, Result, Say
from benchmarks.pages import markdown
from benchmarks.readings import DEW_POINT, RATE, SECOND, station, stream
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.local.demo_check import RECORDING, SPACING, START
from tamis.messaging.records import Frontier
from tamis.messaging.topics import PLANS
from tamis.plan.json_form import encode_plan
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_joiner.core.group import Group
from tamis_joiner.core.records.envelopes import Records, split_plans

NAME = "stall"
MINUTE = 60 * SECOND
BEFORE, STALL, AFTER = 15, 60, 15  # minutes of event time
KEYS = 20
DOCS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
PAGE = """# Memory while a stream stalls

If one stream of a join stalls, the joiner must keep the tuples of the other stream until the stalled stream
continues. In this benchmark, one of two streams sends nothing for an hour of event time. The table shows the
state of the other stream at the joiner. The state grows by the tuples that omission retains, not by the data
rate. After the stalled stream has caught up, the state has its former size. Measure again:
`python -m benchmarks stall`.

The benchmark runs the cores of edge and joiner, without Kafka and Spark, on two pairs of streams:

- random walks of 20 stations; tuples join within 5 s, so the omission interval is 10 s
- readings of four real sensors from the demo; tuples join within 2 minutes, so the omission interval is
  4 minutes.

![Tuples in the joiner's state, with and without omission](stall.png)

{table}

{notes}
"""

# The live stream comes first, the one that stalls second. The thresholds are out of reach: state is measured.
WALKS = f"""{stream("air", KEYS)}{stream("surface", KEYS)}{DEW_POINT}
CREATE ALERT q {{}} AS SELECT a.ts FROM air a JOIN surface s
  ON a.station = s.station AND s.ts BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND
WHERE dew_point(a.temp, a.rh) - s.temp > 100;
"""
_MOTES = """
CREATE STREAM {0} (
  indoor INT KEY CHECK (indoor IN (0, 1)), ts TIMESTAMP,
  humidity DOUBLE CHECK (humidity BETWEEN 1 AND 100),
  temperature DOUBLE CHECK (temperature BETWEEN -40 AND 80),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (keys = 2, rate = '13/minute');
"""
MOTES = f"""{_MOTES.format("damp")}{_MOTES.format("cold")}{DEW_POINT}
CREATE ALERT q {{}} AS SELECT d.ts FROM damp d JOIN cold c
  ON d.indoor = c.indoor AND c.ts BETWEEN d.ts - INTERVAL '2' MINUTE AND d.ts + INTERVAL '2' MINUTE
WHERE dew_point(d.temperature, d.humidity) - c.temperature > 100;
"""

Columns = dict[str, list[int] | list[float] | list[str]]
Minutes = Iterator[dict[str, Columns]]  # by stream, the readings of a minute


@dataclass(frozen=True)
class Scenario:
    """Two streams and the alert that joins them; `{}` in the statements is for the alert's options."""

    title: str
    sql: str
    live: str
    stalled: str

    def minutes(self, count: int) -> Minutes:
        """The readings of every minute."""
        return _walks(count) if self.live == "air" else _motes(count)


SCENARIOS = (
    Scenario(f"random walks, {RATE} a second", WALKS, "air", "surface"),
    Scenario("real readings, one in 5 s", MOTES, "damp", "cold"),
)


@dataclass
class Curve:
    """Live tuples and bytes of the stream that goes on, at the end of every minute."""

    tuples: list[int]
    bytes: list[int]
    received: list[int]
    published: list[int]

    def during(self, counts: list[int]) -> int:
        """By how much a count grew while the partner stalled."""
        return counts[BEFORE + STALL - 1] - counts[BEFORE - 1]


def run(quick: bool, say: Say) -> Result:
    """Measure, and draw both curves. A quick run stalls as long, for one key, and draws nothing."""
    keys = 1 if quick else KEYS
    found: list[tuple[Scenario, dict[str, Curve]]] = []
    for scenario in SCENARIOS:
        curves = {}
        for mode, options in (
            ("without omission", "WITH (max_delay = '0 seconds')"),
            ("with omission", ""),
        ):
            say(f"{scenario.title}, {mode}")
            curves[mode] = _drive(scenario, options, keys)
        found.append((scenario, curves))
    rows: list[dict[str, Cell]] = []
    for scenario, curves in found:
        everything = curves["without omission"]
        for mode, curve in curves.items():
            grown = curve.during(curve.tuples)
            rows.append({
                "what": f"{scenario.title}, {mode}",
                "received": curve.during(curve.received),
                "retained": curve.during(curve.published),
                "state grew by": grown,
                "growth / growth without omission": round(grown / everything.during(everything.tuples), 3),
                "state, MB": round(curve.bytes[BEFORE + STALL - 1] / 1e6, 2),
                "tuples in state at the end": curve.tuples[-1],
            })  # fmt: skip
    result = Result(
        NAME,
        "State of a stream at the joiner while its partner stalls for an hour of event time, tuples",
        (
            "what",
            "received",
            "retained",
            "state grew by",
            "growth / growth without omission",
            "state, MB",
            "tuples in state at the end",
        ),
        rows,
        {"minutes before": BEFORE, "minutes stalled": STALL, "keys": keys, "quick": quick},
        (
            "received, retained, state grew by: tuples during the hour of the stall",
            "state, MB: size of the state at the end of this hour",
            "tuples in state at the end: 15 minutes after the stalled stream has caught up",
        ),
    )

    def publish() -> None:
        DOCS.mkdir(parents=True, exist_ok=True)
        _draw(found, DOCS / "stall.png")
        notes = "\n".join(f"- {note}" for note in result.notes)
        (DOCS / "stall.md").write_text(PAGE.format(table=markdown(result), notes=notes))

    return replace(result, publish=publish)


def _drive(scenario: Scenario, options: str, keys: int) -> Curve:
    plan = _plan(scenario, options)
    runs = {name: ShardRun(_shard(name), name, Commit(), plan) for name in (scenario.live, scenario.stalled)}
    topics = {}
    for name in runs:
        stream_ = plan.stream(name)
        assert stream_ is not None
        topics[name] = stream_.topics[0].name
    state, held_back = DictState(), list[Columns]()
    group = Group.load(0, 1, state)
    curve = Curve([], [], [], [])
    received = published = 0
    plans = [_records(PLANS, [encode_plan(plan)], 0)]
    for number, minute in enumerate(scenario.minutes(BEFORE + STALL + AFTER)):
        sent = []
        for name, run_ in runs.items():
            batches = [_first_keys(minute[name], keys, name)]
            if name == scenario.stalled:
                held_back += batches
                batches = []
                if not BEFORE <= number < BEFORE + STALL:
                    batches, held_back = held_back, []
            for columns in batches:
                batch = _batch(columns, run_)
                received += len(batch) if name == scenario.live else 0
                run_.take(batch, number * MINUTE)
                _commit(run_)
                values = [record.value for record in run_.out]
                for record in run_.out:
                    run_.safe(record.token)
                run_.out.clear()
                sent.append(_records(topics[name], values, number))
            published += run_.take_counts().published if name == scenario.live else 0
        group = Group.load(0, 1, state, group)
        out = group.process(*split_plans(plans + sent), state, now=number * MINUTE, token=str(number))
        plans = []
        assert not out.dead_letters
        assert not out.alarms
        assert out.frontier is not None
        live = Frontier.from_bytes(out.frontier).topics[topics[scenario.live]]
        curve.tuples.append(live.tuples)
        curve.bytes.append(live.bytes)
        curve.received.append(received)
        curve.published.append(published)
    return curve


def _plan(scenario: Scenario, options: str) -> Plan:
    shards = {_shard(name): name for name in (scenario.live, scenario.stalled)}
    return first_plan(catalog_of(scenario.sql.format(options)), shards=shards)


def _shard(stream_: str) -> str:
    return f"{stream_}:edge/http"


def _commit(run_: ShardRun) -> None:
    """Confirm what was sent, and let progress follow it."""
    for record in run_.out:
        run_.safe(record.token)
    if run_.commit() is not None:
        run_.committed(0)


def _batch(columns: Columns, run_: ShardRun) -> Batch:
    types = {"station": Type.VARCHAR, "indoor": Type.INT, "ts": Type.TIMESTAMP}
    vectors = {
        name: Vector.from_list(column, types.get(name, Type.DOUBLE)) for name, column in columns.items()
    }
    times = vectors["ts"].data
    first = run_.next_offset
    return Batch(vectors, times, np.arange(first, first + len(times)), times)


def _records(topic: str, values: list[bytes], number: int) -> Records:
    rows = np.arange(len(values))
    return Records(topic, 0, values, rows, np.full(len(values), number))


def _first_keys(columns: Columns, keys: int, name: str) -> Columns:
    """The readings of some of the stations only."""
    if "station" not in columns or keys == KEYS:
        return columns
    some = {station(number) for number in range(keys)}
    rows = [row for row, key in enumerate(columns["station"]) if key in some]
    return {column: [values[row] for row in rows] for column, values in columns.items()}  # type: ignore[misc]


def _walks(count: int) -> Minutes:
    """Temperature and humidity of every station, each a random walk within its domain."""
    random = np.random.default_rng(1)
    names = [station(number) for number in range(KEYS)]
    steps = 60 * RATE
    last = {name: [random.normal(15, 8, KEYS), random.normal(60, 15, KEYS)] for name in ("air", "surface")}
    for minute in range(count):
        found: dict[str, Columns] = {}
        beats = np.repeat(minute * MINUTE + np.arange(steps) * SECOND // RATE, KEYS)
        for name, walks in last.items():
            values = []
            for at, (spread, low, high) in enumerate(((0.2, -40, 50), (0.5, 5, 99))):
                walk = walks[at] + random.normal(0, spread, (steps, KEYS)).cumsum(axis=0)
                # Turned back at the domain's ends, as a ball is by walls.
                walk = high - np.abs((walk - low) % (2 * (high - low)) - (high - low))
                walks[at] = walk[-1]
                values.append(walk.round(2).ravel().tolist())
            found[name] = {"station": names * steps, "ts": beats.tolist(), "temp": values[0], "rh": values[1]}
        yield found


def _motes(count: int) -> Minutes:
    """The recording of the demo: motes 1 and 4 go on, 2 and 3 stall."""
    table = pyarrow.csv.read_csv(RECORDING).sort_by("reading")
    a_minute = MINUTE // SPACING
    for minute in range(count):
        now = table.filter(pc.equal(pc.divide(table["reading"], a_minute), minute))
        found: dict[str, Columns] = {}
        for name, motes in (("damp", [1, 4]), ("cold", [2, 3])):
            rows = now.filter(pc.is_in(now["mote_id"], pyarrow.array(motes)))
            found[name] = {
                column: rows[column].to_pylist() for column in ("indoor", "humidity", "temperature")
            }
            found[name]["ts"] = [START + SPACING * reading for reading in rows["reading"].to_pylist()]
        yield found


def _draw(found: list[tuple[Scenario, dict[str, Curve]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(11, 4.2), layout="constrained")
    minutes = np.arange(1, BEFORE + STALL + AFTER + 1)
    for axis, (scenario, curves) in zip(axes, found, strict=True):
        axis.axvspan(BEFORE, BEFORE + STALL, color="0.93")
        for (mode, curve), colour in zip(curves.items(), ("tab:red", "tab:blue"), strict=True):
            axis.plot(minutes, curve.tuples, color=colour, linewidth=2)
            top = BEFORE + STALL - 1
            axis.annotate(
                f"{mode}\n{curve.tuples[top]:,} tuples",
                (minutes[top], curve.tuples[top]),
                (-8, 2),
                textcoords="offset points",
                ha="right",
                va="bottom",
                color=colour,
            )
        axis.set_title(scenario.title)
        axis.set_xlabel("minutes of event time")
        axis.set_xlim(0, minutes[-1])
        axis.set_ylim(0, 1.18 * max(max(curve.tuples) for curve in curves.values()))
        axis.yaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("tuples in the joiner's state")
    figure.suptitle("One stream goes on while its partner stalls (grey)")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
