"""Curvature: rising, falling, convex, concave, quasiconvex and quasiconcave functions of one variable.

All other columns are fixed. Each statement holds *for every value of the rest*, but may differ between these
values: the product x * b with b of either sign is monotone in x for each b, rising for some b and falling for
others. So it is both quasiconvex and quasiconcave, but neither rising nor falling.

The rules are well known: disciplined convex programming for convex functions; Boyd and Vandenberghe, Convex
Optimization, 3.4, for quasiconvex ones.
"""

from __future__ import annotations

from enum import Flag
from functools import reduce


class Curvature(Flag):
    """The properties that are proved of a function of the variable; `NONE` if nothing is."""

    NONE = 0
    RISING = 1  # nondecreasing, for all values of the rest
    FALLING = 2
    CONVEX = 4
    CONCAVE = 8
    QUASICONVEX = 16  # {x: f(x) <= c} is an interval
    QUASICONCAVE = 32


MONOTONE = Curvature.QUASICONVEX | Curvature.QUASICONCAVE  # rising or falling, as the rest decides
AFFINE = Curvature.CONVEX | Curvature.CONCAVE
CONSTANT = Curvature.RISING | Curvature.FALLING | AFFINE | MONOTONE
VARIABLE = Curvature.RISING | AFFINE | MONOTONE


def closed(curvature: Curvature) -> Curvature:
    """`curvature` with all properties that follow from it."""
    if curvature & (Curvature.RISING | Curvature.FALLING):
        curvature |= MONOTONE
    if Curvature.CONVEX in curvature:
        curvature |= Curvature.QUASICONVEX
    if Curvature.CONCAVE in curvature:
        curvature |= Curvature.QUASICONCAVE
    return curvature


def in_all(parts: list[Curvature]) -> Curvature:
    """The properties that several functions have in common."""
    return reduce(lambda a, b: a & b, parts, CONSTANT)


def negated(curvature: Curvature) -> Curvature:
    """The curvature of -f."""
    out = Curvature.NONE
    for a, b in (
        (Curvature.RISING, Curvature.FALLING),
        (Curvature.CONVEX, Curvature.CONCAVE),
        (Curvature.QUASICONVEX, Curvature.QUASICONCAVE),
    ):
        if a in curvature:
            out |= b
        if b in curvature:
            out |= a
    return out


def sum_of(parts: list[Curvature]) -> Curvature:
    """The curvature of a sum. A constant changes nothing; several terms keep the common rays and the common
    convexity.
    """
    moving = [s for s in parts if s != CONSTANT]
    if len(moving) <= 1:
        return moving[0] if moving else CONSTANT
    kept = Curvature.RISING | Curvature.FALLING | Curvature.CONVEX | Curvature.CONCAVE
    return closed(in_all(moving) & kept)


def scaled(curvature: Curvature, sign: int | None) -> Curvature:
    """The curvature of c * f, where c is >= 0 (1), <= 0 (-1), or of either sign (None)."""
    if curvature == CONSTANT:
        return curvature
    if sign is not None:
        return curvature if sign >= 0 else negated(curvature)
    out = Curvature.NONE
    for pair in (AFFINE, MONOTONE):
        if curvature & pair == pair:
            out |= pair
    return closed(out)


def composed(curvature: Curvature, keeps: Curvature = Curvature.NONE) -> Curvature:
    """The curvature of u(f) for a rising u. `keeps` is CONVEX if u is convex, CONCAVE if it is concave."""
    order = Curvature.RISING | Curvature.FALLING | MONOTONE
    return closed(curvature & (order | keeps))


def reciprocal(curvature: Curvature) -> Curvature:
    """The curvature of 1 / f for f > 0."""
    out = composed(negated(curvature & ~AFFINE))
    return closed(out | Curvature.CONVEX) if Curvature.CONCAVE in curvature else out


def product(a: Curvature, a_sign: int | None, b: Curvature, b_sign: int | None) -> Curvature:
    """The curvature of a * b, both with the variable: known only if both factors have a sign and rise, or
    fall, together.
    """
    if a_sign is None or b_sign is None:
        return Curvature.NONE
    a, b = scaled(a, a_sign), scaled(b, b_sign)
    return scaled(closed(a & b & (Curvature.RISING | Curvature.FALLING)), a_sign * b_sign)


def quotient(a: Curvature, a_sign: int | None, b: Curvature) -> Curvature:
    """The curvature of a / b for b > 0, both with the variable: {a/b <= t} is {a - t b <= 0}."""
    out = Curvature.NONE
    if b & AFFINE == AFFINE:
        if Curvature.CONVEX in a:
            out |= Curvature.QUASICONVEX
        if Curvature.CONCAVE in a:
            out |= Curvature.QUASICONCAVE
    if a_sign == 1:
        if Curvature.CONVEX in a and Curvature.CONCAVE in b:
            out |= Curvature.QUASICONVEX
        if Curvature.CONCAVE in a and Curvature.CONVEX in b:
            out |= Curvature.QUASICONCAVE
        out |= product(a, 1, reciprocal(b), 1)
    elif a_sign == -1:
        out |= negated(quotient(negated(a), 1, b))
    return closed(out)


def absolute(curvature: Curvature, sign: int | None) -> Curvature:
    """The curvature of |f|."""
    if sign is not None:
        return scaled(curvature, sign)
    out = Curvature.NONE
    if curvature & AFFINE == AFFINE:
        out |= Curvature.CONVEX
    if curvature & MONOTONE == MONOTONE:
        out |= Curvature.QUASICONVEX
    return closed(out)


def maximum(parts: list[Curvature]) -> Curvature:
    """The curvature of the greatest of several functions."""
    moving = [s for s in parts if s != CONSTANT]
    if not moving:
        return CONSTANT
    if len(moving) == 1:
        return closed(moving[0] & ~Curvature.CONCAVE) if len(parts) > 1 else moving[0]
    kept = Curvature.RISING | Curvature.FALLING | Curvature.CONVEX | Curvature.QUASICONVEX
    return closed(in_all(moving) & kept)


def minimum(parts: list[Curvature]) -> Curvature:
    """The curvature of the least of several functions."""
    return negated(maximum([negated(s) for s in parts]))


def piecewise(parts: list[Curvature], up: list[bool], down: list[bool]) -> Curvature:
    """The curvature of a function with one curvature in each of several adjacent segments.

    `up` and `down` say for each cut between two segments whether the step there rises, or falls. A function
    that falls and then rises is quasiconvex, whatever the step between the two.
    """
    out = Curvature.NONE
    if all(Curvature.RISING in p for p in parts) and all(up):
        out |= Curvature.RISING
    if all(Curvature.FALLING in p for p in parts) and all(down):
        out |= Curvature.FALLING
    if _turns(parts, up, down):
        out |= Curvature.QUASICONVEX
    if _turns([negated(p) for p in parts], down, up):
        out |= Curvature.QUASICONCAVE
    return closed(out)


def _turns(parts: list[Curvature], up: list[bool], down: list[bool]) -> bool:
    """True if the function falls before some segment and rises after it."""
    for at in range(len(parts)):
        before = all(Curvature.FALLING in p for p in parts[:at]) and all(down[: at - 1] if at else [])
        behind = all(Curvature.RISING in p for p in parts[at + 1 :]) and all(up[at + 1 :])
        if not (before and behind):
            continue
        steps = (at == 0 or down[at - 1]) and (at == len(parts) - 1 or up[at])
        if Curvature.QUASICONVEX in parts[at] and steps:
            return True
        if at and Curvature.RISING in parts[at] and (at == len(parts) - 1 or up[at]):
            return True
    return False
