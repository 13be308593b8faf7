"""Superlevel sets and level sets: what the curvature of a function says about where a condition holds."""

from __future__ import annotations

from enum import Flag
from functools import reduce
from operator import and_

from tamis.certificates.curvature.properties import CONSTANT, MONOTONE, Curvature


class Region(Flag):
    """The properties that are proved of a set of values of the variable, for every value of the rest. The
    empty set has all of them.
    """

    NONE = 0
    UPWARD = 1  # with a value it contains every greater one
    DOWNWARD = 2
    INTERVAL = 4
    OUTSIDE = 8  # its complement is an interval


ALWAYS = Region.UPWARD | Region.DOWNWARD | Region.INTERVAL | Region.OUTSIDE  # all values, or none


def closed(region: Region) -> Region:
    """`region` with all properties that follow from it: a ray is an interval, and so is its complement."""
    if region & (Region.UPWARD | Region.DOWNWARD):
        region |= Region.INTERVAL | Region.OUTSIDE
    return region


def union(parts: list[Region]) -> Region:
    """The union of sets: rays of one direction make a ray, and the complement is an intersection of
    intervals.
    """
    return _combined(parts, Region.OUTSIDE)


def intersection(parts: list[Region]) -> Region:
    """The intersection of sets, by the same rules for the complements."""
    return _combined(parts, Region.INTERVAL)


def _combined(parts: list[Region], kept: Region) -> Region:
    """What several sets have in common of their directions and of the form `kept`."""
    moving = [part for part in parts if part != ALWAYS]
    if len(moving) <= 1:
        return moving[0] if moving else ALWAYS
    return closed(reduce(and_, moving) & (Region.UPWARD | Region.DOWNWARD | kept))


def superlevel_set(curvature: Curvature) -> Region:
    """The region {x: f(x) > 0}, and also {x: f(x) >= 0}."""
    out = Region.NONE
    if Curvature.RISING in curvature:
        out |= Region.UPWARD
    if Curvature.FALLING in curvature:
        out |= Region.DOWNWARD
    if Curvature.QUASICONVEX in curvature:
        out |= Region.OUTSIDE
    if Curvature.QUASICONCAVE in curvature:
        out |= Region.INTERVAL
    return closed(out)


def level_set(curvature: Curvature) -> Region:
    """The region {x: f(x) = 0}."""
    if curvature == CONSTANT:
        return ALWAYS
    return Region.INTERVAL if curvature & MONOTONE == MONOTONE else Region.NONE
