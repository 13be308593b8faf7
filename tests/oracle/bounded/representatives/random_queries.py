"""Random DISTINCT queries over streams without time, in which few tuples often stand for all.

Conditions are trees, so that they are also evaluated in Python. The streams are declared anew for each query:
keys of different types, INT and DOUBLE values with and without CHECK and NULL.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.bounded.representatives.trees import Tree, Values, column, of

from tamis.expressions.nodes import Type

Row = tuple[Any, ...]
Tuple = dict[str, Any]
Event = tuple[str, Tuple]  # a stream and a tuple


@dataclass(frozen=True)
class Declared:
    """A column of a stream: how it is declared, and values that it takes. `limited`: these are all."""

    name: str
    type: Type
    declared: str
    values: tuple[Any, ...]
    limited: bool = False


@dataclass(frozen=True)
class Query:
    """`SELECT DISTINCT shown FROM sources WHERE conditions`, with its streams.

    `streams`: the columns of each stream; `sources`: alias and stream. `tags`: the kind of the conditions,
    and what else its decision may depend on.
    """

    streams: Mapping[str, tuple[Declared, ...]]
    keys: int
    sources: tuple[tuple[str, str], ...]
    conditions: tuple[Tree, ...]
    shown: tuple[Tree, ...]
    tags: frozenset[str]

    def declarations(self) -> str:
        """The streams as statements."""
        return "\n".join(
            f"CREATE STREAM {name} ({', '.join(f'{one.name} {one.declared}' for one in columns)})"
            + (f" WITH (keys = {self.keys});" if any("KEY" in one.declared for one in columns) else ";")
            for name, columns in self.streams.items()
        )

    def sql(self) -> str:
        """The query as SQL."""
        shown = ", ".join(f"{one.sql()} AS o{i}" for i, one in enumerate(self.shown))
        sources = ", ".join(f"{stream} {alias}" for alias, stream in self.sources)
        where = " AND ".join(one.sql() for one in self.conditions)
        return f"SELECT DISTINCT {shown} FROM {sources}" + (f" WHERE {where}" if where else "")

    def reads(self, alias: str) -> list[Declared]:
        """The columns of a source that the query reads."""
        trees = (*self.conditions, *self.shown)
        read = {name for one in trees for other, name in one.columns() if other == alias}
        return [one for one in self.streams[dict(self.sources)[alias]] if one.name in read]

    def meanings(self) -> tuple[dict[str, list[Callable[[Values], Any]]], list[Callable[[Values], Any]]]:
        """The conditions on each source, and those on several."""
        own: dict[str, list[Callable[[Values], Any]]] = {alias: [] for alias, _ in self.sources}
        joined = []
        for one in self.conditions:
            (first, *others) = {alias for alias, _ in one.columns()}
            if others:
                joined.append(one.meaning())
            else:
                own[first].append(one.meaning())
        return own, joined

    def new_rows(self, events: Iterable[Event]) -> list[set[Row]]:
        """For each tuple the rows that hold from it on."""
        join = Join(self)
        return [join.add(stream, one) for stream, one in events]

    def events(self, r: random.Random, count: int) -> list[Event]:
        """Random tuples, or tuples chosen so that a row comes late and by one combination of tuples only."""
        if r.random() < 0.2:
            return [self._event(r, list(self.streams)) for _ in range(count)]
        join, made = Join(self), []
        names = list(self.streams)
        early = r.sample(names, len(names) - 1) if len(names) > 1 and r.random() < 0.7 else names
        quiet = r.choice((count // 3, count // 2, 2 * count // 3))  # so many tuples give no rows if possible
        for place in range(count):
            some = [self._event(r, early if place < quiet else names) for _ in range(8)]
            combinations = [min(join.rows(*one).values(), default=0) for one in some]
            wanted = 0 if place < quiet else min((one for one in combinations if one), default=0)
            event = some[combinations.index(wanted)] if wanted in combinations else some[0]
            join.add(*event)
            made.append(event)
        return made

    def _event(self, r: random.Random, names: Sequence[str]) -> Event:
        name = r.choice(names)
        return name, {one.name: _drawn(r, one) for one in self.streams[name]}


class Join:
    """A query over all tuples so far, by combining each with each."""

    def __init__(self, query: Query) -> None:
        self.sources = query.sources
        self.own, self.joined = query.meanings()
        self.shown = [one.meaning() for one in query.shown]
        self.kept: list[list[Tuple]] = [[] for _ in query.sources]
        self.given: set[Row] = set()

    def add(self, stream: str, one: Tuple) -> set[Row]:
        """Keep a tuple; returns the rows that hold from it on."""
        new = set(self.rows(stream, one))
        self.given |= new
        for i in self.places(stream, one):
            self.kept[i].append(one)
        return new

    def rows(self, stream: str, one: Tuple) -> Counter[Row]:
        """The rows that would hold from a tuple on, and how many combinations of tuples give each."""
        every = self.combinations(stream, one)
        found = Counter(tuple(value(values) for value in self.shown) for values in every)
        return Counter({row: count for row, count in found.items() if row not in self.given})

    def combinations(self, stream: str, one: Tuple) -> Iterator[Values]:
        """The combinations that a tuple completes, each with the values of all sources."""
        places = self.places(stream, one)
        for i in places:  # the first source that has the new tuple
            after = [
                [*some, one] if j in places else some for j, some in enumerate(self.kept[i + 1 :], i + 1)
            ]
            for chosen in itertools.product(*self.kept[:i], [one], *after):
                values = dict(zip((alias for alias, _ in self.sources), chosen, strict=True))
                if all(is_true(values) is True for is_true in self.joined):
                    yield values

    def places(self, stream: str, one: Tuple) -> list[int]:
        """The sources to which the tuple belongs by the conditions on them alone."""
        return [
            i
            for i, (alias, name) in enumerate(self.sources)
            if name == stream and all(is_true({alias: one}) is True for is_true in self.own[alias])
        ]


def _drawn(r: random.Random, one: Declared) -> Any:
    if "NOT NULL" in one.declared or "KEY" in one.declared:  # NULL counts as one of the keys
        return r.choice(one.values)
    return None if r.random() < 0.1 else r.choice(one.values)


class Maker:
    """Draws a query of a kind: its numbers, its streams, and its conditions.

    `tiny`: two streams of whole numbers without limits and NULL, and small constants.
    """

    def __init__(self, r: random.Random, kind: str, *, tiny: bool = False) -> None:
        self.r, self.kind, self.tiny = r, kind, tiny
        self.text = "n"  # a column that may differ between streams
        self.spread = 1 if tiny else r.choice((1, 2, 3) if kind in CLOSE else (3, 8, 40))
        self.type = Type.INT
        whole = tiny or kind in WHOLE
        if not whole and r.random() < 0.35:
            self.type = Type.DOUBLE
        elif not tiny and r.random() < 0.1:
            self.type = Type.BIGINT
        self.null = not tiny and r.random() < 0.3
        self.sources = self._sources()
        self.aliases = [alias for alias, _ in self.sources]

    def query(self) -> Query:
        """The query."""
        r = self.r
        key, keys = self._key()
        streams = {name: (key, *self._values()) for name in dict.fromkeys(name for _, name in self.sources)}
        conditions = []
        if r.random() < 0.85 or self.tiny:
            conditions = [
                of("=", column(one, "k"), column(other, "k"))
                for one, other in itertools.pairwise(self.aliases)
            ]
        a, b = r.sample(self.aliases, 2) if len(self.aliases) > 1 else (self.aliases[0], self.aliases[0])
        conditions += KINDS[self.kind](self, a, b)
        if not self.tiny:
            conditions += [self._filter(alias) for alias in self.aliases if r.random() < 0.2]
        r.shuffle(conditions)
        most = 1 if r.random() < 0.8 else min(2, len(self.aliases))
        shown = [column(one, "k") for one in r.sample(self.aliases, most)]
        if r.random() < 0.3:
            shown.append(column(r.choice(self.aliases), r.choice("cz")))
        if self.kind == "unlimited" and r.random() < 0.5:
            shown.append(column(a, "x"))
        return Query(streams, keys, self.sources, tuple(conditions), tuple(shown), self._tags(key))

    def _tags(self, key: Declared) -> frozenset[str]:
        names = [name for _, name in self.sources]
        tags = {
            self.kind,
            "self-joins" if len(set(names)) < len(names) else "",
            "three sources" if len(names) == 3 else "",
            "NULL" if self.null else "",
            f"{self.type} values",
            "keys" if "KEY" in key.declared else "",
        }
        return frozenset(tags - {""})

    def _sources(self) -> tuple[tuple[str, str], ...]:
        if self.tiny:
            return (("a", "s"), ("b", "t"))
        names = self.r.choices(
            (("s", "t"), ("s", "s"), ("s", "t", "u"), ("s", "t", "s"), ("s",)), (50, 18, 15, 12, 5)
        )[0]
        return tuple(zip("abc", names, strict=False))

    def _key(self) -> tuple[Declared, int]:
        r = self.r
        known = " NOT NULL" if self.tiny or r.random() < 0.5 else ""
        if self.tiny:
            return Declared("k", Type.INT, "INT NOT NULL KEY", (0, 1), limited=True), 2
        match r.randrange(6):
            case 0 | 1 | 2:
                keys = r.choice((1, 1, 2, 3))
                values: tuple[int | None, ...] = tuple(r.sample(range(-5, 100), keys))
                if r.random() < 0.2:
                    values = (None, *values[1:])
                return Declared("k", Type.INT, "INT KEY", values, limited=True), keys
            case 3:
                return Declared(
                    "k", Type.INT, f"INT{known} CHECK (k BETWEEN 1 AND 2)", (1, 2), limited=True
                ), 0
            case 4:
                return Declared("k", Type.BOOLEAN, f"BOOLEAN{known}", (False, True), limited=True), 0
            case _:
                declared = f"VARCHAR{known} CHECK (k IN ('p', 'q'))"
                return Declared("k", Type.VARCHAR, declared, ("p", "q"), limited=True), 0

    def _values(self) -> Iterator[Declared]:
        """The columns that aren't keys; x and y are the numbers of most conditions."""
        known = "" if self.null else " NOT NULL"
        for name in "xy":
            yield self._number(name, known)
        yield Declared("n", Type.VARCHAR, f"VARCHAR{known}", tuple("pqr"))
        yield Declared("c", Type.INT, "INT NOT NULL CHECK (c BETWEEN 0 AND 3)", (0, 1, 2, 3), limited=True)
        yield Declared("z", Type.INT, f"INT{known} CHECK (z BETWEEN 0 AND 2)", (0, 1, 2), limited=True)
        yield Declared("g", Type.BOOLEAN, f"BOOLEAN{known}", (False, True), limited=True)

    def _number(self, name: str, known: str) -> Declared:
        r, spread = self.r, self.spread
        positive = self.kind in POSITIVE
        least = 1 if positive else -spread
        values: list[Any] = list(range(least, spread + 1 + spread * positive))
        if self.tiny:
            check = f" CHECK ({name} >= 1)" if positive else ""
            return Declared(name, Type.INT, f"INT{known}{check}", tuple(values))
        if self.type is Type.DOUBLE:
            values = [one / 2 if r.random() < 0.5 else one * 0.1 for one in values]
            if r.random() < 0.15 and not positive:
                values = [-1e17, -1.0, 0.0, 1.0, 1e17]
        elif self.type is Type.INT and r.random() < 0.1 and self.kind in ("sum", "difference", "chain"):
            values += [-(2**31), 2**31 - 1]
        most = max(1e18 if max(values) > 1e9 and self.type is Type.DOUBLE else 1000, 1)
        unlimited = self.type is Type.INT and not positive and (max(values) > 1000 or r.random() < 0.7)
        low, high = (
            ("0.01" if self.type is Type.DOUBLE else "1") if positive else f"{-most:.0f}",
            f"{most:.0f}",
        )
        check = "" if unlimited else f" CHECK ({name} BETWEEN {low} AND {high})"
        return Declared(name, self.type, f"{self.type}{known}{check}", tuple(values))

    def _filter(self, alias: str) -> Tree:
        r = self.r
        x, y = column(alias, "x"), column(alias, "y")
        return r.choice(
            (
                of(r.choice((">", "<=", "!=")), x, self.number()),
                of(">", of("+", x, y), self.number()),
                of("same", column(alias, "g"), of(">", x, y)),
                of("known", y),
                of("or", of("null", x), of("<", x, y)),
                of("!=", column(alias, "z"), r.randint(0, 2)),
            )
        )

    # What conditions are made of.

    def number(self) -> int | float:
        """A constant among the values."""
        found = self.r.randint(-self.spread, self.spread)
        return found / 2 if self.type is Type.DOUBLE else found

    def other(self, alias: str, other: str) -> Tree:
        """A random number column of a source: x or y."""
        return column(alias, self.r.choice("xy") if other == "xy" else other)

    def side(self) -> str:
        """A random comparison that isn't an equation."""
        return self.r.choice(("<", "<=", ">", ">="))


