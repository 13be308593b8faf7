"""Minimum number of retained tuples, by an integer program, compared with the number that each rule retains.

python -m tests.oracle.omission.minimum_retention --cases 10000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from tests.oracle.omission.brute_force import Bools
from tests.oracle.omission.random_recordings import (
    SIDES,
    Ints,
    Recordings,
    extremes,
    recordings,
    windows,
)
from tests.oracle.random_cases import SEED

from tamis.omission import OmissionState, retained_by_key

Rule = Callable[[Recordings], Bools]

# Recordings that one integer program decides: it falls apart into them.
ROWS = 100
END = 2**63 - 1


def fewest(record: Recordings) -> Ints:
    """The least number of tuples of each row with one in each set that attains a window's extreme."""
    rows, most = record.there.shape
    bits = np.int64(1) << np.arange(most)
    masks = np.concatenate([(side * bits).sum(axis=2) for side in extremes(record, windows(record))], axis=1)
    row = np.repeat(np.arange(rows), masks.shape[1])
    wanted = np.unique(np.stack([row, masks.ravel()], axis=1)[masks.ravel() > 0], axis=0)
    if len(wanted) == 0:
        return np.zeros(rows, np.int64)
    at, column = np.nonzero(wanted[:, 1:] & bits)
    hits = coo_array((np.ones(len(at)), (at, wanted[at, 0] * most + column)), (len(wanted), rows * most))
    found = milp(
        np.ones(rows * most),
        integrality=np.ones(rows * most),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(hits.tocsr(), lb=1),
    )
    assert found.success, found.message
    number: Ints = np.rint(found.x).astype(np.int64).reshape(rows, most).sum(axis=1)
    return number


def kernel(record: Recordings) -> Bools:
    """The batch form."""
    return record.masked(retained_by_key(*record.columns, record.interval, sides=record.sides))  # type: ignore[arg-type]


def strict(record: Recordings) -> Bools:
    """The paper's rule."""
    kept = retained_by_key(*record.columns, record.interval, sides=record.sides, ties="strict")  # type: ignore[arg-type]
    return record.masked(kept)


def stream(record: Recordings, disorder: int = 0) -> Bools:
    """The stream form, a tick at a time, with a watermark right behind; with `disorder` in random order."""
    keys, times, values = record.columns
    arrival = times + np.random.default_rng(SEED).integers(0, disorder + 1, len(times))
    order = np.argsort(arrival, kind="stable")
    state = OmissionState(record.interval, record.sides)  # type: ignore[arg-type]
    keep = np.zeros(len(times), np.bool_)
    for part in np.split(order, np.flatnonzero(np.diff(arrival[order])) + 1):
        ids = np.sort(part)
        state.offer(keys[ids], times[ids], values[ids], ids, 0)
        if len(ids):
            keep[state.decide(int(arrival[ids[0]]) - disorder, 0).published] = True
    keep[state.decide(END, 0).published] = True
    return record.masked(keep)


RULES: dict[str, Rule] = {
    "batch form": kernel,
    "stream form, in order": stream,
    "stream form, any order within 15 ticks": lambda record: stream(record, 15),
    "strict (the paper's rule)": strict,
}


@dataclass
class Tally:
    """What was found over all recordings so far."""

    cases: int = 0
    larger: int = 0
    most: int = 0
    retained: int = 0
    fewest: int = 0

    def add(self, retained: Ints, least: Ints) -> None:
        """Take in the numbers of some recordings."""
        more = retained - least
        assert (more >= 0).all(), "fewer than the fewest"
        self.cases += len(more)
        self.larger += int((more > 0).sum())
        self.most = max(self.most, int(more.max(initial=0)))
        self.retained += int(retained.sum())
        self.fewest += int(least.sum())


def compare(cases: int, seed: int, most: int = 40) -> Iterator[tuple[str, str, Tally]]:
    """Tallies of each rule and choice of sides over `cases` recordings of up to `most` tuples."""
    random = np.random.default_rng(seed)
    for sides in SIDES:
        tallies = {rule: Tally() for rule in RULES}
        for _ in range(-(-cases // len(SIDES) // ROWS)):
            record = replace(recordings(random, ROWS, most), sides=sides)
            least = fewest(record)
            for rule, keep in RULES.items():
                tallies[rule].add(keep(record).sum(axis=1), least)
        for rule, tally in tallies.items():
            yield rule, sides, tally


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}; the fewest by an integer program (HiGHS)")
    print(
        f"{'rule':40}{'sides':7}{'recordings':>11}"
        f"{'larger':>8}{'at most by':>11}{'retained':>10}{'fewest':>9}"
    )
    for rule, sides, found in compare(arguments.cases, arguments.seed):
        print(
            f"{rule:40}{sides:7}{found.cases:11,}{found.larger:8,}{found.most:11,}"
            f"{found.retained:10,}{found.fewest:9,}"
        )


if __name__ == "__main__":
    main()
