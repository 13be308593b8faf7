"""Algebraic expressions over relations, and their rewriting to cheaper ones with the same points.

The rules are those of relational algebra (goldin-1997, sections 3.2 and 3.3): selections and projections move
towards the relations, and joins are ordered by the estimated number of tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TypeAlias

from tamis.constraints.formula import All, comparisons
from tamis.constraints.join_sizes import Statistics, joined, statistics_of
from tamis.constraints.kinds import KindInference
from tamis.constraints.normal_form import disjunction, see_all
from tamis.constraints.parse import parse
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Numbers


@dataclass(frozen=True, eq=False)
class Base:
    """A relation."""

    relation: Relation


@dataclass(frozen=True, eq=False)
class Selection:
    """The points of an expression that are points of `condition`, a relation over some of its variables."""

    of: Expression
    condition: Relation


@dataclass(frozen=True, eq=False)
class Projection:
    """The points of an expression without the variables that aren't in `names`."""

    of: Expression
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Join:
    """The natural join of two or more expressions."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Union:
    """The union of two expressions over the same variables."""

    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class Difference:
    """The points of one expression that aren't points of another one over the same variables."""

    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class Renaming:
    """An expression with other names for variables; `names` has the new name of each old one."""

    of: Expression
    names: Mapping[str, str]


Expression: TypeAlias = Base | Selection | Projection | Join | Union | Difference | Renaming


def select(of: Expression, text: str) -> Expression:
    """The selection by a SQL condition, one `Selection` for each of its conjuncts.

    Raises as `Relation.select` does.
    """
    theory, names = _leaf(of).relation.theory, variables(of)
    formula = parse(text, names)
    inference = KindInference({})
    see_all(formula, theory, inference)
    for part in formula.parts if isinstance(formula, All) else (formula,):
        used = {name for comparison in comparisons(part) for name in comparison.names}
        kinds = inference.kinds(used)
        own = [name for name in names if name in used]
        of = Selection(of, Relation(own, theory, disjunction(theory, part, kinds), kinds))
    return of


def variables(expression: Expression) -> tuple[str, ...]:
    """The variables of the result, in order."""
    match expression:
        case Base():
            return expression.relation.variables
        case Projection():
            return expression.names
        case Join():
            return tuple(dict.fromkeys(name for part in expression.parts for name in variables(part)))
        case Union() | Difference():
            return variables(expression.left)
        case Renaming():
            return tuple(expression.names.get(name, name) for name in variables(expression.of))
    return variables(expression.of)


def evaluate(expression: Expression) -> Relation:
    """The relation of an expression. Raises as the operations of `Relation` do."""
    match expression:
        case Base():
            return expression.relation
        case Selection():
            return evaluate(expression.of).join(expression.condition)
        case Projection():
            return evaluate(expression.of).project(expression.names)
        case Join():
            return reduce(Relation.join, map(evaluate, expression.parts))
        case Union():
            return evaluate(expression.left).union(evaluate(expression.right))
        case Difference():
            return evaluate(expression.left).difference(evaluate(expression.right))
    return evaluate(expression.of).rename(expression.names)


def rewrite(expression: Expression) -> Expression:
    """An expression with the same points and the same order of variables.

    Over whole numbers, projections stay where they are: what is closed there depends on the constraints.
    """
    found = push_selections(expression)
    if _leaf(expression).relation.theory.numbers is Numbers.REAL:
        found = push_projections(found)
    found = order_joins(found)
    names = variables(expression)
    return found if variables(found) == names else Projection(found, names)


def push_selections(expression: Expression) -> Expression:
    """The expression with each selection as close to the relations as possible."""
    return _selected(expression, [])


def push_projections(expression: Expression) -> Expression:
    """The expression with variables removed as soon as nothing else needs them."""
    return _narrowed(expression, frozenset(variables(expression)))


def order_joins(expression: Expression) -> Expression:
    """The expression with joins of two parts each: first those with the fewest estimated tuples."""
    match expression:
        case Base():
            return expression
        case Union():
            return Union(order_joins(expression.left), order_joins(expression.right))
        case Difference():
            return Difference(order_joins(expression.left), order_joins(expression.right))
        case Join():
            parts = [order_joins(part) for part in _parts(expression)]
            return _ordered([(part, estimate(part)) for part in parts])
        case Selection():
            return Selection(order_joins(expression.of), expression.condition)
        case Projection():
            return Projection(order_joins(expression.of), expression.names)
    return Renaming(order_joins(expression.of), expression.names)


