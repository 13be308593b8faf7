"""The temporal join in columns against a nested loop and DuckDB, on random definitions, data and batches."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pytest
from tests.oracle.random_cases import also_long
from tests.rows_for_duckdb import insert

from tamis.expressions.nodes import Call, Column, Expr, Literal, Type
from tamis.expressions.vectors import Vector
from tamis.operators.time_join.key_codes import KeyCodes
from tamis.operators.time_join.temporal_join import Tuples, combinations
from tamis.operators.time_join.time_bounds import reaches
from tamis.plan.model import Definition, Input, TimeBound

KEY_TYPES = (Type.VARCHAR, Type.INT, Type.DOUBLE)
KEYS: dict[Type, list[Any]] = {
    Type.VARCHAR: ["1", "a", "", None],
    Type.INT: [1, 2, 3, None],
    Type.DOUBLE: [1.0, 2.5, -0.0, None],
}
DUCK = {Type.VARCHAR: "VARCHAR", Type.INT: "BIGINT", Type.DOUBLE: "DOUBLE", Type.TIMESTAMP: "BIGINT"}

Row = dict[str, Any]


class Case:
    """A random definition over random topics: columns k (key), ts, v, w (DOUBLE, may be NULL)."""

    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        size = r.choice((1, 2, 2, 2, 3, 3, 4))
        kind = r.choice(("text", "number"))
        self.topics = [f"t{i}" for i in range(r.randint(1, size))]
        numbers = [r.choice((Type.INT, Type.DOUBLE)) for _ in self.topics]
        self.key_type = {
            t: n if kind == "number" else Type.VARCHAR for t, n in zip(self.topics, numbers, strict=True)
        }
        topics = self.topics + [r.choice(self.topics) for _ in range(size - len(self.topics))]
        self.keyed = r.random() < 0.85
        inputs = tuple(
            Input(
                alias=f"s{i}",
                stream=topic,
                topic=topic,
                time="ts",
                partition_key=("k",) if self.keyed else (),
                filter=_compare(f"s{i}", r.choice(("<", ">=", "!=")), r.randint(0, 4))
                if r.random() < 0.4
                else None,
                interval=0,
            )
            for i, topic in enumerate(topics)
        )
        self.span = 12 if size < 4 else 6
        bounds = []
        for i in range(1, size):
            for j in r.sample(range(i), r.randint(1, i)):
                lo = r.randint(-self.span, 1)
                hi = lo + r.randint(0, self.span)
                ends = (None if r.random() < 0.08 else lo, None if r.random() < 0.08 else hi)
                bounds.append(TimeBound(f"s{i}", f"s{j}", *ends))
        equalities: tuple[tuple[Column, Column], ...] = ()
        if size > 1 and r.random() < 0.2:
            equalities = ((Column("s0", "w", Type.DOUBLE), Column("s1", "w", Type.DOUBLE)),)
        total: Expr = Column("s0", "v", Type.DOUBLE)
        for source in inputs[1:]:
            total = Call("+", (total, Column(source.alias, "v", Type.DOUBLE)), Type.DOUBLE)
        condition = Call(">", (total, Literal(2.0 * size, Type.DOUBLE)), Type.BOOLEAN)
        self.definition = Definition(
            alert="q",
            version=3,
            inputs=inputs,
            equalities=equalities,
            bounds=tuple(bounds),
            condition=condition if size > 1 and r.random() < 0.8 else None,
            select=(("v", total),),
        )
        self.rows: dict[str, list[Row]] = {
            t: [self._row(t) for _ in range(r.randint(0, 80 // size + 6))] for t in self.topics
        }

    def _row(self, topic: str) -> Row:
        r = self.random
        return {
            "k": r.choice(KEYS[self.key_type[topic]]),
            "ts": r.randint(0, 20),
            "v": None if r.random() < 0.1 else float(r.randint(0, 5)),
            "w": None if r.random() < 0.1 else float(r.randint(0, 2)),
            "version": r.choice((2, 3, 3, 3, 4, 4, 4, 5)),
        }

    def types(self, topic: str) -> dict[str, Type]:
        return {"k": self.key_type[topic], "ts": Type.TIMESTAMP, "v": Type.DOUBLE, "w": Type.DOUBLE}

    def columns(self, seen: dict[str, int], upto: dict[str, int]) -> tuple[dict[str, Tuples], dict[str, Any]]:
        """Tuples by alias with rows from `seen` on new, and by topic the row number of each sorted tuple."""
        codes, by_topic, order = KeyCodes(), {}, {}
        for topic in self.topics:
            rows = self.rows[topic][: upto[topic]]
            columns = {c: Vector.from_list([row[c] for row in rows], t) for c, t in self.types(topic).items()}
            times = columns["ts"].data
            keys = codes.encode([columns["k"]] if self.keyed else [], len(rows))
            by_key = order[topic] = np.lexsort((times, keys))
            by_topic[topic] = Tuples(
                times=times[by_key],
                keys=keys[by_key],
                versions=np.array([row["version"] for row in rows], np.int64)[by_key],
                new=(np.arange(len(rows)) >= seen[topic])[by_key],
                columns={c: vector.take(by_key) for c, vector in columns.items()},
            )
        return {s.alias: by_topic[s.topic] for s in self.definition.inputs}, order

    def joined(self, block: int) -> Counter[tuple[int, ...]]:
        """Everything that the join yields over random batches, as row numbers of each input."""
        found: Counter[tuple[int, ...]] = Counter()
        seen = dict.fromkeys(self.topics, 0)
        while seen != {t: len(self.rows[t]) for t in self.topics}:
            upto = {
                t: min(len(self.rows[t]), seen[t] + self.random.choice((0, 1, 3, 10))) for t in self.topics
            }
            tuples, order = self.columns(seen, upto)
            for rows in combinations(self.definition, tuples, block=block):
                numbers = [order[s.topic][r] for s, r in zip(self.definition.inputs, rows, strict=True)]
                found.update(zip(*(n.tolist() for n in numbers), strict=True))
            seen = upto
        return found

    def nested_loop(self) -> Counter[tuple[int, ...]]:
        """Every combination, tried one by one."""
        d = self.definition
        found: Counter[tuple[int, ...]] = Counter()
        numbers = {s.alias: i for i, s in enumerate(d.inputs)}
        for rows in itertools.product(*(range(len(self.rows[s.topic])) for s in d.inputs)):
            picked = [self.rows[s.topic][row] for s, row in zip(d.inputs, rows, strict=True)]
            if min(p["version"] for p in picked) < d.version:
                continue
            keys = [p["k"] for p in picked]
            if self.keyed and len(picked) > 1 and (None in keys or any(k != keys[0] for k in keys)):
                continue
            if not all(_holds(s.filter, p) for s, p in zip(d.inputs, picked, strict=True)):
                continue
            gaps = [(b, picked[numbers[b.left]]["ts"] - picked[numbers[b.right]]["ts"]) for b in d.bounds]
            if any((b.lo is not None and gap < b.lo) or (b.hi is not None and gap > b.hi) for b, gap in gaps):
                continue
            if d.equalities and (picked[0]["w"] is None or picked[0]["w"] != picked[1]["w"]):
                continue
            values = [p["v"] for p in picked]
            if d.condition is not None and (None in values or not sum(values) > 2.0 * len(values)):
                continue
            found[rows] += 1
        return found

    def by_duckdb(self) -> Counter[tuple[int, ...]]:
        """The plain join, run by DuckDB."""
        d = self.definition
        with duckdb.connect() as base:
            for topic in self.topics:
                names = ", ".join(f"{c} {DUCK[t]}" for c, t in self.types(topic).items())
                base.execute(f"CREATE TABLE {topic} (id BIGINT, version BIGINT, {names})")
                values = [
                    (i, r["version"], r["k"], r["ts"], r["v"], r["w"]) for i, r in enumerate(self.rows[topic])
                ]
                insert(base, topic, values)
            where = [f"{s.alias}.version >= {d.version}" for s in d.inputs]
            first = d.inputs[0].alias
            if self.keyed:
                where += [f"{first}.k = {s.alias}.k" for s in d.inputs[1:]]
            for s in d.inputs:
                if isinstance(s.filter, Call) and isinstance(s.filter.args[1], Literal):
                    where.append(f"{s.alias}.v {s.filter.op} {s.filter.args[1].value}")
            for b in d.bounds:
                where += [f"{b.left}.ts - {b.right}.ts >= {b.lo}"] if b.lo is not None else []
                where += [f"{b.left}.ts - {b.right}.ts <= {b.hi}"] if b.hi is not None else []
            where += [f"{a.alias}.{a.name} = {b.alias}.{b.name}" for a, b in d.equalities]
            if d.condition is not None:
                where.append(" + ".join(f"{s.alias}.v" for s in d.inputs) + f" > {2 * len(d.inputs)}")
            ids = ", ".join(f"{s.alias}.id" for s in d.inputs)
            tables = ", ".join(f"{s.topic} {s.alias}" for s in d.inputs)
            return Counter(base.execute(f"SELECT {ids} FROM {tables} WHERE {' AND '.join(where)}").fetchall())


def _compare(alias: str, op: str, value: int) -> Expr:
    return Call(op, (Column(alias, "v", Type.DOUBLE), Literal(float(value), Type.DOUBLE)), Type.BOOLEAN)


def _holds(test: Expr | None, row: Row) -> bool:
    if test is None:
        return True
    assert isinstance(test, Call) and isinstance(test.args[1], Literal)
    value, than = row["v"], test.args[1].value
    if value is None:
        return False
    return bool({"<": value < than, ">=": value >= than, "!=": value != than}[test.op])


@pytest.mark.parametrize("chunk", range(6))
def test_join_equals_nested_loop_over_any_batches(chunk: int) -> None:
    seeds = range(1_000 * chunk, 1_000 * chunk + 60)
    total = 0
    for seed in seeds:
        case = Case(seed)
        expected = case.nested_loop()
        assert case.joined(block=case.random.choice((1, 7, 65_536))) == expected, f"seed {seed}"
        total += len(expected)
    assert total > 200, "the cases must join something"


@pytest.mark.parametrize("times", also_long(40))
def test_join_equals_duckdb(times: int) -> None:
    for seed in range(50_000, 50_000 + 30 * times):
        case = Case(seed)
        assert case.joined(block=65_536) == case.by_duckdb(), f"seed {seed}"


def test_tuple_is_needed_exactly_while_a_partner_can_come() -> None:
    """`reaches` against trying every later partner: dropping is safe, and nothing is kept without a use."""
    checked = 0
    for seed in range(80_000, 80_200):
        r = random.Random(seed)
        definition = Case(seed).definition
        if len(definition.inputs) not in (2, 3) or any(None in (b.lo, b.hi) for b in definition.bounds):
            continue
        size = len(definition.inputs)
        number = {s.alias: i for i, s in enumerate(definition.inputs)}
        time = 50
        frontier = [r.randint(20, 80) for _ in range(size)]
        for i, reach in enumerate(reaches(definition)):
            needed = any(frontier[j] <= time + most for j, most in reach)
            expected = any(
                times[i] == time
                and any(times[j] >= frontier[j] for j in range(size) if j != i)
                and all(
                    (b.lo or 0) <= times[number[b.left]] - times[number[b.right]] <= (b.hi or 0)
                    for b in definition.bounds
                )
                for times in itertools.product(*(range(10, 91) if j != i else (time,) for j in range(size)))
            )
            assert needed == expected, f"seed {seed}, input {i}"
            checked += 1
    assert checked > 150
