"""Expressions of the algebra with restricted aggregation (goldin-1997, Definition 27)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tamis.constraints.formula import All, Comparison, Formula, comparisons
from tamis.constraints.parse import parse
from tamis.errors import InputError


@dataclass(frozen=True)
class Base:
    """A relation of the database, by name, and the pairs of sets of variables that its schema keeps
    independent.
    """

    name: str
    variables: tuple[str, ...]
    independent: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()


@dataclass(frozen=True)
class Select:
    """The points at which a SQL condition holds."""

    of: Expression
    condition: str


@dataclass(frozen=True)
class Project:
    """The projection on some variables."""

    of: Expression
    names: tuple[str, ...]


@dataclass(frozen=True)
class Join:
    """The natural join; the product if no variable is in both."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Union:
    """The points of both."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Difference:
    """The points of the left one that aren't in the right one."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Rename:
    """The same points with other names for some variables: pairs of an old and a new name."""

    of: Expression
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Measure:
    """For each value of the variables in `by`, the measure of the others, as variable `into`."""

    of: Expression
    by: tuple[str, ...]
    into: str


Expression: TypeAlias = Base | Select | Project | Join | Union | Difference | Rename | Measure


def variables(expression: Expression) -> tuple[str, ...]:
    """The variables of an expression's result. Raises `InputError` if operands don't fit."""
    match expression:
        case Base():
            return expression.variables
        case Select():
            return variables(expression.of)
        case Project() | Measure():
            wanted = expression.names if isinstance(expression, Project) else expression.by
            known = variables(expression.of)
            missing = [name for name in wanted if name not in known]
            if missing:
                raise InputError(
                    f"'{missing[0]}' is not a variable", hint=f"the expression has: {', '.join(known)}"
                )
            return wanted if isinstance(expression, Project) else (*wanted, expression.into)
        case Join():
            left = variables(expression.left)
            return (*left, *(name for name in variables(expression.right) if name not in left))
        case Union() | Difference():
            left, right = variables(expression.left), variables(expression.right)
            if set(left) != set(right):
                raise InputError(
                    f"the operands have different variables: {', '.join(sorted(set(left) ^ set(right)))}",
                    hint="project or rename first",
                )
            return left
        case Rename():
            names = dict(expression.names)
            return tuple(names.get(name, name) for name in variables(expression.of))


def conjuncts(expression: Select) -> list[Formula]:
    """The parts of the condition of a selection, all of which hold."""
    formula = parse(expression.condition, variables(expression.of))
    parts: list[Formula] = []
    stack = [formula]
    while stack:
        top = stack.pop()
        if isinstance(top, All):
            stack += top.parts
        else:
            parts.append(top)
    return parts


def names_of(formula: Formula) -> frozenset[str]:
    """The variables of a condition."""
    return frozenset(name for each in comparisons(formula) for name in each.names)


def constant_variable(formula: Formula) -> str | None:
    """The variable that a condition sets equal to a constant, if that is what it says."""
    if not isinstance(formula, Comparison) or formula.op != "=":
        return None
    for one, other in ((formula.left, formula.right), (formula.right, formula.left)):
        if not isinstance(one, str) and one.variable and (isinstance(other, str) or not other.terms):
            return one.variable
    return None
