"""Time of the decision whether a query over streams without time is bounded."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.harness import Cell, Result, Say
from tamis.bounded.timeless.translate import translate
from tamis.bounded.timeless.verdict import memory_verdict
from tamis.operators.synopses.decide import violation
from tamis.query.model import AlertDef, Catalog, TimelessQuery
from tamis.query.parse import catalog_of

NAME = "bounded.deciding"
SIZES = ((2, 4), (2, 8), (4, 12), (4, 20), (8, 24), (8, 40))  # streams, attributes of all
COLUMNS = ("streams", "attributes", "query", "check, ms", "explain, ms")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    repeats = 1 if quick else 7
    rows: list[dict[str, Cell]] = []
    for streams, attributes in SIZES[:3] if quick else SIZES:
        for bounded in (True, False):
            say(f"{streams} streams, {attributes} attributes, {'' if bounded else 'not '}bounded")
            rows.append(_row(streams, attributes, bounded, repeats))
    return Result(
        NAME,
        "Deciding whether a query is bounded",
        COLUMNS,
        rows,
        {"repeats": repeats, "quick": quick},
        (
            f"times are CPU time on one core, the minimum of {repeats} runs",
            "check: computes the closure of all conditions, and decides in polynomial time whether the query"
            " is bounded",
            "explain: computes the complete verdict for a parsed query; for a bounded query this includes the"
            " bound, for an unbounded query it includes running an example of inputs, and deciding each"
            " repair",
            "each query is a SELECT DISTINCT; one attribute of the first stream has to be less than an"
            " attribute of every other stream",
            "the other attributes have limits, and random pairs of them are compared; an unbounded query also"
            " has an equality of two attributes without limits",
        ),
    )


def _row(streams: int, attributes: int, bounded: bool, repeats: int) -> dict[str, Cell]:
    catalog = catalog_of(sql(streams, attributes, bounded=bounded))
    (alert,) = catalog.alerts.values()
    asked = alert.query
    assert isinstance(asked, TimelessQuery)
    (branch,) = translate(asked, catalog).branches
    query = branch.conjunction
    if query.size != attributes + 1:
        raise AssertionError("every attribute must matter")
    verdict = memory_verdict(asked, catalog).verdict
    if (verdict == "bounded") != bounded:
        raise AssertionError(f"the query is {verdict}")
    return {
        "streams": streams,
        "attributes": attributes,
        "query": verdict,
        "check, ms": _milliseconds(lambda: _checked(alert, catalog), repeats),
        "explain, ms": _milliseconds(lambda: memory_verdict(asked, catalog), repeats),
    }


def sql(streams: int, attributes: int, *, bounded: bool) -> str:
    """Statements with a query in which all attributes are compared."""
    r = np.random.default_rng(streams * 100 + attributes)
    own = attributes // streams
    names = [[f"t{stream}.a{column}" for column in range(own)] for stream in range(streams)]
    conditions = [f"{names[0][0]} < {other[0]} + {r.integers(0, 3)}" for other in names[1:]]
    limited = [name for stream in names for name in stream[1:]]
    conditions += [f"{name} BETWEEN {r.integers(-5, 0)} AND {r.integers(0, 5)}" for name in limited]
    for _ in range(attributes // 2):
        left, right = r.choice(limited, 2, replace=False)
        conditions.append(f"{left} <= {right} + {r.integers(5, 9)}")
    if not bounded:
        conditions.append(f"{names[0][0]} = {names[-1][0]} - {2 * streams}")
    columns = ", ".join(f"a{column} INT" for column in range(own))
    created = " ".join(f"CREATE STREAM s{stream} ({columns});" for stream in range(streams))
    sources = ", ".join(f"s{stream} t{stream}" for stream in range(streams))
    return (
        f"{created} CREATE ALERT q AS SELECT DISTINCT t0.a1 FROM {sources} WHERE {' AND '.join(conditions)};"
    )


def _checked(alert: AlertDef, catalog: Catalog) -> None:
    (branch,) = translate(alert.query, catalog).branches
    closure = branch.conjunction.closure()
    if closure is not None:
        violation(branch.conjunction, closure)


def _milliseconds(work: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return 1000 * min(found)
