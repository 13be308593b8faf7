"""The time buckets of the reference change no row: random topologies, joined with buckets and without.

Bounds are one-sided or two-sided, between event times and other TIMESTAMPs that may be NULL; two sources are
often bounded only through a third, and some topologies contradict themselves.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.vectors import Vector
from tamis.query.model import Query
from tamis.query.parse import catalog_of
from tamis.recordings.typed import Recording
from tamis.verification import hash_joins, reference, standing
from tamis.verification.reference import plain_join

ROWS = 16
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT KEY, ts TIMESTAMP, u TIMESTAMP, v DOUBLE, WATERMARK FOR ts AS ts);\n"
    for name in ("s0", "s1", "s2")
)
CATALOG = catalog_of(STREAMS)


def bound(r: random.Random, left: str, right: str) -> str:
    """A condition on two times, microseconds apart."""
    low, high = sorted(r.randint(-9, 9) for _ in range(2))

    def moved(by: int) -> str:
        return f"{right} {'-' if by < 0 else '+'} INTERVAL '{abs(by)} us'"

    return r.choice(
        (
            f"{left} BETWEEN {moved(low)} AND {moved(high)}",
            f"{left} <= {moved(high)}",
            f"{left} > {moved(low)}",
            f"{left} - {right} < INTERVAL '{abs(high)} us'",
            f"abs({right} - {left}) <= INTERVAL '{abs(high)} us'",
            f"{left} = {right}" if r.random() < 0.3 else f"{moved(low)} <= {left}",
        )
    )


def topology(r: random.Random) -> tuple[Query, Query]:
    """A query of two to four sources as an alert by time, and as one of distinct rows."""
    names = [f"a{i}" for i in range(r.choice((2, 3, 3, 3, 4)))]
    if r.random() < 0.5:
        # Each after the one before, and the last soon after the first.
        order = r.sample(names, len(names))
        where = [f"{x}.ts <= {y}.ts" for x, y in pairwise(order)]
        where.append(f"{order[-1]}.ts <= {order[0]}.ts + INTERVAL '{r.randint(-1, 9)} us'")
    else:
        edges = [[r.randrange(i), i] for i in range(1, len(names))]
        edges += [r.sample(range(len(names)), 2) for _ in range(r.randint(0, 2))]
        times = [[f"{names[i]}.{r.choice(('ts', 'ts', 'ts', 'u'))}" for i in edge] for edge in edges]
        where = [bound(r, *r.sample(pair, 2)) for pair in times]
    where.append(f"{names[0]}.v + {names[-1]}.v > 0")
    if r.random() < 0.3:
        where.append(f"{names[0]}.k = {names[-1]}.k")
    r.shuffle(where)
    sources = ", ".join(f"s{r.randrange(3)} {name}" for name in r.sample(names, len(names)))
    shown = ", ".join(f"{name}.ts AS t_{name}, {name}.v AS v_{name}" for name in names)
    catalog = catalog_of(
        STREAMS
        + f"CREATE ALERT p AS SELECT {shown} FROM {sources} WHERE {' AND '.join(where)};"
        + f"CREATE ALERT q AS SELECT DISTINCT {shown} FROM {sources} WHERE {' AND '.join(where)};"
    )
    return catalog.alerts["p"].query, catalog.alerts["q"].query


def recording(r: np.random.Generator, name: str) -> Recording:
    span = int(r.choice((6, 30, 200)))
    columns = {
        "k": Vector(r.integers(0, 2, ROWS)),
        "ts": Vector(r.integers(-span, span, ROWS)),
        "u": Vector(r.integers(-span, span, ROWS), r.random(ROWS) < 0.2),
        "v": Vector(r.normal(size=ROWS)),
    }
    return Recording(CATALOG.streams[name], columns, np.zeros(ROWS, np.bool_), {}, 0)


def rows(
    alert: Query, distinct: Query, recordings: dict[str, Recording]
) -> tuple[list[tuple[int, ...]], list[tuple[object, ...]]]:
    """Of the plain join, and of the reference of distinct rows."""
    found = plain_join(alert, recordings)
    joined = zip(*(found.rows[source.alias].tolist() for source in alert.sources), strict=True)
    with reference.connect(distinct, recordings) as connection:
        selected = connection.execute(standing._selected(distinct, {})).fetchall()
    return sorted(joined), sorted(selected, key=str)


@pytest.mark.parametrize("times", also_long(60))
def test_implied_bounds_change_no_row(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    seen: Counter[str] = Counter()
    for case in range(cases(1 / 800) * times):
        r = random.Random(SEED * 1_000_003 + case)
        alert, distinct = topology(r)
        numbers = np.random.default_rng((SEED, case))
        recordings = {name: recording(numbers, name) for name in CATALOG.streams}
        conditions = [c.expr for c in alert.conjuncts]
        fast = rows(alert, distinct, recordings)
        with monkeypatch.context() as context:
            context.setattr(reference, "join_windows", lambda *_: {})
            plain = rows(alert, distinct, recordings)
        assert fast == plain, f"case {case}: {[c.text for c in alert.conjuncts]}"
        at_once = {(x, y) for condition in conditions for x, y, _ in hash_joins._direct_bounds(condition)}
        tied = hash_joins.join_windows(conditions, [source.alias for source in alert.sources])
        seen["topologies"] += 1
        seen["all tied"] += len(tied) == len(alert.sources) - 1
        seen["implied"] += any(not {(w.x, w.y), (w.y, w.x)} <= at_once for w in tied.values())
        seen["rows"] += bool(fast[0])
    assert min(seen.values()) > seen["topologies"] // 8, seen
