"""The tuples of one source that stand for all of its tuples: how many, and which.

A tuple is covered by others if they give every row that it gives, with whatever tuples of other sources. What
covers all tuples of a source is enough, and what covers the alternatives of a condition covers the condition.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tamis.bounded.representatives.computed_order import keeps_order
from tamis.bounded.representatives.conditions import (
    Domains,
    FewValues,
    OwnParts,
    domains,
    entering,
    few_distances,
    few_values,
    own_parts,
)
from tamis.bounded.representatives.limits import Limits
from tamis.bounded.representatives.linear import weakest_threshold
from tamis.bounded.timeless.alternatives import alternatives, without_constants
from tamis.bounded.timeless.translate import is_present
from tamis.certificates.certificate import Certificate, Unproven
from tamis.certificates.certify import certificates_among
from tamis.certificates.interval_arithmetic.subdivision import QueryEffort
from tamis.declarations.streams import StreamDef
from tamis.expressions.nodes import Call, Column, Expr, Type, aliases, columns
from tamis.expressions.sql_text import to_sql
from tamis.operators.synopses.bound import Factor
from tamis.plan.nodes import Cover

# So many conditions `!=` count as such: of each, two tuples may be needed for every one of the others.
_MOST_INEQUATIONS = 4


@dataclass(frozen=True)
class CountedCover:
    """A cover, the most tuples that it keeps, and what it keeps, for people. `limited`: those of its equal
    expressions that other sources or SELECT read.
    """

    cover: Cover
    factors: tuple[Factor, ...]
    said: str
    limited: tuple[Expr, ...] = ()

    @property
    def count(self) -> float:
        """The most tuples."""
        return math.prod(factor.count for factor in self.factors)

    def times(self, most: int) -> CountedCover:
        """So many tuples in place of one, of those that don't differ in anything but their order."""
        if most == 1:
            return self
        cover = replace(self.cover, most=most)
        said = self.said.replace("one tuple", f"{most} tuples", 1)
        return replace(self, cover=cover, factors=(*self.factors, Factor(most, "tuples to count")), said=said)


