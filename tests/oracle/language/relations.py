"""Random relations with the columns k, ts, x, n, ok and w: streams, and derived streams of derived streams.

Each has SQL of Tamis and SQL of DuckDB. For DuckDB a relation also has the numbers of the rows of raw streams
that it consists of, by which rows of joins are found again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.oracle.language.expressions import across, condition, for_duckdb, moved, over, seconds, text, value
from tests.oracle.language.readings import SECOND, STREAMS


@dataclass(frozen=True)
class Relation:
    """What stands in FROM.

    `slots`: the raw tuples of a row, as the part of their alias behind the alias of the relation, the column
    of DuckDB with their number, and their stream; none for rows of aggregates. `moment`: the column with the
    event time. `exact`: x is a multiple of 1/4. `local`: it reads a subquery of WITH, so no CREATE STREAM
    can read it. `computed`: w is not a column of a raw stream.
    """

    text: str
    duck: str
    kind: str  # "raw", "filter", "join", "over", "rows"
    slots: tuple[tuple[str, str, str], ...]
    moment: str = "ts"
    exact: bool = True
    local: bool = False
    computed: bool = False

    def slots_under(self, alias: str) -> dict[str, tuple[str, str]]:
        """By alias of a tuple in alarms: the column with its number, and its stream."""
        return {f"{alias}{name}": (f"{alias}.{column}", of) for name, column, of in self.slots}


@dataclass(frozen=True)
class Windows:
    """Windows with slide, size and offset in microseconds."""

    kind: str  # "TUMBLE", "HOP", "CUMULATE"
    slide: int
    size: int
    offset: int

    @staticmethod
    def random(r: random.Random, kinds: tuple[str, ...]) -> Windows:
        """Windows of one of these kinds."""
        kind, slide = r.choice(kinds), r.choice((1, 2, 3, 5)) * SECOND
        size = slide if kind == "TUMBLE" else slide * r.choice((2, 3, 4))
        return Windows(kind, slide, size, r.choice((0, 0, 0, SECOND, -SECOND // 2)))

    def text(self, relation: Relation, flink: bool) -> str:
        """In FROM of Tamis."""
        lengths = [self.size] if self.kind == "TUMBLE" else [self.slide, self.size]
        given = ", ".join(f"INTERVAL '{one} us'" for one in lengths)
        if self.offset:
            given += f", {'-' if self.offset < 0 else ''}INTERVAL '{abs(self.offset)} us'"
        if flink:
            return f"TABLE({self.kind}(TABLE {relation.text}, DESCRIPTOR(ts), {given}))"
        return f"{self.kind}({relation.text}, ts, {given})"

    def duck(self, relation: Relation) -> str:
        """In FROM of DuckDB: a row for each window."""
        at, slide, size, offset = relation.moment, self.slide, self.size, self.offset
        if self.kind == "CUMULATE":
            start = f"({at} - {offset}) // {size} * {size} + {offset}"
            ends = f"range((({at} - window_start) // {slide} + 1) * {slide}, {size + 1}, {slide})"
            each = f"SELECT *, {start} AS window_start FROM {relation.duck}"
            return f"(SELECT *, window_start + unnest({ends}) AS window_end FROM ({each}))"
        first = f"({at} - {offset}) // {slide} * {slide} + {offset - size + slide}"
        each = f"SELECT *, unnest(range({first}, {at} + 1, {slide})) AS window_start FROM {relation.duck}"
        return f"(SELECT *, window_start + {size} AS window_end FROM ({each}))"


class Relations:
    """Random relations of one query. `statements`: CREATE STREAM before it; `withs`: its WITH; `named`: the
    relations of both in SQL of DuckDB.
    """

    def __init__(self, r: random.Random) -> None:
        self.random = r
        self.statements: list[str] = []
        self.withs: list[str] = []
        self.named: dict[str, str] = {}
        self._names = 0

    def name(self, prefix: str) -> str:
        """A new name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def raw(self) -> Relation:
        """A raw stream."""
        name = self.random.choice(STREAMS)
        return Relation(name, name, "raw", (("", "_row", name),))

    def any(self, *kinds: str, depth: int = 2, named: bool = False) -> Relation:
        """A relation of one of these kinds; a filter may be over others of them. `named`: a name."""
        r = self.random
        kind = r.choice(kinds) if depth else "raw"
        if kind not in kinds:
            kind = kinds[0]
        makers: dict[str, Callable[[], Relation]] = {
            "raw": self.raw,
            "filter": lambda: self.filter(self.any(*kinds, depth=depth - 1), named=named),
            "join": lambda: self.join(depth - 1, named=named),
            "over": lambda: self.over(named=named),
            "rows": lambda: self.rows(named=named),
        }
        return makers[kind]()

    def filter(self, below: Relation, *, named: bool = False) -> Relation:
        """A filter and projection of another relation."""
        r, a = self.random, self.name("f")
        x = f"{a}.x" if r.random() < 0.6 else r.choice((value(r, a), f"{a}.x * 0.5", f"twice({a}.x)"))
        n = f"{a}.n" if r.random() < 0.7 else f"{a}.n % 2"
        w = f"{a}.w" if r.random() < 0.7 else text(r, a)
        shown = f"{a}.k, {a}.ts, {x} AS x, {n} AS n, {a}.ok, {w} AS w"
        where = "" if below.kind == "over" or r.random() < 0.1 else f" WHERE {condition(r, a)}"
        hidden = "".join(f", {a}.{column}" for _, column, _ in below.slots)
        if below.moment != "ts":
            hidden += f", {a}.{below.moment}"
        star = r.random() < 0.4
        tamis = "*" if star else shown
        duck = f"{a}.*" if star else for_duckdb(shown) + hidden
        made = replace(
            below,
            kind=below.kind if below.kind in ("rows", "over") else "filter",
            exact=below.exact and star,
            computed=below.computed or not (star or w == f"{a}.w"),
            slots=tuple((self._under(a, name), column, of) for name, column, of in below.slots),
        )
        return self._called(
            made,
            f"SELECT {tamis} FROM {below.text} {a}{where}",
            f"SELECT {duck} FROM {below.duck} {a}{for_duckdb(where)}",
            named,
        )

    @staticmethod
    def _under(alias: str, name: str) -> str:
        """The name of a tuple in a stream that reads another one as `alias`."""
        return f".{alias}{name}" if name else ""

    def over(self, *, named: bool = False) -> Relation:
        """A stream with a window function in place of x."""
        r, a, below = self.random, self.name("o"), self.raw()
        number = over(r, a)
        shown = f"{a}.k, {a}.ts, {number} AS x, {a}.n, {a}.ok, {a}.w"
        made = replace(below, kind="over", exact=False)
        return self._called(
            made,
            f"SELECT {shown} FROM {below.text} {a}",
            f"SELECT {for_duckdb(shown)}, {a}._row FROM {below.duck} {a}",
            named,
        )

    def join(self, depth: int, *, named: bool = False) -> Relation:
        """A join by time of two relations."""
        r, a, b = self.random, self.name("j"), self.name("j")
        left = self.any("raw", "filter", depth=depth)
        right = self.any("raw", "filter", depth=depth)
        on = f"{a}.k = {b}.k AND {self.near(b, a)}"
        where = f" WHERE {across(r, a, b)}" if r.random() < 0.8 else ""
        shown = f"{r.choice((a, b))}.k, {a}.ts, {a}.x - {b}.x AS x, {b}.n, {a}.ok, {b}.w"
        slots = []
        hidden = ""
        for alias, one in ((a, left), (b, right)):
            for name, column, of in one.slots:
                slots.append((f".{alias}{name}", f"{column}_{alias}", of))
                hidden += f", {alias}.{column} AS {column}_{alias}"
        local = left.local or right.local
        made = Relation("", "", "join", tuple(slots), exact=False, local=local, computed=right.computed)
        return self._called(
            made,
            f"SELECT {shown} FROM {left.text} {a} JOIN {right.text} {b} ON {on}{where}",
            f"SELECT {for_duckdb(shown)}{hidden} FROM {left.duck} {a} JOIN {right.duck} {b}"
            f" ON {for_duckdb(on + where)}",
            named,
        )

    def rows(self, *, named: bool = False) -> Relation:
        """Rows of aggregates of windows."""
        r, a = self.random, self.name("g")
        below = self.any("raw", "filter", depth=1, named=True)
        window = Windows.random(r, ("TUMBLE", "TUMBLE", "HOP"))
        x = r.choice((f"avg({a}.x)", f"max({a}.x)", f"sum({a}.x)", f"min({a}.x + {a}.n)"))
        n = r.choice(("count(*)", f"max({a}.n)", f"count(*) FILTER (WHERE {a}.ok)"))
        shown = f"{a}.k, window_end AS ts, {x} AS x, {n} AS n, bool_or({a}.ok) AS ok, max({a}.w) AS w"
        where = f" WHERE {condition(r, a)}" if r.random() < 0.3 else ""
        tail = f" GROUP BY {a}.k, window_end{r.choice(('', '', ' HAVING count(*) > 1'))}"
        made = Relation("", "", "rows", (), "moment", exact=False, local=below.local)
        flink = r.random() < 0.2
        tamis = f"SELECT {shown} FROM {window.text(below, flink)} {a}{where}{tail}"
        shown += ", window_end - 1 AS moment"
        duck = f"SELECT {shown} FROM {window.duck(below)} {a}{for_duckdb(where)}{tail}"
        return self._called(made, tamis, duck, named)

    def near(self, b: str, a: str, most: int = 3) -> str:
        """A bound on the times of two sources, on both ends."""
        r = self.random
        low = r.choice((-3, -2, -1, -0.5, 0, 0, 1))
        high = low + r.choice((0, 0.5, 1, 2, most))
        form = r.randrange(4)
        if form == 0 and high > 0:
            return f"ABS({a}.ts - {b}.ts) {r.choice(('<', '<='))} {seconds(high)}"
        if form == 1 and low < high:
            return f"{b}.ts > {moved(f'{a}.ts', low)} AND {moved(f'{a}.ts', high)} >= {b}.ts"
        return f"{b}.ts BETWEEN {moved(f'{a}.ts', low)} AND {moved(f'{a}.ts', high)}"

    def _called(self, made: Relation, tamis: str, duck: str, named: bool) -> Relation:
        """The relation of a SELECT: a derived stream, a subquery of WITH, or one in FROM."""
        form = self.random.choice(("stream", "stream", "with") if named else ("stream", "with", "from"))
        name = self.name("d")
        if form == "stream" and made.local:
            form = "with"
        if form == "stream":
            self.statements.append(f"CREATE STREAM {name} AS {tamis};")
        elif form == "with":
            self.withs.append(f"{name} AS ({tamis})")
        else:
            name = f"({tamis})"
        if form != "from":
            self.named[name] = duck
        return replace(made, text=name, duck=f"({duck})", local=made.local or form == "with")
