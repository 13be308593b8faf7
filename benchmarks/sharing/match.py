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
COLUMNS = (
    "topics",
    "selectivity of a box",
    "median, ms",
    "90th percentile, ms",
    "maximum, ms",
    "existing topic",
    "new topic",
)


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
            f"the predicate of a topic is {CLAUSES} boxes over {DIMENSIONS} attributes; the predicate of a"
            " query is one box",
            f"CPU time of the choice for one query, over {QUERIES} queries; it includes the estimate of the"
            " query's selectivity",
            "existing topic, new topic: the number of queries for which this choice has the least cost",
        ),
    )


def _row(
    candidates: list[Candidate], needs: list[Expr], estimator: SelectivityEstimator, share: float
) -> dict[str, Cell]:
    spent, own = [], 0
    for filter_ in needs:
        began = time.process_time()
        need = estimator.passed(filter_)
        found, _, _ = CandidateTopics(candidates, DIMENSIONS).choose(need, subscriber=True)
        spent.append(1000 * (time.process_time() - began))
        own += found is None
    return {
        "topics": len(candidates),
        "selectivity of a box": share,
        "median, ms": float(np.median(spent)),
        "90th percentile, ms": float(np.quantile(spent, 0.9)),
        "maximum, ms": max(spent),
        "existing topic": len(needs) - own,
        "new topic": own,
    }