@dataclass(frozen=True)
class _Order:
    """The values by which tuples of a source are compared in a conjunction, which all others treat as equal:
    without `value` any tuple stands for the others.
    """

    few: tuple[FewValues, ...]
    value: Expr | None = None
    least: tuple[bool, ...] = (
        False,
    )  # for each tuple that is kept, whether it is the one with the least value
    conditions: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Covers:
    """The search for covers of the sources of one query. `shown` are the columns of SELECT, `filters` the
    conditions on single sources.
    """

    streams: Mapping[str, StreamDef]
    filters: Mapping[str, tuple[Expr, ...]]
    shown: tuple[Column, ...]
    limits: Limits
    effort: QueryEffort

    def of(self, alias: str, parts: Sequence[Expr]) -> tuple[CountedCover, ...] | None:
        """The covers of a source under a conjunction of conditions over several sources; None if none are
        found. Fewer alternatives are tried first.
        """
        whole, split = self._best(alias, parts), self._split(alias, parts, halves=False)
        found = [one for one in (whole, split) if one is not None]
        return min(found, key=_total) if found else self._split(alias, parts, halves=True)

    def missing(self, alias: str, parts: Sequence[Expr]) -> str:
        """The reason why a source has no covers."""
        own = own_parts(alias, parts, self.shown, self.limits)
        unlimited = [to_sql(one) for one in own.fixed if not self.limits.limited(one)]
        values = [to_sql(one) for one in entering(own)]
        if unlimited:
            return (
                f"a later tuple may match any value of {unlimited[0]} so far, and nothing bounds these values"
            )
        if len(values) > 1:
            several = f"{', '.join(values[:-1])} and {values[-1]}"
            return (
                f"{alias} is needed by {len(values)} values, {several}: a later tuple may tell any two of its"
                " tuples apart"
            )
        box, work = domains(own, (), self.streams, self._filters(own)), self.effort.certificate()
        fixed = frozenset(own.fixed)
        every = certificates_among(own.parts, alias, self.streams[alias], box, fixed=fixed, work=work)
        why = next(
            (one.reason for one in every if isinstance(one, Unproven)), "rounding may change its order"
        )
        return f"no tuple of {alias} is proven to stand for others: {why}"

    def _split(self, alias: str, parts: Sequence[Expr], *, halves: bool) -> tuple[CountedCover, ...] | None:
        """The covers of all alternatives of the conditions together; with `halves` the two sides of `!=` and
        of absolute values are alternatives, too.
        """
        whole = [_halved(one) for one in parts] if halves else list(parts)
        if not whole:
            return None
        split = alternatives(whole[0] if len(whole) == 1 else Call("and", tuple(whole), Type.BOOLEAN))
        split = None if split is None else without_constants(split)
        if split is None or len(split) < 2:
            return None
        found: list[CountedCover] = []
        for one in split:
            covers = self._best(alias, one)
            if covers is None:
                return None
            found += (cover for cover in covers if cover not in found)
        return tuple(found)

    def _best(self, alias: str, parts: Sequence[Expr]) -> tuple[CountedCover, ...] | None:
        """The smallest cover under a conjunction, taken as a whole."""
        own = own_parts(alias, parts, self.shown, self.limits)
        if not all(map(self.limits.limited, own.fixed)):
            return None
        box = domains(own, (), self.streams, self._filters(own))
        if any(float(one.lo) > float(one.hi) for one in box.values()):
            return ()  # the conditions contradict the domains: no tuple is part of a row by them
        return min(self._possible(own), key=_total, default=None)

    def _possible(self, own: OwnParts) -> Iterator[tuple[CountedCover, ...]]:
        for order in self._orders(own):
            yield self._counted(own, order, ())
        apart = [(part, side) for part in own.parts if (side := _inequation(part, own)) is not None]
        if 0 < len(apart) <= _MOST_INEQUATIONS:
            gone = [part for part, _ in apart]
            left = replace(own, parts=tuple(part for part in own.parts if part not in gone))
            for order in self._orders(left):
                yield self._counted(own, order, tuple(side for _, side in apart))

    def _orders(self, own: OwnParts) -> Iterator[_Order]:
        """By one certificate; with equal few values by one of the rest; by equal few values alone."""
        entries = entering(own)
        if not entries:
            yield _Order(())
            return
        found = self._certified(own, ())
        if found is not None:
            yield found
            return
        threshold = self._threshold(own)
        if threshold is not None:
            yield threshold
            return
        box = domains(own, (), self.streams, self._filters(own))
        context = Domains(self.limits, self.streams[own.alias], box)
        few = [few_values(value, place, own, context) for place, value in enumerate(entries)]
        for left, main in enumerate(entries) if len(entries) > 1 else ():
            others = [
                few[place] or few_distances(value, main, place, context)
                for place, value in enumerate(entries)
                if place != left
            ]
            known = tuple(one for one in others if one is not None)
            order = self._certified(own, known) if len(known) == len(others) else None
            if order is not None:
                yield order
        known = tuple(one for one in few if one is not None)
        if len(known) == len(entries):
            yield _Order(known)

    def _threshold(self, own: OwnParts) -> _Order | None:
        """The order by the values of another source with which a tuple is part of a row, if one value of that
        source decides: of any two tuples one joins all that the other one joins.
        """
        others = {alias for part in own.parts for alias in aliases(part)} - {own.alias}
        if len(others) != 1:
            return None
        (other,) = others
        its = own_parts(other, own.parts, self.shown, self.limits)
        order = self._certified(its, ())
        if order is None or order.value is None or len(order.least) > 1:
            return None
        moving = tuple(part for part in own.parts if own.free(part) or its.free(part))
        box = domains(own, (), self.streams, self._filters(own))
        value = weakest_threshold(moving, own.alias, order.value, box)
        if value is None:
            return None
        # LEAST passes over NULL, and a condition doesn't.
        read = dict.fromkeys(one for part in moving for one in columns(part) if one.alias == own.alias)
        return _Order((), value, conditions=tuple(map(is_present, read)))

    def _certified(self, own: OwnParts, few: tuple[FewValues, ...]) -> _Order | None:
        """The order by a certificate for tuples with equal few values."""
        parts = own.parts
        for one in few:
            parts = one.instead(parts)
        mine = tuple(part for part in parts if any(c.alias == own.alias for c in columns(part)))
        if not any(own.free(part) for part in mine):
            return None
        box = domains(own, few, self.streams, self._filters(own))
        work = self.effort.certificate()
        fixed = frozenset(own.fixed)
        every = certificates_among(mine, own.alias, self.streams[own.alias], box, fixed=fixed, work=work)
        found = (one for one in every if isinstance(one, Certificate))
        best = next((one for one in found if keeps_order(one, mine)), None)
        self.effort.spent(work)
        if best is None:
            return None
        least = {"above": (False,), "below": (True,), "both": (True, False)}[best.sides]
        return _Order(few, best.value, least)

    def _filters(self, own: OwnParts) -> Mapping[str, tuple[Expr, ...]]:
        return {**self.filters, own.alias: (*self.filters.get(own.alias, ()), *own.conditions)}

    def _counted(self, own: OwnParts, order: _Order, unequal: tuple[Expr, ...]) -> tuple[CountedCover, ...]:
        factors = [*self.limits.factors(own.fixed)]
        factors += [Factor(one.count, f"values of {to_sql(one.value)}") for one in order.few if one.count > 1]
        if unequal:
            factors.append(
                Factor(
                    2 ** len(unequal),
                    f"tuples for {len(unequal)} condition{'s' * (len(unequal) > 1)} with !=",
                )
            )
        equal = (*own.fixed, *(one.value for one in order.few))
        conditions = (
            *own.conditions,
            *order.conditions,
            *(part for one in order.few for part in one.conditions),
        )
        named = own.alias
        return tuple(
            CountedCover(
                Cover(equal, order.value, least, unequal, conditions),
                tuple(factors),
                _said(named, order, least, unequal),
                own.fixed,
            )
            for least in order.least
        )


