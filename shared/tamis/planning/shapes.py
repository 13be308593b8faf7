"""How a number, and the set where a condition holds, depends on one variable with all else fixed.

Every statement is *for every value of the rest* (the other columns), but may differ between them: the
product x * b with b of either sign is monotone in x for each b, rising for some and falling for others, so
it is both quasiconvex and quasiconcave without being rising or falling.

The composition rules are the well-known ones (for convex functions: disciplined convex programming; for
quasiconvex ones: Boyd and Vandenberghe, Convex Optimization, 3.4), each restated here on `Shape`.
"""

from __future__ import annotations

from enum import Flag
from functools import reduce


class Shape(Flag):
    """What is known of a number as a function of the variable; nothing known is `NONE`."""

    NONE = 0
    RISING = 1  # never falls, for all values of the rest
    FALLING = 2
    CONVEX = 4
    CONCAVE = 8
    QUASICONVEX = 16  # {x: f(x) <= c} is an interval
    QUASICONCAVE = 32


MONOTONE = Shape.QUASICONVEX | Shape.QUASICONCAVE  # for each value of the rest it rises, or it falls
AFFINE = Shape.CONVEX | Shape.CONCAVE
CONSTANT = Shape.RISING | Shape.FALLING | AFFINE | MONOTONE
VARIABLE = Shape.RISING | AFFINE | MONOTONE


def closed(shape: Shape) -> Shape:
    """`shape` with all that it implies."""
    if shape & (Shape.RISING | Shape.FALLING):
        shape |= MONOTONE
    if Shape.CONVEX in shape:
        shape |= Shape.QUASICONVEX
    if Shape.CONCAVE in shape:
        shape |= Shape.QUASICONCAVE
    return shape


def common(shapes: list[Shape]) -> Shape:
    """What holds of each of several functions."""
    return reduce(lambda a, b: a & b, shapes, CONSTANT)


def flipped(shape: Shape) -> Shape:
    """The shape of -f."""
    out = Shape.NONE
    for a, b in (
        (Shape.RISING, Shape.FALLING),
        (Shape.CONVEX, Shape.CONCAVE),
        (Shape.QUASICONVEX, Shape.QUASICONCAVE),
    ):
        if a in shape:
            out |= b
        if b in shape:
            out |= a
    return out


def summed(shapes: list[Shape]) -> Shape:
    """The shape of a sum: a constant changes nothing, and of several terms rays and curvature stay."""
    moving = [s for s in shapes if s != CONSTANT]
    if len(moving) <= 1:
        return moving[0] if moving else CONSTANT
    kept = Shape.RISING | Shape.FALLING | Shape.CONVEX | Shape.CONCAVE
    return closed(common(moving) & kept)


def scaled(shape: Shape, sign: int | None) -> Shape:
    """The shape of c * f, where c is >= 0 (1), <= 0 (-1), or of either sign (None)."""
    if shape == CONSTANT:
        return shape
    if sign is not None:
        return shape if sign >= 0 else flipped(shape)
    out = Shape.NONE
    for pair in (AFFINE, MONOTONE):
        if shape & pair == pair:
            out |= pair
    return closed(out)


def risen(shape: Shape, keeps: Shape = Shape.NONE) -> Shape:
    """The shape of u(f) for a rising u; `keeps`: CONVEX where u is convex, CONCAVE where it is concave."""
    order = Shape.RISING | Shape.FALLING | MONOTONE
    return closed(shape & (order | keeps))


def inverted(shape: Shape) -> Shape:
    """The shape of 1 / f for f > 0."""
    out = risen(flipped(shape & ~AFFINE))
    return closed(out | Shape.CONVEX) if Shape.CONCAVE in shape else out


def product(a: Shape, a_sign: int | None, b: Shape, b_sign: int | None) -> Shape:
    """The shape of a * b, both with the variable in them: factors of known sign that move the same way."""
    if a_sign is None or b_sign is None:
        return Shape.NONE
    a, b = scaled(a, a_sign), scaled(b, b_sign)
    return scaled(closed(a & b & (Shape.RISING | Shape.FALLING)), a_sign * b_sign)


def quotient(a: Shape, a_sign: int | None, b: Shape) -> Shape:
    """The shape of a / b for b > 0, both with the variable in them: {a/b <= t} is {a - t b <= 0}."""
    out = Shape.NONE
    if b & AFFINE == AFFINE:
        if Shape.CONVEX in a:
            out |= Shape.QUASICONVEX
        if Shape.CONCAVE in a:
            out |= Shape.QUASICONCAVE
    if a_sign == 1:
        if Shape.CONVEX in a and Shape.CONCAVE in b:
            out |= Shape.QUASICONVEX
        if Shape.CONCAVE in a and Shape.CONVEX in b:
            out |= Shape.QUASICONCAVE
        out |= product(a, 1, inverted(b), 1)
    elif a_sign == -1:
        out |= flipped(quotient(flipped(a), 1, b))
    return closed(out)


