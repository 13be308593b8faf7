"""Random alerts whose thresholds lie where rounding decides, with exact and computed alarms.

The alarms are given in exact and in computed
arithmetic, by brute force. Shares no code with Tamis.

Every key of a file is a case of its own: a few tuples of two streams, values that cancel, are of very
different size, or are equal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from tests.oracle.expressions.expression_trees import half_away

getcontext().prec = 60

SECOND = 1_000_000
WITHIN = 10 * SECOND
# As close as decimals of 60 digits tell.
FINE = Decimal("1e-45")

Row: TypeAlias = tuple[int, dict[str, float]]  # event time and values
Formula: TypeAlias = Callable[[Any, Any, Any], Any]  # of a, b and the functions


@dataclass(frozen=True)
class Form:
    """A condition `left > c`, as SQL and as Python; `checks`: what the columns' domains are."""

    sql: str
    left: Formula
    checks: str = "wide"
    exact: bool = True  # rational arithmetic alone


FORMS = (
    Form("a.x + b.y - a.z", lambda a, b, _: a.x + b.y - a.z),
    Form("a.x + b.y - a.z", lambda a, b, _: a.x + b.y - a.z, "small"),
    Form("(a.x - a.z) + b.y", lambda a, b, _: (a.x - a.z) + b.y),
    Form("a.x - b.y", lambda a, b, _: a.x - b.y),
    Form("a.x + a.w + b.y + a.z", lambda a, b, _: a.x + a.w + b.y + a.z),
    Form("a.x - a.z - a.w + b.y - b.v", lambda a, b, _: a.x - a.z - a.w + b.y - b.v),
    Form("0.1 * a.x + b.y - a.z / 3", lambda a, b, m: m.n(0.1) * a.x + b.y - a.z / m.n(3), "small"),
    Form("a.x * b.y * a.z", lambda a, b, _: a.x * b.y * a.z, "positive"),
    Form("a.x * a.z - b.y", lambda a, b, _: a.x * a.z - b.y, "small"),
    Form("(a.x - a.z) * b.y", lambda a, b, _: (a.x - a.z) * b.y, "positive"),
    Form("a.x * a.z - a.w * a.w + b.y", lambda a, b, _: a.x * a.z - a.w * a.w + b.y, "small"),
    Form("a.x * b.y + b.y * a.z", lambda a, b, _: a.x * b.y + b.y * a.z, "positive"),
    Form("a.x / a.z - b.y", lambda a, b, _: a.x / a.z - b.y, "positive"),
    Form("a.x / b.y / a.z", lambda a, b, _: a.x / b.y / a.z, "positive"),
    Form("(a.x - a.z) / a.w - b.y", lambda a, b, _: (a.x - a.z) / a.w - b.y, "positive"),
    Form("ABS(a.x - b.y)", lambda a, b, _: abs(a.x - b.y)),
    Form("GREATEST(a.x - b.y, a.x - b.v)", lambda a, b, _: max(a.x - b.y, a.x - b.v)),
    Form("1.8 * a.x + 32 - b.y", lambda a, b, m: m.n(1.8) * a.x + m.n(32) - b.y),
    Form("FLOOR(a.x - a.z) - b.y", lambda a, b, m: m.floor(a.x - a.z) - b.y, "small"),
    Form("FLOOR(a.x + b.y - a.z)", lambda a, b, m: m.floor(a.x + b.y - a.z), "small"),
    Form("FLOOR(a.x / a.z) - b.y", lambda a, b, m: m.floor(a.x / a.z) - b.y, "positive"),
    Form("FLOOR(a.x / a.z + b.y)", lambda a, b, m: m.floor(a.x / a.z + b.y), "positive"),
    Form("CEIL(1.8 * a.x + 32) - b.y", lambda a, b, m: m.ceil(m.n(1.8) * a.x + m.n(32)) - b.y, "small"),
    Form("ROUND(a.x - b.y)", lambda a, b, m: m.round(a.x - b.y, 0), "small"),
    Form("ROUND(a.x + a.z, 1) - b.y", lambda a, b, m: m.round(a.x + a.z, 1) - b.y, "small"),
    Form("ROUND(a.x / b.y, 1)", lambda a, b, m: m.round(a.x / b.y, 1), "positive"),
    Form("CAST(a.x / a.z AS BIGINT) + b.y", lambda a, b, m: m.nearest(a.x / a.z) + b.y, "positive"),
    Form("CAST(a.x * b.y AS BIGINT) - a.z", lambda a, b, m: m.nearest(a.x * b.y) - a.z, "positive"),
    Form("SIGN(a.x - a.z) * b.y", lambda a, b, m: m.sign(a.x - a.z) * b.y, "positive"),
    Form("MOD(a.x - a.z, 3) - b.y", lambda a, b, m: m.mod(a.x - a.z, 3) - b.y, "small"),
    Form("a.x % b.y - a.z", lambda a, b, m: m.mod(a.x, b.y) - a.z, "positive"),
    Form("a.n - b.y", lambda a, b, _: a.n - b.y),
    Form("a.n + b.y - a.x", lambda a, b, _: a.n + b.y - a.x),
    Form(
        "SQRT(a.x * a.x + a.z * a.z) - b.y",
        lambda a, b, m: m.sqrt(a.x * a.x + a.z * a.z) - b.y,
        "positive",
        False,
    ),
    Form("LN(a.x) + LN(a.z) - b.y", lambda a, b, m: m.ln(a.x) + m.ln(a.z) - b.y, "positive", False),
    Form("EXP(a.x / a.z) * b.y", lambda a, b, m: m.exp(a.x / a.z) * b.y, "positive", False),
    Form("LN(a.x / 100) + b.y", lambda a, b, m: m.ln(a.x / m.n(100)) + b.y, "positive", False),
    Form(
        "243.04 * (LN(a.x / 100) + a.z / (243.04 + a.z)) / (17.625 - LN(a.x / 100)) - b.y",
        lambda a, b, m: (
            m.n(243.04)
            * (m.ln(a.x / m.n(100)) + a.z / (m.n(243.04) + a.z))
            / (m.n(17.625) - m.ln(a.x / m.n(100)))
            - b.y
        ),
        "positive",
        False,
    ),
)
CHECKS = {
    "wide": "",
    "small": " CHECK ({0} BETWEEN -2000 AND 2000)",
    "positive": " CHECK ({0} BETWEEN 0.5 AND 2000)",
}


