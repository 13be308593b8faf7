"""Random statements that contain given constructs of the reference page.

The constructs are nested where one fits into a hole of the other, and stand side by side elsewhere: in the
outputs, conditions, groups and relations of one query, and in the statements around it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from tests.oracle.language.pairs.templates import COLUMNS, OF_KIND, SIMPLE, Construct

_HOLE = re.compile(r"\{(\w+|stream option)\}")
_DEEPEST = 3
_TRIES = 20
_TESTED = {  # conditions on a value, by its kind
    "number": "{} > 1",
    "text": "{} <> 'q'",
    "boolean": "{}",
    "condition": "{}",
    "time": "{} > TIMESTAMP '2026-01-01T00:00:05Z'",
    "span": "{} < INTERVAL '1' MINUTE",
    "earlier": "{} IS NOT NULL",
    "aggregate": "{} IS NOT NULL",
}
_COLUMNS = {
    "k": "k VARCHAR KEY",
    "ts": "ts TIMESTAMP",
    "x": "x DOUBLE CHECK (x BETWEEN -10 AND 100)",
    "n": "n INT CHECK (n BETWEEN 0 AND 9)",
    "m": "m BIGINT",
    "s": "s VARCHAR",
    "b": "b BOOLEAN",
    "at": "at TIMESTAMP",
}
_OPTIONS = {"keys": "keys = 5", "rate": "rate = '2/s'"}
_MEANS = (
    "avg(a.x) AS x, count(*) AS n, sum(a.m) AS m, max(a.s) AS s, bool_or(a.b) AS b, max(a.at) AS at"
    " FROM TUMBLE(one, ts, INTERVAL '5' SECOND) a GROUP BY a.k, window_end"
)
_ALIKE = ", ".join(f"a.{name}" for name in COLUMNS)
DEFINITIONS = f"""
CREATE STREAM timeless ({", ".join(_COLUMNS.values())});
CREATE TABLE r ({", ".join(_COLUMNS.values()).replace(" KEY", "")}) WITH (path = 'r.csv');
CREATE FUNCTION fahrenheit(c DOUBLE) RETURNS DOUBLE AS c * 1.8 + 32;
CREATE FUNCTION heat(c DOUBLE, h DOUBLE) RETURNS DOUBLE AS CASE WHEN h > 2 THEN ln(c) ELSE fahrenheit(h) END;
CREATE PATTERN dip VALUES (0, -1, -4, -1, 0);
CREATE PATTERN days VALUES ('mo', (0, 1, 2)), ('tu', (3, 1, 2));
CREATE STREAM warm AS SELECT * FROM one WHERE x > 0;
CREATE STREAM both AS SELECT {_ALIKE} FROM one a
JOIN two b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '2' SECOND;
CREATE STREAM means AS SELECT a.k, window_end AS ts, {_MEANS};
"""


class RandomStatement:
    """SQL with an alert `q` that contains the needed constructs; `left` are those that found no place."""

    def __init__(self, seed: int, need: Sequence[Construct]) -> None:
        self._r = random.Random(seed)
        self.left = list(need)
        self._before: list[str] = []
        self._named: list[str] = []
        self._count = 0
        self._of_groups = False  # values are computed from aggregates
        columns = dict(_COLUMNS)
        for one in self._taken("column"):
            columns[one.split()[0]] = one
        options = dict(_OPTIONS)
        for one in self._taken("stream option"):
            options[one.split()[0]] = one
        around = self._taken("statement")
        alert = self._alert()
        body = f"{', '.join(columns.values())}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND"
        before = [
            f"CREATE STREAM one ({body}) WITH ({', '.join(options.values())})",
            f"CREATE STREAM two ({body}) WITH ({', '.join(options.values())})",
        ]
        self._r.shuffle(around)
        early = [one for one in around if self._r.random() < 0.3]
        late = [one for one in around if one not in early]
        self.sql = ";\n".join([*before, DEFINITIONS.strip(), *early, *self._before, alert, *late]) + ";\n"
        self.sql = self.sql.replace(";;", ";")

    def _taken(self, kind: str) -> list[str]:
        """The needed constructs of a kind, which are needed no longer."""
        taken = [one for one in self.left if one.kind == kind]
        self.left = [one for one in self.left if one.kind != kind]
        return [one.template for one in taken]

    def _pick(self, kind: str, depth: int) -> str:
        """A template of a kind: a needed one, a simple one, or any."""
        for one in self.left:
            if one.kind == kind and self._r.random() < 0.9:
                self.left.remove(one)
                return one.template
        if self._of_groups and kind in ("number", "integer", "text", "boolean", "time", "span") and depth > 1:
            return {"text": "max({text})", "boolean": "bool_or({boolean})", "time": "max({time})"}.get(
                kind, "{aggregate}"
            )
        if kind in SIMPLE and (depth >= _DEEPEST or self._r.random() < 0.8 or kind not in OF_KIND):
            return self._r.choice(SIMPLE[kind])
        return self._r.choice(OF_KIND[kind]).template

    def _fill(self, template: str, a: str, depth: int = 0) -> str:
        """A template with its holes filled."""
        aliases = {"a": a}

        def filled(hole: re.Match[str]) -> str:
            kind = hole[1]
            if len(kind) == 1:
                if kind not in aliases:
                    aliases[kind] = self._alias()
                return aliases[kind]
            if kind == "columns":
                return ", ".join(f"{aliases['a']}.{name}" for name in COLUMNS)
            if kind == "computed":
                kinds = {
                    "x": "number",
                    "n": "integer",
                    "m": "number",
                    "s": "text",
                    "b": "boolean",
                    "at": "time",
                }
                found = (f"{self._value(one, aliases['a'], depth)} AS {name}" for name, one in kinds.items())
                return f"{aliases['a']}.k, {aliases['a']}.ts, {', '.join(found)}"
            if kind == "aggregated":
                found_ = "avg({number}) AS x, count(*) AS n, sum({integer}) AS m, max({text}) AS s"
                return self._fill(
                    f"{found_}, bool_or({{boolean}}) AS b, max({{time}}) AS at", aliases["a"], depth
                )
            if kind == "name":
                return self._name(depth)
            if kind == "placed":
                return self._placed(depth)
            return self._value(kind, aliases["a"], depth)

        before, self._of_groups = self._of_groups, self._of_groups and not _aggregates(template)
        # Inner queries compute with their own columns.
        if "SELECT" in template:
            self._of_groups = False
        found = _HOLE.sub(filled, template)
        self._of_groups = before
        return found

    def _value(self, kind: str, a: str, depth: int) -> str:
        found = self._fill(self._pick(kind, depth), a, depth + 1)
        return (
            f"({found})" if kind in ("number", "boolean", "text", "time", "span") and " " in found else found
        )

    def _alias(self) -> str:
        self._count += 1
        return f"a{self._count}"

    def _name(self, depth: int) -> str:
        """The name of a relation, for windows."""
        if any(one.kind in ("body", "placed") for one in self.left) or (
            depth < 2 and self._r.random() < 0.25
        ):
            return self._placed(depth, named=True)
        return self._r.choice(("one", "two", "warm", "both", "means", "one", "two"))

    def _placed(self, depth: int, *, named: bool = False) -> str:
        """A query as an item of FROM."""
        how = self._pick("placed", depth)
        if named and how == "inline":
            how = "named"
        body = self._fill(self._pick("body", depth), self._alias(), depth + 1)
        self._count += 1
        name = f"d{self._count}"
        if how == "derived":
            self._before.append(f"CREATE STREAM {name} AS {body}")
        elif how == "inline":
            return f"({body})"
        else:
            columns = f"({', '.join(COLUMNS)})" if how == "renamed" else ""
            self._named.append(f"{name}{columns} AS ({body})")
        return name

    def _alert(self) -> str:
        kinds = {one.kind for one in self.left}
        clauses = self._taken("clause")
        groups = any(one.startswith(("GROUP", "HAVING")) for one in clauses)
        grouped = "aggregate" in kinds or groups or ("window" in kinds and self._r.random() < 0.7)
        grouped = grouped or self._r.random() < 0.1
        options = self._taken("option")
        select = self._select(grouped, clauses)
        for union in (one for one in clauses if one.startswith("UNION")):
            other = self._r.choice(("two", "timeless", "warm"))
            select = f"{select} {union} {re.sub(r'FROM one a', f'FROM {other} a', select)}"
        for last in (one for one in clauses if one.startswith(("ORDER", "LIMIT"))):
            select = f"{select} {last}"
        named = f"WITH {', '.join(self._named)}\n" if self._named else ""
        having = f" WITH ({', '.join(options)})" if options else ""
        return f"CREATE ALERT q{having} AS\n{named}{select}"

    def _select(self, grouped: bool, clauses: list[str]) -> str:
        r, a = self._r, "a"
        item = self._fill(self._pick("window", 0) if grouped else self._pick("item", 1), a)
        joins: list[str] = []
        where: list[str] = []
        while any(one.kind == "join" for one in self.left) or (not joins and r.random() < 0.15):
            join, _, rest = self._fill(self._pick("join", 0), a).partition(" WHERE ")
            joins.append(join)
            where += [rest] if rest else []
        while any(one.kind == "test" for one in self.left):
            where.append(self._fill(self._pick("test", 0), a))
        shown = ["a.k", "window_end" if grouped else "a.ts"]
        by = [
            "a.k",
            r.choice(("window_end", "window_end, window_start")),
            *(["a.s"] if "(k, s)" in item else []),
        ]
        having: list[str] = []
        outputs: list[str] = []
        for _ in range(12):
            kind = next((one.kind for one in self.left if one.kind in _TESTED), None)
            if kind is None and outputs:
                break
            kind = kind or ("aggregate" if grouped else r.choice(("number", "text", "boolean", "time")))
            if kind == "earlier" and grouped and r.random() < 0.7:
                where.append(_TESTED[kind].format(self._value(kind, a, 0)))
                continue
            if grouped and kind != "aggregate" and r.random() < 0.5:
                value = self._value(kind, a, 1)
                if r.random() < 0.5:
                    by.append(value)
                    outputs.append(value)
                else:
                    where.append(_TESTED[kind].format(value))
                continue
            self._of_groups = grouped
            value = self._value(kind, a, 0)
            self._of_groups = False
            place = r.random()
            if place < 0.6 or kind == "span":
                # A row has no column of a difference of times.
                outputs.append(f"extract(epoch FROM {value})" if kind == "span" else value)
            elif grouped:
                having.append(_TESTED[kind].format(value))
            elif place < 0.8 and joins and " ON " in joins[-1]:
                joins[-1] += f" AND {_TESTED[kind].format(value)}"
            else:
                where.append(_TESTED[kind].format(value))
        shown += [f"{value} AS o{number}" for number, value in enumerate(outputs)]
        text = f"SELECT {'DISTINCT ' if 'DISTINCT' in clauses else ''}{', '.join(shown)}\nFROM {item} {a}"
        text += "".join(one if one.startswith(",") else f"\n{one}" for one in joins)
        text += f"\nWHERE {' AND '.join(where)}" if where else ""
        for clause in clauses:
            if clause.startswith("GROUP BY"):
                by = [clause[9:]] if clause[9:] == "1, 2" else [*by, self._fill(clause[9:], a, 1)]
            elif clause.startswith("HAVING"):
                having.append(self._fill(clause[7:], a))
        qualify = " AND ".join(self._fill(one[8:], a) for one in clauses if one.startswith("QUALIFY"))
        text += f"\nGROUP BY {', '.join(by)}" if grouped else ""
        text += f"\nHAVING {' AND '.join(having)}" if having else ""
        if "OVER w" in text + qualify or "OVER (w" in text + qualify:
            text += "\nWINDOW w AS (PARTITION BY a.k ORDER BY a.ts)"
        return text + (f"\nQUALIFY {qualify}" if qualify else "")


def _aggregates(template: str) -> bool:
    """True for a template of an aggregate, whose holes are values of tuples."""
    return any(template == one.template for one in OF_KIND["aggregate"]) or template.startswith(
        ("max(", "bool_or(")
    )


def statement(seed: int, need: Sequence[Construct]) -> RandomStatement:
    """A statement that contains the needed constructs, or as many as a few tries can place."""
    found = RandomStatement(seed * _TRIES, need)
    for number in range(1, _TRIES):
        if not found.left:
            break
        found = min(found, RandomStatement(seed * _TRIES + number, need), key=lambda one: len(one.left))
    return found
