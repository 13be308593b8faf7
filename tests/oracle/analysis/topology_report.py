"""Report of alarms that are lost with longer omission intervals than planned.

Run it by `python -m tests.oracle.analysis.topology_report [CASES]`.

For intervals as planned, one tick and two ticks longer: in how many random joins the worst moment of a random
stream loses its alarm, and how many alarms random tuples lose when all streams of a join omit. Event
times are whole ticks, on which one tick more is still safe.
"""

from __future__ import annotations

import sys

import numpy as np
from tests.oracle.analysis.random_joins import TOPOLOGIES, random_join
from tests.oracle.analysis.topology_cases import everything_omits, one_tight_stream
from tests.oracle.random_cases import SEED


def main(count: int) -> None:
    """Print both tables, by topology."""
    print(f"{count:,} random cases a line's share, seed {SEED}; lost / tried\n")
    header = f"{'':14}" + "".join(f"{f'L + {longer}':>16}" for longer in range(3))
    print("joins whose worst moment loses its alarm", header, sep="\n")
    worst = np.zeros((len(TOPOLOGIES), 3, 2), np.int64)
    random = np.random.default_rng([SEED, 4])
    for _ in range(count):
        join = random_join(random)
        s = int(random.integers(len(join.upper)))
        for longer in range(3):
            found = one_tight_stream(join, s, longer)
            if found is not None:
                worst[TOPOLOGIES.index(join.topology), longer] += found.missed, 1
    _show(worst)
    print("\nalarms that random tuples lose, all streams omitting", header, sep="\n")
    lost = np.zeros((len(TOPOLOGIES), 3, 2), np.int64)
    for longer in range(3):
        random = np.random.default_rng([SEED, 5])
        for case in everything_omits(random, count, longer):
            lost[TOPOLOGIES.index(case.join.topology), longer] += case.missed, case.alarms
    _show(lost)


def _show(table: np.ndarray) -> None:
    lines = [*zip(TOPOLOGIES, table, strict=True), ("all", table.sum(axis=0))]
    for name, line in lines:
        print(f"{name:14}" + "".join(f"{f'{lost:,} / {tried:,}':>16}" for lost, tried in line.tolist()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