class Numbers:
    """The attributes of a tuple, all converted."""

    def __init__(self, values: dict[str, Any], convert: Callable[[Any], Any]) -> None:
        self.__dict__.update({name: convert(value) for name, value in values.items()})


class Floats:
    """Computed as written."""

    n = staticmethod(float)
    floor, ceil = staticmethod(math.floor), staticmethod(math.ceil)
    nearest = staticmethod(round)
    round, mod = staticmethod(half_away), staticmethod(math.fmod)
    sign = staticmethod(lambda x: (x > 0) - (x < 0))
    sqrt, exp, ln = staticmethod(math.sqrt), staticmethod(math.exp), staticmethod(math.log)


def _rounded(x: Fraction, digits: int) -> Fraction:
    whole = math.floor(abs(x) + Fraction(1, 2))
    return Fraction(half_away(float(x), digits)) if digits else Fraction(whole if x > 0 else -whole)


class Exact:
    """Rational numbers."""

    n = staticmethod(Fraction)
    floor, ceil, sign = Floats.floor, Floats.ceil, Floats.sign
    round, nearest = staticmethod(_rounded), Floats.nearest
    mod = staticmethod(lambda x, y: x - y * math.trunc(x / y))


class Decimals:
    """Sixty digits."""

    n = staticmethod(Decimal)
    sqrt, exp, ln = staticmethod(Decimal.sqrt), staticmethod(Decimal.exp), staticmethod(Decimal.ln)


