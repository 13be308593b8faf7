"""Inference of independent variables from expressions of the algebra (goldin-1997, section 6.7).

`derive` proves that two sets of variables are independent in the result of an expression, whatever the
relations of the database are, as long as these keep the independence that their schemas promise. The rules
are sound. Nothing is said about their completeness: without a derivation the variables may still be
independent.

They are those of Theorems 9 and 10, but for these:

  - Rule 7 of the source is false. It says that X and Y that are independent in R remain so in the measures
  R<Z, f>. Where the measure differs, it splits Z into parts, and X and Y may be related in one of them. A
  counterexample is the union of (y < z, 0 < u < 1), (x < y, 0 < u < 1) and (5 < u < 7), measured in u by x, y
  and z: measure 2 is the part z <= y <= x, in which x and z are related. It needs that X is independent of
  all other variables of R. Then X is also independent of the measure. For measures, where boundaries count
  nothing, it is enough that X is independent of the rest of Z. - Rules 5 and 6, of products, hold for natural
  joins too if all common variables are in X or Y. - X and Y remain independent without some of their
  variables that aren't in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from tamis.constraints.expressions import (
    Base,
    Difference,
    Expression,
    Join,
    Measure,
    Named,
    Projection,
    Renaming,
    Selection,
    Union,
    operands,
    variables,
)
from tamis.constraints.formula import constant_variable, names_of
from tamis.errors import InputError, RefusedError

Names = frozenset[str]

# Common variables of a join, and conjuncts of a selection, that are tried on both sides: 256 ways.
_MOST_CHOICES = 8


@dataclass(frozen=True)
class Derivation:
    """A proof that `one` and `other` are independent in the result of an expression."""

    rule: str
    expression: Expression
    one: Names
    other: Names
    premises: tuple[Derivation, ...] = ()

    def steps(self) -> list[str]:
        """The steps of the proof as text, premises first."""
        found = list(dict.fromkeys(step for premise in self.premises for step in premise.steps()))
        return [
            *found,
            f"{type(self.expression).__name__}: {_text(self.one)} and {_text(self.other)}: {self.rule}",
        ]


def derive(expression: Expression, one: Collection[str], other: Collection[str]) -> Derivation | None:
    """A proof that two sets of variables are independent in an expression's result, if the rules give one.

    Raises `InputError` for unknown variables.

    >>> from tamis.constraints.expressions import select
    >>> land = Named("land", ("t", "x", "y"), ((frozenset("t"), frozenset("xy")),))
    >>> found = derive(select(land, "x < y AND t > 3"), ["t"], ["x"])
    >>> found.rule
    'a selection by variables of one side keeps independence'
    >>> derive(select(land, "x < t"), ["t"], ["x"]) is None
    True
    """
    known = variables(expression)
    unknown = sorted({*one, *other} - set(known))
    if unknown:
        raise InputError(f"'{unknown[0]}' is not a variable", hint=f"the expression has: {', '.join(known)}")
    return _derive(expression, frozenset(one), frozenset(other))


def check_aggregates(expression: Expression) -> list[Derivation]:
    """The proof for each measure in an expression that the variables that it groups by are independent of
    those that it measures. Raises `RefusedError` for a measure without a proof.
    """
    found = [derivation for part in operands(expression) for derivation in check_aggregates(part)]
    if isinstance(expression, Measure):
        by, names = frozenset(expression.by), frozenset(variables(expression.of))
        derivation = _derive(expression.of, by, names - by)
        if derivation is None:
            raise RefusedError(
                f"the measure '{expression.into}' is grouped by {_text(by)}, and nothing proves that they "
                f"are independent of {_text(names - by)}",
                hint="group by other variables, or declare them independent in the schema",
            )
        found.append(derivation)
    return found


def _derive(expression: Expression, one: Names, other: Names) -> Derivation | None:
    if one <= other or other <= one:
        return Derivation("one set is part of the other", expression, one, other)
    match expression:
        case Base():
            return None
        case Named():
            return _of_named(expression, one, other)
        case Selection():
            return _of_selection(expression, one, other)
        case Projection():
            return _from(
                "a projection keeps independence", expression, one, other, [(expression.of, one, other)]
            )
        case Union():
            sides = [(side, one, other) for side in (expression.left, expression.right)]
            return _from("a union keeps the independence of both", expression, one, other, sides)
        case Join():
            return _of_join(expression, one, other)
        case Difference():
            return _of_difference(expression, one, other)
        case Renaming():
            old = {new: name for name, new in expression.names.items()}
            before = [frozenset(old.get(name, name) for name in names) for names in (one, other)]
            return _from("renamed", expression, one, other, [(expression.of, before[0], before[1])])
        case Measure():
            return _of_measure(expression, one, other)


def _from(
    rule: str,
    expression: Expression,
    one: Names,
    other: Names,
    needed: Iterable[tuple[Expression, Names, Names]],
) -> Derivation | None:
    """The derivation by a rule, if its premises can be derived."""
    premises: list[Derivation] = []
    for operand, left, right in needed:
        found = _derive(operand, left, right)
        if found is None:
            return None
        premises.append(found)
    return Derivation(rule, expression, one, other, tuple(premises))


def _of_named(expression: Named, one: Names, other: Names) -> Derivation | None:
    for first, second in expression.independent:
        for left, right in ((first, second), (second, first)):
            # Without a common variable in one set, independence says less than with it in both.
            if one <= left and other <= right and left & right <= one & other:
                return Derivation(f"the schema of '{expression.name}'", expression, one, other)
    return None


def _of_selection(expression: Selection, one: Names, other: Names) -> Derivation | None:
    """Rules 1 and 2, for the conditions of all selections above one expression."""
    of: Expression = expression
    parts: list[tuple[Names, str | None]] = []
    while isinstance(of, Selection):
        parts.append((names_of(of.condition), constant_variable(of.condition)))
        of = of.of
    constants = frozenset(name for _, name in parts if name is not None)
    first, second = one - constants, other - constants
    if first <= second or second <= first:
        return Derivation("a selection sets variables equal to constants", expression, one, other)
    rule = "a selection by variables of one side keeps independence"
    # A variable that is equal to a constant is one in the other conjuncts, too.
    compared = list(dict.fromkeys(names if constant else names - constants for names, constant in parts))
    for sides in product((0, 1), repeat=min(len(compared), _MOST_CHOICES)):
        wide = [first, second]
        for names, side in zip(compared, sides, strict=False):
            if not (names <= wide[0] or names <= wide[1]):
                wide[side] = wide[side] | names
        fits = all(names <= wide[0] or names <= wide[1] for names in compared)
        if fits and wide[0] & wide[1] <= first & second:
            found = _from(rule, expression, one, other, [(of, wide[0], wide[1])])
            if found is not None:
                return found
    return None


def _of_join(expression: Join, one: Names, other: Names) -> Derivation | None:
    """Rules 5 and 6, and their extension to natural joins."""
    parts = [(part, frozenset(variables(part))) for part in expression.parts]
    counts = Counter(name for _, names in parts for name in names)
    common = {name for name, count in counts.items() if count > 1}
    undecided = sorted(common - one - other)[:_MOST_CHOICES]
    rule = "a join keeps the independence of both if it knows the sides of common variables"
    for sides in product((0, 1), repeat=len(undecided)):
        wide = [one, other]
        for name, side in zip(undecided, sides, strict=True):
            wide[side] = wide[side] | {name}
        if common <= wide[0] | wide[1]:
            needed = [(part, wide[0] & names, wide[1] & names) for part, names in parts]
            derivation = _from(rule, expression, one, other, needed)
            if derivation is not None:
                return derivation
    return None


def _of_difference(expression: Difference, one: Names, other: Names) -> Derivation | None:
    """Theorem 10: of all variables only."""
    if one & other:
        return None
    everything = frozenset(variables(expression.left))
    rule = "a difference keeps the independence of all variables"
    for left, right in _complements(one, other, everything):
        needed = [(side, left, right) for side in (expression.left, expression.right)]
        found = _from(rule, expression, one, other, needed)
        if found is not None:
            return found
    return None


def _of_measure(expression: Measure, one: Names, other: Names) -> Derivation | None:
    """Rule 8, and rule 7 with the premises that it needs."""
    of, by, into = expression.of, frozenset(expression.by), expression.into
    everything = frozenset(variables(of))
    closed = (of, by, everything - by)
    if one & other:
        return None
    if {into} in (one, other):
        rule = "a measure takes finitely many values, each for a part of the variables that it is grouped by"
        return _from(rule, expression, one, other, [closed])
    for left, right in ((one, other), (other, one)):
        rule = "variables that are independent of all others are independent of their measures"
        for alone in {left, by - right} if into not in left else ():
            needed = [closed, (of, alone, everything - alone)]
            found = _from(rule, expression, one, other, needed)
            if found is not None:
                return found
    if into in one | other:
        return None
    rule = "where boundaries count nothing, a measure keeps the independence of all that it is grouped by"
    for left, right in _complements(one, other, by):
        found = _from(rule, expression, one, other, [closed, (of, left, right)])
        if found is not None:
            return found
    return None


def _complements(one: Names, other: Names, everything: Names) -> Iterator[tuple[Names, Names]]:
    """Larger sets that are independent only if the given ones are, and that are all variables together."""
    yield one, everything - one
    if one | other != everything:
        yield everything - other, other


def _text(names: Names) -> str:
    return "{" + ", ".join(sorted(names)) + "}"
