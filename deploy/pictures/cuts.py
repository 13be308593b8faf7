"""The picture of cuts: the readings of a shard by position and event time, and the cut that sends each."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import orjson
from deploy.pictures.cores import SECOND, Columns, Edge, plan_of
from deploy.pictures.look import AMBER, BLUE, GREEN, GREY, INK, RED, panels, save, styled

# Seconds: of a pane, of the delay of the watermark, and of all readings, one a second.
PANE, DELAY, ALL = 10, 4, 36
# A reading that comes so many seconds late.
LATE_AT, LATE_BY = 27, 12
SQL = f"""
CREATE STREAM air (
  station VARCHAR KEY, ts TIMESTAMP, temp DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '{DELAY}' SECOND
) WITH (keys = 1, rate = '1/s', max_stall = '1 minute', max_ahead = '1 minute');
CREATE ALERT warmest AS SELECT window_end, max(temp) AS most FROM TUMBLE(air, ts, INTERVAL '{PANE}' SECOND)
GROUP BY window_end HAVING max(temp) > 0;
"""


@dataclass(frozen=True)
class Cuts:
    """Event times in seconds by position; for each cut its corner (offset and time, in seconds) and the
    number of readings that it sent.
    """

    times: list[float]
    corners: list[tuple[int, float]]
    sent: list[int]

    def cut_of(self, offset: int) -> int | None:
        """The first cut that covers a reading; None for one that waits in an open pane."""
        time = self.times[offset]
        return next(
            (n for n, (end, before) in enumerate(self.corners) if offset < end and time < before), None
        )


def computed() -> Cuts:
    """Let an edge read in time, with a commit after each reading."""
    r = random.Random(4)
    times = [max(0.0, second - r.choice((0, 0, 1, 2, 3))) + 0.5 for second in range(ALL)]
    times[LATE_AT] -= LATE_BY
    edge = Edge(plan_of(SQL, ["air"]), "air")
    corners, sent = [], []
    for offset, time in enumerate(times):
        columns: Columns = {"station": ["k1"], "ts": [int(time * SECOND)], "temp": [20.0]}
        for value in edge.take(columns, offset * SECOND):
            document = orjson.loads(value)
            if document["_"].get("kind") == "cut":
                end, before = document["_"]["to"]
                corners.append((end, before / SECOND))
                sent.append(sum(document.get("counts", [1] * len(document["panes"]))))
    return Cuts(times, corners, sent)


@styled
def draw() -> Path:
    """Draw docs/images/cuts.svg."""
    found = computed()
    figure, (axes,) = panels([8.4], 4.2)
    colours = (BLUE, GREEN, AMBER, RED)
    for number, (end, before) in enumerate(found.corners):
        colour = colours[number % len(colours)]
        axes.plot([-0.5, end - 0.5, end - 0.5], [before, before, -1], color=colour, linewidth=1)
        offsets = [at for at in range(ALL) if found.cut_of(at) == number]
        axes.plot(offsets, [found.times[at] for at in offsets], "o", color=colour,
                  label=f"cut {number + 1} ({found.sent[number]})")  # fmt: skip
    waiting = [at for at in range(ALL) if found.cut_of(at) is None]
    axes.plot(waiting, [found.times[at] for at in waiting], "o", color=GREY, markerfacecolor="none",
              label=f"in open panes ({len(waiting)})")  # fmt: skip
    late = found.times[LATE_AT]
    axes.annotate("a late reading", (LATE_AT, late), (LATE_AT - 1, late - 7), color=INK,
                  arrowprops={"arrowstyle": "-", "color": GREY})  # fmt: skip
    axes.set(xlabel="position in the source", ylabel="event time, s", ylim=(-1, ALL + 1), xlim=(-0.5, ALL))
    axes.legend(loc="upper left")
    return save(figure, "cuts.svg", "Readings of a shard by position and event time, and the cut of each")
