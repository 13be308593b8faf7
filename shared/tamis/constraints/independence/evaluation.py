"""Evaluation of expressions of the algebra with restricted aggregation over a database of relations."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.constraints import expressions
from tamis.constraints.expressions import Expression, Leaf, Named
from tamis.constraints.independence.aggregation import aggregate
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

    def relation_of(leaf: Leaf) -> Relation:
        if not isinstance(leaf, Named):
            return aggregate(expressions.evaluate(leaf.of, relation_of), leaf.by, leaf.into)
        if leaf.name not in database:
            raise InputError(f"no relation '{leaf.name}'", hint=f"there are: {', '.join(database)}")
        check_schema(leaf, database[leaf.name])
        return database[leaf.name]

    return expressions.evaluate(expression, relation_of)


def check_schema(base: Named, relation: Relation) -> None:
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
