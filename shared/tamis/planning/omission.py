"""What a query lets its edges omit: interval, key, value and sides of every source, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from tamis.expressions.nodes import Column, Expr, Literal, conjunction, substitute
from tamis.expressions.signatures import call
from tamis.planning.analysis import Analysis
from tamis.planning.certify import Certificate, certify
from tamis.planning.keys import Keys
from tamis.planning.plan import Sides
from tamis.planning.spans import seconds
from tamis.planning.topology import omission_interval
from tamis.query.model import Window


@dataclass(frozen=True)
class Omission:
    """One source's share. `interval` 0 means that every tuple which passes the filter is kept. With `window`
    it is the window's size, and each window keeps its extremes.

    Expressions are over the source's alias; `entry_filter` also keeps out what has no value, where that is
    proved safe.
    """

    alias: str
    interval: int
    key: tuple[str, ...]  # column names, the partition key's first
    value: Expr | None
    sides: Sides | None
    certificate: str | None
    filter: Expr | None
    entry_filter: Expr | None
    reason: str
    window: Window | None = None


def decide(analysis: Analysis, keys: Keys, *, heuristic: bool = False) -> tuple[Omission, ...]:
    """The omission of each source, in the order of FROM. With `heuristic` it may rest on a grid."""
    return tuple(_decide(alias, analysis, keys, heuristic) for alias in analysis.aliases)


def _decide(alias: str, analysis: Analysis, keys: Keys, heuristic: bool) -> Omission:
    filters = analysis.filters[alias]
    kept = conjunction(filters)
    partition = keys.partition[alias]

    def nothing(reason: str) -> Omission:
        return Omission(alias, 0, partition, None, None, None, kept, kept, reason)

    if len(analysis.aliases) == 1 and not analysis.conditions:
        return nothing("no omission: every tuple that passes is a result of its own")
    if analysis.contradiction:
        return nothing(f"no omission: {analysis.contradiction}")
    if analysis.window is not None and analysis.bounds:
        return nothing("no omission: its times are bounded besides its windows")
    if analysis.window is not None:
        # Whatever the others are, it may be replaced by any tuple of the same window.
        interval: int | None = analysis.window.size
    else:
        interval = omission_interval(alias, analysis.aliases, analysis.bounds)
    if interval is None:
        return nothing("no omission: no partner bounds the times at which it joins from both sides")
    if interval <= 0:
        return nothing("no omission: its partners need not leave it any span of time in which to join")
    found = certify(analysis.conditions, alias, analysis.streams, analysis.filters, heuristic=heuristic)
    if not isinstance(found, Certificate):
        return nothing(f"no omission: {found.reason}")
    compared = [c for pair in keys.rest for c in pair if c.alias == alias]
    key = tuple(dict.fromkeys((*partition, *(c.name for c in (*compared, *found.fixed)))))
    present = (call("not", call("is_null", found.value)),) if found.drop_null else ()
    return Omission(
        alias,
        interval,
        key,
        found.value,
        found.sides,
        found.rule,
        kept,
        conjunction((*filters, *present)),
        _said(found, interval, analysis.window),
        analysis.window,
    )


def _said(found: Certificate, interval: int, window: Window | None) -> str:
    if isinstance(found.value, Literal):
        which = "any" if window is None else "each window of"
        return f"its values do not matter: one tuple in {which} {seconds(interval)} is enough"
    if window is not None:
        return f"a tuple that is {_EXTREME[found.sides]} of a window is omitted"
    return f"{_WHAT[found.sides]} within {seconds(interval)} is omitted"


_WHAT = {
    "both": "a tuple between two higher and two lower ones",
    "above": "a tuple between two higher ones",
    "below": "a tuple between two lower ones",
}
_EXTREME = {
    "both": "neither the highest nor the lowest",
    "above": "not the highest",
    "below": "not the lowest",
}


@overload
def bare(expr: Expr) -> Expr: ...
@overload
def bare(expr: None) -> None: ...
@overload
def bare(expr: Expr | None) -> Expr | None: ...
def bare(expr: Expr | None) -> Expr | None:
    """An expression of one source without its alias, as entries of a topic carry it."""
    if expr is None:
        return None
    return substitute(expr, lambda column: Column("", column.name, column.type))
