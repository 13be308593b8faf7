"""Random queries over the whole language, each with the same query for DuckDB."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.oracle.language.aggregates import Aggregation
from tests.oracle.language.expressions import across, condition, for_duckdb, over, seconds, text, value
from tests.oracle.language.readings import SECOND
from tests.oracle.language.relations import Relation, Relations, Windows

Promise = Literal["rows", "omission", "within"]


@dataclass
class RandomQuery:
    """An alert q over streams s, t and u, and a table r.

    `promise`: the rows are those of DuckDB; or some of them are, as omission promises; or as `within` does.
    `slots`: of each tuple of a row, by its alias in alarms: the column of DuckDB with its number, and its
    stream. `streams`: those that it reads. `steady`, `apart`: see `RandomReadings`.
    """

    seed: int
    sql: str = ""
    duck: str = ""
    promise: Promise = "rows"
    slots: dict[str, tuple[str, str]] = field(default_factory=dict)
    columns: int = 0  # of SELECT
    windowed: bool = False  # rows have windows of their own, which come behind the slots in DuckDB
    within: int = 0
    steady: bool = False
    apart: bool = False
    negated: bool = False
    named: Mapping[str, str] = field(default_factory=dict)  # derived streams and subqueries in SQL of DuckDB

    def __post_init__(self) -> None:
        self.random = r = random.Random(self.seed)
        self._from = Relations(r)
        self._options: list[str] = []
        shapes = {
            self._single: 2,
            self._joined: 4,
            self._windowed_join: 2,
            self._aggregated: 4,
            self._rows_of_rows: 3,
            self._latest: 2,
            self._with_tables: 2,
            self._distinct: 1,
            self._changes: 1,
        }
        (shape,) = r.choices(list(shapes), list(shapes.values()))
        alert = shape()
        if r.random() < 0.1:
            self._options.append("allow_unbounded = true")
        if self.promise == "omission" and r.random() < 0.25:
            self._options.append(f"max_delay = '{r.choice((0, 1, 3))} s'")
        options = f" WITH ({', '.join(self._options)})" if self._options else ""
        subqueries = f"WITH {', '.join(self._from.withs)} " if self._from.withs else ""
        self.sql = "\n".join([*self._from.statements, f"CREATE ALERT q{options} AS {subqueries}{alert};"])
        self.named = self._from.named
        self.streams = sorted(set(re.findall(r"(?:FROM|JOIN|,) ([stu])\b", self.duck)))
        self.steady |= " OVER " in self.sql
        self.apart |= "RANGE" in self.sql

    # --- rows of tuples

    def _select(self, shown: list[str]) -> tuple[str, str]:
        """SELECT of Tamis, and of DuckDB with the numbers of the tuples behind it."""
        self.columns = len(shown)
        named = ", ".join(f"{one} AS c{i}" for i, one in enumerate(shown))
        hidden = "".join(f", {column}" for column, _ in self.slots.values())
        return named, for_duckdb(named) + hidden

    def _shown(self, *aliases: str) -> list[str]:
        r = self.random
        found = [f"{aliases[0]}.k", f"{aliases[0]}.ts"]
        for alias in aliases:
            found += r.sample((value(r, alias), text(r, alias), f"{alias}.ts", f"{alias}.ok"), 2)
        return found

    def _single(self) -> str:
        """One stream, with `within` or a silence."""
        r, a = self.random, "a"
        below = self._from.any("raw", "filter", "filter", "over", "join")
        self.promise, self.slots = "omission", below.slots_under(a)
        where = [condition(r, a) for _ in range(r.choice((0, 1, 1, 2)))]
        duck = [for_duckdb(one) for one in where]
        if below.kind in ("raw", "filter") and r.random() < 0.4:
            length = r.choice((1, 2, 5))
            where.append(f"NO READING FOR INTERVAL '{length}' SECOND")
            duck.append(
                f"NOT EXISTS (SELECT 1 FROM {below.duck} later WHERE later.k = a.k AND later.ts > a.ts"
                f" AND later.ts <= a.ts + {length * SECOND}) AND a.k IS NOT NULL"
            )
            self.negated = True
        elif below.kind != "join" and r.random() < 0.5:
            self.within = r.choice((1, 2, 5)) * SECOND
            self.promise = "within"
            self._options.append(f"within = '{self.within} us'")
        elif r.random() < 0.4:
            where.append(self._exists(a, below, duck))
        shown, given = self._select(self._shown(a))
        self.duck = f"SELECT {given} FROM {below.duck} a{_where(duck)}"
        return f"SELECT {shown} FROM {below.text} a{_where(where)}"

    def _joined(self) -> str:
        """A join by time, perhaps with EXISTS or NOT EXISTS."""
        r = self.random
        aliases = ["a", "b", "c"][: r.choice((2, 2, 2, 3))]
        sources = {alias: self._from.any("raw", "raw", "filter", "over", "join") for alias in aliases}
        where, tables, duck_tables = [], "", ""
        for i, (alias, one) in enumerate(sources.items()):
            self.slots |= one.slots_under(alias)
            if not i:
                tables, duck_tables = f"{one.text} {alias}", f"{one.duck} {alias}"
                continue
            other = r.choice(aliases[:i])
            on = f"{other}.k = {alias}.k AND {self._from.near(alias, other)}"
            where.append(across(r, other, alias))
            tables += f" JOIN {one.text} {alias} ON {on}"
            duck_tables += f" JOIN {one.duck} {alias} ON {for_duckdb(on)}"
        where += [condition(r, alias) for alias in aliases if r.random() < 0.3]
        duck = [for_duckdb(one) for one in where]
        if r.random() < 0.3:
            where.append(self._exists(*r.choice(list(sources.items())), duck))
        self.promise = "omission"
        shown, given = self._select(self._shown(*aliases))
        self.duck = f"SELECT {given} FROM {duck_tables}{_where(duck)}"
        return f"SELECT {shown} FROM {tables}{_where(where)}"

    def _exists(self, a: str, row: Relation, duck: list[str]) -> str:
        """EXISTS or NOT EXISTS beside the source `row` as `a`; adds the condition for DuckDB."""
        r = self.random
        below = self._from.any("raw", "filter", "join", depth=1)
        conditions = [f"e.k = {a}.k", self._from.near("e", a)]
        if r.random() < 0.5:
            conditions.append(condition(r, "e"))
        if r.random() < 0.4:
            conditions.append(across(r, a, "e"))
        inside = " AND ".join(conditions)
        self.negated |= (negated := r.random() < 0.6)
        words = "NOT EXISTS" if negated else "EXISTS"
        duck.append(f"{words} (SELECT 1 FROM {below.duck} e WHERE {for_duckdb(inside)})")
        if negated:
            duck.append(f"{a}.k IS NOT NULL")
            # Only columns of raw streams: see "Existence and absence" in docs/sql.md.
            if f"{a}.w = e.w" in inside and not (row.computed or below.computed):
                duck.append(f"{a}.w IS NOT NULL")
        return f"{words} (SELECT 1 FROM {below.text} e WHERE {inside})"

    def _windowed_join(self) -> str:
        """One or two streams in the same windows, row by row."""
        r = self.random
        window = Windows.random(r, ("TUMBLE", "HOP"))
        aliases = ["a", "b"][: r.choice((1, 2, 2))]
        sources = {alias: self._from.any("raw", "filter", named=True) for alias in aliases}
        flink = r.random() < 0.2
        where = [condition(r, alias) for alias in aliases if r.random() < 0.4]
        if len(aliases) > 1:
            where += ["a.k = b.k", "a.window_start = b.window_start", across(r, "a", "b")]
        for alias, one in sources.items():
            self.slots |= one.slots_under(alias)
        self.promise, self.windowed = "omission", True
        shown, given = self._select([*self._shown(*aliases), "a.window_start", "a.window_end"])
        tables = ", ".join(f"{window.duck(one)} {alias}" for alias, one in sources.items())
        self.duck = (
            f"SELECT {given}, a.window_start FROM {tables}{_where([for_duckdb(one) for one in where])}"
        )
        tables = ", ".join(f"{window.text(one, flink)} {alias}" for alias, one in sources.items())
        return f"SELECT {shown} FROM {tables}{_where(where)}"

    def _changes(self) -> str:
        """Window functions with QUALIFY."""
        r, below = self.random, self._from.raw()
        self.promise, self.slots = "omission", below.slots_under("a")
        shown, given = self._select(["a.k", "a.ts", "a.w", over(r, "a")])
        test = f"c3 > {r.choice((0.3, 1.3))}"
        if r.random() < 0.3:
            test += f" AND {over(r, 'a')} < 3.3"
        self.duck = f"SELECT {given} FROM {below.duck} a QUALIFY {for_duckdb(test)}"
        return f"SELECT {shown} FROM {below.text} a QUALIFY {test}"

    # --- rows of standing queries

    def _aggregated(self) -> str:
        """Aggregates of windows, perhaps with a table, of sessions, or of joins by time."""
        r = self.random
        below = self._from.any("raw", "filter", "filter", "over", "join", named=True)
        joined = None
        if below.kind in ("raw", "filter") and r.random() < 0.2:
            other = self._from.any("raw", "filter", depth=1)
            on = f"a.k = b.k AND {self._from.near('b', 'a')}"
            joined = f" JOIN {other.text} b ON {on}", f" JOIN {other.duck} b ON {for_duckdb(on)}"
        made = Aggregation(r, below, joined)
        self.columns, self.duck = made.columns, made.duck
        return made.sql

    def _rows_of_rows(self) -> str:
        """A query over rows of aggregates: a filter, windows again, or a join by time."""
        r = self.random
        form = r.randrange(3)
        rows = self._from.any("rows", "filter" if form else "rows", named=form == 1)
        while rows.kind != "rows":
            rows = self._from.any("rows", named=form == 1)
        if form == 1:
            made = Aggregation(r, rows)
            self.columns, self.duck = made.columns, made.duck
            return made.sql
        where, aliases = [condition(r, "a") for _ in range(r.choice((0, 1)))], ["a"]
        tables, duck = f"{rows.text} a", f"{rows.duck} a"
        if form == 2:
            other = self._from.any("raw", "filter", "rows", depth=1)
            on = f"a.k = b.k AND {self._from.near('b', 'a')}"
            tables += f" JOIN {other.text} b ON {on}"
            duck += f" JOIN {other.duck} b ON {for_duckdb(on)}"
            aliases.append("b")
            if r.random() < 0.7:
                where.append(across(r, "a", "b"))
            if r.random() < 0.2:
                tables += " JOIN r ON a.k = r.key"
                duck += " JOIN r ON a.k = r.key"
        return self._plain(tables, duck, self._shown(*aliases), where)

    def _plain(self, tables: str, duck: str, shown: list[str], where: list[str], distinct: str = "") -> str:
        """SELECT … FROM … WHERE …, whose rows all count."""
        self.columns = len(shown)
        named = ", ".join(f"{one} AS c{i}" for i, one in enumerate(shown))
        self.duck = f"SELECT {distinct}{for_duckdb(named)} FROM {duck}{_where(list(map(for_duckdb, where)))}"
        return f"SELECT {distinct}{named} FROM {tables}{_where(where)}"

    def _latest(self) -> str:
        """ASOF JOINs, one after the other."""
        r = self.random
        self.apart = True
        first = self._from.any("raw", "filter", "over")
        sql, duck, aliases = f"{first.text} a", f"{first.duck} a", ["a"]
        for alias in ("b", "c")[: r.choice((1, 1, 2))]:
            other = self._from.any("raw", "filter")
            strict, outer = r.random() < 0.3, "LEFT " if r.random() < 0.4 else ""
            on, match = f"a.k = {alias}.k", f"a.ts {'>' if strict else '>='} {alias}.ts"
            extra = ""
            if r.random() < 0.3:
                extra += f" AND {condition(r, alias)}"
            if r.random() < 0.3:
                extra += f" AND {alias}.ts >= a.ts - {seconds(r.choice((1, 4)))}"
            form = r.randrange(3)
            if form == 0 and not strict and not other.text.startswith("("):
                sql += f" {outer}JOIN {other.text} FOR SYSTEM_TIME AS OF a.ts AS {alias} ON {on}{extra}"
            elif form == 1:
                sql += f" {outer}ASOF JOIN {other.text} {alias} MATCH_CONDITION ({match}) ON {on}{extra}"
            else:
                sql += f" ASOF {outer}JOIN {other.text} {alias} ON {on} AND {match}{extra}"
            inside = for_duckdb(f"{on} AND {match}{extra}")
            duck += (
                f" {outer}JOIN LATERAL (SELECT * FROM {other.duck} {alias} WHERE {inside}"
                f" ORDER BY {alias}.ts DESC LIMIT 1) {alias} ON TRUE"
            )
            aliases.append(alias)
        where = [across(r, "a", aliases[-1])] if r.random() < 0.5 else []
        where += [condition(r, alias) for alias in aliases if r.random() < 0.2]
        if r.random() < 0.2:
            where.append("b.x IS NULL")
        return self._plain(sql, duck, self._shown(*aliases), where)

    def _with_tables(self) -> str:
        """A stream with a table."""
        r = self.random
        below = self._from.any("raw", "filter", "rows")
        on = "a.k = r.key" if r.random() < 0.8 else "a.n = r.low"
        where = [r.choice(("a.x * r.factor > 1", "a.x > r.low", "r.region = 'north'", "a.n >= r.low"))]
        where += [condition(r, "a") for _ in range(r.choice((0, 1)))]
        shown = ["a.k", "a.ts", "r.region", value(r, "a"), "a.x * r.factor"]
        return self._plain(f"{below.text} a JOIN r ON {on}", f"{below.duck} a JOIN r ON {on}", shown, where)

    def _distinct(self) -> str:
        """DISTINCT and UNION over streams, tables and joins by time."""
        r = self.random
        members, ducks = [], []
        union = r.random() < 0.5
        for alias in ("a", "b")[: 1 + union]:
            below = self._from.any("raw", "filter")
            tables, duck = f"{below.text} {alias}", f"{below.duck} {alias}"
            where = [condition(r, alias)]
            if r.random() < 0.3:
                tables += f" JOIN r ON {alias}.k = r.key"
                duck += f" JOIN r ON {alias}.k = r.key"
            elif r.random() < 0.3:
                other = self._from.any("raw", "filter")
                on = f"{alias}.k = o.k AND {self._from.near('o', alias)}"
                tables += f" JOIN {other.text} o ON {on}"
                duck += f" JOIN {other.duck} o ON {for_duckdb(on)}"
            distinct = "DISTINCT " if not union or r.random() < 0.2 else ""
            where.append(f"{alias}.k IN ('p', 'q')")
            members.append(self._plain(tables, duck, [f"{alias}.k", f"{alias}.n"], where, distinct))
            ducks.append(self.duck)
        word = r.choice((" UNION ", " UNION ALL "))
        self.duck = word.join(ducks)
        return word.join(members)


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