def _difference(make: Maker, a: str, b: str) -> list[Tree]:
    one, other = make.other(a, "xy"), make.other(b, "xy")
    if make.r.random() < 0.5:
        return [of(make.side(), one, other)]
    return [of(make.side(), of("-", one, other), make.number())]


def _sum(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    total = make.other(a, "xy")
    for alias in (b, *(one for one in make.aliases if one not in (a, b))):
        for _ in range(r.choice((1, 1, 1, 2))):
            one = make.other(alias, "xy")
            if r.random() < 0.2:
                one = of("*", r.randint(2, 3), one)
            total = of(r.choice("++-"), total, one)
    return [of(make.side(), total, make.number())]


def _product(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    x, y = column(a, "x"), column(b, "x")
    value = r.choice(
        (
            of("*", x, y),
            of("*", of("*", x, column(a, "y")), y),
            of("/", x, y),
            of("-", of("*", x, column(a, "y")), of("*", 2, y)),
            of("*", of("+", x, column(a, "y")), y),
        )
    )
    return [of(make.side(), value, r.randint(0, make.spread**2))]


def _step(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    x, y, z = column(a, "x"), column(b, "y"), make.other(b, "xy")
    value = r.choice(
        (
            of("+", of("least", x, y), x),
            of("greatest", x, y),
            of("+", of("greatest", x, make.number()), z),
            of("+", of("floor", of("/", x, 2)), y),
            of("+", of("case", of(">", x, make.number()), 2, 1), y),
            of("+", of("abs", x), of("abs", y)),
        )
    )
    return [of(make.side(), value, make.number())]


def _both(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    x, y = make.other(a, "xy"), make.other(b, "xy")
    some = abs(make.number())
    return r.choice(
        (
            [of(r.choice((">", ">=")), of("abs", of("-", x, y)), some)],
            [of(r.choice((">", ">=")), of("abs", of("+", x, y)), some)],
            [of("!=", x, y)],
            [of(make.side(), of("*", x, y), make.number())],
            [of(">", of("-", of("greatest", x, y), of("least", x, y)), some)],
            [of("!=", column(a, make.text), column(b, make.text))],
            [of("or", of("<", x, y), of(">", x, y))],
        )
    )


def _few(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    x, y = make.other(a, "xy"), make.other(b, "xy")
    modulus = r.randint(2, 3)
    over = [of("%", x, modulus), of("%", y, modulus)]
    return r.choice(
        (
            [of("=", *over)],
            [of(">", of("+", *over), r.randint(-1, 1))],
            [of("=", of("sign", x), of("sign", y))],
            [of("same", of(">", x, make.number()), of(make.side(), y, make.number()))],
            [of("!=", of("case", of(">", x, make.number()), 1, 2), of("sign", y))],
            [of("same", of(">", x, make.number()), column(b, "g"))],
        )
    )


def _or(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    some = [_one_sided(make, a, b) for _ in range(r.choice((2, 2, 3)))]
    if r.random() < 0.3:
        some[0] = of("and", some[0], of(r.choice((">", "=")), column(a, "c"), r.randint(0, 3)))
    result = some[0]
    for one in some[1:]:
        result = of("or", result, one)
    return [result]


def _one_sided(make: Maker, a: str, b: str) -> Tree:
    return make.r.choice((_difference, _sum))(make, a, b)[0]


def _chain(make: Maker, a: str, b: str) -> list[Tree]:
    """Several conditions, each with x of one source."""
    r = make.r
    x, side = column(a, "x"), r.choice((">", "<="))
    plus = r.choice("+-")
    return [
        of(side, of(plus, x, column(b, name)), make.number())
        for name in r.choice((("x", "y"), ("x", "x"), ("x", "y", "c")))
    ]


def _small(make: Maker, a: str, b: str) -> list[Tree]:
    """Two conditions, one of them with a column of four values."""
    return [
        of(make.side(), of("+", column(a, "x"), column(b, "x")), make.number()),
        of(make.side(), of("+", column(a, "c"), column(b, make.r.choice("yc"))), make.r.randint(0, 4)),
    ]


def _unequal(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    names = r.sample(("x", "y", make.text), r.choice((1, 2) if make.tiny else (1, 2, 2, 3)))
    found = [of("!=", column(a, name), column(b, name)) for name in names]
    if r.random() < 0.4:
        found[0] = of(make.side(), of("+", column(a, "x"), column(b, "x")), make.number())
    return found


def _band(make: Maker, a: str, b: str) -> list[Tree]:
    """A condition that is true on both sides, and another one with the same values."""
    x, y = column(a, "x"), column(b, "x")
    return [
        of(">", of("abs", of("-", x, y)), abs(make.number())),
        of(make.side(), of("+", x, y), make.number()),
    ]


def _limited(make: Maker, a: str, b: str) -> list[Tree]:
    """Equal values that are limited."""
    return [of("=", column(a, "z"), column(b, "z")), _one_sided(make, a, b)]


def _front(make: Maker, a: str, b: str) -> list[Tree]:
    """Two conditions on different values of both streams: unbounded."""
    r = make.r
    first, second = (of(r.choice("+-"), column(a, name), column(b, name)) for name in "xy")
    return [of(make.side(), first, make.number()), of(make.side(), second, make.number())]


def _windows(make: Maker, a: str, b: str) -> list[Tree]:
    """Values that are near each other, or in an interval that moves."""
    x, y = column(a, "x"), column(b, "x")
    if make.r.random() < 0.5:
        return [of("<=", of("abs", of(make.r.choice("+-"), x, y)), abs(make.number()))]
    return [of("<", x, y), of(">", x, column(b, "y"))]


def _unlimited(make: Maker, a: str, b: str) -> list[Tree]:
    """Equal values without limits beside a condition on others; SELECT may also show such values."""
    other = of(make.side(), of("+", column(a, "y"), column(b, "y")), make.number())
    return [other] if make.r.random() < 0.5 else [of("=", column(a, "x"), column(b, "x")), other]


def _mixed(make: Maker, a: str, b: str) -> list[Tree]:
    r = make.r
    names = [name for name in KINDS if name not in (*POSITIVE, *WHOLE, "mixed", "unlimited")]
    found = [one for _ in range(r.choice((1, 2, 2))) for one in KINDS[r.choice(names)](make, a, b)]
    return [of("not", one) if r.random() < 0.15 else one for one in found]


KINDS: dict[str, Callable[[Maker, str, str], list[Tree]]] = {
    "difference": _difference,
    "sum": _sum,
    "product": _product,
    "step": _step,
    "both": _both,
    "few": _few,
    "or": _or,
    "chain": _chain,
    "small": _small,
    "unequal": _unequal,
    "band": _band,
    "limited": _limited,
    "front": _front,
    "windows": _windows,
    "unlimited": _unlimited,
    "mixed": _mixed,
}
POSITIVE = frozenset({"product"})  # values are greater than 0
WHOLE = frozenset({"few"})  # no DOUBLE
CLOSE = frozenset({"few", "unequal", "small"})  # values are often equal


def random_query(r: random.Random, *, tiny: bool = False) -> Query:
    """A query of a random kind."""
    return Maker(r, r.choice(tuple(KINDS)), tiny=tiny).query()