def absolute(shape: Shape, sign: int | None) -> Shape:
    """The shape of |f|."""
    if sign is not None:
        return scaled(shape, sign)
    out = Shape.NONE
    if shape & AFFINE == AFFINE:
        out |= Shape.CONVEX
    if shape & MONOTONE == MONOTONE:
        out |= Shape.QUASICONVEX
    return closed(out)


def greatest(shapes: list[Shape]) -> Shape:
    """The shape of the greatest of several."""
    moving = [s for s in shapes if s != CONSTANT]
    if not moving:
        return CONSTANT
    if len(moving) == 1:
        return closed(moving[0] & ~Shape.CONCAVE) if len(shapes) > 1 else moving[0]
    kept = Shape.RISING | Shape.FALLING | Shape.CONVEX | Shape.QUASICONVEX
    return closed(common(moving) & kept)


def least(shapes: list[Shape]) -> Shape:
    """The shape of the least of several."""
    return flipped(greatest([flipped(s) for s in shapes]))


def in_pieces(parts: list[Shape], up: list[bool], down: list[bool]) -> Shape:
    """The shape of what has one shape in each of several pieces side by side; `up` and `down` say for each
    cut between them whether the step there is one that goes along with rising, or with falling.

    What falls and then rises is quasiconvex, whatever the step between the two.
    """
    out = Shape.NONE
    if all(Shape.RISING in p for p in parts) and all(up):
        out |= Shape.RISING
    if all(Shape.FALLING in p for p in parts) and all(down):
        out |= Shape.FALLING
    if _turns(parts, up, down):
        out |= Shape.QUASICONVEX
    if _turns([flipped(p) for p in parts], down, up):
        out |= Shape.QUASICONCAVE
    return closed(out)


def _turns(parts: list[Shape], up: list[bool], down: list[bool]) -> bool:
    """Is there a piece before which all falls, and from which on all rises?"""
    for at in range(len(parts)):
        before = all(Shape.FALLING in p for p in parts[:at]) and all(down[: at - 1] if at else [])
        behind = all(Shape.RISING in p for p in parts[at + 1 :]) and all(up[at + 1 :])
        if not (before and behind):
            continue
        steps = (at == 0 or down[at - 1]) and (at == len(parts) - 1 or up[at])
        if Shape.QUASICONVEX in parts[at] and steps:
            return True
        if at and Shape.RISING in parts[at] and (at == len(parts) - 1 or up[at]):
            return True
    return False


class Region(Flag):
    """What is known of a set of values of the variable, for every value of the rest; the empty set is all
    of it.
    """

    NONE = 0
    UPWARD = 1  # with a value it holds every greater one
    DOWNWARD = 2
    INTERVAL = 4
    OUTSIDE = 8  # what it does not hold is an interval


ALWAYS = Region.UPWARD | Region.DOWNWARD | Region.INTERVAL | Region.OUTSIDE  # all values or none


def region(shape: Region) -> Region:
    """With what it implies: a ray is an interval, and so is what it leaves."""
    if shape & (Region.UPWARD | Region.DOWNWARD):
        shape |= Region.INTERVAL | Region.OUTSIDE
    return shape


def union(parts: list[Region]) -> Region:
    """Rays of one direction make a ray; what several leave is the common part of intervals."""
    moving = [p for p in parts if p != ALWAYS]
    if len(moving) <= 1:
        return moving[0] if moving else ALWAYS
    joined = reduce(lambda a, b: a & b, moving)
    return region(joined & (Region.UPWARD | Region.DOWNWARD | Region.OUTSIDE))


def intersection(parts: list[Region]) -> Region:
    """The mirror of `union`."""
    moving = [p for p in parts if p != ALWAYS]
    if len(moving) <= 1:
        return moving[0] if moving else ALWAYS
    joined = reduce(lambda a, b: a & b, moving)
    return region(joined & (Region.UPWARD | Region.DOWNWARD | Region.INTERVAL))


def above(shape: Shape) -> Region:
    """{x: f(x) > 0}, and with >=."""
    out = Region.NONE
    if Shape.RISING in shape:
        out |= Region.UPWARD
    if Shape.FALLING in shape:
        out |= Region.DOWNWARD
    if Shape.QUASICONVEX in shape:
        out |= Region.OUTSIDE
    if Shape.QUASICONCAVE in shape:
        out |= Region.INTERVAL
    return region(out)


def level(shape: Shape) -> Region:
    """{x: f(x) = 0}."""
    if shape == CONSTANT:
        return ALWAYS
    return Region.INTERVAL if shape & MONOTONE == MONOTONE else Region.NONE
