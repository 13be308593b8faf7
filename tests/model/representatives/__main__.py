"""The command line of the model.

python -m tests.model.representatives --runs 2000 --seed 1       the product: no violation is expected
python -m tests.model.representatives --mutation kept_after_loss  with a rule broken
python -m tests.model.representatives --trace 48 --mutation ...   each step of the schedule of one seed
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.model.representatives.mutations import MUTATIONS, broken
from tests.model.representatives.schedule import play
from tests.model.schedule import quiet


def main() -> None:
    """Play from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutation", choices=list(MUTATIONS))
    parser.add_argument("--trace", type=int, metavar="SEED")
    asked = parser.parse_args()
    quiet()
    began, seen, count = time.monotonic(), Counter[str](), 0
    seeds = range(asked.seed, asked.seed + asked.runs) if asked.trace is None else (asked.trace,)
    with broken(asked.mutation):
        for seed in seeds:
            violations, fleet = play(seed, trace=asked.trace is not None)
            seen += fleet.seen
            count += bool(violations)
            lines = [*(fleet.trace or ()), *(f"seed {seed}: {one}" for one in violations)]
            print(*lines, sep="\n", end="\n" if lines else "")
    print(f"{len(seeds)} schedules, {count} broken, {time.monotonic() - began:.0f} s; {dict(seen)}")
    sys.exit(bool(count))


if __name__ == "__main__":
    main()
