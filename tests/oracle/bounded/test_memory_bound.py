"""The proven number of live tuples against simulated joins whose partners lag as far as they may."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tamis.planning.join_verdict import judge
from tamis.query.parse import catalog_of

S = 1_000_000


@pytest.mark.parametrize("seed", range(20))
def test_no_state_exceeds_its_bound(seed: int) -> None:
    rng = random.Random(seed)
    names = list("abc"[: rng.choice([2, 3])])
    delay = {n: rng.randint(0, 3) for n in names}
    stall = {n: rng.randint(1, 8) for n in names}
    ahead = {n: rng.choice([0, rng.randint(0, 3)]) for n in names}
    count = {n: rng.randint(1, 3) for n in names}
    per = {n: rng.randint(1, 4) for n in names}
    streams = "".join(
        f"CREATE STREAM {n} (k INT KEY, ts TIMESTAMP, x DOUBLE,"
        f" WATERMARK FOR ts AS ts - INTERVAL '{delay[n]}' SECOND)"
        f" WITH (keys = 1, rate = '{count[n]}/{per[n]}s', max_stall = '{stall[n]}s'"
        + (f", max_ahead = '{ahead[n]}s'" if ahead[n] else "")
        + ");"
        for n in names
    )
    bounds = []
    for left, right in pairwise(names):
        lo = rng.randint(-6, 3)
        bounds.append((left, right, lo, lo + rng.randint(0, 6)))
    on = " AND ".join(
        f"{left}.k = {right}.k AND"
        f" {left}.ts - {right}.ts BETWEEN INTERVAL '{lo}' SECOND AND INTERVAL '{hi}' SECOND"
        for left, right, lo, hi in bounds
    )
    total = " + ".join(f"{n}.x" for n in names)
    sources = ", ".join(names)
    catalog = catalog_of(streams, f"CREATE ALERT q AS SELECT a.k FROM {sources} WHERE {total} > 3 AND {on}")
    verdict = judge(catalog.alerts["q"], catalog)
    held = {o.alias: o.interval // S for o in verdict.omissions}
    # The greatest t_p - t_s, by relaxing the bounds until nothing changes.
    reach = {(p, s): (0 if p == s else 10**9) for p in names for s in names}
    for _ in names:
        for left, right, lo, hi in bounds:
            for other in names:
                reach[left, other] = min(reach[left, other], hi + reach[right, other])
                reach[right, other] = min(reach[right, other], -lo + reach[left, other])

    live: dict[str, list[int]] = {n: [] for n in names}
    seen: dict[str, list[int]] = {n: [] for n in names}
    frontier = dict.fromkeys(names, -(10**9))
    most = 0
    calm = rng.random()
    for now in range(120):
        for n in names:
            for _ in range(6):  # as many as the rate allows, as near to the present as they may be, or late
                t = now + ahead[n] - rng.choice([0, 0, 0, rng.randint(0, 6)])
                recent = [
                    sum(1 for u in [*seen[n], t] if start <= u < start + per[n])
                    for start in range(t - per[n] + 1, t + 1)
                ]
                if max(recent) <= count[n]:
                    seen[n].append(t)
                    live[n].append(t)
            # The frontier lags as far as it may, or, now and then, catches up.
            lag = delay[n] + held[n] + stall[n]
            frontier[n] = max(frontier[n], now - (lag if rng.random() < calm else rng.randint(0, lag)))
        for s in names:
            live[s] = [t for t in live[s] if any(frontier[p] <= t + reach[p, s] for p in names if p != s)]
        most = max(most, sum(len(tuples) for tuples in live.values()))
    assert verdict.memory.bound is not None
    assert 0 < most <= verdict.memory.bound, f"seed {seed}: {verdict.memory}"
