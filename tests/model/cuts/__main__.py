"""The command line of the model.

python -m tests.model.cuts --runs 5000 --seed 1                 all rules: no violation is expected
python -m tests.model.cuts --runs 5000 --off done_back          without a rule
python -m tests.model.cuts --table                              each rule off in turn
python -m tests.model.cuts --trace 1000004 --off done_back      each step of the schedule of one seed
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.model.cuts.rules import BROKEN, RULES
from tests.model.cuts.schedule import play
from tests.model.cuts.search import series


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--off", nargs="*", default=[], choices=list(RULES), metavar="RULE")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", type=float, default=60, help="of each row of the table")
    parser.add_argument("--trace", type=int, metavar="SEED")
    args = parser.parse_args()
    if args.trace is not None:
        violations, fleet = play(args.trace, args.off, trace=True)
        print(f"delay {fleet.delay}, idle_timeout {fleet.idle_timeout}, {fleet.partitions} partitions")
        print(*fleet.trace or (), *violations, sep="\n")
    elif args.table:
        for rule in RULES:
            found = series(args.runs, args.seed, [rule], enough=5, seconds=args.seconds)
            counts = f"{len(found.violated)} of {found.runs}"
            first = next(iter(found.violated), None)
            print(f"{rule:18} {counts:>12} {dict(found.kinds)} first {first} | {BROKEN[rule]}", flush=True)
    else:
        started = time.monotonic()
        found = series(args.runs, args.seed, args.off)
        print(f"{found.runs} schedules, {len(found.violated)} with violations {dict(found.kinds)}")
        print(f"{time.monotonic() - started:.0f} s; {dict(found.seen)}")
        for seed, violations in list(found.violated.items())[:5]:
            print("seed", seed, *violations[:3], sep="\n   ")
        sys.exit(bool(found.violated))


if __name__ == "__main__":
    main()
