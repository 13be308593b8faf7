"""The share of random queries that are neither decided bounded nor unbounded, for each cause.

Run it with `python -m tests.oracle.bounded.unknown_share [queries of each kind]`. The queries of each kind
come from a fixed seed.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.oracle.bounded import checked_streams, test_witness_in_duckdb, timeless_queries
from tests.oracle.operators.standing import (
    test_application_time,
    test_timeless_groups,
    test_timeless_rows,
)

from tamis.planning.explain import explain
from tamis.query.model import Catalog
from tamis.query.parse import catalog_of

SEED = 1
Verdicts = Counter[str]


def shares(count: int) -> Iterator[tuple[str, Verdicts, Counter[str]]]:
    """Verdicts on `count` random queries of each kind, and the causes of *unknown*. Reads r.csv, a table of
    application time, in the working directory.
    """
    timeless = catalog_of(timeless_queries.STREAMS)
    in_time = catalog_of(test_application_time.STREAMS)
    kinds: dict[str, Callable[[random.Random], tuple[Catalog, str]]] = {
        "rows": lambda r: (timeless, test_timeless_rows.random_query(r, three=True)),
        "aggregates": lambda r: (timeless, test_timeless_groups.random_query(r, three=True)[0]),
        "expressions and unions": lambda r: (
            timeless,
            test_witness_in_duckdb.random_query(r, r.randrange(4)),
        ),
        "checks": _checked,
        "application time": lambda r: (in_time, test_application_time.random_sql(r)[0]),
    }
    for name, made in kinds.items():
        r = random.Random(SEED)
        verdicts: Verdicts = Counter()
        causes: Counter[str] = Counter()
        for _ in range(count):
            catalog, sql = made(r)
            memory = explain(catalog, timeless_queries.alert_of(catalog, sql)).memory
            verdicts[memory.verdict] += 1
            if memory.verdict == "unknown":
                causes[_cause(memory.reason)] += 1
        yield name, verdicts, causes


def _checked(r: random.Random) -> tuple[Catalog, str]:
    return catalog_of(checked_streams.CheckedStreams(r).sql), checked_streams.query(r)


def _cause(reason: str) -> str:
    """The first reason why no proof was found, without the names of the query."""
    found = re.search(r"[nN]o proof was found, since (.*)$", reason)
    text = (reason if found is None else found[1]).split(". Besides")[0]
    for pattern, general in (
        (r"which tuples satisfy .*", "which tuples satisfy a condition"),
        (r"which tuples have which value of .*", "which tuples have which value of an expression"),
        (r"how many values .* has", "how many values an expression has"),
        (r"over integers, and .* isn't one", "over integers"),
        (r"SELECT shows \S+ only in", "SELECT shows a column only in"),
        (r"may be equal for many values of .*", "may be equal for many values"),
        (r"SELECT number \d+ of the UNION is (\w+).*", r"a SELECT of the UNION is \1"),
    ):
        text = re.sub(pattern, general, text)
    return text


def write_table() -> None:
    """Write the table of application time to the working directory."""
    Path("r.csv").write_text("id,name,z\n1,p,0.5\n2,q,1.5\n")


def main() -> None:
    """Print the shares."""
    timeless_queries.CONSTANT = test_application_time.CONSTANT = 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_table()
        for name, verdicts, causes in shares(count):
            print(f"{name}: {100 * verdicts['unknown'] / count:.1f} % unknown, {dict(verdicts)}")
            for cause, times in causes.most_common():
                print(f"    {times:5} {cause}")


if __name__ == "__main__":
    main()
