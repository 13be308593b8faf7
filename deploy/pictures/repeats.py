"""The picture of exactly once: what an edge sends again after a kill, and what the joiner counts of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson
from deploy.pictures.cores import SECOND, Columns, Edge, Joiner, plan_of
from deploy.pictures.look import BLUE, GREY, PALE_RED, RED, panels, save, styled

# Readings, one a second: those of the edge's last commit, those that it has published after it when it is
# killed, and all.
COMMITTED, SENT, ALL = 5, 9, 14
SQL = """
CREATE STREAM air (
  station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE CHECK (temp BETWEEN -60 AND 70), WATERMARK FOR ts AS ts
) WITH (keys = 1, rate = '1/s', max_stall = '1 minute', max_ahead = '1 minute');
CREATE ALERT readings WITH (edge = 'raw') AS SELECT window_end, count(*) AS n
FROM TUMBLE(air, ts, INTERVAL '1' MINUTE) GROUP BY window_end HAVING count(*) > 0;
"""


@dataclass(frozen=True)
class Repeats:
    """The places of the records of a minute in the order in which Kafka has them, for each if it comes again,
    the number of records before the kill, and the count that the joiner has raised for this minute.
    """

    places: list[int]
    again: list[bool]
    before: int
    counted: int


def computed() -> Repeats:
    """Kill an edge between two commits, start another one from its last commit, and join what both send."""
    plan = plan_of(SQL, ["air"])
    killed = Edge(plan, "air")
    sent = killed.take(_readings(0, COMMITTED), COMMITTED * SECOND)
    sent += killed.take(_readings(COMMITTED, SENT), SENT * SECOND, commits=False)
    before = len(_places(sent))
    restarted = Edge(plan, "air", killed.committed)
    sent += restarted.take(_readings(COMMITTED, ALL), ALL * SECOND)
    places = _places(sent)
    # A reading of the next minute but one ends the minute.
    sent += restarted.take(_readings(150, 151), 151 * SECOND)
    joiner = Joiner(plan)
    joiner.take({"air": sent}, 151 * SECOND, 1)
    (row,) = [alarm["row"] for alarm in joiner.alarms if alarm["row"]["window_end"] == 60 * SECOND]
    again = [place in places[:number] for number, place in enumerate(places)]
    return Repeats(places, again, before, row["n"])


def _readings(begin: int, end: int) -> Columns:
    """One reading a second."""
    seconds = range(begin, end)
    return {
        "station": ["k1" for _ in seconds],
        "ts": [second * SECOND for second in seconds],
        "temp": [20.0 for _ in seconds],
    }


def _places(values: list[bytes]) -> list[int]:
    """The places of the tuples among records."""
    found = (orjson.loads(value)["_"] for value in values)
    return [envelope["place"] for envelope in found if "place" in envelope and "kind" not in envelope]


@styled
def draw() -> Path:
    """Draw docs/images/repeats.svg."""
    found = computed()
    numbers = range(1, len(found.places) + 1)
    counted = [number for number, again in zip(numbers, found.again, strict=True) if not again]
    dropped = [number for number, again in zip(numbers, found.again, strict=True) if again]
    figure, (axes,) = panels([8.4], 3.6)
    axes.axvspan(found.before + 0.5, found.before + 0.5 + len(dropped), color=PALE_RED)
    axes.axvline(found.before + 0.5, color=RED)
    axes.text(found.before + 0.3, ALL - 1.5, "the edge is killed", ha="right", color=RED)
    axes.plot(counted, [found.places[at - 1] for at in counted], "o", color=BLUE,
              label=f"counted ({len(counted)})")  # fmt: skip
    axes.plot(dropped, [found.places[at - 1] for at in dropped], "x", color=RED, markersize=8,
              markeredgewidth=2, label=f"sent again, dropped ({len(dropped)})")  # fmt: skip
    greatest = [max(found.places[:at]) for at in numbers]
    axes.step(
        numbers, greatest, where="post", color=GREY, linestyle="--", label="place that the joiner stores"
    )
    axes.set(xlabel="records in the order in which Kafka has them", ylabel="place of the tuple",
             xticks=[*numbers][::2], title=f"count(*) of this minute: {found.counted}")  # fmt: skip
    axes.legend(loc="lower right")
    return save(figure, "repeats.svg", "Tuples that an edge sends again after a kill, and those that count")
