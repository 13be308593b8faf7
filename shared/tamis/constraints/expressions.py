"""Algebraic expressions over relations: evaluation, and rewriting to cheaper ones with the same points.

The rules are those of relational algebra (goldin-1997, sections 3.2 and 3.3): selections and projections move
towards the relations, and joins are ordered by the estimated number of tuples.

Relations may also be named: `tamis.constraints.independence` proves facts about expressions whatever the
named relations are, and evaluates them over a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, TypeAlias

from tamis.constraints.formula import Formula, conjuncts, names_of, renamed
from tamis.constraints.join_sizes import Statistics, joined, statistics_of
from tamis.constraints.normal_form import KindInference, disjunction, see_all
from tamis.constraints.parse import parse
from tamis.constraints.relation import Relation
from tamis.constraints.theory import Numbers, Theory
from tamis.errors import InputError


@dataclass(frozen=True, eq=False)
class Base:
    """A relation."""

    relation: Relation


@dataclass(frozen=True, eq=False)
class Named:
    """A relation of a database, and the pairs of sets of variables that its schema keeps independent."""

    name: str
    variables: tuple[str, ...]
    independent: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()


@dataclass(frozen=True, eq=False)
class Selection:
    """The points of an expression at which a condition holds."""

    of: Expression
    condition: Formula


@dataclass(frozen=True, eq=False)
class Projection:
    """The points of an expression without the variables that aren't in `names`."""

    of: Expression
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Join:
    """The natural join of two or more expressions; the product if no variable is in two of them."""

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


@dataclass(frozen=True, eq=False)
class Measure:
    """For each value of the variables in `by`, the measure of the others, as variable `into` (goldin-1997,
    Definition 27).
    """

    of: Expression
    by: tuple[str, ...]
    into: str


Leaf: TypeAlias = Named | Measure
"""What the rules of rewriting leave as it is, and `evaluate` leaves to its caller."""
Expression: TypeAlias = Base | Leaf | Selection | Projection | Join | Union | Difference | Renaming


def select(of: Expression, text: str) -> Expression:
    """The selection by a SQL condition, one `Selection` for each of its conjuncts.

    Raises as `Relation.select` does.
    """
    formula, theory = parse(text, variables(of)), _theory(of)
    if theory is not None:
        see_all(formula, theory, KindInference({}))
    return _above(of, conjuncts(formula))


def variables(expression: Expression) -> tuple[str, ...]:
    """The variables of the result, in order. Raises `InputError` if operands don't fit."""
    match expression:
        case Base():
            return expression.relation.variables
        case Named():
            return expression.variables
        case Selection():
            return variables(expression.of)
        case Projection() | Measure():
            wanted = expression.names if isinstance(expression, Projection) else expression.by
            known = variables(expression.of)
            missing = [name for name in wanted if name not in known]
            if missing:
                raise InputError(
                    f"'{missing[0]}' is not a variable", hint=f"the expression has: {', '.join(known)}"
                )
            return wanted if isinstance(expression, Projection) else (*wanted, expression.into)
        case Join():
            return tuple(dict.fromkeys(name for part in expression.parts for name in variables(part)))
        case Union() | Difference():
            left, right = variables(expression.left), variables(expression.right)
            if set(left) != set(right):
                raise InputError(
                    f"the operands have different variables: {', '.join(sorted(set(left) ^ set(right)))}",
                    hint="project or rename first",
                )
            return left
        case Renaming():
            return tuple(expression.names.get(name, name) for name in variables(expression.of))


def operands(expression: Expression) -> tuple[Expression, ...]:
    """The expressions of which an expression is made."""
    match expression:
        case Base() | Named():
            return ()
        case Join():
            return expression.parts
        case Union() | Difference():
            return expression.left, expression.right
    return (expression.of,)


def _refused(leaf: Leaf) -> Relation:
    what = f"relation '{leaf.name}'" if isinstance(leaf, Named) else f"measure '{leaf.into}'"
    raise InputError(f"the {what} needs a database", hint="use tamis.constraints.independence.evaluation")