def estimate(expression: Expression) -> Statistics:
    """The estimated number of tuples of the result, with the intervals of its variables."""
    match expression:
        case Base():
            return statistics_of(expression.relation)
        case Selection():
            return joined(estimate(expression.of), statistics_of(expression.condition))
        case Projection():
            return estimate(expression.of).projected(expression.names)
        case Join():
            return reduce(joined, map(estimate, expression.parts))
        case Union():
            return estimate(expression.left).united(estimate(expression.right))
        case Difference():
            return estimate(expression.left)
    return estimate(expression.of).renamed(expression.names)


def _leaf(expression: Expression) -> Base:
    """Any relation of the expression: all have one theory."""
    while not isinstance(expression, Base):
        if isinstance(expression, Join):
            expression = expression.parts[0]
        elif isinstance(expression, Union | Difference):
            expression = expression.left
        else:
            expression = expression.of
    return expression


def _parts(join: Join) -> list[Expression]:
    """The parts of nested joins."""
    return [inner for part in join.parts for inner in (_parts(part) if isinstance(part, Join) else [part])]


def _selected(expression: Expression, conditions: list[Relation]) -> Expression:
    """The selection of `expression` by all conditions."""
    match expression:
        case Base():
            return _above(expression, conditions)
        case Selection():
            return _selected(expression.of, [*conditions, expression.condition])
        case Projection():
            return Projection(_selected(expression.of, conditions), expression.names)
        case Union():
            return Union(_selected(expression.left, conditions), _selected(expression.right, conditions))
        case Difference():
            return Difference(_selected(expression.left, conditions), _selected(expression.right, []))
        case Renaming():
            old = {new: name for name, new in expression.names.items()}
            inner = [one.rename({n: old[n] for n in one.variables if n in old}) for one in conditions]
            return Renaming(_selected(expression.of, inner), expression.names)
    parts = [(part, frozenset(variables(part))) for part in _parts(expression)]
    found = [
        _selected(part, [c for c in conditions if names.issuperset(c.variables)]) for part, names in parts
    ]
    left = [c for c in conditions if not any(names.issuperset(c.variables) for _, names in parts)]
    return _above(Join(tuple(found)), left)


def _above(expression: Expression, conditions: Iterable[Relation]) -> Expression:
    return reduce(Selection, conditions, expression)


def _narrowed(expression: Expression, needed: frozenset[str]) -> Expression:
    """An expression whose projection on `needed` has the same points as that of `expression`."""
    match expression:
        case Base():
            return _projected(expression, needed)
        case Selection():
            inner = _narrowed(expression.of, needed.union(expression.condition.variables))
            return _projected(Selection(inner, expression.condition), needed)
        case Projection():
            return _narrowed(expression.of, needed)
        case Union():
            return Union(_narrowed(expression.left, needed), _narrowed(expression.right, needed))
        case Difference():
            # A point without its other values tells nothing about a difference.
            every = frozenset(variables(expression))
            both = _narrowed(expression.left, every), _narrowed(expression.right, every)
            return _projected(Difference(*both), needed)
        case Renaming():
            kept = {old: expression.names.get(old, old) for old in variables(expression.of)}
            kept = {old: new for old, new in kept.items() if new in needed}
            names = {old: new for old, new in kept.items() if old != new}
            return Renaming(_narrowed(expression.of, frozenset(kept)), names)
    parts = _parts(expression)
    own = [frozenset(variables(part)) for part in parts]
    found: list[Expression] = []
    for i, part in enumerate(parts):
        others = needed.union(*own[:i], *own[i + 1 :])
        found.append(_narrowed(part, own[i] & others))
    return _projected(Join(tuple(found)), needed)


def _projected(expression: Expression, needed: frozenset[str]) -> Expression:
    names = variables(expression)
    kept = tuple(name for name in names if name in needed)
    return expression if kept == names else Projection(expression, kept)


def _ordered(parts: Sequence[tuple[Expression, Statistics]]) -> Expression:
    """A join of all parts: again and again, the two with the smallest result become one."""
    left = list(parts)
    while len(left) > 1:
        i, j = min(
            combinations(range(len(left)), 2),
            key=lambda pair: joined(left[pair[0]][1], left[pair[1]][1]).tuples,
        )
        (second, more), (first, some) = left.pop(j), left.pop(i)
        left.append((Join((first, second)), joined(some, more)))
    return left[0][0]
