"""ASOF JOIN: the rows are those of nested loops over all tuples, and of DuckDB.

Tuples come in random batches and orders, some of them late, and the state is dumped and loaded at random
points. The number of entries never exceeds the bound.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.operators import run_query, standing_evaluator
from tests.oracle.operators.standing.test_verify import recording
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import CountsLate, Rows, StandingEvaluator
from tamis.planning.explain import explain
from tamis.query.model import Query
from tamis.query.parse import catalog_of
from tamis.verification.standing import compare_standing

Value = str | float | int | bool | None
Tuple = Mapping[str, Value]
Test = Callable[[Mapping[str, Tuple | None]], bool | None]
Row = tuple[Value, ...]

SECOND = 1_000_000
DELAY, STALL, AHEAD, RATE = 1, 3, 2, 2
END = 12  # seconds
OPTIONS = (
    f"WATERMARK FOR ts AS ts - INTERVAL '{DELAY}' SECOND)"
    f" WITH (keys = 4, rate = '{RATE}/s', max_stall = '{STALL} s', max_ahead = '{AHEAD} s');"
)
NUMBERS = {"s": "INT CHECK (n BETWEEN 0 AND 2)", "t": "DOUBLE", "u": "INT"}
STREAMS = "\n".join(
    f"CREATE STREAM {name} (k VARCHAR KEY, n {kind}, ts TIMESTAMP NOT NULL, x DOUBLE, v VARCHAR, f BOOLEAN,"
    f" {OPTIONS}"
    for name, kind in NUMBERS.items()
)
TYPES = {
    "k": Type.VARCHAR,
    "n": Type.INT,
    "ts": Type.TIMESTAMP,
    "x": Type.DOUBLE,
    "v": Type.VARCHAR,
    "f": Type.BOOLEAN,
}


def types_of(stream: str) -> dict[str, Type]:
    return TYPES | ({"n": Type.DOUBLE} if stream == "t" else {})


@dataclass
class Join:
    """One ASOF JOIN, with its conditions as Python."""

    alias: str
    stream: str
    sql: str
    keys: list[tuple[str, str, str]]  # an earlier alias, its column, the own column
    least: int
    most: int | None
    outer: bool
    tests: list[Test]


@dataclass
class Case:
    """A random query."""

    sql: str
    first: str
    joins: list[Join]
    where: list[Test]
    shown: list[tuple[str, str]]
    read: dict[str, list[str]] = field(default_factory=dict)

    def rows(self, tuple_: Tuple, arrived: Mapping[str, list[Tuple]]) -> Iterator[Row]:
        """The row of a tuple of the first stream, if it has one."""
        found: dict[str, Tuple | None] = {"a": tuple_}
        for join in self.joins:
            found[join.alias] = self._latest(join, found, arrived[join.stream])
            if found[join.alias] is None and not join.outer:
                return
        if all(test(found) for test in self.where):
            yield tuple(None if (one := found[alias]) is None else one[name] for alias, name in self.shown)

    def _latest(self, join: Join, found: Mapping[str, Tuple | None], given: list[Tuple]) -> Tuple | None:
        own = found["a"]
        assert own is not None
        asked = own["ts"]
        assert isinstance(asked, int)
        wanted = []
        for alias, name, _ in join.keys:
            other = found[alias]
            wanted.append(None if other is None else other[name])
        best: Tuple | None = None
        for one in given:
            values = [one[name] for _, _, name in join.keys]
            at = one["ts"]
            assert isinstance(at, int)
            if None in wanted or wanted != values or at > asked - join.least:
                continue
            if not all(test({join.alias: one}) for test in join.tests):
                continue
            if best is None or self._rank(join, one) > self._rank(join, best):
                best = one
        if best is not None and join.most is not None:
            time = best["ts"]
            assert isinstance(time, int)
            return best if time >= asked - join.most else None
        return best

    def _rank(self, join: Join, one: Tuple) -> tuple[object, ...]:
        values = [one[name] for name in TYPES if name in self.read[join.alias]]
        return one["ts"], *((v is not None, v if v is not None else 0) for v in values)


def above(alias: str, name: str, limit: float) -> Test:
    def test(found: Mapping[str, Tuple | None]) -> bool | None:
        one = found[alias]
        value = None if one is None else one[name]
        return None if value is None else value > limit  # type: ignore[operator]

    return test


def below(alias: str, name: str, limit: float) -> Test:
    def test(found: Mapping[str, Tuple | None]) -> bool | None:
        one = found[alias]
        value = None if one is None else one[name]
        return None if value is None else value < limit  # type: ignore[operator]

    return test


def greater(alias: str, other: str) -> Test:
    def test(found: Mapping[str, Tuple | None]) -> bool | None:
        pair = [None if (one := found[at]) is None else one["x"] for at in (alias, other)]
        return None if None in pair else pair[0] > pair[1]  # type: ignore[operator]

    return test


def missing(alias: str) -> Test:
    def test(found: Mapping[str, Tuple | None]) -> bool | None:
        one = found[alias]
        return one is None or one["x"] is None

    return test


def random_case(r: random.Random) -> Case:
    first = r.choice("stu")
    joins = [random_join(r, f"j{i}", i) for i in range(r.choice((1, 1, 1, 2, 3)))]
    texts, where = [], []
    for _ in range(r.randint(0, 2)):
        alias = r.choice(joins).alias
        limit = r.randint(-2, 2)
        match r.randrange(6):
            case 0:
                text, test = f"a.x > {alias}.x", greater("a", alias)
            case 1:
                text, test = f"{alias}.x > {limit}", above(alias, "x", limit)
            case 5:
                text, test = f"a.x < {limit}", below("a", "x", limit)
            case 2:
                text, test = f"a.x > {limit}", above("a", "x", limit)
            case 3:
                text, test = f"{alias}.x IS NULL", missing(alias)
            case _:
                text, test = "a.k > 'o'", above("a", "k", "o")  # type: ignore[arg-type]
        texts.append(text)
        where.append(test)
    shown = [(one, name) for one in ("a", *(j.alias for j in joins)) for name in TYPES if r.random() < 0.4]
    shown = shown or [("a", "k")]
    select = ", ".join(f"{alias}.{name} AS c{i}" for i, (alias, name) in enumerate(shown))
    condition = f" WHERE {' AND '.join(texts)}" if texts else ""
    sql = f"SELECT {select} FROM {first} a {' '.join(join.sql for join in joins)}{condition}"
    made = Case(sql, first, joins, where, shown)
    for join in joins:
        made.read[join.alias] = re.findall(rf"\b{join.alias}\.(\w+)", sql)
    return made


def random_join(r: random.Random, alias: str, number: int) -> Join:
    stream = r.choice("stu")
    earlier = r.choice(["a", "a", *(f"j{i}" for i in range(number))])
    keys = r.choice(
        ([(earlier, "k", "k")], [("a", "k", "k"), (earlier, "n", "n")], [(earlier, "n", "n")], [])
    )
    on = [f"{other}.{name} = {alias}.{own}" for other, name, own in keys]
    least, text = r.choice(((0, ">="), (1, ">"), (0, ">="), (2 * SECOND, ">= - 2")))
    asked = "a.ts - INTERVAL '2' SECOND" if least > 1 else "a.ts"
    match = f"{asked} {text[:2].strip()} {alias}.ts"
    most = r.choice((None, None, 3 * SECOND, 0))
    if most is not None and most >= least:
        on.append(f"{alias}.ts >= a.ts - INTERVAL '{most // SECOND}' SECOND")
    else:
        most = None
    tests = []
    if r.random() < 0.3:
        limit = r.randint(-2, 1)
        on.append(f"{alias}.x > {limit}")
        tests.append(above(alias, "x", limit))
    r.shuffle(on)
    outer = r.random() < 0.4
    form = r.randrange(4)
    if form == 0 and least == 0 and on:
        head = f"{'LEFT ' if outer else ''}JOIN {stream} FOR SYSTEM_TIME AS OF a.ts AS {alias}"
        sql = f"{head} ON {' AND '.join(on)}"
    elif form == 1:
        head = f"{'LEFT ' if outer else ''}ASOF JOIN {stream} {alias} MATCH_CONDITION ({match})"
        sql = f"{head} ON {' AND '.join(on)}" if on else head
    else:
        sql = f"ASOF {'LEFT ' if outer else ''}JOIN {stream} {alias} ON {' AND '.join([*on, match])}"
    return Join(alias, stream, sql, keys, least, most, outer, tests)


def random_tuples(r: random.Random, stream: str) -> list[Tuple]:
    """Tuples of one stream that keep to its rate."""
    found: list[Tuple] = []
    for k in ("p", "q", "r", None):
        for second in range(END):
            for _ in range(r.choice((0, 0, 1, RATE))):
                n = r.choice((0, 1, 2, None)) if stream != "t" else r.choice((0.0, 1.0, 0.5, 2.0, None))
                found.append(
                    {
                        "k": k,
                        "n": n,
                        "ts": second * SECOND,
                        "x": r.choice((None, -1.5, 0.0, 0.5, 1.0, 2.5)),
                        "v": r.choice(("y", "z", None)),
                        "f": r.choice((True, False, None)),
                    }
                )
    r.shuffle(found)
    return found


def batch_of(stream: str, rows: list[Tuple]) -> dict[str, Vector]:
    return {
        name: Vector.from_list([one[name] for one in rows], kind) for name, kind in types_of(stream).items()
    }


def rows_of(rows: Rows) -> list[Row]:
    return list(zip(*(one.to_list() for one in rows.columns.values()), strict=True))


def expected(made: Case, tuples: Mapping[str, list[Tuple]]) -> Counter[Row]:
    return Counter(row for one in tuples[made.first] for row in made.rows(one, tuples))


class Feed:
    """Gives a query its tuples in a random order, as edges would: within the delay and the stall."""

    def __init__(self, r: random.Random, made: Case, *, late: bool) -> None:
        self.r, self.made, self.late = r, made, late
        self.sql = f"{STREAMS}\nCREATE ALERT q WITH (allow_unbounded = true) AS {made.sql};"
        self.query: StandingEvaluator = standing_evaluator(self.sql, "q")
        self.read = sorted({made.first, *(join.stream for join in made.joins)})
        explained = explain(catalog_of(self.sql), "q")
        self.bound, self.accepted = explained.memory.bound, explained.accepted
        if not self.accepted:  # it never has a row, but its tuples wait
            self.bound = None
        self.arrived: dict[str, list[Tuple]] = {name: [] for name in self.read}
        self.waiting: list[Tuple] = []
        self.marks = dict.fromkeys(self.read, -(2**60))
        self.clock = -(2**60)
        self.lateness = 0
        self.most = 0

    def run(self) -> Iterator[tuple[list[Row], list[Row]]]:
        """The given and the expected rows of each step."""
        r = self.r
        coming = {name: random_tuples(r, name) for name in self.read}
        # When each tuple comes, in seconds.
        at = {
            name: [(self._seconds(one) + r.uniform(-AHEAD, DELAY + STALL), one) for one in rows]
            for name, rows in coming.items()
        }
        now = -float(AHEAD)
        while now < END + DELAY + STALL + 1:
            now += r.choice((0.3, 1.0, 4.0))
            for name in r.sample(self.read, len(self.read)):
                new = [one for time, one in at[name] if time <= now]
                at[name] = [pair for pair in at[name] if pair[0] > now]
                yield self._take(name, new)
                least = min((self._seconds(one) for _, one in at[name]), default=now + 1)
                if self.late and r.random() < 0.5:
                    least = now
                mark = min(least, now - r.uniform(-1, DELAY + STALL))
                mark = max(mark, now - DELAY - STALL)
                self._check_entries()
                yield self._advance(name, int(mark * SECOND))
                self._check_entries()
            if r.random() < 0.2:
                self._again()
        for name in self.read:
            yield self._advance(name, 2**60)
        assert self.query.entries() <= 3 * 10 * len(self.made.joins)

    def _take(self, name: str, rows: list[Tuple]) -> tuple[list[Row], list[Row]]:
        self.arrived[name] += rows
        if name == self.made.first:
            behind = [self._time(one) < self.clock for one in rows]
            self.waiting += [one for one, late in zip(rows, behind, strict=True) if not late]
            self.lateness += sum(behind)
        return rows_of(self.query.take(name, batch_of(name, rows), len(rows))), []

    def _advance(self, name: str, mark: int) -> tuple[list[Row], list[Row]]:
        self.marks[name] = max(mark, self.marks[name])
        self.clock = max(self.clock, min(self.marks.values()))
        decided = [one for one in self.waiting if self._time(one) < self.clock]
        self.waiting = [one for one in self.waiting if self._time(one) >= self.clock]
        rows = [row for one in decided for row in self.made.rows(one, self.arrived)]
        found = self.query.advance(name, mark)
        assert found.times is not None
        assert (np.diff(found.times) >= 0).all()
        return rows_of(found), rows

    def _again(self) -> None:
        state = self.query.dump()
        self.query = standing_evaluator(self.sql, "q")
        self.query.load(state)
        assert self.query.dump() == state

    def _check_entries(self) -> None:
        self.most = max(self.most, self.query.entries())
        assert self.late or self.bound is None or self.query.entries() <= self.bound

    @staticmethod
    def _time(one: Tuple) -> int:
        time = one["ts"]
        assert isinstance(time, int)
        return time

    def _seconds(self, one: Tuple) -> float:
        return self._time(one) / SECOND


@pytest.mark.parametrize("times", also_long(60))
def test_each_row_has_the_latest_tuples(times: int) -> None:
    seen: Counter[str] = Counter()
    for case in range(cases(0.0024) * times):
        r = random.Random(SEED * 1_000_003 + case)
        made = random_case(r)
        feed = Feed(r, made, late=r.random() < 0.3)
        rows = 0
        for given, wanted in feed.run():
            assert Counter(given) == Counter(wanted), (case, made.sql)
            rows += len(given)
        assert feed.accepted or not rows, (case, made.sql)
        seen["tried"] += 1
        seen["with rows"] += rows > 0
        seen["late"] += feed.lateness > 0
        assert feed.late or (isinstance(feed.query, CountsLate) and feed.query.late == 0)
        seen["bounded by a number"] += feed.bound is not None
    assert seen["with rows"] > seen["tried"] / 2, seen
    assert seen["late"] > seen["tried"] / 50, seen
    assert seen["bounded by a number"] > seen["tried"] / 3, seen


@pytest.mark.parametrize("times", also_long(60))
def test_verify_finds_the_same_rows_and_each_change(times: int) -> None:
    seen: Counter[str] = Counter()
    for case in range(cases(0.001) * times):
        r = random.Random(SEED * 1_000_003 + case)
        made = random_case(r)
        catalog = catalog_of(f"{STREAMS}\nCREATE ALERT q WITH (allow_unbounded = true) AS {made.sql};")
        query: Query = catalog.alerts["q"].query
        read = {made.first, *(join.stream for join in made.joins)}
        tuples = {name: random_tuples(r, name)[: r.randint(1, 60)] for name in read}
        recordings = {
            name: recording(
                catalog.streams[name],
                [tuple(one.values()) for one in rows],
                tuple(types_of(name).items()),
            )
            for name, rows in tuples.items()
        }
        found = run_query(query, catalog, recordings).rows
        assert Counter(rows_of(found)) == expected(made, tuples), (case, made.sql)
        verdict = compare_standing("q", query, recordings, found.columns)
        counts = verdict.missed, verdict.extra, verdict.reference_alarms
        assert counts == (0, 0, len(found)), (case, made.sql, verdict)
        seen["tried"] += 1
        if len(found) == 0:
            continue
        seen["with rows"] += 1
        fewer = found.take(np.arange(len(found)) != r.randrange(len(found)))
        verdict = compare_standing("q", query, recordings, fewer.columns)
        assert (verdict.missed, verdict.extra) == (1, 0), (case, made.sql)
    assert seen["with rows"] > seen["tried"] / 2, seen