class RoundedFile:
    """One alert and the tuples of `keys` keys."""

    def __init__(self, seed: int, keys: int) -> None:
        r = random.Random(seed)
        self.form = r.choice(FORMS)
        self.op = r.choice((">", ">=", "<"))
        self.span = r.choice((1, 2, 5)) * SECOND
        self.reach = r.choice((2, 4, 10)) * SECOND
        self._r = r
        # All keys have values of one pool, so that many combinations lie at the threshold.
        self._values = self._pool()
        self.cases = [self._case() for _ in range(keys)]
        self.threshold = self._threshold()

    @property
    def sql(self) -> str:
        check = CHECKS[self.form.checks]
        a, b = (
            ", ".join(f"{name} DOUBLE NOT NULL{check.format(name)}" for name in names)
            for names in ("xzw", "yv")
        )
        reach = f"INTERVAL '{self.reach // SECOND}' SECOND"
        whole = "n BIGINT NOT NULL CHECK (n BETWEEN 0 AND 9000000000000000)"
        return f"""CREATE STREAM sa (k INT KEY, ts TIMESTAMP, {a}, {whole},
          WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
        CREATE STREAM sb (k INT KEY, ts TIMESTAMP, {b}, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
        CREATE ALERT q AS SELECT a.k, a.ts FROM sa a JOIN sb b
          ON a.k = b.k AND b.ts BETWEEN a.ts - {reach} AND a.ts + {reach}
        WHERE {self.form.sql} {self.op} {self.threshold!r};"""

    def _case(self) -> tuple[list[Row], list[Row]]:
        r, pool = self._r, self._values
        a = [
            (t, {**{name: r.choice(pool) for name in "xzw"}, "n": r.choice((3, 12, 2**52 + 1, 2**52 + 2))})
            for t in self._times(r.randint(3, 9))
        ]
        b = [(t, {name: r.choice(pool) for name in "yv"}) for t in self._times(r.randint(1, 3))]
        return a, b

    def _times(self, count: int) -> list[int]:
        return sorted(self._r.randint(0, 8) * SECOND for _ in range(count))

    def _pool(self) -> list[float]:
        """A few values: equal ones, and equal sums and products of decimals, are frequent."""
        r = self._r
        if r.random() < 0.4:
            starts = [round(r.uniform(0.5, 30), 1), r.choice((900.1, 300.2, 90.3, 0.7))]
            steps = (round(start + 0.1 * i, 1) for start in starts for i in range(r.randint(1, 5)))
            return [min(max(v, 0.5), 2000.0) for v in steps]
        decimals = [round(r.uniform(0.5, 30), r.choice((0, 1, 2))) for _ in range(3)]
        near = [
            math.nextafter(decimals[0], r.choice((-1, 1)) * math.inf),
            decimals[1] + 1e-13,
            0.1 + 0.2,
            0.3,
        ]
        if self.form.checks == "positive":
            return [min(max(abs(v), 0.5), 2000.0) for v in (*decimals, *near, 1013.2, 1013.3, 1000.1)]
        if self.form.checks == "small":
            return [*decimals, *near, -decimals[0], 1013.2, -1013.2, 1e-300, 1e-17, 1e-9]
        huge = r.choice(
            (
                (1e17, -1e17, 1e17 + 16),
                (1.7e18, 1.7e18 + 256, 1.7e18 + 512),
                (1.7e9 + 1e-7, 1.7e9, -1.7e9),
                (1e100, -1e100, 9.9e99),
                (1e-300, 3e-300, -1e-300),
                (1e3 + 1e-13, 1e3, -1e3),
                (2.0**53, 2.0**53 + 2, -(2.0**53)),
            )
        )
        return [*decimals, *near, *huge, *huge]

    def _threshold(self) -> float:
        """What some combination comes to, as computed, or beside it."""
        r = self._r
        for _ in range(50):
            a, b = r.choice(self.cases)
            (_, x), (_, y) = r.choice(a), r.choice(b)
            value = _value(self.form, x, y, Floats, float)
            if value is not None and abs(value) < 1e90:
                beside = r.choice((-math.inf, value, value, math.inf))
                return float(math.nextafter(value, beside)) if r.random() < 0.8 else round(value, 3)
        return 12.0

    @cached_property
    def combinations(self) -> list[tuple[int, int, int, bool, bool | None]]:
        """Key, tuple of a, tuple of b, and whether the condition holds as computed and exactly; None: too
        near to say."""
        return list(self._combinations())

    def _combinations(self) -> Iterator[tuple[int, int, int, bool, bool | None]]:
        computed, exact = {}, {}
        for key, (many, few) in enumerate(self.cases):
            for i, (t, a) in enumerate(many):
                for j, (s, b) in enumerate(few):
                    if abs(t - s) > self.reach:
                        continue
                    seen = (tuple(a.values()), tuple(b.values()))
                    if seen not in computed:
                        computed[seen] = self._holds(_value(self.form, a, b, Floats, float))
                        # What is NULL as computed raises no alarm, by definition.
                        exact[seen] = False if computed[seen] is None else self._exactly(a, b)
                    yield key, i, j, bool(computed[seen]), exact[seen]

    def _exactly(self, a: dict[str, float], b: dict[str, float]) -> bool | None:
        if self.form.exact:
            return bool(self._holds(_value(self.form, a, b, Exact, Fraction)))
        value = _value(self.form, a, b, Decimals, Decimal)
        if value is not None and abs(value - Decimal(self.threshold)) <= FINE * max(1, abs(value)):
            return None
        return bool(self._holds(value))

    def _holds(self, value: Any) -> bool | None:
        if value is None:
            return None
        least = type(value)(self.threshold)
        return bool({">": value > least, ">=": value >= least, "<": value < least}[self.op])


def _value(
    form: Form, a: dict[str, float], b: dict[str, float], of: Any, convert: Callable[[Any], Any]
) -> Any:
    try:
        value = form.left(Numbers(a, convert), Numbers(b, convert), of)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return None if isinstance(value, float) and not math.isfinite(value) else value
