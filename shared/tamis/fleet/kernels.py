"""Compile the kernels of the fleet once: `python -m tamis.fleet.kernels`, a step of the set-up.

Numba keeps what it compiled beside the source. Without this step every edge compiles the filter at its first
batch, all of them at once: twelve seconds of a core each; and the first `tamis omit` takes as long.
"""

from __future__ import annotations

import numpy as np

from tamis.bounded.evaluate.ledger import Ledger
from tamis.evaluation import kernels
from tamis.evaluation.standing import standing
from tamis.expressions import libm
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.omission.kernel import retained_by_key
from tamis.omission.order import by_key_and_time
from tamis.omission.stream import OmissionState
from tamis.omission.window_stream import WindowState
from tamis.planning.sharing import Served, Topics
from tamis.planning.traffic import MOST_EXACT, Footprint, volume
from tamis.predicates import implies, parse
from tamis.predicates.evaluation import Dispatcher


def warm() -> None:
    """Run each kernel with the types that the services give it."""
    libm.warm()
    for state in (OmissionState(10), WindowState(1, 10)):
        for number in range(2):
            state.offer([1, 2], [number, number + 1], [1.0, 2.0], [2 * number, 2 * number + 1], now=0)
            state.decide(number, now=0)
        state.note_published([1])
        state.held()
        state.flush()
    for size in (2, 1000):  # what is the quicker way depends on how many there are
        retained_by_key(np.zeros(size, np.int64), np.arange(size), np.zeros(size), 10)
    backwards = np.arange(1000)[::-1].copy()
    by_key_and_time(backwards, backwards)
    rows = np.arange(2)
    kernels.expand(*kernels.windows(rows, rows, rows, rows, rows))
    Ledger(1).rising(np.arange(100).reshape(-1, 1), np.arange(100))
    _count()
    stream, query = parse("a < 1 OR a >= 1 AND b < 1 OR a >= 1 AND b >= 1"), parse("a > 0 AND b > 0")
    implies(query, stream)
    whole = Footprint.of(np.zeros((1, 1)), np.ones((1, 1)))
    many = np.zeros((MOST_EXACT + 1, 1))
    volume(many, many + 1.0)
    Footprint.of(many, many + 1.0)
    Topics([Served(1, whole, joiner=True, subscribers=0)], 1).choose(whole, subscriber=True)
    Dispatcher([stream, query]).which({"a": np.zeros(1), "b": np.zeros(1)})


def _count() -> None:
    """Join, count and aggregate duplicates, and go on from the state."""
    calls = "count(*) AS n, max(s.a) AS m, min(s.x) AS l, median(s.k) AS d"
    sql = (
        "CREATE STREAM s (k INT, a INT, x DOUBLE); CREATE STREAM t (j INT); CREATE ALERT counted AS"
        f" SELECT t.j, {calls} FROM s, t WHERE s.k = t.j AND t.j BETWEEN 0 AND 99 GROUP BY t.j;"
    )
    query, again = standing(sql, "counted"), standing(sql, "counted")
    numbers = Vector.from_list(list(range(100)), Type.INT)
    query.take("t", {"j": numbers}, 100)
    query.take("s", {"k": numbers, "a": numbers, "x": Vector(numbers.data * 0.5)}, 100)
    again.load(query.dump())


if __name__ == "__main__":
    warm()
