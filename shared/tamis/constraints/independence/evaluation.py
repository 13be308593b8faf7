"""Evaluation of expressions of the algebra with restricted aggregation over a database of relations."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.constraints.independence.aggregation import aggregate
from tamis.constraints.independence.expressions import (
    Base,
    Difference,
    Expression,
    Join,
    Measure,
    Project,
    Rename,
    Select,
    Union,
)
from tamis.constraints.independence.inference import check_aggregates
from tamis.constraints.independence.slices import independent
from tamis.constraints.relation import Relation
from tamis.errors import InputError, RefusedError


def evaluate(expression: Expression, database: Mapping[str, Relation]) -> Relation:
    """The result of an expression over the relations of a database, by name.

    A measure is computed only if the schemas and the rules prove that it is independent of what it is grouped
    by (Definition 27); so an expression is accepted or refused whatever the relations are. Raises
    `RefusedError` for other measures and for a relation that its schema doesn't allow, `InputError` for an
    unknown relation.
    """
    check_aggregates(expression)
    return _evaluate(expression, database)


def check_schema(base: Base, relation: Relation) -> None:
    """Raises `RefusedError` if sets of variables are related that the schema keeps independent."""
    if set(relation.variables) != set(base.variables):
        raise InputError(
            f"'{base.name}' has the variables {', '.join(relation.variables)}, and its schema "
            f"{', '.join(base.variables)}",
            hint="rename or project the relation",
        )
    for one, other in base.independent:
        if not independent(relation, one, other):
            raise RefusedError(
                f"'{base.name}' relates {', '.join(sorted(one))} to {', '.join(sorted(other))}, "
                "which its schema keeps independent",
                hint="change the relation or the schema",
            )


def _evaluate(expression: Expression, database: Mapping[str, Relation]) -> Relation:
    match expression:
        case Base():
            if expression.name not in database:
                raise InputError(f"no relation '{expression.name}'", hint=f"there are: {', '.join(database)}")
            relation = database[expression.name]
            check_schema(expression, relation)
            return relation
        case Select():
            return _evaluate(expression.of, database).select(expression.condition)
        case Project():
            return _evaluate(expression.of, database).project(expression.names)
        case Join():
            return _evaluate(expression.left, database).join(_evaluate(expression.right, database))
        case Union():
            return _evaluate(expression.left, database).union(_evaluate(expression.right, database))
        case Difference():
            return _evaluate(expression.left, database).difference(_evaluate(expression.right, database))
        case Rename():
            return _evaluate(expression.of, database).rename(dict(expression.names))
        case Measure():
            return aggregate(_evaluate(expression.of, database), expression.by, expression.into)