def evaluate(expression: Expression, leaf: Callable[[Leaf], Relation] = _refused) -> Relation:
    """The relation of an expression. `leaf` gives that of a named relation or of a measure.

    Raises as the operations of `Relation` do.
    """
    if isinstance(expression, Base):
        return expression.relation
    if isinstance(expression, Leaf):
        return leaf(expression)
    first, *others = (evaluate(part, leaf) for part in operands(expression))
    match expression:
        case Selection():
            return first.join(condition_of(expression, first.theory, first.variables))
        case Projection():
            return first.project(expression.names)
        case Join():
            return reduce(Relation.join, others, first)
        case Union():
            return first.union(others[0])
        case Difference():
            return first.difference(others[0])
        case Renaming():
            return first.rename(expression.names)


def condition_of(selection: Selection, theory: Theory[Any], names: Iterable[str]) -> Relation:
    """The condition of a selection over the variables `names`, as a relation over those that it has."""
    used, inference = names_of(selection.condition), KindInference({})
    see_all(selection.condition, theory, inference)
    kinds = inference.kinds(used)
    own = [name for name in names if name in used]
    return Relation(own, theory, disjunction(theory, selection.condition, kinds), kinds)


def rewrite(expression: Expression) -> Expression:
    """An expression with the same points and the same order of variables.

    Over whole numbers, projections stay where they are: what is closed there depends on the constraints.
    """
    moved, theory = push_selections(expression), _theory(expression)
    if theory is not None and theory.numbers is Numbers.REAL:
        moved = push_projections(moved)
    ordered = order_joins(moved)
    names = variables(expression)
    return ordered if variables(ordered) == names else Projection(ordered, names)


def push_selections(expression: Expression) -> Expression:
    """The expression with each selection as close to the relations as possible."""
    return _selected(expression, [])


def push_projections(expression: Expression) -> Expression:
    """The expression with variables removed as soon as nothing else needs them."""
    return _narrowed(expression, frozenset(variables(expression)))


def order_joins(expression: Expression) -> Expression:
    """The expression with joins of two parts each: first those with the fewest estimated tuples."""
    match expression:
        case Base() | Named() | Measure():
            return expression
        case Union() | Difference():
            return type(expression)(order_joins(expression.left), order_joins(expression.right))
        case Join():
            parts = [order_joins(part) for part in _parts(expression)]
            return _ordered([(part, estimate(part)) for part in parts])
    return replace(expression, of=order_joins(expression.of))


def estimate(expression: Expression) -> Statistics:
    """The estimated number of tuples of the result, with the intervals of its variables."""
    match expression:
        case Base():
            return statistics_of(expression.relation)
        case Named() | Measure():
            return Statistics(1.0, dict.fromkeys(variables(expression), ()))
        case Selection():
            theory = _theory(expression)
            if theory is None:
                return estimate(expression.of)
            condition = condition_of(expression, theory, variables(expression))
            return joined(estimate(expression.of), statistics_of(condition))
        case Projection():
            return estimate(expression.of).projected(expression.names)
        case Join():
            return reduce(joined, map(estimate, expression.parts))
        case Union():
            return estimate(expression.left).united(estimate(expression.right))
        case Difference():
            return estimate(expression.left)
    return estimate(expression.of).renamed(expression.names)


def _theory(expression: Expression) -> Theory[Any] | None:
    """The theory of all relations of the expression; None if they are named."""
    while not isinstance(expression, Base):
        parts = operands(expression)
        if not parts:
            return None
        expression = parts[0]
    return expression.relation.theory


def _parts(join: Join) -> list[Expression]:
    """The parts of nested joins."""
    return [inner for part in join.parts for inner in (_parts(part) if isinstance(part, Join) else [part])]


def _selected(expression: Expression, conditions: list[Formula]) -> Expression:
    """The selection of `expression` by all conditions."""
    match expression:
        case Base() | Named() | Measure():
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
            inner = [renamed(condition, old) for condition in conditions]
            return Renaming(_selected(expression.of, inner), expression.names)
    parts = [(part, frozenset(variables(part))) for part in _parts(expression)]
    selected = [_selected(part, [c for c in conditions if names_of(c) <= names]) for part, names in parts]
    left = [c for c in conditions if not any(names_of(c) <= names for _, names in parts)]
    return _above(Join(tuple(selected)), left)


def _above(expression: Expression, conditions: Iterable[Formula]) -> Expression:
    return reduce(Selection, conditions, expression)


def _narrowed(expression: Expression, needed: frozenset[str]) -> Expression:
    """An expression whose projection on `needed` has the same points as that of `expression`."""
    match expression:
        case Base() | Named() | Measure():
            return _projected(expression, needed)
        case Selection():
            inner = _narrowed(expression.of, needed | names_of(expression.condition))
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