def _said(alias: str, order: _Order, least: bool, unequal: tuple[Expr, ...]) -> str:
    """The tuples that are kept for each combination, for people."""
    each = "".join(f" for each value of {to_sql(one.value)}" for one in order.few)
    which = (
        "" if order.value is None else f" with the {'least' if least else 'greatest'} {to_sql(order.value)}"
    )
    if unequal:
        sides = " and ".join(map(to_sql, unequal))
        return (
            f"up to {2 ** len(unequal)} tuples of {alias} with different {sides}{which and ',' + which}{each}"
        )
    return f"one tuple of {alias}{which}{each}"


def _total(covers: tuple[CountedCover, ...]) -> float:
    return sum(cover.count for cover in covers)


def _inequation(part: Expr, own: OwnParts) -> Expr | None:
    """The side of the source in a conjunct `a != b` of values of the same type."""
    if not isinstance(part, Call) or part.op != "!=" or part.args[0].type is not part.args[1].type:
        return None
    for side, other in itertools.permutations(part.args):
        if aliases(side) == {own.alias} and own.alias not in aliases(other) and own.free(side):
            return side
    return None


def _halved(expr: Expr) -> Expr:
    """A condition in which `a != b` is `a < b OR a > b`, and `abs(a) > b` is `a > b OR -a > b`."""
    if not isinstance(expr, Call):
        return expr
    if expr.op in ("and", "or"):
        return Call(expr.op, tuple(map(_halved, expr.args)), Type.BOOLEAN)
    if expr.op == "!=" and all(arg.type.numeric for arg in expr.args):
        return Call("or", tuple(Call(op, expr.args, Type.BOOLEAN) for op in ("<", ">")), Type.BOOLEAN)
    for size, inside, flipped in ((">", 0, False), (">=", 0, False), ("<", 1, True), ("<=", 1, True)):
        absolute = expr.args[inside] if expr.op == size else None
        if isinstance(absolute, Call) and absolute.op == "abs":
            value, limit = absolute.args[0], expr.args[1 - inside]
            sides = (value, Call("neg", (value,), value.type))
            pairs = ((limit, side) if flipped else (side, limit) for side in sides)
            return Call("or", tuple(Call(size, pair, Type.BOOLEAN) for pair in pairs), Type.BOOLEAN)
    return expr
