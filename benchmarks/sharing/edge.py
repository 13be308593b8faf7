"""An edge with the filters of 300 alerts on one stream, beside one rule after the other."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress

import numpy as np
import orjson

from benchmarks.harness import Cell, Goal, Result, Say, medians
from benchmarks.sharing.filters import FIRST, LAST, filter_sql, names, stream
from tamis.expressions.evaluate import holds
from tamis.expressions.nodes import Expr, Type
from tamis.heap import collect_seldom
from tamis.plan.model import Plan
from tamis.planning.build import first_plan
from tamis.query.condition import read_condition
from tamis.query.parse import catalog_of
from tamis_edge.core.commit import Commit
from tamis_edge.core.rows import Batch
from tamis_edge.core.shard_run import ShardRun
from tamis_edge.decode.decoder import Decoder
from tamis_edge.source_fields import FieldMap

NAME = "sharing.edge"
COUNTS = (1, 10, 100, 300)
DIMENSIONS = 3
SHARE = 0.001
BATCH = 10_000
KEYS = 1_000
START = 1_700_000_000_000_000
SQL = stream("s", DIMENSIONS) + (
    "CREATE ALERT first WITH (max_delay = '0 seconds') AS SELECT k, ts, x0, x1, x2 FROM s WHERE x0 > 0;"
)
COLUMNS = (
    "filters",
    "edge, µs/tuple",
    "rules in Python, µs",
    "speedup",
    "rules by columns, µs",
    "speedup ",
    "published",
)
Rule = Callable[[float, float, float], bool]


def run(quick: bool, say: Say) -> Result:
    """Run the benchmark. A quick run only shows that it works: its sizes are too small for figures."""
    random = np.random.default_rng(1)
    batches, repeats = (1, 1) if quick else (3, 5)
    payloads = [_payloads(random) for _ in range(batches)]
    rows = []
    for count in COUNTS[:2] if quick else COUNTS:
        say(f"{count} filters")
        sql = [filter_sql(random, DIMENSIONS, SHARE) for _ in range(count)]
        rows.append(_row(sql, payloads, repeats))
    most = rows[-1]
    return Result(
        NAME,
        "An edge with the filters of many alerts",
        COLUMNS,
        rows,
        {"dimensions": DIMENSIONS, "batch": BATCH, "batches": batches, "repeats": repeats, "quick": quick},
        (
            f"CPU time of one core, medians of {repeats} runs of each way in turn, without Kafka: from the"
            " JSON of readings to the keys and values of the records for those that pass at least one filter",
            f"each filter is a box over {DIMENSIONS} attributes that {SHARE:.1%} of the tuples pass",
            "rules in Python: orjson for each reading, then one compiled function after the other until one"
            " holds; what passes is published as it came",
            "rules by columns: the edge's decoder, then one filter after the other over columns by NumPy",
        ),
        [
            Goal(
                f"edge, {most['filters']} filters",
                float(most["speedup"] or 0),
                "times rules in Python",
                least=10,
            )
        ],
    )


def _row(sql: Sequence[str], payloads: Sequence[Sequence[bytes]], repeats: int) -> dict[str, Cell]:
    types, thresholds = dict.fromkeys(names(DIMENSIONS), Type.DOUBLE), gc.get_threshold()
    filters = [read_condition(one, types) for one in sql]
    rules: list[Rule] = [eval(f"lambda {', '.join(types)}: {_python(one)}") for one in sql]
    ways = {
        "edge": partial(_Edge(_plan(filters)).run, payloads),
        "python": partial(_by_rules, rules, payloads),
        "columns": partial(_by_columns, filters, Decoder(_plan(filters).streams[0], FieldMap()), payloads),
    }
    for way in ways.values():
        way()
    # As an edge does: by default Python would look for cycles among the records of each batch.
    collect_seldom()
    try:
        found = medians(ways, repeats)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    if len({published for _, published in found.values()}) > 1:
        raise AssertionError("all ways must publish the same number of tuples")
    tuples = sum(map(len, payloads))
    edge, python, columns = (seconds / tuples * 1e6 for seconds, _ in found.values())
    return {
        "filters": len(sql),
        "edge, µs/tuple": edge,
        "rules in Python, µs": python,
        "speedup": python / edge,
        "rules by columns, µs": columns,
        "speedup ": columns / edge,
        "published": found["edge"][1] / tuples,
    }


def _python(sql: str) -> str:
    """The condition of a box in Python."""
    words = sql.replace(" BETWEEN ", " >= ").split(" AND ")
    return " and ".join(
        f"{least} and {least.split()[0]} <= {most}"
        for least, most in zip(words[::2], words[1::2], strict=True)
    )


def _plan(filters: Sequence[Expr]) -> Plan:
    """A plan with an entry without omission for each filter."""
    plan = first_plan(catalog_of(SQL), partitions=4, shards={"s": "s"})
    (base,) = plan.streams
    (topic,) = base.topics
    entries = tuple(replace(topic.entries[0], filter=one) for one in filters)
    return replace(plan, streams=(replace(base, topics=(replace(topic, entries=entries),)),))


def _payloads(random: np.random.Generator) -> list[bytes]:
    values = random.uniform(FIRST, LAST, (BATCH, DIMENSIONS)).round(2).tolist()
    return [
        orjson.dumps(
            {
                "k": f"station-{row % KEYS:05d}",
                "ts": START + row,
                **dict(zip(names(DIMENSIONS), cells, strict=True)),
            }
        )
        for row, cells in enumerate(values)
    ]


class _Edge:
    """Decodes, filters and encodes as an edge does, from one call to the next."""

    def __init__(self, plan: Plan) -> None:
        self._decoder = Decoder(plan.streams[0], FieldMap())
        self._shard = ShardRun("s", "s", Commit(), plan)
        self._offset = 0

    def run(self, payloads: Sequence[Sequence[bytes]]) -> int:
        """The number of records for these readings."""
        shard, published = self._shard, 0
        for some in payloads:
            decoded = self._decoder.payloads(some, START)
            offsets = np.arange(self._offset, self._offset + len(decoded.times))
            self._offset += len(offsets)
            shard.take(Batch(decoded.columns, decoded.times, offsets, offsets), 0)
            published += len(shard.out)
            # Kafka takes everything at once here, and each micro-batch is committed.
            for _ in range(2):
                shard.safe(*(record.token for record in shard.out))
                shard.out.clear()
                if shard.commit() is not None:
                    shard.committed(0)
        return published


def _by_rules(rules: Sequence[Rule], payloads: Sequence[Sequence[bytes]]) -> int:
    published: list[tuple[bytes, bytes]] = []
    for some in payloads:
        for payload in some:
            reading = orjson.loads(payload)
            x0, x1, x2 = reading["x0"], reading["x1"], reading["x2"]
            for rule in rules:
                if rule(x0, x1, x2):
                    published.append((orjson.dumps([reading["k"]]), payload))
                    break
    return len(published)


def _by_columns(filters: Sequence[Expr], decoder: Decoder, payloads: Sequence[Sequence[bytes]]) -> int:
    published: list[tuple[bytes, bytes]] = []
    for some in payloads:
        decoded = decoder.payloads(some, START)
        columns = {("", name): column for name, column in decoded.columns.items()}
        passing = np.zeros(len(some), np.bool_)
        for filter_ in filters:
            passing |= holds(filter_, columns, len(some))
        keys = compress(decoded.columns["k"].data.tolist(), passing)
        published += [
            (orjson.dumps([key]), payload) for key, payload in zip(keys, compress(some, passing), strict=True)
        ]
    return len(published)
