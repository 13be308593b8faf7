"""Certificates against brute force.

For every fixing of the rest, the values that raise no alarm are as
claimed.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from fractions import Fraction

import pytest
from tests.oracle.certificates.exact_evaluation import Unclear, Value, evaluate
from tests.oracle.expressions.expression_trees import REAL

from tamis.certificates.certify import Certificate, certify
from tamis.declarations.definitions import ColumnDef
from tamis.declarations.streams import StreamDef
from tamis.expressions.functions.bits import OPERATORS as BITS
from tamis.expressions.nodes import Column, Expr, Literal, Type, columns
from tamis.expressions.signatures import call
from tamis.expressions.sql_text import to_sql

NAMES = {"a": ("x", "y", "n", "g"), "b": ("u", "v", "m", "h"), "c": ("w",)}
TYPES = {"n": Type.INT, "m": Type.INT, "g": Type.VARCHAR, "h": Type.VARCHAR}


def column(alias: str, name: str) -> Column:
    return Column(alias, name, TYPES.get(name, Type.DOUBLE))


def number(value: float) -> Literal:
    whole = isinstance(value, int)
    return Literal(value, Type.INT if whole else Type.DOUBLE)


@dataclass
class World:
    """Random domains, and grids of values over them."""

    streams: dict[str, StreamDef]
    grids: dict[Column, list[Value]]


def world(rng: random.Random) -> World:
    grids: dict[Column, list[Value]] = {}
    streams = {}
    for alias, names in NAMES.items():
        definitions = []
        for name in names:
            at = column(alias, name)
            not_null = rng.random() < 0.5
            check = None
            if at.type is Type.VARCHAR:
                grids[at] = ["p", "q"]
            else:
                lo = rng.choice([-3, -2, -1, 0, 0, 1, 1, 2])
                hi = lo + rng.choice([1, 2, 4])
                bare = Column("", name, at.type)
                check = call("and", call(">=", bare, number(lo)), call("<=", bare, number(hi)))
                steps = 1 if at.type is Type.INT else 4
                grids[at] = [Fraction(i, steps) for i in range(lo * steps, hi * steps + 1)]
                if at.type is Type.DOUBLE:
                    grids[at] += [lo + (hi - lo) * Fraction(rng.randint(1, 999), 1000) for _ in range(4)]
            if not not_null:
                grids[at].append(None)
            definitions.append(ColumnDef(name, at.type, False, not_null, check))
        definitions.append(ColumnDef("ts", Type.TIMESTAMP))
        streams[alias] = StreamDef(alias, tuple(definitions), "ts", 0)
    return World(streams, grids)


def term(rng: random.Random, alias: str | None, depth: int) -> Expr:
    """A number over one source's attributes, or over anything."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.25:
            return number(rng.choice([0, 1, 2, -1, 3, 0.5, 1.5, -2.5]))
        source = alias or rng.choice(["a", "a", "b", "b", "c"])
        names = [n for n in NAMES[source] if TYPES.get(n) is not Type.VARCHAR]
        return column(source, rng.choice([names[0], rng.choice(names)]))

    def sub() -> Expr:
        return term(rng, alias, depth - 1)

    kind = rng.random()
    if kind < 0.45:
        return call(rng.choice("+-*++-"), sub(), sub())
    if kind < 0.55:
        return call("/", sub(), sub())
    if kind < 0.63:
        return call("abs", sub())
    if kind < 0.71:
        return call("power", sub(), number(rng.choice([2, 2, 3, 0.5, -1, 1, 0, -2])))
    if kind < 0.75:
        return call("power", number(rng.choice([2, 0.5, 3])), sub())
    if kind < 0.83:
        return call(rng.choice(REAL), sub())
    if kind < 0.9:
        return call(rng.choice(["least", "greatest", "coalesce"]), sub(), sub())
    if kind < 0.91:
        return call("mod", sub(), rng.choice([sub(), number(2), number(1.5), number(5)]))
    if kind < 0.94:
        return call("neg", sub())
    if kind < 0.97:
        return stepped(rng, sub())
    return call("case", condition(rng, 0), sub(), sub())


def stepped(rng: random.Random, inner: Expr) -> Expr:
    """A function that rounds, or an operator of bits."""
    op = rng.choice(["floor", "ceil", "trunc", "round", "round", "sign", "to_int", "to_bigint", "bits"])
    if op == "bits":
        op, whole = rng.choice(BITS), inner if inner.type.integral else call("to_bigint", inner)
        return call(
            op, whole, *([] if op == "~" else [Literal(rng.choice([0, 1, 2, 3, 4, -2, 64]), Type.INT)])
        )
    if inner.type is not Type.DOUBLE and op not in ("sign", "to_int"):
        op = rng.choice(["floor", "ceil"])
    return call(op, inner, *([Literal(rng.choice([1, 0, -1]), Type.INT)] if op == "round" else []))


