"""Search for a point that violates a certificate: dense samples, then an optimiser.

Shares only the expression tree with Tamis. A condition is evaluated to two margins: the distances from not
being true and from not being false, both negative where it is NULL. So an optimiser has a slope to climb. A
point counts only where every margin exceeds the rounding error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, differential_evolution

from tamis.expressions.functions.entry import FUNCTIONS
from tamis.expressions.nodes import Call, Column, Expr, Literal, Type, columns

Array: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = Mapping[Column, Array]
CLEAR = 1e-7


def _on_integers(compute: Any) -> Any:
    """An operator of bits over whole numbers that are given as floats; NaN is NULL."""

    def computed(a: Array, b: Array) -> Array:
        missing = np.isnan(a) | np.isnan(b)
        whole = (np.where(missing, 0.0, one).astype(np.int64) for one in (a, b))
        return np.where(missing, np.nan, compute(*whole).astype(np.float64))

    return computed


def _shifted_left(a: Array, n: Array) -> Array:
    with np.errstate(all="ignore"):
        out = a * np.exp2(n)
    return np.where((a >= 0) & (n >= 0) & (out < 2.0**63), out, np.nan)


def _shifted_right(a: Array, n: Array) -> Array:
    with np.errstate(all="ignore"):
        out = np.where((n >= 0) & (n < 64), np.floor(a / np.exp2(n)), 0.0)
    return np.where(np.isnan(a) | np.isnan(n), np.nan, out)


def _one_by_one(function: Callable[[float], float]) -> Any:
    """A function of the math module over arrays; NaN where it has no value."""

    def value(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return np.nan

    return np.vectorize(value, otypes=[np.float64])


_UNARY: dict[str, Any] = {
    "~": lambda a: -1.0 - a,
    "neg": np.negative,
    "abs": np.abs,
    **{name: _one_by_one(function.real.scalar) for name, function in FUNCTIONS.items() if function.real},
    "sqrt": np.sqrt,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign,
    "round": lambda x, digits=0: np.sign(x) * np.floor(np.abs(x) * 10.0**digits + 0.5) / 10.0**digits,
    "to_int": lambda x: np.where(np.abs(np.rint(x)) < 2.0**31, np.rint(x), np.nan),
    "to_bigint": lambda x: np.where(np.abs(np.rint(x)) < 2.0**63, np.rint(x), np.nan),
}
_BINARY: dict[str, Any] = {
    "&": _on_integers(np.bitwise_and),
    "|": _on_integers(np.bitwise_or),
    "xor": _on_integers(np.bitwise_xor),
    "<<": _shifted_left,
    ">>": _shifted_right,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "power": np.float_power,
    "mod": np.fmod,
}


def number(expr: Expr, row: Row) -> Array:
    """The values of `expr`; NaN is NULL."""
    if isinstance(expr, Column):
        return row[expr]
    if isinstance(expr, Literal):
        return np.asarray(np.nan if expr.value is None else float(expr.value))
    if expr.op == "case":
        chosen = number(expr.args[-1], row)
        for condition, value in reversed(list(zip(expr.args[:-1:2], expr.args[1:-1:2], strict=True))):
            chosen = np.where(margins(condition, row)[0] > 0, number(value, row), chosen)
        return chosen
    args = [number(arg, row) for arg in expr.args]
    if expr.op == "coalesce":
        for arg in args[1:]:
            args[0] = np.where(np.isnan(args[0]), arg, args[0])
        return args[0]
    if expr.op in ("least", "greatest"):
        pick = np.fmin if expr.op == "least" else np.fmax  # they skip NaN
        for arg in args[1:]:
            args[0] = pick(args[0], arg)
        return args[0]
    out: Array = (_UNARY if expr.op in _UNARY else _BINARY)[expr.op](*args)
    return np.where(np.isfinite(out), out, np.nan)


def margins(expr: Expr, row: Row) -> tuple[Array, Array]:
    """By how much a condition is true, and by how much false; at least one of the two is not positive."""
    if isinstance(expr, Literal):
        return _with_null(np.asarray(np.nan if expr.value is None else 1.0 if expr.value else -1.0))
    if isinstance(expr, Column):
        return _with_null(row[expr])
    assert isinstance(expr, Call)
    if expr.op in ("and", "or", "not"):
        pairs = [margins(arg, row) for arg in expr.args]
        if expr.op == "not":
            return pairs[0][1], pairs[0][0]
        low: Any = np.minimum if expr.op == "and" else np.maximum
        high: Any = np.maximum if expr.op == "and" else np.minimum
        true, false = pairs[0]
        for other, opposite in pairs[1:]:
            true, false = low(true, other), high(false, opposite)
        return true, false
    if expr.op == "is_null":
        null = np.isnan(number(expr.args[0], row))
        return _with_null(np.where(null, 1.0, -1.0))
    a, b = (number(arg, row) for arg in expr.args)
    size = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    over = (a - b) / size
    match expr.op:
        case ">" | ">=":
            return _with_null(over)
        case "<" | "<=":
            return _with_null(-over)
    apart = np.where(np.abs(over) > CLEAR, 1.0, -1.0)
    return _with_null(apart if expr.op == "!=" else np.where(np.isnan(over), over, -apart))


def _with_null(true: Array) -> tuple[Array, Array]:
    null = np.isnan(true)
    return np.where(null, -1.0, true), np.where(null, -1.0, -true)


@dataclass(frozen=True)
class Claim:
    """For all `rest` fixed, the quiet values of `value` lie as `sides` has it. `domains` has both ends of
    every column; text columns take whole numbers as names. Columns of the rest that are `nullable` are NULL
    at times.
    """

    condition: Expr
    value: Expr
    sides: str
    own: tuple[Column, ...]
    rest: tuple[Column, ...]
    domains: Mapping[Column, tuple[float, float]]
    nullable: frozenset[Column] = frozenset()

    def _spread(self, names: tuple[Column, ...], shares: Array) -> dict[Column, Array]:
        """Places from shares of each side, whole where the column is."""
        out = {}
        for name, share in zip(names, shares, strict=True):
            lo, hi = self.domains[name]
            at = np.clip(lo + (hi - lo) * share, lo, hi)
            out[name] = at if name.type is Type.DOUBLE else np.round(at)
        return out

    def sampled(self, seed: int, fixings: int = 40, density: int = 60) -> str | None:
        """A violation among random fixings of the rest and dense places along the stream's own values."""
        rng = np.random.default_rng(seed)
        rest = self._spread(self.rest, _shares(rng, len(self.rest), (fixings, 1)))
        for column in self.nullable & rest.keys():
            rest[column] = np.where(rng.random((fixings, 1)) < 0.2, np.nan, rest[column])
        if len(self.own) == 1:
            line = np.linspace(0.0, 1.0, density)[None, None, :] + np.zeros((1, fixings, 1))
            wiggle = rng.random((1, fixings, density)) / density
            shares = np.clip(np.where(rng.random((1, fixings, density)) < 0.5, line, line + wiggle), 0, 1)
        else:
            shares = _shares(rng, len(self.own), (fixings, density))
        row = {**rest, **self._spread(self.own, shares)}
        shape = (fixings, density)
        with np.errstate(all="ignore"):
            value = np.broadcast_to(number(self.value, row), shape)
            true = np.broadcast_to(margins(self.condition, row)[0], shape)
        given = np.isfinite(value)
        alarm, quiet = (true > CLEAR) & given, (true < -CLEAR) & given
        top = np.max(np.where(quiet, value, -np.inf), axis=1, keepdims=True)
        bottom = np.min(np.where(quiet, value, np.inf), axis=1, keepdims=True)
        slack = CLEAR * np.maximum(1.0, np.abs(value))
        below, over = value < top - slack, value > bottom + slack
        bad = alarm & {"above": below, "below": over, "both": below & over}[self.sides]
        if not bad.any():
            return None
        i, j = np.argwhere(bad)[0]
        place = {c: float(np.broadcast_to(v, shape)[i, j]) for c, v in row.items()}
        return f"alarm at {value[i, j]}, quiet from {bottom[i, 0]} to {top[i, 0]}: {place}"

    def searched(self, seed: int, rounds: int = 20) -> str | None:
        """A violation that an optimiser finds: an alarm, and quiet values on the wrong side of it."""
        roles = {"above": 2, "below": 2, "both": 3}[self.sides]
        size = len(self.rest) + roles * len(self.own)

        def worst(shares: Array) -> Array:
            shares = shares.reshape(size, -1)
            rest = self._spread(self.rest, shares[: len(self.rest)])
            at, least = len(self.rest), np.full(shares.shape[1], np.inf)
            values = []
            for role in range(roles):
                own = self._spread(self.own, shares[at : at + len(self.own)])
                at += len(self.own)
                with np.errstate(all="ignore"):
                    true = margins(self.condition, {**rest, **own})[0]
                    value = number(self.value, {**rest, **own})
                values.append(np.where(np.isnan(value), 0.0, value))
                # The last place raises the alarm, the others do not.
                least = np.minimum(least, true if role == roles - 1 else -true)
                least = np.where(np.isnan(value), -1.0, least)
            alarm = values[-1]
            order = {
                "above": [values[0] - alarm],
                "below": [alarm - values[0]],
                "both": [alarm - values[0], values[1] - alarm] if roles == 3 else [],
            }[self.sides]
            for apart in order:
                least = np.minimum(least, apart / np.maximum(1.0, np.abs(alarm)))
            # The optimiser squares margins.
            clipped: Array = np.clip(-least, -1e100, 1e100)
            return clipped

        found: Any = differential_evolution(
            worst,  # type: ignore[arg-type]  # vectorized: columns of places in, a column of values out
            Bounds([0.0] * size, [1.0] * size),
            maxiter=rounds,
            popsize=6,
            tol=0.0,
            polish=False,
            rng=seed,
            vectorized=True,
            updating="deferred",
            callback=lambda intermediate_result: intermediate_result.fun < -CLEAR,
        )
        return f"by search: {found.x.tolist()} with margin {-found.fun}" if found.fun < -CLEAR else None


def _shares(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Random places of sides, ends among them."""
    shares = rng.random((count, *shape))
    return np.where(shares < 0.08, 0.0, np.where(shares > 0.92, 1.0, shares))


def claim_of(
    condition: Expr,
    value: Expr,
    sides: str,
    *,
    fixed: tuple[Column, ...],
    domains: Mapping[Column, tuple[float, float]],
    alias: str = "a",
    nullable: frozenset[Column] = frozenset(),
) -> Claim:
    """The claim of a certificate of source `alias`."""
    used = list(dict.fromkeys([*columns(condition), *columns(value)]))
    own = tuple(c for c in used if c.alias == alias and c not in fixed)
    rest = tuple(c for c in used if c not in own)
    return Claim(condition, value, sides, own, rest, domains, nullable)
