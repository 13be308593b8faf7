"""Choice of the topic with the least cost for a new query, among ten thousand topics in service."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.harness import Cell, Result, Say
from benchmarks.sharing.filters import filters, stream
from tamis.expressions.nodes import Expr
from tamis.query.parse import catalog_of
from tamis.sharing.selectivity import BoxUnion, SelectivityEstimator
from tamis.sharing.topic_choice import Candidate, CandidateTopics

NAME = "sharing.match"
TOPICS = (100, 1_000, 10_000)
DIMENSIONS = 6
SHARES = (0.001, 0.05)
CLAUSES = 3
QUERIES = 101
COLUMNS = ("topics", "share of a clause", "median, ms", "90 %, ms", "greatest, ms", "widened", "own")


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    estimator = SelectivityEstimator(catalog_of(stream("s", DIMENSIONS)).streams["s"])
    random = np.random.default_rng(1)
    rows: list[dict[str, Cell]] = []
    for share in SHARES[:1] if quick else SHARES:
        say(f"topics of {CLAUSES} clauses of {share:.1%} each")
        most = TOPICS[0] if quick else TOPICS[-1]
        width = share ** (1 / DIMENSIONS)
        lower = random.uniform(0, 1 - width, (most * CLAUSES, 1, DIMENSIONS))
        parts = [BoxUnion(one, one + width, share) for one in lower]
        candidates = [
            Candidate(at, BoxUnion.union(parts[at * CLAUSES : (at + 1) * CLAUSES]), at % 2 == 0, at % 3)
            for at in range(most)
        ]
        needs = filters(random, 5 if quick else QUERIES, DIMENSIONS, share)
        rows += [_row(candidates[:count], needs, estimator, share) for count in TOPICS if count <= most]
    return Result(
        NAME,
        "One new query beside the topics in service",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "clauses": CLAUSES, "queries": QUERIES, "quick": quick},
        (
            f"a topic lets through {CLAUSES} boxes over {DIMENSIONS} attributes; a query is one box",
            f"CPU time of one choice, of {QUERIES}, the estimate of the query's own share included",
            "widened, own: how many queries are served best so",
        ),
    )


def _row(
    candidates: list[Candidate], needs: list[Expr], estimator: SelectivityEstimator, share: float
) -> dict[str, Cell]:
    spent, own = [], 0
    for filter_ in needs:
        began = time.process_time()
        need = estimator.passed(filter_)
        found, _ = CandidateTopics(candidates, DIMENSIONS).choose(need, subscriber=True)
        spent.append(1000 * (time.process_time() - began))
        own += found is None
    return {
        "topics": len(candidates),
        "share of a clause": share,
        "median, ms": float(np.median(spent)),
        "90 %, ms": float(np.quantile(spent, 0.9)),
        "greatest, ms": max(spent),
        "widened": len(needs) - own,
        "own": own,
    }