def comparison(rng: random.Random) -> Expr:
    op = rng.choice([">", ">", ">=", "<", "<=", ">", "=", "!="])
    style = rng.random()
    own = term(rng, "a", rng.choice([0, 0, 1, 2]))
    rest = term(rng, "b", rng.choice([0, 1, 2]))
    if style < 0.15:
        return call(rng.choice(["=", "!="]), column("a", "g"), column("b", "h"))
    if style < 0.45:
        return call(op, call(rng.choice("+-*/"), own, rest), number(rng.choice([0, 1, -1, 2, 0.5])))
    if style < 0.5:
        inner = call(rng.choice("+-*"), own, rest)
        return call(op, stepped(rng, inner), term(rng, rng.choice(["b", "c"]), 1))
    if style < 0.6:
        shape = rng.choice(["abs", "exp", "neg"])
        return call(op, call(shape, call(rng.choice("+-*"), own, rest)), term(rng, "b", 1))
    if style < 0.64:  # one stream's factors and terms, scattered
        factors = [own, rest, term(rng, "a", 0)]
        rng.shuffle(factors)
        product = call(rng.choice("**/"), call(rng.choice("**/"), factors[0], factors[1]), factors[2])
        if rng.random() < 0.4:
            product = call(rng.choice("+-"), product, call("*", column("a", "y"), rest))
        return call(op, product, number(rng.choice([0, 1, -1, 2])))
    if style < 0.68:  # a step at a constant
        at = number(rng.choice([0, 1, -1, 1.5]))
        step = call(rng.choice(["<", "<=", ">", ">=", "="]), column("a", "x"), at)
        slope, beside = rng.choice([1, 2, 0.5, -1]), rng.random() < 0.5
        other = call("+", call("*", number(slope), column("a", "x")), number(rng.choice([0, 1, -1, 2])))
        values: list[Expr] = [column("a", "x"), other]
        rng.shuffle(values)
        if beside:
            values = [call(rng.choice("+-"), value, column("b", "u")) for value in values]
        return call(op, call("case", step, *values), number(1) if beside else rest)
    if style < 0.7:
        square = call("power", call("-", own, rest), number(2))
        return call(op, call("*", square, term(rng, "b", 0)), number(rng.choice([0, 1, 2])))
    return call(op, term(rng, None, 2), term(rng, None, rng.choice([0, 1, 2])))


def condition(rng: random.Random, depth: int) -> Expr:
    kind = rng.random()
    if depth == 0 or kind < 0.55:
        return comparison(rng)
    if kind < 0.75:
        return call("and", condition(rng, depth - 1), condition(rng, depth - 1))
    if kind < 0.9:
        return call("or", condition(rng, depth - 1), condition(rng, depth - 1))
    if kind < 0.96:
        return call("not", condition(rng, depth - 1))
    return call("is_null", term(rng, None, 1))


def claims_hold(
    conditions: tuple[Expr, ...], certificate: Certificate, place: World, rng: random.Random
) -> str:
    """Empty, or how the certificate is wrong."""
    whole = conditions[0] if len(conditions) == 1 else call("and", *conditions)
    used = list(dict.fromkeys([*columns(whole), *columns(certificate.value)]))
    own = [c for c in used if c.alias == "a" and c not in certificate.fixed]
    rest = [c for c in used if c not in own]
    mine = list(itertools.product(*(place.grids[c] for c in own)))
    if len(mine) > 60:
        mine = rng.sample(mine, 60)
    for _ in range(12):
        fixing = {c: rng.choice(place.grids[c]) for c in rest}
        points: list[tuple[Value, bool]] = []
        for values in mine:
            row = {**fixing, **dict(zip(own, values, strict=True))}
            try:
                x, alarm = evaluate(certificate.value, row), evaluate(whole, row) is True
            except Unclear:
                continue
            if x is None:
                if alarm and certificate.drop_null:
                    return f"NULL raises an alarm at {row}"
                if not certificate.drop_null:
                    return f"NULL was ruled out, but comes at {row}"
                continue
            points.append((x, alarm))
        if (wrong := _wrong(points, certificate.sides)) is not None:
            return f"{wrong} with {fixing}"
    return ""


def _wrong(points: list[tuple[Value, bool]], sides: str) -> str | None:
    """A value without alarm that lies on the wrong side of, or between, values without alarm."""
    quiet = [x for x, alarm in points if not alarm]
    if not quiet:
        return None
    lo, hi = min(quiet), max(quiet)
    for x, alarm in points:
        slack = 1e-9 * max(1.0, abs(x)) if isinstance(x, float) else 0
        # Alarms on high values: whatever lies below a quiet value is quiet. And the mirror, and in between.
        under_top, over_bottom = x < hi - slack, x > lo + slack
        bad = {"above": under_top, "below": over_bottom, "both": under_top and over_bottom}[sides]
        if alarm and bad:
            return f"{sides}: alarm at {x}, none in [{lo}, {hi}]"
        if alarm and slack == 0 and x in quiet:
            return f"{sides}: alarm at {x} and not"
    return None


@pytest.mark.parametrize("seed", range(10))
def test_no_false_certificate(seed: int) -> None:
    rng = random.Random(seed)
    certified = 0
    for _ in range(60):
        place = world(rng)
        conditions = tuple(condition(rng, rng.choice([0, 0, 1, 2])) for _ in range(rng.choice([1, 1, 2])))
        verdict = certify(conditions, "a", place.streams, {})
        if isinstance(verdict, Certificate):
            wrong = claims_hold(conditions, verdict, place, rng)
            text = " AND ".join(to_sql(c) for c in conditions)
            assert not wrong, f"seed {seed}: {text}\n{verdict}\n{place.streams}\n{wrong}"
            certified += any(c.alias == "a" for part in conditions for c in columns(part))
    assert certified > 10, "too few certificates for the test to say much"


@pytest.mark.soundness
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_no_false_certificate_at_length(seed: int) -> None:
    test_no_false_certificate(seed)
